"""How the outcome of a run stands to what is recorded of its claim, and the exit code that follows."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from steepest import record
from steepest.catalogue import HERE
from steepest.core.words import Verdict
from steepest.record import Record

if TYPE_CHECKING:  # the command line reads this module for its help, and needs no numpy
    from steepest.engine.crew import Outcome
    from steepest.engine.results import Result

DECIDED = (Verdict.HOLDS, Verdict.FAILS)
EXIT_CODES = (
    "Exit code: 0 if every verdict agrees with the record of Steepest, and every claim without a record holds. 1 if a "
    "recorded verdict changed, a claim without a record fails, or a claim crashed. 2 for bad input. 3 if a verdict is "
    "inconclusive or out of range, and the record has another verdict or none. A record applies only to a claim of "
    "Steepest as it stands: at the quick preset and seed 0, with no field changed, and not on your own network. "
    "With --strict: 0 if all claims hold, 1 if a claim fails or crashed, 2 for bad input, 3 otherwise."
)
"""For the help of ``steepest run`` and the book."""


class Standing(StrEnum):
    """Where a claim is after a run, beside what is recorded of it."""

    AS_RECORDED = "as-recorded"
    CHANGED = "changed"
    UNSETTLED = "unsettled"
    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    CRASHED = "crashed"


CODES = {
    Standing.AS_RECORDED: 0,
    Standing.CHANGED: 1,
    Standing.UNSETTLED: 3,
    Standing.HOLDS: 0,
    Standing.FAILS: 1,
    Standing.UNDECIDED: 3,
    Standing.CRASHED: 1,
}
"""The exit code that each asks for. The first three are of claims with a record: ``CHANGED`` is another decided
verdict, ``UNSETTLED`` none that is decided. The next three are of claims without a record."""


def record_for(result: "Result") -> Record | None:
    """Return the record that a result can be compared with: of the same version, preset, seed and fields."""
    asked = result.preset == record.PRESET and result.seed == record.SEED and not result.changes
    ours = result.about["origin"] == HERE and "subject" not in result.about
    recorded = record.records().get(result.claim) if asked and ours else None
    same = recorded is not None and recorded.version == result.claim_version
    return recorded if same else None


def standing(outcome: "Outcome") -> Standing:
    """Return how an outcome stands to the record."""
    result = outcome.result
    if result is None:
        return Standing.CRASHED
    recorded = record_for(result)
    decided = result.verdict in DECIDED
    if recorded is None:
        return Standing(result.verdict) if decided else Standing.UNDECIDED
    if result.verdict == recorded.verdict:
        return Standing.AS_RECORDED
    return Standing.CHANGED if decided else Standing.UNSETTLED


def exit_code(outcomes: "Iterable[Outcome]", strict: bool = False) -> int:
    """Return the exit code of a run: that of its worst outcome.

    Args:
        outcomes: what became of each claim.
        strict: only ``holds`` is good, whatever is recorded.
    """
    codes = {_strict_code(outcome) if strict else CODES[standing(outcome)] for outcome in outcomes}
    return next((code for code in (1, 3) if code in codes), 0)


def _strict_code(outcome: "Outcome") -> int:
    if outcome.result is None:
        return CODES[Standing.CRASHED]
    return {Verdict.HOLDS: 0, Verdict.FAILS: 1}.get(outcome.result.verdict, 3)
