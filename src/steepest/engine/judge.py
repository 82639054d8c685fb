"""Judge the arrays of one run: conditions, checks, rivals, controls, panels, and the verdict.

This module and what it imports is what every judgement depends on; a change here has all stored verdicts judged anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steepest.core.arrays import Observation, Prediction
from steepest.core.checks import Check, Control, Rejection, Rival, challenge, conclude, reject
from steepest.core.hypotheses import Hypothesis
from steepest.core.panels import Panel
from steepest.core.words import Verdict

if TYPE_CHECKING:
    from steepest.claim import Claim


@dataclass(frozen=True)
class Judgement:
    """What a claim's judge says of one prediction and one observation.

    Attributes:
        run_conditions: what must hold of the run for its verdict to mean something.
        checks: every comparison of predicted and measured, with what challenges it.
        rivals: what became of every deliberately wrong theory.
        controls: what became of every object for which the law must not hold.
        panels: the figure, as data.
    """

    run_conditions: tuple[Hypothesis, ...] = ()
    checks: tuple[Check, ...] = ()
    rivals: tuple[Rejection, ...] = ()
    controls: tuple[Rejection, ...] = ()
    panels: tuple[Panel, ...] = ()

    def conclude(
        self, hypotheses: Sequence[Hypothesis], headline: Sequence[str]
    ) -> tuple[Verdict, str]:
        """Return the verdict with its reason in a sentence."""
        assumed = [*hypotheses, *self.run_conditions]
        return conclude(assumed, self.checks, self.rivals, self.controls, headline)


def judge(
    claim: "Claim", predicted: Prediction, observed: Observation, rivals: Sequence[Rival]
) -> Judgement:
    """Judge stored or fresh arrays.

    Args:
        claim: the claim with its fields.
        predicted: what theory says.
        observed: what was measured.
        rivals: the predictions of wrong theories, each judged like the claim's own.
    """
    own = tuple(claim.judge(predicted, observed))

    def confront(wrong: Rival | Control) -> Rejection:
        theory: Any = wrong.prediction if isinstance(wrong, Rival) else predicted
        measured: Any = wrong.observation if isinstance(wrong, Control) else observed
        return reject(wrong, own, claim.judge(theory, measured))

    refuted = tuple(map(confront, rivals))
    controls = tuple(map(confront, claim.controls(observed)))
    return Judgement(
        run_conditions=tuple(claim.run_conditions(observed)),
        checks=challenge(own, [*refuted, *controls]),
        rivals=refuted,
        controls=controls,
        panels=tuple(claim.panels(predicted, observed)),
    )
