"""Arrays of a claim with the coordinates of their axes, and wrong arrays in their place."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray

from steepest.core.arrays import Observation, Prediction
from steepest.core.checks import Control, Rival
from steepest.core.errors import UserError


def law(**arrays: Any) -> Prediction:
    """Return what theory predicts: ``name=("axis axis", values)``, or a number.

    >>> law(step=("width", [0.2, 0.1]))["step"]
    array([0.2, 0.1])
    """
    return Prediction(**{name: _entry(entry) for name, entry in arrays.items()})


def seen(**arrays: Any) -> Observation:
    """Return what an experiment gave: ``name=("seed axis", values)``, or a number."""
    return Observation(**{name: _entry(entry) for name, entry in arrays.items()})


def labelled(claim: Any, arrays: Any) -> xarray.Dataset:
    """Return arrays as a dataset, with the coordinates of the claim's axes.

    Raises:
        UserError: two arrays disagree on the length of an axis.
    """
    axes = claim.axes()
    lengths: dict[str, tuple[int, str]] = {}
    variables = {}
    for name in arrays:
        quantity = arrays.quantity(name)
        for dim, size in zip(quantity.dims, quantity.values.shape, strict=True):
            other, whose = lengths.setdefault(dim, (size, name))
            if other != size:
                raise UserError(
                    f"the axis {dim!r} has {other} entries in {whose} and {size} in {name}; give one another name"
                )
        variables[name] = (quantity.dims, np.asarray(quantity.values))
    used = {dim: _coordinates(dim, axes[dim], lengths) for dim in lengths if dim in axes}
    return xarray.Dataset(variables, used)


def law_and_seen(
    claim: Any, predicted: Prediction, observed: Observation
) -> tuple[xarray.Dataset, xarray.Dataset]:
    """Return both sides as datasets, what was measured with what the claim derives from it.

    Raises:
        UserError: the claim derives something under the name of an array that it measured.
    """
    laws = labelled(claim, predicted)
    measured = labelled(claim, observed)
    derived = claim.derive(laws, measured)
    if taken := sorted(set(derived) & set(measured.variables)):
        names = ", ".join(taken)
        raise UserError(f"derive() gives {names}, which observe gives; give it another name")
    return laws, measured.assign(derived)


def rival(id: str, why: str, *, label: str = "", accepted: str = "", **arrays: Any) -> Rival:
    """Return a wrong theory: only the arrays that it predicts otherwise, which inherit their axes.

    Args:
        id: what tables and JSON call it.
        why: why one might believe it.
        label: the wrong statement in a few words.
        accepted: what these data cannot tell, for a theory that they are known not to reject.
        **arrays: such as ``step=law.step / 2``.
    """
    wrong = {name: _entry(entry) for name, entry in arrays.items()}
    return Rival(id, wrong, why, label, accepted)


def control(id: str, why: str, *, label: str = "", **arrays: Any) -> Control:
    """Return a changed world: only the arrays that were observed otherwise there.

    Args:
        id: what tables and JSON call it.
        why: why the law must not hold there.
        label: the object in a few words.
        **arrays: such as ``sharpness=seen.sharpness_of_flow``.
    """
    return Control(id, {name: _entry(entry) for name, entry in arrays.items()}, why, label)


def completed_rival(wrong: Rival, predicted: Prediction) -> Rival:
    """Return a rival with all arrays of a prediction."""
    return replace(wrong, prediction=predicted.replace(**_in_place(wrong.prediction, predicted)))


def completed_control(other: Control, observed: Observation) -> Control:
    """Return a control with all arrays of an observation."""
    return replace(other, observation=observed.replace(**other.observation))


def _in_place(wrong: Mapping[str, Any], predicted: Prediction) -> dict[str, Any]:
    """Arrays that replace a prediction's; a name that it does not have is an author's mistake."""
    for name in wrong:
        if name not in predicted:
            raise UserError(f"a rival predicts {name!r}, and the claim {', '.join(predicted)}")
    return dict(wrong)


def _entry(entry: Any) -> Any:
    """An array of xarray in the form that claims keep: axes and numbers."""
    if isinstance(entry, xarray.DataArray):
        return (tuple(map(str, entry.dims)), entry.values)
    return entry


def _coordinates(dim: str, values: Any, lengths: Mapping[str, tuple[int, str]]) -> np.ndarray:
    size, name = lengths[dim]
    if len(values) != size:
        raise UserError(f"axes() gives {len(values)} coordinates of {dim!r}, and {name} has {size}")
    return np.asarray(values)
