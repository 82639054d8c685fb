"""What the figure of the Hessian's outliers shows."""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.curvature.hessian_outliers.experiment import MOMENTS
from steepest.measurement.quantities import outlier_count


def panels_of_outliers(
    classes: tuple[int, ...], law: xarray.Dataset, seen: xarray.Dataset
) -> tuple[kit.Panel, ...]:
    """Draw shares of the class part, spectra, counts, and the gradient's share."""
    return (
        _carried(max(classes), seen),
        _spectra(classes, seen),
        _counts(classes, law, seen),
        _gradient(classes, seen),
    )


def _carried(most: int, seen: xarray.Dataset) -> kit.Panel:
    ranks = np.arange(1, 2 * most + 2)
    threshold = np.full(len(ranks), most / (4 * (most - 1)))
    return kit.panel(
        f"Class means: the first {most - 1} of {most} carry them, then none",
        "rank",
        "share of the class part",
        kit.observed_curve(ranks, seen.class_share.values[-1], "class means"),
        kit.observed_curve(ranks, seen.random_share.values[-1], "random groups", shade=0.7),
        kit.predicted_curve(ranks, threshold, "C/(4(C − 1))"),
    )


def _spectra(classes: tuple[int, ...], seen: xarray.Dataset) -> kit.Panel:
    values = seen["values"].values
    curves = [
        kit.observed_curve(
            np.arange(1, 2 * c + 2),
            np.median(values[i, :, : 2 * c + 1] / values[i, :, :1], 0),
            f"C = {c}",
            shade=i / len(classes),
        )
        for i, c in enumerate(classes)
    ]
    return kit.panel(
        "Few eigenvalues stand out", "rank", "eigenvalue / largest, median", *curves, log="y"
    )


def _counts(classes: tuple[int, ...], law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
    every = zip(classes, seen["values"].values, strict=True)
    gaps = np.array([[outlier_count(v[: 2 * c + 1], 2 * c) for v in values] for c, values in every])
    axis = np.array(classes)
    counted = {"leading": seen.leading, "all with class means": seen.carrying}
    curves = [
        kit.observed_curve(axis, counts.median("seed").values, name, shade=0.3 * i)
        for i, (name, counts) in enumerate(counted.items())
    ]
    return kit.panel(
        "C − 1 lead; C in all",
        "classes C",
        "eigenvectors, median",
        *curves,
        kit.observed_curve(axis, np.median(gaps, 1), "before the gap", shade=0.8),
        kit.predicted_curve(axis, law.leading.values, "C − 1"),
        kit.rival_curve(axis, axis, "C"),
    )


def _gradient(classes: tuple[int, ...], seen: xarray.Dataset) -> kit.Panel:
    shares = [
        kit.observed_curve(
            np.array(classes),
            seen.share.values[:, :, i].mean(1),
            name,
            shade=i / (len(MOMENTS) - 1),
        )
        for i, name in enumerate(MOMENTS)
    ]
    return kit.panel(
        "More of the gradient is there with more classes, less at the end",
        "classes C",
        "share of ‖∇R‖², mean",
        *shares,
        ylim=(0, 1),
    )
