"""Judge the arrays of one run: conditions, checks, rivals, panels, and the verdict.

This module and what it imports is what every judgement depends on; a change here has all stored verdicts judged anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steepest.core.arrays import Observation, Prediction
from steepest.core.checks import Check, Rejection, Rival, conclude, reject
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
        checks: every comparison of predicted and measured.
        rivals: what became of every deliberately wrong theory.
        panels: the figure, as data.
    """

    run_conditions: tuple[Hypothesis, ...] = ()
    checks: tuple[Check, ...] = ()
    rivals: tuple[Rejection, ...] = ()
    panels: tuple[Panel, ...] = ()

    def conclude(self, hypotheses: Sequence[Hypothesis]) -> tuple[Verdict, str]:
        """Return the verdict with its reason in a sentence."""
        return conclude([*hypotheses, *self.run_conditions], self.checks, self.rivals)


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
    checks = tuple(claim.judge(predicted, observed))
    return Judgement(
        run_conditions=tuple(claim.run_conditions(observed)),
        checks=checks,
        rivals=tuple(_confront(claim, rival, checks, observed) for rival in rivals),
        panels=tuple(claim.panels(predicted, observed)),
    )


def _confront(
    claim: "Claim", rival: Rival, own: Sequence[Check], observed: Observation
) -> Rejection:
    prediction: Any = rival.prediction
    return reject(rival, own, claim.judge(prediction, observed))
