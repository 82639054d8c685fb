"""What theory and experiment give: arrays over named axes."""

from typing import Any

import xarray

from steepest.core.arrays import Observation, Prediction


def law(**arrays: Any) -> Prediction:
    """Return what theory predicts: ``name=("axis axis", values)``, or a number.

    >>> law(step=("width", [0.2, 0.1]))["step"]
    array([0.2, 0.1])
    """
    return Prediction(**{name: plain(entry) for name, entry in arrays.items()})


def seen(**arrays: Any) -> Observation:
    """Return what an experiment gave: ``name=("seed axis", values)``, or a number."""
    return Observation(**{name: plain(entry) for name, entry in arrays.items()})


def plain(entry: Any) -> Any:
    """Return an array of xarray in the form that claims keep: axes and numbers."""
    if isinstance(entry, xarray.DataArray):
        return (tuple(map(str, entry.dims)), entry.values)
    return entry
