"""A claim with the arrays of one result, on which wrong arrays are put before its own judge."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from steepest.catalogue import Entry
from steepest.core.arrays import Quantity
from steepest.core.checks import Check
from steepest.core.words import Verdict
from steepest.engine.referee._axes import (
    averaged_to,
    coordinates_along,
    repetitions,
)
from steepest.engine.referee._mutants import noise, reordered, wrong_law
from steepest.engine.results import Result
from steepest.engine.run import Ready, answer, ready
from steepest.engine.store import Store
from steepest.kit import Claim

Checks = Mapping[str, Check]


@dataclass(frozen=True)
class Outcome:
    """What the judge says of wrong arrays.

    Attributes:
        fails: ids of the checks that the claim passes and that fail now.
        undecided: ids of those that held and are inconclusive now.
        refused: whether the judge could not judge these arrays at all.
    """

    fails: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    refused: bool = False

    @property
    def survives(self) -> bool:
        """Whether nothing tells these arrays from the claim's own."""
        return not self.fails and not self.refused

    @property
    def holds(self) -> bool:
        """Whether all checks agree with them as they do with the claim's own."""
        return self.survives and not self.undecided


class Bench:
    """A claim, the arrays of one of its results, and its judge.

    Attributes:
        target: what a user types for the claim.
        claim: the claim with its fields.
        result: what is read.
        judged: how often the judge was asked.
    """

    def __init__(self, target: str, claim: Claim, result: Result) -> None:
        self.target = target
        self.claim = claim
        self.result = result
        self.judged = 0

    @cached_property
    def own(self) -> Checks:
        """The claim's own checks, by id; none where nothing was observed."""
        if not self.result.observed:
            return {}
        return self._asked(self.result.predicted, self.result.observed)

    @property
    def headline(self) -> tuple[str, ...]:
        """Ids of the checks that state the first sentence, of those that these fields leave in."""
        named = [id for id in self.claim.headline if id in self.own]
        return tuple(named) or tuple(self.own)[:1]

    # ------------------------------------------------------------------------------- for readers, by name

    def predict_wrong(self, array: str, kind: str, axis: str = "") -> dict[str, str]:
        """Return the verdict of every check with one predicted array made wrong.

        Args:
            array: its name.
            kind: ``"flat"``, ``"halved"``, ``"reversed"``, ``"exchanged"``, ``"steeper"``, ``"shallower"`` along an
                axis, or ``"x 0.9"``, ``"x 1.1"``.
            axis: the axis.
        """
        return _verdicts(self.with_law(array, kind, axis))

    def observe_wrong(self, *arrays: str, kind: str = "noise", axis: str = "") -> dict[str, str]:
        """Return the verdict of every check with observed arrays replaced.

        Args:
            *arrays: their names.
            kind: ``"noise"``, or ``"shuffled"``, ``"reversed"``, ``"constant"`` along an axis.
            axis: the axis.
        """
        if kind == "noise":
            return _verdicts(self.with_noise(dict.fromkeys(arrays, 1.0), 0, 0.0))
        worlds = {name: self.world(name, kind, axis) for name in arrays}
        return _verdicts(self.judge(observed=worlds))

    def rank_by(self, array: str, other: str) -> dict[str, str]:
        """Return the verdict of every check with another observed quantity, averaged, in the place of a ranked one.

        Args:
            array: the ranked one.
            other: the name of the other, with ``-`` before it to rank the other way round.
        """
        observed = self.result.observed
        ranked = observed.quantity(array)
        values = averaged_to(observed.quantity(other.removeprefix("-")), ranked.dims)
        sign = -1.0 if other.startswith("-") else 1.0
        return _verdicts(self.judge(observed={array: _like(ranked, sign * values)}))

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of every check: ``"search"`` is one for an exception."""
        return {id: check.kind for id, check in self.own.items()}

    # ------------------------------------------------------------------------------- for the attacks

    def with_law(self, array: str, kind: str, axis: str = "") -> Checks | None:
        """Return the checks with one predicted array made wrong; None where the judge refuses it."""
        quantity = self.result.predicted.quantity(array)
        place = quantity.dims.index(axis) if axis else 0
        along = self.along(array, axis) if axis else ()
        wrong = wrong_law(quantity.values, kind, place, along)
        return self.judge(predicted={array: _like(quantity, wrong)})

    def with_noise(self, sizes: Mapping[str, float], seed: int, least: float) -> Checks | None:
        """Return the checks with noise in the place of observed arrays; None where the judge refuses it.

        Args:
            sizes: of the noise by the array's name, in units of what it replaces.
            seed: of the noise.
            least: what is smaller than this is replaced by noise of this size.
        """
        rng = np.random.default_rng(seed)
        observed = self.result.observed
        worlds = {}
        for name, size in sizes.items():
            quantity = observed.quantity(name)
            signed = name in self.signed
            worlds[name] = _like(quantity, noise(quantity.values, rng, size, least, signed=signed))
        return self.judge(observed=worlds)

    @cached_property
    def signed(self) -> frozenset[str]:
        """The observed arrays that may be negative: some entry is, in what was observed or in a changed world of it."""
        observed = self.result.observed
        with _quietly(), jax.enable_x64(self.claim.precision == "float64"):
            controls = self.claim.changed_worlds(observed)
        worlds = (observed, *(control.observation for control in controls))
        return frozenset(
            name for name in observed if any(_is_negative(world[name]) for world in worlds)
        )

    def world(self, array: str, kind: str, axis: str, seed: int = 0) -> Quantity:
        """Return an observed array shuffled, reversed or constant along an axis."""
        quantity = self.result.observed.quantity(array)
        rng = np.random.default_rng(seed)
        place = quantity.dims.index(axis)
        return _like(quantity, reordered(quantity.values, kind, place, rng))

    def judge(
        self,
        predicted: Mapping[str, Any] | None = None,
        observed: Mapping[str, Any] | None = None,
    ) -> Checks | None:
        """Return the checks of the result's arrays with some replaced; None where the judge refuses them."""
        self.judged += 1
        theory = self.result.predicted.replace(**(predicted or {}))
        measured = self.result.observed.replace(**(observed or {}))
        try:
            return self._asked(theory, measured)
        except (
            Exception
        ):  # what a judge raises of arrays that no experiment gives is its own affair
            return None

    def outcome(self, checks: Checks | None) -> Outcome:
        """Compare checks of wrong arrays with the claim's own."""
        if checks is None:
            return Outcome(refused=True)
        passed = [id for id, check in self.own.items() if check.verdict is not Verdict.FAILS]
        held = [id for id, check in self.own.items() if check.verdict is Verdict.HOLDS]
        now = {id: check.verdict for id, check in checks.items()}
        return Outcome(
            fails=tuple(id for id in passed if now.get(id) is Verdict.FAILS),
            undecided=tuple(
                id for id in held if now.get(id, Verdict.INCONCLUSIVE) is Verdict.INCONCLUSIVE
            ),
        )

    def along(self, array: str, axis: str) -> Sequence[Any]:
        """Return the coordinates of a predicted array's axis."""
        quantity = self.result.predicted.quantity(array)
        size = quantity.values.shape[quantity.dims.index(axis)]
        return coordinates_along(self.claim, axis, size)

    @cached_property
    def repeated(self) -> frozenset[str]:
        """The axes that count repetitions and design nothing."""
        return repetitions(self.claim, self.result.predicted, self.result.observed)

    @cached_property
    def readers_of_laws(self) -> Mapping[str, tuple[str, ...]]:
        """Ids of the checks that read each predicted array."""
        arrays = self.result.predicted
        return {name: self._readers(arrays.quantity(name), name, "predicted") for name in arrays}

    @cached_property
    def readers_of_worlds(self) -> Mapping[str, tuple[str, ...]]:
        """Ids of the checks that read each observed array."""
        arrays = self.result.observed
        return {name: self._readers(arrays.quantity(name), name, "observed") for name in arrays}

    def _readers(self, quantity: Quantity, name: str, side: str) -> tuple[str, ...]:
        """Ids of the checks that change when an array becomes another one; all, where no other can be judged."""
        tried = [self.judge(**{side: {name: other}}) for other in _others(quantity)]
        answers = [checks for checks in tried if checks is not None]
        if not answers:
            return tuple(self.own)
        return tuple(id for id in self.own if any(self._differs(id, checks) for checks in answers))

    def _differs(self, id: str, checks: Checks) -> bool:
        return id not in checks or repr(checks[id]) != repr(self.own[id])

    def _asked(self, predicted: Any, observed: Any) -> Checks:
        with _quietly(), jax.enable_x64(self.claim.precision == "float64"):
            checks = self.claim.checks(predicted, observed)
            return {check.id: check for check in checks}


def bench(target: str | Path, results: str | Path = "results") -> Bench:
    """Return a claim with its stored result, which is run where it is not stored.

    Args:
        target: a claim's name, or the path of a file that holds one.
        results: the folder of results.
    """
    asked = ready(target)
    return bench_of(asked, answer(asked, store=Store(Path(results))))


def bench_of(asked: Ready, result: Result) -> Bench:
    """Return a claim with one of its results."""
    return Bench(typed(asked.entry), asked.claim, result)


def typed(entry: Entry) -> str:
    """Return what a user types for a claim: its name, or its file as it was named."""
    return entry.name if entry.module else entry.origin


def _others(quantity: Quantity) -> Iterator[Quantity]:
    """Arrays that no check which reads this one could take for it."""
    values = quantity.values
    if values.dtype.kind == "b":
        yield _like(quantity, ~values)
        return
    yield _like(quantity, 100 * values)
    # what depends on no scale depends on the order of the values, or on their signs
    size = 100 * max(1.0, float(np.abs(values[np.isfinite(values)]).max(initial=0)))
    noise = size * np.random.default_rng(0).standard_normal(values.shape)
    yield _like(quantity, noise.astype(values.dtype))


def _like(quantity: Quantity, values: Any) -> Quantity:
    return Quantity(np.asarray(values), quantity.dims, quantity.unit)


def _is_negative(values: Any) -> bool:
    """Whether some entry of an array of numbers is negative."""
    array = np.asarray(values)
    return array.dtype.kind in "if" and bool((array < 0).any())


def _verdicts(checks: Checks | None) -> dict[str, str]:
    return {id: check.verdict.value for id, check in (checks or {}).items()}


@contextmanager
def _quietly() -> Iterator[None]:
    """Wrong arrays divide by zero and have no logarithms; that is no news."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
