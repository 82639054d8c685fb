"""Arrays of a claim with the coordinates of their axes, and wrong arrays in their place."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray

from steepest.core.arrays import Observation, Prediction, Quantities, Quantity
from steepest.core.checks import Control, Rival
from steepest.core.errors import UserError
from steepest.kit._arrays import plain
from steepest.kit._checks import REPETITIONS

Arrays = Prediction | Observation


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
        UserError: the claim derives something under the name of an array that it measured, or predicts along an axis
            of which it gives no coordinates.
    """
    laws = labelled(claim, predicted)
    _refuse_unnamed(laws)
    measured = labelled(claim, observed)
    derived = claim.derive(laws, measured)
    if taken := sorted(set(derived) & set(measured.variables)):
        names = ", ".join(taken)
        raise UserError(f"derive() gives {names}, which observe gives; give it another name")
    return laws, measured.assign(derived)


def rival(label: str, why: str, /, *, id: Any = "", accepted: Any = "", **arrays: Any) -> Rival:
    """Return a wrong theory: only the arrays that it predicts otherwise, which inherit their axes.

    Args:
        label: the wrong statement in a few words.
        why: why one might believe it.
        id: what tables and JSON call it, a text; made of the label where it is left out.
        accepted: what these data cannot tell, a text, for a theory that they are known not to reject.
        **arrays: such as ``step=law.step / 2``.

    Raises:
        UserError: an id that is no text, or none where the label has no letter of which one can be made.

    >>> rival("the step is half as large", "a factor is easily lost", step=0.5).id
    'the_step_is_half_as_large'
    """
    _refuse_labels(arrays, "rival")
    wrong = {name: plain(entry) for name, entry in arrays.items()}
    return Rival(_id_of(label, id), wrong, why, label, accepted)


def control(label: str, why: str, /, *, id: Any = "", **arrays: Any) -> Control:
    """Return a changed world: only the arrays that were observed otherwise there.

    Args:
        label: the world in a few words.
        why: why the law must not hold there.
        id: what tables and JSON call it, a text; made of the label where it is left out.
        **arrays: such as ``sharpness=seen.sharpness_of_flow``.

    Raises:
        UserError: an id that is no text, or none where the label has no letter of which one can be made.
    """
    _refuse_labels(arrays, "control")
    changed = {name: plain(entry) for name, entry in arrays.items()}
    return Control(_id_of(label, id), changed, why, label)


def _refuse_labels(arrays: Mapping[str, Any], what: str) -> None:
    """Refuse a label in the place of an array: it stood there until 0.3, behind the id."""
    if isinstance(label := arrays.get("label"), str):
        raise UserError(f"say the label first: kit.{what}({label!r}, why, id=…, …)")


def _id_of(label: str, given: Any) -> str:
    """Return the id that is given, or the letters and figures of a label, Greek ones by name, joined by underscores."""
    if not isinstance(given, str):
        raise UserError(
            f"the id of {label!r} is a text; call an array otherwise than id, got {given!r:.60}"
        )
    if given:
        return given
    plain_letters = unicodedata.normalize("NFKD", label).lower()
    words = re.findall(r"[a-z0-9]+", "".join(map(_spelled, plain_letters)))
    if not words:
        raise UserError(f"of the label {label!r} no id can be made; give one: id='half'")
    begins = [] if words[0][0].isalpha() else ["of"]
    return "_".join([*begins, *words])


def _spelled(letter: str) -> str:
    """Return the name of a Greek letter, and any other as it is."""
    name = unicodedata.name(letter, "")
    return f" {name.split()[-1].lower()} " if name.startswith("GREEK SMALL LETTER") else letter


def completed_rival(wrong: Rival, predicted: Prediction) -> Rival:
    """Return a rival with all arrays of a prediction."""
    return replace(wrong, prediction=predicted.replace(**_in_place(wrong.prediction, predicted)))


def completed_control(other: Control, observed: Observation) -> Control:
    """Return a control with all arrays of an observation."""
    return replace(other, observation=observed.replace(**_in_place(other.observation, observed)))


def not_finite(claim: Any, observed: Observation) -> dict[str, str]:
    """Return how many entries are no number, in words, of each array that the claim does not call ragged."""
    holes = {}
    for name in observed:
        values = np.asarray(observed[name])
        if name in claim.ragged or values.dtype.kind not in "fc":
            continue
        if bad := int(np.count_nonzero(~np.isfinite(values))):
            holes[name] = f"{bad} of {values.size}"
    return holes


def _refuse_unnamed(laws: xarray.Dataset) -> None:
    """Refuse a law along an axis without coordinates: it could not be tried wrong there."""
    for name, array in laws.items():
        for dim in array.dims:
            if dim not in laws.coords and dim not in REPETITIONS:
                raise UserError(
                    f"{name} is predicted along {dim!r}, of which axes() gives no coordinates; add them, as the kit "
                    f"tries each law wrong along its axes (axes of repetitions are called {', '.join(REPETITIONS)})"
                )


def _in_place(entries: Mapping[str, Any], own: Arrays) -> dict[str, Quantity]:
    """Return arrays that replace a claim's own, along the same axes; what lacks one of them is repeated along it.

    Raises:
        UserError: a name or an axis that the claim's own arrays do not have.
    """
    put = {}
    replacing = Quantities(**entries)
    for name in replacing:
        if name not in own:
            raise UserError(f"a rival or control gives {name!r}, and the claim {', '.join(own)}")
        put[name] = _along(name, replacing.quantity(name), own.quantity(name))
    return put


def _along(name: str, quantity: Quantity, own: Quantity) -> Quantity:
    """Return a quantity along the axes of another, in their order."""
    if unknown := [dim for dim in quantity.dims if dim not in own.dims]:
        raise UserError(
            f"a rival or control gives {name} along {', '.join(unknown)}, and the claim along "
            f"{', '.join(own.dims) or 'nothing'}"
        )
    sizes = zip(own.dims, own.values.shape, strict=True)
    missing = {dim: size for dim, size in sizes if dim not in quantity.dims}
    array = xarray.DataArray(quantity.values, dims=quantity.dims).expand_dims(missing)
    return Quantity(array.transpose(*own.dims).values, own.dims, own.unit)


def _coordinates(dim: str, values: Any, lengths: Mapping[str, tuple[int, str]]) -> np.ndarray:
    size, name = lengths[dim]
    if len(values) != size:
        raise UserError(f"axes() gives {len(values)} coordinates of {dim!r}, and {name} has {size}")
    return np.asarray(values)
