"""The forms of check: a law is compared with what was measured at every point of its axes.

Intervals hold at all points at once. Repetitions are the axes of what was measured that are not among those judged.
Where there are several, the first that :data:`REPETITIONS` names is independent, and others are averaged within it. Law
and measurement are paired by their coordinates. Nothing here passes over what is not a number: a mean that has one in
it is none.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.checks import Check, decide
from steepest.core.intervals import Basis, Interval
from steepest.core.laws import At, LawCheck
from steepest.core.words import Verdict
from steepest.statistics import clustered_share, fit_power, simultaneous_intervals, wilson

LEVEL = 0.95
REPETITIONS = ("seed", "draw", "start")
"""What axes of repetitions are called, the independent one first."""
FEWEST_TRIES = 30
"""Of a search: after as many without an exception fewer than a tenth of such tries are exceptions, at 95 %."""


def follows(
    id: str,
    law: Any,
    seen: xarray.DataArray,
    within: float | tuple[float, float],
    *,
    over: str = "",
    absolute: bool = False,
    each: bool = False,
    label: str = "",
    note: str = "",
) -> Check:
    """Check that what was measured follows a law at every point of its axes.

    Args:
        id: of the check.
        law: the predicted array, or a number.
        seen: what was measured; axes that are not in ``over`` are repetitions.
        within: relative error allowed at every point, or a pair of factors ``(low, high)``; with ``absolute`` the
            absolute error.
        over: axes along which it is judged, separated by spaces; those of ``law`` that have coordinates if left out.
        absolute: whether ``within`` is absolute.
        each: whether every repetition must agree, and not only their mean: one that does not refutes the law.
        label: the quantity in words; the id without underscores where it is left out.
        note: shown beside the check.

    Raises:
        ValueError: a margin that does not contain its own prediction, or coordinates that are not those of the law.
    """
    theory = _law_for(id, law, seen)
    axes = _axes(over, theory)
    low, high = _ends(id, within, absolute)
    if absolute:
        counts = seen.dtype.kind in "iu"
        points = _moved(_points(seen - theory, axes, each, counts), theory, axes)
        typical = _typical(theory, axes, points)
        margin = (typical + low, typical + high)
    else:
        points = _points(seen / theory, axes, each)
        # judged as ratios, and scaled back to the units of the law
        typical = _typical(theory, axes, points)
        points = _scaled(points, typical)
        # factors of a negative law go the other way
        margin = (
            np.minimum(low * typical, high * typical),
            np.maximum(low * typical, high * typical),
        )
    return _check(id, "follows", label, note, points, typical, margin, theory, axes)


def at_most(
    id: str,
    limit: Any,
    seen: xarray.DataArray,
    *,
    over: str = "",
    each: bool = False,
    label: str = "",
    note: str = "",
) -> Check:
    """Check that what was measured stays at or below a limit at every point of its axes.

    A limit that differs between repetitions bounds each of them by its own: what is judged is their difference.

    Args:
        id: of the check.
        limit: the predicted array, or a number.
        seen: what was measured.
        over: axes along which it is judged, separated by spaces; those of ``limit`` that have coordinates if left out.
        each: whether every repetition must stay there, and not only their mean.
        label: the quantity in words.
        note: shown beside the check.
    """
    return _bound(id, limit, seen, over, (-math.inf, 0.0), each, label, note)


def at_least(
    id: str,
    limit: Any,
    seen: xarray.DataArray,
    *,
    over: str = "",
    each: bool = False,
    label: str = "",
    note: str = "",
) -> Check:
    """Check that what was measured stays at or above a limit at every point; arguments are those of :func:`at_most`."""
    return _bound(id, limit, seen, over, (0.0, math.inf), each, label, note)


def agrees(
    id: str,
    deviation: xarray.DataArray,
    tolerance: float,
    *,
    label: str = "",
    note: str = "",
) -> Check:
    """Check that two ways to one quantity agree to a numerical tolerance, in every entry of the array.

    Args:
        id: of the check.
        deviation: absolute or relative, not negative.
        tolerance: the largest deviation that counts as none.
        label: what deviates from what, in words.
        note: shown beside the check.
    """
    every = np.asarray(deviation, float).ravel()
    largest = float(every.max()) if np.isfinite(every).all() else math.nan
    interval = Interval(largest, largest, f"largest of {every.size} values", Basis.SEARCH)
    margin = Interval(-math.inf, tolerance)
    verdict = decide(interval, margin)
    return Check(
        id, label or _worded(id), "agreement", 0.0, largest, interval, margin, verdict, note
    )


def excluded(
    id: str,
    limit: float,
    seen: xarray.DataArray,
    *,
    label: str = "",
    note: str = "",
) -> Check:
    """Check that a search found nothing that a universal sentence excludes: every try stays above a limit.

    Fewer than thirty tries find an exception and exclude none: the check is inconclusive.

    Args:
        id: of the check.
        limit: at or below it a try would be an exception, such as the residual of a point that is stationary.
        seen: what each try came to; the nearest miss decides, and the number of tries is said.
        label: what was searched for, in words.
        note: shown beside the check.
    """
    tries = np.asarray(seen, float).ravel()
    nearest = float(tries.min()) if np.isfinite(tries).all() and tries.size else math.nan
    interval = Interval(nearest, nearest, f"nearest of {tries.size} tries", Basis.SEARCH)
    margin = Interval(float(np.nextafter(limit, math.inf)), math.inf)  # strictly above the limit
    verdict = decide(interval, margin)
    if verdict is Verdict.HOLDS and tries.size < FEWEST_TRIES:
        verdict = Verdict.INCONCLUSIVE
        note = _joined(note, f"a search takes {FEWEST_TRIES} tries at least")
    return Check(
        id, label or _worded(id), "search", limit, nearest, interval, margin, verdict, note
    )


def power(
    id: str,
    law: Any,
    seen: xarray.DataArray,
    within: float,
    *,
    over: str,
    label: str = "",
    note: str = "",
) -> Check:
    """Check the exponent of a power law along one axis, and that it is a power law there.

    What is fitted is measured over predicted, so that a law that bends is followed in its bend. Where the points leave
    the line by more than the margin of the exponent allows, and by more than chance, the check is inconclusive.

    Args:
        id: of the check.
        law: the predicted array, whose exponent is that of its own fit, or the exponent itself.
        seen: what was measured, positive; axes other than ``over`` are repetitions.
        within: absolute error allowed in the exponent.
        over: the axis, which must have coordinates.
        label: what scales with what, in words.
        note: shown beside the check.
    """
    x = np.asarray(seen[over].values, float)
    if isinstance(law, xarray.DataArray):
        law = _law_for(id, law, seen)
    predicted, expected = _power_of(law, over, x)
    margin = Interval(predicted - within, predicted + within)
    few = Interval(-math.inf, math.inf, f"{len(x)} points, of which a fit needs three")
    check = LawCheck(
        id,
        label or _worded(id),
        "exponent",
        predicted,
        math.nan,
        few,
        margin,
        Verdict.INCONCLUSIVE,
        note,
        law=_name_of(law),
        axes=(over,),
    )
    if len(x) < 3:
        return replace(check, note=_joined(note, few.how))
    # slopes of seen over predicted: the law's own bend drops out
    fit = fit_power(x, _by_repetition(seen, (over,)) / expected)
    ends = (fit.interval.low + predicted, fit.interval.high + predicted)
    interval = Interval(*ends, fit.interval.how, fit.interval.basis)
    verdict = decide(interval, margin)
    # an exponent off by `within` turns the line about its middle, by this much at either end
    allowed = within * np.log(x.max() / x.min()) / 2
    if verdict is Verdict.HOLDS and fit.refuted and np.abs(fit.residuals).max() > allowed:
        verdict = Verdict.INCONCLUSIVE
        worst = int(np.abs(fit.residuals).argmax())
        off = np.expm1(fit.residuals[worst])  # a deviation of log y as a relative one
        note = _joined(note, f"no power law: {off:+.0%} at {over} = {x[worst]:g}")
    measured = fit.exponent + predicted
    return replace(check, measured=measured, interval=interval, verdict=verdict, note=note)


def _power_of(law: Any, over: str, x: NDArray) -> tuple[float, NDArray]:
    """Return the exponent of a law along an axis, by its own fit, and the law itself up to a factor, ``(points,)``."""
    if not isinstance(law, xarray.DataArray):
        exponent = float(law)
        return exponent, x**exponent
    values = np.asarray(_mean_along(law, (over,)).values, float)
    return float(np.polyfit(np.log(x), np.log(values), 1)[0]), values  # slope of log law on log x


def share(
    id: str,
    law: Any,
    seen: xarray.DataArray,
    within: float,
    *,
    over: str = "",
    label: str = "",
    note: str = "",
) -> Check:
    """Check how often something happens at every point: shares with Wilson's interval, which is never a point.

    Args:
        id: of the check.
        law: the predicted share, or an array of them.
        seen: whether it happened; axes that are not in ``over`` are repetitions, and copies within a seed are not
            independent.
        within: absolute error allowed.
        over: axes along which it is judged, separated by spaces; those of ``law`` that have coordinates if left out.
        label: what happens, in words.
        note: shown beside the check.
    """
    theory = _law_for(id, law, seen)
    axes = _axes(over, theory)
    where, flat = _flattened(seen.astype(float), axes)
    clusters = flat.reshape(flat.shape[0], -1, flat.shape[-1])  # (independent, within, points)
    level = 1 - (1 - LEVEL) / max(1, flat.shape[-1])  # Bonferroni over the points
    mean, low, high = clustered_share(clusters.sum(1), clusters.shape[1], level)
    how = f"95% of shares among {clusters.shape[0]} × {clusters.shape[1]}, at all points at once"
    points = _Points(where, mean, low, high, how, Basis.SHARE)
    typical = _typical(theory, axes, points)
    margin = (typical - within, typical + within)
    return _check(id, "share", label, note, points, typical, margin, theory, axes)


def ranks(
    id: str,
    law: xarray.DataArray,
    seen: xarray.DataArray,
    *,
    over: str,
    at_hand: Mapping[str, xarray.DataArray] | None = None,
    label: str = "",
    note: str = "",
) -> Check:
    """Check that what was measured stands in the predicted order along an axis.

    The statistic is every gap between neighbours in the predicted order, paired by repetition, and all must be positive
    at once. Neighbours of which the law says the same have no order: such a gap must be zero exactly.

    Args:
        id: of the check.
        law: what predicts the order, along one axis.
        seen: what was measured; axes other than ``over`` are repetitions.
        over: the axis.
        at_hand: what each run has at hand anyway, such as its number of steps, by name; it is said which of it stands
            in this order too, rising or falling.
        label: what is ranked, in words.
        note: shown beside the check.
    """
    means = np.asarray(_mean_along(_law_for(id, law, seen), (over,)))
    order = np.argsort(means, kind="stable")
    gaps = _gaps(seen, over, order)
    points = _points(gaps, (over,), each=False)
    rises = np.diff(means[order]) > 0
    # a law that is flat between two neighbours predicts no gap there
    positive = (  # strictly positive: the least number above zero
        np.where(rises, np.nextafter(0.0, 1.0), 0.0),
        np.where(rises, math.inf, 0.0),
    )
    passes = tuple(
        name for name, values in (at_hand or {}).items() if _stands_in_order(values, over, order)
    )
    check = _check(
        id, "order", label, note, points, np.zeros_like(points.mean), positive, law, (over,)
    )
    return replace(check, also_passed_by=passes)


def without_numbers(check: Check, holes: Mapping[str, str]) -> Check:
    """Return a check that fails, as what was measured has entries that are no numbers.

    Args:
        check: the check.
        holes: how many, in words, by the name of the array.
    """
    said = ", ".join(f"{many} entries of {name}" for name, many in holes.items())
    nothing = Interval(math.nan, math.nan, f"not finite: {said}")
    check = replace(check, points=()) if isinstance(check, LawCheck) else check
    note = _joined(check.note, nothing.how)
    failed = Verdict.FAILS
    return replace(check, measured=math.nan, interval=nothing, verdict=failed, note=note)


# ------------------------------------------------------------------------------------------------ points


@dataclass(frozen=True)
class _Points:
    """Means and simultaneous intervals at every point of the axes, flattened, shape ``(points,)``."""

    where: Sequence[Mapping[str, Any]]
    mean: NDArray
    low: NDArray
    high: NDArray
    how: str
    basis: Basis


def _points(
    array: xarray.DataArray, axes: tuple[str, ...], each: bool, counts: bool = False
) -> _Points:
    where, flat = _flattened(array, axes)
    if flat.ndim == 1:
        return _Points(where, flat, flat, flat, "one number, no repetitions", Basis.EXACT)
    count = flat.shape[0]
    if each:
        how = f"range over {count} repetitions, each of which must agree"
        flat = flat.reshape(-1, flat.shape[-1])
        return _Points(where, flat.mean(0), flat.min(0), flat.max(0), how, Basis.RANGE)
    flat = flat.reshape(count, -1, flat.shape[-1]).mean(1)
    low, high = simultaneous_intervals(flat, LEVEL)
    if counts:
        unsure = _unsure_of_counts(flat)
        low = np.minimum(low, flat.mean(0) - unsure)
        high = np.maximum(high, flat.mean(0) + unsure)
    at_once = ", at all points at once" if flat.shape[-1] > 1 else ""
    how = f"95% of the mean over {count} repetitions{at_once}"
    return _Points(where, flat.mean(0), low, high, how, Basis.MEAN)


def _unsure_of_counts(flat: NDArray) -> NDArray:
    """Return how far a mean of counts may be off that hardly differ, ``(points,)``.

    Counts of which all, or all but one, are equal have next to no spread, but others may be rarer than they are many.
    Wilson says how large the share of those may be that differ from the usual count. They are taken to differ by as
    much as any does that was seen at any point, and by one at least.
    """
    count, points = flat.shape
    level = 1 - (1 - LEVEL) / points  # Bonferroni over the points
    usual = np.median(flat, axis=0)
    others = (flat != usual).sum(0)
    by = max(1.0, float(np.abs(flat - usual).max()))
    # Wilson's upper end beyond the share that was seen
    unseen = [wilson(int(some), count, level)[1] - some / count for some in others]
    return by * np.array(unseen)


def _flattened(
    array: xarray.DataArray, axes: tuple[str, ...]
) -> tuple[Sequence[Mapping[str, Any]], NDArray]:
    """Return the points of some axes, and the array as repetitions × points, ``(…, points)``."""
    missing = [axis for axis in axes if axis not in array.dims]
    if missing:
        raise ValueError(f"nothing was measured along {', '.join(missing)}; it has {array.dims}")
    repetitions = [dim for dim in array.dims if dim not in axes]
    named = [dim for dim in REPETITIONS if dim in repetitions]
    if len(repetitions) > 1 and not named:
        raise ValueError(
            f"of the repetitions {', '.join(map(str, repetitions))} none is called {' or '.join(REPETITIONS)}; call "
            "that so along which they are independent, or judge along the others"
        )
    repetitions.sort(key=lambda dim: dim != named[0] if named else False)
    ordered = array.transpose(*repetitions, *axes)
    coordinates = [_coordinates(array, axis) for axis in axes]
    where = [dict(zip(axes, place, strict=True)) for place in itertools.product(*coordinates)]
    values = np.asarray(ordered.values, float)
    return where, values.reshape(*values.shape[: len(repetitions)], -1)


def _coordinates(array: xarray.DataArray, axis: str) -> list[Any]:
    """Return what the points of an axis are called: its coordinates, else their places."""
    return array[axis].values.tolist() if axis in array.coords else list(range(array.sizes[axis]))


def _by_repetition(array: xarray.DataArray, axes: tuple[str, ...]) -> NDArray:
    """Return means within each independent repetition, ``(repetitions, points)``; ``(points,)`` of a single run."""
    _, flat = _flattened(array, axes)
    return flat if flat.ndim == 1 else flat.reshape(flat.shape[0], -1, flat.shape[-1]).mean(1)


def _gaps(seen: xarray.DataArray, over: str, order: NDArray) -> xarray.DataArray:
    """Return by how much each neighbour in an order exceeds the one before, at points that name both."""
    sorted_ = seen.isel({over: order})
    names = [_spelled(value) for value in _coordinates(sorted_, over)]
    pairs = [f"{first} to {second}" for first, second in itertools.pairwise(names)]
    return sorted_.drop_vars(over, errors="ignore").diff(over).assign_coords({over: pairs})


def _stands_in_order(values: xarray.DataArray, over: str, order: NDArray) -> bool:
    means = np.asarray(_mean_along(values, (over,)))[order]
    gaps = np.diff(means)
    return bool((gaps > 0).all() or (gaps < 0).all())


# ------------------------------------------------------------------------------------------------ verdict


def _bound(
    id: str,
    limit: Any,
    seen: xarray.DataArray,
    over: str,
    ends: tuple[float, float],
    each: bool,
    label: str,
    note: str,
) -> Check:
    theory = _law_for(id, limit, seen)
    axes = _axes(over, theory)
    points = _moved(_points(seen - theory, axes, each), theory, axes)
    typical = _typical(theory, axes, points)
    margin = (typical + ends[0], typical + ends[1])
    return _check(id, "bound", label, note, points, typical, margin, theory, axes)


def _check(
    id: str,
    kind: str,
    label: str,
    note: str,
    points: _Points,
    predicted: NDArray,
    margin: tuple[NDArray, NDArray],
    law: xarray.DataArray,
    axes: tuple[str, ...],
) -> LawCheck:
    """Return the check of all points, whose numbers are those of the worst."""
    at = tuple(
        At(
            where,
            float(predicted[i]),
            float(points.mean[i]),
            float(points.low[i]),
            float(points.high[i]),
            float(margin[0][i]),
            float(margin[1][i]),
            _decide(_interval(points, i), Interval(float(margin[0][i]), float(margin[1][i]))),
        )
        for i, where in enumerate(points.where)
    )
    worst = _worst(at, margin)
    several = len(at) > 1
    note = _joined(note, _said(at[worst].where) if several else "")
    return LawCheck(
        id,
        label or _worded(id),
        kind,
        at[worst].predicted,
        at[worst].measured,
        _interval(points, worst),
        Interval(float(margin[0][worst]), float(margin[1][worst])),
        at[worst].verdict,
        note,
        points=at if several else (),
        law=_name_of(law),
        axes=axes if several else (),
    )


def _worst(at: Sequence[At], margin: tuple[NDArray, NDArray]) -> int:
    """Return the point that decides: a refuted one before an undecided one, then the one that sticks out the most."""
    grade = {Verdict.FAILS: 2, Verdict.INCONCLUSIVE: 1, Verdict.HOLDS: 0}
    widths = margin[1] - margin[0]
    unit = np.where(np.isfinite(widths) & (widths > 0), widths, 1.0)

    def sticks_out(i: int) -> tuple[int, float]:
        # by how much the interval leaves the margin, in widths of the margin
        over = max(margin[0][i] - at[i].low, at[i].high - margin[1][i]) / unit[i]
        return grade[at[i].verdict], math.inf if math.isnan(over) else float(over)

    return max(range(len(at)), key=sticks_out)


def _interval(points: _Points, i: int) -> Interval:
    return Interval(float(points.low[i]), float(points.high[i]), points.how, points.basis)


def _decide(interval: Interval, margin: Interval) -> Verdict:
    """Compare an interval with a margin; of a range, whose every value must agree, one that does not refutes."""
    verdict = decide(interval, margin)
    straddles = verdict is Verdict.INCONCLUSIVE
    return Verdict.FAILS if straddles and interval.basis is Basis.RANGE else verdict


def _typical(theory: xarray.DataArray, axes: tuple[str, ...], points: _Points) -> NDArray:
    """Return the prediction at every point: its mean over repetitions, where it differs between them."""
    of_law = [axis for axis in axes if axis in theory.dims]
    mean = _mean_along(theory, axes)
    if not of_law:
        return np.full(len(points.where), float(mean))
    sizes = {axis: len({str(where[axis]) for where in points.where}) for axis in axes}
    others = {axis: size for axis, size in sizes.items() if axis not in of_law}
    full = mean.drop_vars(list(mean.coords)).expand_dims(others).transpose(*axes)
    return np.asarray(full.values, float).ravel()


def _ends(id: str, within: float | tuple[float, float], absolute: bool) -> tuple[float, float]:
    centre = 0.0 if absolute else 1.0
    low, high = within if isinstance(within, tuple) else (centre - within, centre + within)
    if not low <= centre <= high:
        raise ValueError(
            f"check {id!r}: the margin {within} leaves out the prediction itself; factors go around 1, such as "
            "(0.95, 1.15), and absolute errors around 0, such as (-0.1, 0.2)"
        )
    return low, high


def _law_for(
    id: str, law: ArrayLike | xarray.DataArray, seen: xarray.DataArray
) -> xarray.DataArray:
    """Return a law as an array.

    Raises:
        ValueError: its coordinates are not those of what was measured.
    """
    if not isinstance(law, xarray.DataArray):
        return xarray.DataArray(law)
    try:
        xarray.align(law, seen, join="exact", copy=False)
    except ValueError as error:
        raise ValueError(
            f"check {id!r}: law and measurement have other points along an axis ({error})"
        ) from error
    return law


def _axes(over: str, theory: xarray.DataArray) -> tuple[str, ...]:
    """Return the axes along which a law is judged: those that are named, else those of the law with coordinates."""
    return tuple(over.split()) or tuple(str(dim) for dim in theory.dims if dim in theory.coords)


def _mean_along(array: xarray.DataArray, axes: tuple[str, ...]) -> xarray.DataArray:
    """Return the mean over all other axes; none where one of the numbers is none."""
    return array.mean([dim for dim in array.dims if dim not in axes], skipna=False)


def _moved(points: _Points, theory: xarray.DataArray, axes: tuple[str, ...]) -> _Points:
    """Return differences from a law as what was measured."""
    by = _typical(theory, axes, points)
    return replace(points, mean=points.mean + by, low=points.low + by, high=points.high + by)


def _scaled(points: _Points, typical: NDArray) -> _Points:
    """Return ratios to a law as what was measured; ends change places where the law is negative.

    Where the law is zero what was measured is infinitely far from it, and stays so.
    """
    scaled = lambda ratios: np.multiply(
        ratios, typical, out=np.array(ratios, float), where=np.isfinite(ratios)
    )
    low = scaled(points.low)
    high = scaled(points.high)
    return replace(
        points,
        mean=scaled(points.mean),
        low=np.minimum(low, high),
        high=np.maximum(low, high),
    )


def _said(where: Mapping[str, Any]) -> str:
    places = (f"{axis} = {_spelled(value)}" for axis, value in where.items())
    return f"worst at {', '.join(places)}"


def _spelled(value: Any) -> str:
    """Spell a coordinate, a number in short.

    >>> _spelled(0.30000000000000004), _spelled("relu")
    ('0.3', 'relu')
    """
    return f"{value:g}" if isinstance(value, float | int) else str(value)


def _name_of(law: Any) -> str:
    """Return the name of the predicted array; empty of a number."""
    return str(law.name or "") if isinstance(law, xarray.DataArray) else ""


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _worded(id: str) -> str:
    return id.replace("_", " ")
