"""What trainings at several widths and step sizes say: whether a step that is best for a narrow network transfers."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.intervals import mean_interval
from steepest.measurement._report import Finding, FindingId
from steepest.measurement.widths._best_step import Carried, Minimum
from steepest.measurement.widths._findings import Power

BEST = "best step at width {:g}"
POWER = "power of the width of the best step"
CARRIED = "risk lost at the widest by the narrowest's best step"
ENDS = {
    "below": "the least risk is that of the smallest step",
    "above": "the least risk is that of the largest step",
    "nowhere": "training diverged at every step",
}


class Transfer(NamedTuple):
    """What was read from the risks after training.

    Attributes:
        widths: multipliers.
        factors: of the reader's step sizes.
        minima: by width and seed.
        power: of the width, of the best factor.
        carried: risks at the widest network.
        is_scaled: whether the function gives other step sizes at other widths already.
    """

    widths: tuple[float, ...]
    factors: NDArray
    minima: list[list[Minimum]]
    power: Power
    carried: Carried
    is_scaled: bool

    @property
    def verdict(self) -> str:
        """Say whether the best step goes with the width."""
        value = self.power.value
        low, high = self.power.interval
        said = f"width^({value + 0.0:.2f} ± {(high - low) / 2:.2f})"
        step = "multiple of your step sizes" if self.is_scaled else "step"
        match self.power.trend:
            case "level":
                return f"the same {step} is best at all widths: it goes like {said}"
            case "falls" | "grows":
                moves = "falls" if value < 0 else "grows"
                advice = _for_twice_the_width(value)
                return f"the best {step} {moves} like {said}: {advice} when you double the width"
        return f"your seeds cannot tell whether the same {step} is best at all widths: it goes like {said}"

    @property
    def lost(self) -> NDArray:
        """Return by how much the risk at the widest is higher with the narrowest's best step, ``(seeds,)``.

        NaN where there is no best step inside of the grid at one of the two widths, infinite where training diverged
        with one of the two steps.
        """
        ends = [*self.minima[0], *self.minima[-1]]
        if any(network.place != "inside" for network in ends):
            return np.full(len(self.minima[0]), np.nan)
        finite = np.isfinite(self.carried.risk) & np.isfinite(self.carried.at_best)
        lost = np.full(len(finite), np.inf)
        lost[finite] = self.carried.risk[finite] - self.carried.at_best[finite]
        return lost

    @property
    def price(self) -> str:
        """Say what the narrowest network's best step makes of the widest."""
        lost = self.lost
        if np.isnan(lost).any():
            return "no number: the best step at one of these widths lies at the end of the grid"
        where = f"at width {self.widths[-1]:g} the step that is best at width {self.widths[0]:g}"
        diverged = int(np.isinf(lost).sum())
        if diverged:
            either = "" if np.isfinite(self.carried.at_best).all() else ", or its own best one,"
            return f"{where}{either} makes training diverge in {diverged} of {len(lost)} networks"
        chosen = "" if self.carried.by_others else ", both chosen on this very network"
        return (
            f"{where} ends at the risk {self.carried.risk.mean():.3g}, its own best one at "
            f"{self.carried.at_best.mean():.3g}{chosen}"
        )

    def ends(self, place: int) -> str:
        """Say at which end of the grid the best steps of a width lie."""
        counts = Counter(network.place for network in self.minima[place])
        several = len(self.minima[place])
        return "; ".join(
            f"{words} in {counts[end]} of {several} networks"
            for end, words in ENDS.items()
            if counts[end]
        )


def transfer_findings(transfer: Transfer) -> tuple[Finding, ...]:
    """Draw the findings, those to act on first."""
    drawn = [
        _of_grid(transfer),
        _of_power(transfer),
        _of_carried(transfer),
        _of_divergence(transfer),
    ]
    findings = [finding for finding in drawn if finding is not None]
    rank = {"!": 0, "?": 1, "✓": 2}
    return tuple(sorted(findings, key=lambda finding: rank[finding.sign]))


def _of_grid(transfer: Transfer) -> Finding | None:
    """Say that the grid of steps must be extended, and where to."""
    places = [network.place for of_width in transfer.minima for network in of_width]
    if all(place == "inside" for place in places):
        return None
    first = min(place for place in range(len(transfer.widths)) if transfer.ends(place))
    smaller = transfer.factors[0] ** 2 / transfer.factors[1]
    larger = transfer.factors[-1] ** 2 / transfer.factors[-2]
    tries = []
    if "below" in places or "nowhere" in places:
        tries.append(f"smaller ones, such as {smaller:.3g}")
    if "above" in places:
        tries.append(f"larger ones, such as {larger:.3g}")
    return Finding(
        "?",
        f"the best step lies outside of the grid at width {transfer.widths[first]:g} ({transfer.ends(first)}), so that "
        f"there is no power: add factors, {' and '.join(tries)}",
        BEST.format(transfer.widths[first]),
        FindingId.GRID_OF_STEPS,
    )


def _of_power(transfer: Transfer) -> Finding | None:
    """Say whether the best step goes with the width."""
    match transfer.power.trend:
        case "none":
            return None
        case "level":
            return Finding("✓", transfer.verdict, POWER, FindingId.STEP_TRANSFERS)
        case "undecided":
            advice = "try more seeds, or widths further apart"
            return Finding("?", f"{transfer.verdict}; {advice}", POWER, FindingId.STEP_NOT_DECIDED)
    return Finding("!", transfer.verdict, POWER, FindingId.STEP_GOES_WITH_WIDTH)


def _of_carried(transfer: Transfer) -> Finding | None:
    """Say what the narrowest network's best step costs the widest, where that is more than the seeds' scatter."""
    lost = transfer.lost
    if np.isnan(lost).any():
        return None
    if np.isinf(lost).any():
        return Finding("!", transfer.price, CARRIED, FindingId.STEP_COSTS)
    if len(lost) < 2:
        return Finding("?", transfer.price, CARRIED, FindingId.STEP_COSTS)
    if mean_interval(lost).low > 0:
        return Finding("!", transfer.price, CARRIED, FindingId.STEP_COSTS)
    return Finding(
        "?", f"{transfer.price}: no loss beyond the seeds' scatter", CARRIED, FindingId.STEP_COSTS
    )


def _of_divergence(transfer: Transfer) -> Finding | None:
    """Say where minima are known to a step of the grid only."""
    beside = [
        (width, sum(network.within > 0 for network in of_width))
        for width, of_width in zip(transfer.widths, transfer.minima, strict=True)
    ]
    several = [f"{count} at width {width:g}" for width, count in beside if count]
    if not several:
        return None
    return Finding(
        "?",
        f"beside the best step training diverges in some networks ({', '.join(several)}): their best step is known to "
        "a step of the grid, and intervals are as much wider; put factors closer there",
        POWER,
        FindingId.GRID_OF_STEPS,
    )


def _for_twice_the_width(power: float) -> str:
    """Return what to do with the step.

    >>> _for_twice_the_width(-0.9), _for_twice_the_width(1.0), _for_twice_the_width(-0.5)
    ('halve it', 'double it', 'multiply it by 0.7')
    """
    factor = f"{2**power:.1f}"
    return {"0.5": "halve it", "2.0": "double it"}.get(factor, f"multiply it by {factor}")
