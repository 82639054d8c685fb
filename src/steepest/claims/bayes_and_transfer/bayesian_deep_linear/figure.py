"""What the figure of bayesian-deep-linear shows."""

from collections.abc import Sequence

import numpy as np
import xarray

from steepest import kit
from steepest.bayes import limit_scale, scale_density


def panel_of_depth(depth: Sequence[float], law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
    """Draw the posterior mean of s over the effective depth, beside its limits."""
    grid = np.linspace(0, max(depth) * 1.3, 80)
    curves = []
    for i, size in enumerate(law["size"].values):
        measured = seen.scale.sel(size=size).mean("chain")
        limit = [limit_scale(x, size) for x in grid]
        once = lambda label, first=i == 0: label if first else ""  # colours tell sizes apart
        curves += [
            kit.predicted_curve(grid, limit, f"limit, A = {size:g}", shade=0.8 * i),
            kit.predicted_curve(
                depth, law.scale.sel(size=size)[0], once("exact"), kind="points", shade=0.8 * i
            ),
            *(
                kit.observed_curve(depth, of_kind, once(f"{kind} data"), kind="points", shade=k)
                for k, (kind, of_kind) in enumerate(zip(seen.kind.values, measured, strict=True))
            ),
        ]
    return kit.panel(
        "Depth learns the scale of the data",
        "effective depth λ = PΣ1/n_l",
        "E s",
        *curves,
        kit.rival_curve(grid, 1 + 0 * grid, "kernel"),
    )


def panel_of_scale(
    widths: Sequence[int], points: int, size: float, seen: xarray.Dataset
) -> kit.Panel:
    """Draw the distribution of s of one network: sampled, of the posterior and of the prior."""
    scale = seen.first_scales.values.ravel()
    u = np.linspace(-8.0, np.log(scale.max()) + 0.3, 600)
    prior = scale_density(widths, u)
    posterior = prior * np.exp(-points / 2 * (u + size * np.exp(-u)))
    quantiles = np.linspace(0, 1, 101)
    return kit.panel(
        f"The scale's posterior, n = {', '.join(map(str, widths))}, A = {size:g}",
        "s",
        "share below",
        kit.observed_curve(np.quantile(scale, quantiles), quantiles, "sampled", kind="steps"),
        kit.predicted_curve(np.exp(u), np.cumsum(posterior) / posterior.sum(), "exact"),
        kit.rival_curve(np.exp(u), np.cumsum(prior) * (u[1] - u[0]), "prior"),
        xlim=(0, 2 * float(np.quantile(scale, 0.95))),
    )


def panel_of_evidence(
    title: str,
    layers: Sequence[int],
    exact: Sequence[float],
    limit: Sequence[float],
    seen: xarray.Dataset,
) -> kit.Panel:
    """Draw the logarithm of the evidence over depth."""
    return kit.panel(
        title,
        "hidden layers L",
        "log Z(L)/Z(0)",
        kit.observed_curve(
            seen.layers, np.log(seen.evidence.mean("group")), "networks of the prior", kind="points"
        ),
        kit.predicted_curve(layers, np.log(exact), "exact"),
        kit.rival_curve(layers, np.log(limit), "limit P → ∞"),
        log="x",
    )
