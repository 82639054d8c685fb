"""The numbers of a clause in the place of the law: the sentence is judged as it stands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from typing import Literal as Literal  # what `kit._claim` takes from here, where it writes types

import numpy as np
import xarray

from steepest.core.arrays import Observation, Prediction, Quantity
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.kit._laws import labelled

ANCHORS = ("fit", "first", "last")
"""Where along a power's axes its constant, which the sentence leaves open, is that of the law."""
BEST_FIRST = (Verdict.HOLDS, Verdict.INCONCLUSIVE, Verdict.FAILS)


@dataclass(frozen=True)
class Numbers:
    """What a clause says in numbers of the law behind one of its checks.

    Attributes:
        check: id of the check.
        law: the predicted array that the numbers replace.
        value: its number, or with ``power`` the constant of that; None where the sentence leaves it open.
        power: exponents by axis.
        at: the coordinates of which the clause speaks; elsewhere the law stays as it is.
    """

    check: str
    law: str
    value: float | None = None
    power: Mapping[str, float] = field(default_factory=dict)
    at: Mapping[str, Any] = field(default_factory=dict)


def literals_of(named: Any) -> tuple[Numbers, ...]:
    """Return the numbers of a clause, from what ``says`` names beside it."""
    several = named if isinstance(named, tuple) else (named,)
    return tuple(one for one in several if isinstance(one, Numbers))


def literal(
    check: str,
    law: str = "",
    *,
    value: float | None = None,
    power: Mapping[str, float] | None = None,
    at: Mapping[str, Any] | None = None,
) -> Numbers:
    """Return the id of a check together with the numbers that its clause states, for ``says``.

    The kit puts them in the place of the law, before the claim's own judge. Where that says FAILS the claim is
    undecided, as its sentence states what its data refute; INCONCLUSIVE is "a limit, not reached".

    Args:
        check: id of the check.
        law: the predicted array that the numbers replace; the check's id without it.
        value: such as 0.8 of "0.8/√n".
        power: exponents by axis, such as ``{"eta": -2}`` of "∝ 1/η²"; without ``value`` the constant is open.
        at: the coordinates of which the clause speaks, such as ``{"rule": "mean"}``.

    Raises:
        UserError: neither a value nor a power.
    """
    if value is None and not power:
        raise UserError(
            f"the literal of {check!r} states no number; give value=… or power={{axis: exponent}}"
        )
    return Numbers(check, law or check, value, power or {}, at or {})


def verdict_of(
    claim: Any, literals: Iterable[Numbers], predicted: Prediction, observed: Observation
) -> Verdict:
    """Return what the claim's judge says of a clause's numbers: the best over the anchors of open constants.

    Args:
        claim: with its axes and its judge.
        literals: all numbers of one clause.
        predicted: the claim's laws.
        observed: what was measured.
    """
    stated = tuple(literals)
    ids = {one.check for one in stated}
    is_open = any(one.value is None for one in stated)
    verdicts = set()
    for anchor in ANCHORS if is_open else ANCHORS[:1]:
        wrong = predicted.replace(**in_place(claim, stated, predicted, anchor))
        judging = [check for check in claim.checks(wrong, observed) if check.id in ids]
        verdicts.add(_worst(check.verdict for check in judging))
    return next(verdict for verdict in BEST_FIRST if verdict in verdicts)


def in_place(
    claim: Any, literals: Iterable[Numbers], predicted: Prediction, anchor: str
) -> dict[str, Quantity]:
    """Return the laws with the numbers of a clause in their place.

    Raises:
        UserError: a law or an axis that the prediction does not have, or an open constant of a law that is zero or
            changes its sign.
    """
    laws = labelled(claim, predicted)
    put: dict[str, Quantity] = {}
    for one in literals:
        if one.law not in laws:
            raise UserError(
                f"the clause of {one.check} states numbers of {one.law!r}; the claim predicts {', '.join(predicted)}"
            )
        law = laws[one.law]
        if missing := {*one.power, *one.at} - set(law.dims):
            raise UserError(
                f"the clause of {one.check} names {', '.join(sorted(missing))}, and {one.law} lies along "
                f"{', '.join(map(str, law.dims)) or 'no axis'}"
            )
        coordinates = {
            axis: _present(law[axis].values, of_axis) for axis, of_axis in one.at.items()
        }
        if not all(coordinates.values()):
            continue  # with these fields there is nothing of which the clause speaks
        changed = law.astype(float).copy()
        changed.loc[coordinates] = stated_law(one, law.loc[coordinates], anchor)
        unit = predicted.quantity(one.law).unit
        laws[one.law] = changed
        put[one.law] = Quantity(changed.values, tuple(map(str, law.dims)), unit)
    return put


def stated_law(one: Numbers, law: xarray.DataArray, anchor: str) -> xarray.DataArray:
    """Return value · ∏ x^power along a law's axes; an open constant is the law's own at the anchor."""
    shape = xarray.ones_like(law, float)
    for axis, exponent in one.power.items():
        shape = shape * law[axis].astype(float) ** exponent
    if one.value is not None:
        return (one.value * shape).transpose(*law.dims)
    ratio = law / shape
    if not (np.all(ratio > 0) or np.all(ratio < 0)):
        raise UserError(
            f"{one.law} is zero or changes its sign, and a power has no such constant; give value=…"
        )
    axes = list(one.power)
    if anchor == "fit":
        sign = 1.0 if bool((ratio > 0).all()) else -1.0
        logs: Any = np.log(sign * ratio)
        constant = sign * np.exp(logs.mean(axes))  # least squares of log law on the stated power
    else:
        constant = ratio.isel(dict.fromkeys(axes, 0 if anchor == "first" else -1), drop=True)
    return (constant * shape).transpose(*law.dims)


def _present(coordinates: Any, named: Any) -> list[Any]:
    """Return the coordinates that a clause names, as far as these fields leave them on the axis."""
    several = named if isinstance(named, (list, tuple)) else [named]
    return [one for one in several if one in coordinates]


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict; FAILS where no check judges, as with these fields it was left out."""
    given = set(verdicts)
    return next((verdict for verdict in reversed(BEST_FIRST) if verdict in given), Verdict.FAILS)
