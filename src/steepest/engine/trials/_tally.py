"""How often runs come to each verdict."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from steepest.core.words import CRASHED, Verdict
from steepest.record import HoldRate
from steepest.statistics import wilson

NAMES = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "fails",
    Verdict.INCONCLUSIVE: "undecided",
    Verdict.OUT_OF_RANGE: "out_of_range",
    CRASHED: "crashed",
    "": "missing",
}
"""The count of a tally that each verdict belongs to; a run without one has not been computed."""


@dataclass(frozen=True)
class Tally:
    """How many runs came to each verdict.

    Attributes:
        holds: runs in which the claim held.
        fails: runs in which it failed.
        undecided: runs that were inconclusive.
        out_of_range: runs in which a hypothesis was not true.
        crashed: runs that could not be computed.
        missing: runs that nobody has computed yet; they count nowhere.
    """

    holds: int = 0
    fails: int = 0
    undecided: int = 0
    out_of_range: int = 0
    crashed: int = 0
    missing: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[str]) -> "Tally":
        """Count verdicts; an empty one is of a run that nobody has computed.

        >>> Tally.of(["holds", "inconclusive", "holds", ""])
        Tally(holds=2, fails=0, undecided=1, out_of_range=0, crashed=0, missing=1)
        """
        return cls(**Counter(NAMES[verdict] for verdict in verdicts))

    @property
    def runs(self) -> int:
        """How many runs were computed, or crashed."""
        return self.decided + self.undecided + self.out_of_range + self.crashed

    @property
    def decided(self) -> int:
        """How many runs hold or fail."""
        return self.holds + self.fails

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share of all runs that hold, 95 %."""
        return _interval(self.holds, self.runs)

    @property
    def interval_of_decided(self) -> tuple[float, float]:
        """Wilson's interval of the share of the decided runs that hold, 95 %."""
        return _interval(self.holds, self.decided)

    def hold_rate(self) -> HoldRate:
        """Return the counts as the package records them; a run that crashed counts as undecided there."""
        return HoldRate(self.holds, self.fails, self.undecided + self.crashed, self.out_of_range)

    def to_json(self) -> dict[str, Any]:
        """Return the counts by name, with the number of runs and both intervals."""
        counts = {count.name: getattr(self, count.name) for count in fields(self)}
        return {
            "runs": self.runs,
            **counts,
            "decided": self.decided,
            "interval": list(self.interval),
            "interval_of_decided": list(self.interval_of_decided),
        }


def _interval(holds: int, runs: int) -> tuple[float, float]:
    low, high = wilson(holds, runs)
    return float(low), float(high)
