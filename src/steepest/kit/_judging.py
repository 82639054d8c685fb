"""Judge a claim: checks, rivals, controls, nulls, clauses, figure, and the verdict."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steepest.core.arrays import Observation, Prediction
from steepest.core.checks import Check, Control, Rejection, Rival, challenge, reject
from steepest.core.errors import UserError
from steepest.core.hypotheses import Hypothesis
from steepest.core.laws import Clause, Null, Resolution, conclude_laws
from steepest.core.panels import Panel
from steepest.core.words import Verdict
from steepest.kit._nulls import ERRORS, LARGER, moved, resized


@dataclass(frozen=True)
class Judgement:
    """What a claim's judge says of its laws and of one observation; nothing, where a hypothesis fails.

    Attributes:
        run_conditions: what must hold of the run for its verdict to mean something.
        checks: every comparison of a law with what was measured, with what challenges it.
        rivals: what became of every deliberately wrong theory.
        controls: what became of every changed world.
        panels: the figure, as data.
        nulls: what became of the claim's own laws, flattened, reversed and tilted along their axes.
        says: the clauses of the first sentence, each with its verdict.
        resolutions: how small an error in the size of each law of the headline would be noticed.
    """

    run_conditions: tuple[Hypothesis, ...] = ()
    checks: tuple[Check, ...] = ()
    rivals: tuple[Rejection, ...] = ()
    controls: tuple[Rejection, ...] = ()
    panels: tuple[Panel, ...] = ()
    nulls: tuple[Null, ...] = ()
    says: tuple[Clause, ...] = ()
    resolutions: tuple[Resolution, ...] = ()

    def conclude(
        self, hypotheses: Sequence[Hypothesis], headline: Sequence[str]
    ) -> tuple[Verdict, str]:
        """Return the verdict with its reason in a sentence."""
        assumed = [*hypotheses, *self.run_conditions]
        return conclude_laws(
            assumed, self.checks, self.rivals, self.controls, headline, self.nulls, self.says
        )


def judge_laws(
    claim: Any, predicted: Prediction, observed: Observation, rivals: Sequence[Rival]
) -> Judgement:
    """Judge stored or fresh arrays of a claim.

    Args:
        claim: the claim with its fields.
        predicted: its laws.
        observed: what was measured.
        rivals: wrong theories, each with all arrays of a prediction.

    Raises:
        UserError: two challenges, or two checks, of one id.
    """
    stated = claim.checks(predicted, observed)
    worlds = claim.changed_worlds(observed)
    _refuse_twice("check", stated)
    _refuse_twice("rival or control", (*rivals, *worlds))

    def confront(wrong: Rival | Control) -> Rejection:
        theory: Any = wrong.prediction if isinstance(wrong, Rival) else predicted
        measured: Any = wrong.observation if isinstance(wrong, Control) else observed
        rejection = reject(wrong, stated, claim.checks(theory, measured))
        by = tuple(
            check.id
            for check in rejection.checks
            if check.id in rejection.by and _in_numbers(check)
        )
        return replace(rejection, by=by, rejected=bool(by))

    refuted = tuple(map(confront, rivals))
    controls = tuple(map(confront, worlds))
    checks = challenge(stated, [*refuted, *controls])
    of_the_world = {id for control in controls for id in control.by}
    telling = {check.id for check in checks if check.id in of_the_world and not check.idle}
    failing = _failing(claim, observed, stated, telling)
    nulls = judge_nulls(claim, predicted, stated, failing)
    return Judgement(
        run_conditions=tuple(claim.run_conditions(observed)),
        checks=checks,
        rivals=refuted,
        controls=controls,
        panels=claim.draw_figure(predicted, observed, rivals),
        nulls=nulls,
        says=claim.clauses(checks, predicted, observed),
        resolutions=tuple(judge_sizes(predicted, nulls, failing)),
    )


Failing = Callable[[Prediction], tuple[Mapping[str, Check], tuple[str, ...]]]
"""From a wrong prediction to its checks by id, and to the ids of the checks that tell it from the claim's own."""


def _failing(
    claim: Any, observed: Observation, own: Sequence[Check], telling: Collection[str]
) -> Failing:
    """Return what judges wrong predictions of one observation: checks that the claim's own passes, and that tell."""
    passed = {check.id for check in own if check.verdict is not Verdict.FAILS}

    def judge(wrong: Prediction) -> tuple[Mapping[str, Check], tuple[str, ...]]:
        against = {check.id: check for check in claim.checks(wrong, observed)}
        failed = [id for id, check in against.items() if check.verdict is Verdict.FAILS]
        return against, tuple(id for id in failed if id in passed and id in telling)

    return judge


def judge_nulls(
    claim: Any, predicted: Prediction, own: Sequence[Check], failing: Failing
) -> tuple[Null, ...]:
    """Judge a claim's own laws made larger and smaller, flattened, reversed and tilted along each of their axes.

    A law is one of the headline's once a headline check comes to other numbers where the law is wrong, whatever name
    that check gives to what it compares: a ratio to the law that is compared with one depends on it no less. Its size
    is the headline's where the check's numbers depend on that: those of an order or of an exponent do not.

    Args:
        claim: the claim with its fields.
        predicted: its laws.
        own: its checks.
        failing: judges a wrong prediction; a check that no changed world fails looks at no data, and tells no theory
            from another.
    """
    stated = [check for check in own if check.id in claim.headline]
    nulls = []
    of_headline = set()
    for null, wrong in claim.mutants(predicted):
        against, by = failing(wrong)
        nulls.append(replace(null, by=by))
        # a bound passes laxer ones by its nature; how tight it is, its room says
        depend = stated if null.axis else [check for check in stated if check.kind != "bound"]
        if any(moved(check, against.get(check.id)) for check in depend):
            of_headline.add(_dependence(null))
    return tuple(replace(null, headline=_dependence(null) in of_headline) for null in nulls)


def judge_sizes(
    predicted: Prediction, nulls: Sequence[Null], failing: Failing
) -> Iterable[Resolution]:
    """Yield how small an error in the size of each headline law would be noticed, both ways.

    Args:
        predicted: the claim's laws.
        nulls: how wrong laws fared; nulls of size say which laws the headline depends on.
        failing: judges a wrong prediction.
    """
    sizes = [null for null in nulls if not null.axis and null.headline]
    for law in dict.fromkeys(null.law for null in sizes):
        largest = all(null.rejected for null in sizes if null.law == law)
        smallest = LARGER - 1 if largest else None
        for error in (
            ERRORS if largest else ()
        ):  # from large to small, as what is below one that passes says nothing
            if not all(failing(wrong)[1] for wrong in resized(predicted, law, error)):
                break
            smallest = error
        yield Resolution(law, smallest)


def _dependence(null: Null) -> tuple[str, str]:
    """Return what of a law a headline may depend on: the law along its axes, how much it varies there, or its size.

    An order is the same where a law varies half as much, and asks nothing of that.
    """
    if not null.axis:
        return null.law, "size"
    return null.law, f"{null.axis} halved" if null.kind == "halved" else "axes"


def _in_numbers(check: Check) -> bool:
    """Whether a check compares numbers: one that could not be computed tells nothing from anything."""
    ends = (check.interval.low, check.interval.high, check.margin.low, check.margin.high)
    return not any(map(math.isnan, ends))


def _refuse_twice(what: str, named: Iterable[Check | Rival | Control]) -> None:
    counts = Counter(one.id for one in named)
    if twice := [id for id, count in counts.items() if count > 1]:
        raise UserError(f"two of the claim's {what}s are called {twice[0]!r}; give one another id")
