"""Attacks on predictions: every law flat, reversed and tilted along its axes, and made a tenth too small or large."""

from collections.abc import Iterator, Mapping

import numpy as np

from steepest.core.words import Verdict
from steepest.engine.referee._bench import Bench, Checks, Outcome
from steepest.engine.referee._findings import Finding, Flaw, Severity
from steepest.engine.referee._mutants import SIZES
from steepest.kit import wrong_along


def attack_laws(bench: Bench) -> Iterator[Finding]:
    """Yield every way in which a predicted array can be wrong without any check failing."""
    predicted = bench.result.predicted
    for name in predicted:
        quantity = predicted.quantity(name)
        if quantity.values.dtype.kind not in "iuf":
            continue
        readers = bench.readers_of_laws[name]
        if not readers:
            yield Finding(Flaw.ONLY_DRAWN, Severity.NOTE, name, reproduce=_again(bench, name, ""))
            continue
        yield from _sizes(bench, name, readers)
        for axis, size in zip(quantity.dims, quantity.values.shape, strict=True):
            if size > 1 and axis in bench.repeated:
                yield from _repeated(bench, name, axis, readers)
            elif size > 1:
                yield from _axis(bench, name, axis, readers)


def _sizes(bench: Bench, name: str, readers: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the factors by which an array can be multiplied while all checks agree as before."""
    outcomes = {kind: bench.outcome(bench.with_law(name, kind)) for kind in SIZES}
    holding = [kind for kind, outcome in outcomes.items() if outcome.holds]
    if holding and np.any(bench.result.predicted[name]):
        severity = _weight(bench, readers, Severity.WEAK)
        numbers = {"kinds": holding, **_answers(outcomes)}
        again = _again(bench, name, holding[0])
        yield Finding(Flaw.SIZE_NOT_TOLD, severity, name, "", readers, numbers, again)


def _axis(bench: Bench, name: str, axis: str, readers: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what a law can be along one axis without any check failing, and which checks see its mean alone."""
    outcomes = {
        kind: bench.outcome(bench.with_law(name, kind, axis)) for kind in _kinds(bench, name, axis)
    }
    surviving = [kind for kind, outcome in outcomes.items() if outcome.survives]
    if not surviving:
        return
    accepted = _accepted(bench, name, axis, surviving)
    agreeing = any(outcomes[kind].holds for kind in surviving if kind not in accepted)
    severity = _weight(bench, readers, Severity.SEVERE if agreeing else Severity.WEAK)
    numbers = {
        "kinds": surviving,
        "accepted": accepted,
        **_answers(outcomes),
    }
    if len(accepted) == len(surviving):
        severity = Severity.NOTE
    again = _again(bench, name, surviving[0], axis)
    yield Finding(Flaw.LAW_NOT_TOLD, severity, name, axis, readers, numbers, again)
    if "flat" in surviving:
        yield from _means(bench, name, axis, readers)


def _repeated(bench: Bench, name: str, axis: str, readers: tuple[str, ...]) -> Iterator[Finding]:
    """Yield that a law which differs between repetitions is judged through its mean over them alone."""
    kinds = [
        kind for kind in _kinds(bench, name, axis) if kind in ("flat", "reversed", "exchanged")
    ]
    outcomes = {kind: bench.outcome(bench.with_law(name, kind, axis)) for kind in kinds}
    holding = [kind for kind, outcome in outcomes.items() if outcome.holds]
    if holding:
        severity = _weight(bench, readers, Severity.WEAK)
        numbers = {"kinds": holding, "accepted": {}, **_answers(outcomes)}
        again = _again(bench, name, holding[0], axis)
        yield Finding(Flaw.LAW_NOT_TOLD, severity, name, axis, readers, numbers, again)


def _kinds(bench: Bench, name: str, axis: str) -> list[str]:
    """Return how a law can be wrong along an axis."""
    quantity = bench.result.predicted.quantity(name)
    along = bench.along(name, axis)
    return list(wrong_along(quantity.values, quantity.dims.index(axis), along))


def _means(bench: Bench, name: str, axis: str, readers: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the checks that hold with the law flat, and with what was measured flat too: they judge means."""
    flat_law = bench.with_law(name, "flat", axis) or {}
    observed = bench.result.observed
    having = [array for array in observed if axis in observed.quantity(array).dims]
    read = [array for array in having if set(bench.readers_of_worlds[array]) & set(readers)]
    worlds = {array: bench.world(array, "constant", axis) for array in read}
    flat_world = (bench.judge(observed=worlds) or {}) if read else {}
    blind = tuple(id for id in readers if _holds(flat_law, id) and _holds(flat_world, id))
    if blind:
        severity = _weight(bench, blind, Severity.WEAK)
        again = _again(bench, name, "flat", axis)
        yield Finding(Flaw.MEAN_ALONE, severity, name, axis, blind, {"observed": read}, again)


def _holds(checks: Checks, id: str) -> bool:
    return id in checks and checks[id].verdict is Verdict.HOLDS


def _weight(bench: Bench, readers: tuple[str, ...], worst: Severity) -> Severity:
    """Return a severity for what the headline reads, and the one below it for everything else."""
    below = {Severity.SEVERE: Severity.WEAK, Severity.WEAK: Severity.NOTE}
    return worst if set(readers) & set(bench.headline) else below[worst]


def _accepted(bench: Bench, name: str, axis: str, kinds: list[str]) -> Mapping[str, str]:
    """Return the reasons that a claim gives why its data cannot tell some of these."""
    reasons = bench.claim.not_told
    named = {kind: reasons.get(f"{name}.{axis}.{kind}", "") for kind in kinds}
    return {kind: reason for kind, reason in named.items() if reason}


def _answers(outcomes: Mapping[str, Outcome]) -> dict[str, Mapping[str, tuple[str, ...]]]:
    """Return, by kind, the checks that fail and those that are undecided."""
    return {
        "failed_by": {kind: outcome.fails for kind, outcome in outcomes.items() if outcome.fails},
        "undecided": {
            kind: outcome.undecided
            for kind, outcome in outcomes.items()
            if outcome.survives and outcome.undecided
        },
    }


def _again(bench: Bench, name: str, kind: str, axis: str = "") -> str:
    """Return lines of Python that judge a wrong law again."""
    call = f'predict_wrong("{name}", "{kind or "x 1.1"}"' + (f', "{axis}")' if axis else ")")
    return f'from steepest.engine.referee import bench\nbench("{bench.target}").{call}'
