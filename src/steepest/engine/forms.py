"""The two forms of a claim, ``steepest.claim`` and ``steepest.kit``, asked in one way.

Claims go over to the second form one by one. The judgement of those in the first form must not depend on the second, so
that their stored verdicts stay valid: this is the one place that knows of both.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from steepest.core.arrays import Observation, Prediction
from steepest.core.checks import Check, Rival
from steepest.engine import judge as first_form


@runtime_checkable
class InLaws(Protocol):
    """A claim in the form of ``steepest.kit``, whose arrays are laws over axes."""

    def axes(self) -> Mapping[str, Sequence[Any]]:
        """Return the coordinates of the axes that design the experiment."""
        ...

    def judged(self, predicted: Prediction, observed: Observation, rivals: Sequence[Rival]) -> Any:
        """Judge everything."""
        ...

    def checks(self, predicted: Prediction, observed: Observation) -> Sequence[Check]:
        """Return the checks alone."""
        ...

    def wrong_theories(self, setting: Any, predicted: Prediction) -> Sequence[Rival]:
        """Return the rivals, each with all arrays of a prediction."""
        ...


def judge(claim: Any, predicted: Prediction, observed: Observation, rivals: Sequence[Rival]) -> Any:
    """Judge stored or fresh arrays: checks, rivals, controls, panels, and what the verdict rests on."""
    if isinstance(claim, InLaws):
        return claim.judged(predicted, observed, rivals)
    return first_form.judge(claim, predicted, observed, rivals)


def checks_of(claim: Any, predicted: Any, observed: Any) -> Sequence[Check]:
    """Return a claim's checks of some arrays."""
    if isinstance(claim, InLaws):
        return claim.checks(predicted, observed)
    return claim.judge(predicted, observed)


def rivals_of(claim: Any, setting: Any, predicted: Prediction) -> Sequence[Rival]:
    """Return a claim's wrong theories."""
    if isinstance(claim, InLaws):
        return claim.wrong_theories(setting, predicted)
    return claim.rivals(setting, predicted)
