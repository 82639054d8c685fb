"""What the figure of mean-field-limit shows."""

from collections.abc import Mapping

import xarray

from steepest import kit


def panels_of_distances(
    law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
) -> tuple[kit.Panel, ...]:
    """Draw squared distances over width and step, and how far neurons move."""
    wrong = lambda id, name, array: {name: rivals[id][array].isel(time=-1)} if rivals else {}
    return (
        kit.curves(
            "Gradient flow: the squared distance falls like 1/N, and with time",
            law.square,
            seen.squares,
            over="width",
            by="time",
            x="width N [neurons]",
            y="squared distance from the limit",
            name="t = {}",
            rivals=wrong("one_over_n", "1/N²", "square"),
            log="xy",
        ),
        kit.curves(
            "One-pass SGD: it grows like ε",
            law.noise,
            seen.noises.isel(width=-1, drop=True),
            over="rate",
            by="time",
            x="step ε",
            y="squared distance from the flow of the same start",
            name="t = {}",
            rivals=wrong("linear_in_step", "ε²", "noise"),
            log="xy",
        ),
        kit.curves(
            "Both add up",
            law.both.isel(time=-1, drop=True),
            seen.boths.isel(time=-1, drop=True),
            over="rate",
            by="width",
            x="step ε",
            y="squared distance from the limit",
            name="N = {}",
            log="xy",
        ),
        kit.curves(
            "Neurons move as far at every width",
            law.movement,
            seen.moved,
            over="time",
            by="width",
            x="time",
            y="movement of neurons",
            name="N = {}",
        ),
        _sampling(law, seen, wrong("dimension_twice", "D²", "sampling")),
    )


def _sampling(
    law: xarray.Dataset, seen: xarray.Dataset, wrong: Mapping[str, xarray.DataArray]
) -> kit.Panel:
    """Draw the squared noise of the steps over the dimension, for the most neurons."""
    return kit.curves(
        "In D dimensions the squared noise of the steps is ε times about D",
        law.sampling.isel(neurons=-1, drop=True),
        seen.sampling.isel(neurons=-1, drop=True),
        over="dimension",
        by="time",
        x="dimension D",
        y="squared distance from a limit at rest, over ε",
        name="t = {}",
        rivals={name: array.isel(neurons=-1, drop=True) for name, array in wrong.items()},
        log="xy",
    )
