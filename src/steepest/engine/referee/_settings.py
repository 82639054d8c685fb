"""Runs at other settings: the ends of a claim's scope and just outside; halves and doubles where it states none."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from steepest.catalogue import Entry
from steepest.core.errors import UserError
from steepest.core.fields import FieldType, field_types
from steepest.core.scope import Scope, scope_of
from steepest.core.words import Verdict
from steepest.engine.referee._findings import Finding, Flaw, SettingRun, Severity
from steepest.engine.run import answer, build, command, ready
from steepest.engine.store import Store
from steepest.kit import Claim

FRESH_SEED = 70_701
"""Of every run at another setting: one at which no claim was looked at by its author."""
OUTSIDE = 1.15
"""Factor beyond an end of the scope that is just outside."""
REPEATS = ("seeds", "repetitions", "draws", "samples", "trials")
"""Fields that set how much is computed, of a claim that states no scope."""

Watch = Callable[[str], None]


@dataclass(frozen=True)
class Proposal:
    """A setting to try.

    Attributes:
        changes: the fields that differ from the preset.
        place: as of :class:`SettingRun`.
        cost: of its whole numbers, as a multiple of the preset's.
    """

    changes: Mapping[str, Any]
    place: str
    cost: float


def proposals(claim: Claim) -> list[Proposal]:
    """Return the settings to try, the cheapest first; none that the claim refuses."""
    scopes = scope_of(type(claim))
    tried = _of_scope(claim, scopes) if scopes else _of_fields(claim)
    unique: dict[str, Proposal] = {}
    for place, changes in tried:
        if changes and _accepts(claim, changes):
            unique.setdefault(repr(changes), Proposal(changes, place, _cost(claim, changes)))
    return sorted(unique.values(), key=lambda one: one.cost)


def run_settings(
    entry: Entry, claim: Claim, store: Store, most: int, watch: Watch
) -> Iterator[SettingRun]:
    """Run a claim at some settings, a crash being an answer too.

    Args:
        entry: the claim's line in the catalogue.
        claim: the claim with the fields of its preset.
        store: where these runs are kept.
        most: how many there may be.
        watch: called with each setting as it starts.
    """
    for proposal in proposals(claim)[:most]:
        asked = ready(entry, "quick", FRESH_SEED, proposal.changes)
        line = command(asked)
        watch(line)
        start = time.perf_counter()
        verdict = None
        try:
            result = answer(asked, store=store)
            verdict = result.verdict
            reason = result.reason
        except Exception as trouble:  # a crash is what a referee looks for
            reason = f"{type(trouble).__name__}: {trouble}".splitlines()[0][:300]
        seconds = time.perf_counter() - start
        yield SettingRun(proposal.changes, proposal.place, verdict, reason, line, round(seconds, 3))


def judge_setting(run: SettingRun) -> Iterator[Finding]:
    """Yield what a run at another setting tells against the claim."""
    numbers = {"changes": run.changes, "place": run.place, "reason": run.reason}
    flaws = {
        None: (Flaw.CRASHES, Severity.SEVERE),
        Verdict.FAILS: (Flaw.FAILS, Severity.SEVERE),
        Verdict.INCONCLUSIVE: (Flaw.UNDECIDED, Severity.NOTE),
    }
    if run.verdict in flaws:
        id, severity = flaws[run.verdict]
        yield Finding(id, severity, numbers=numbers, reproduce=run.command)


def _of_scope(claim: Claim, scopes: Mapping[str, Scope]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ends of each field's scope, all low and all high ends at once, and what is just outside."""
    ends = {name: _ends(scope, getattr(claim, name)) for name, scope in scopes.items()}
    for name, values in ends.items():
        for value in values:
            yield "inside", _changed(claim, {name: value})
    for place in (0, -1):
        corner = {name: values[place] for name, values in ends.items()}
        yield "inside", _changed(claim, corner)
    for name, scope in scopes.items():
        for value in _just_outside(scope):
            yield "outside", {name: value}


def _ends(scope: Scope, own: Any) -> tuple[Any, ...]:
    """Return the ends of a range, or all choices."""
    if scope.choices:
        return scope.choices
    whole = isinstance(own, int)
    return tuple(int(end) if whole else end for end in (scope.low, scope.high) if end is not None)


def _just_outside(scope: Scope) -> tuple[Any, ...]:
    """Return a value below and one above a range."""
    if scope.low is None or scope.high is None:
        return ()
    if isinstance(scope.low, int) and isinstance(scope.high, int):
        return math.ceil(scope.low / OUTSIDE) - 1, math.floor(scope.high * OUTSIDE) + 1
    return tuple(float(f"{value:.3g}") for value in (scope.low / OUTSIDE, scope.high * OUTSIDE))


def _of_fields(claim: Claim) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each numeric field halved and doubled, one at a time: of a claim that states no scope."""
    for name, kind in field_types(type(claim)).items():
        if kind.words or kind.base not in (int, float) or name in REPEATS:
            continue
        for factor in (0.5, 2.0):
            yield (
                "off the preset",
                _changed(claim, {name: _scaled(kind, getattr(claim, name), factor)}),
            )


def _scaled(kind: FieldType, value: Any, factor: float) -> Any:
    if kind.many:
        return tuple(_scaled_one(kind, element, factor) for element in value)
    return _scaled_one(kind, value, factor)


def _scaled_one(kind: FieldType, value: Any, factor: float) -> Any:
    """Return a number times a factor, within the limits of its field."""
    number = value * factor
    for limits in kind.limits:
        number = (
            min(number, limits.high) if limits.open else min(max(number, limits.low), limits.high)
        )
    return round(number) if kind.base is int else float(number)


def _changed(claim: Claim, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the claim's own."""
    return {name: value for name, value in values.items() if value != getattr(claim, name)}


def _accepts(claim: Claim, changes: Mapping[str, Any]) -> bool:
    try:
        build(type(claim), "quick", changes)
    except UserError:
        return False
    return True


def _cost(claim: Claim, changes: Mapping[str, Any]) -> float:
    """The product of the whole numbers that change, relative to the claim's own."""
    values = asdict(claim)
    kinds = field_types(type(claim))
    ratios = [
        _size(value) / _size(values[name])
        for name, value in changes.items()
        if kinds[name].base is int and values[name] is not None
    ]
    return math.prod(ratios)


def _size(value: Any) -> float:
    return float(max(1, sum(value) if isinstance(value, tuple) else value))
