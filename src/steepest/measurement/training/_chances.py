"""How likely losses are by chance: of exchangeable ones whose distribution is not known and may have a long tail."""

import math
from collections.abc import Sequence
from statistics import median

EVER = 0.01  # of the chance that is shared out to all steps
BEFORE = 10  # losses by which the sharing begins later: few losses tell little
# Of the excess of a logarithm of a loss over a level there is one draw of this size beforehand. Fixed on the first two
# lists of benchmarks/warnings and on 536 trainings that end well of their networks on one to four examples a step.
EXCESS = 0.5
ENOUGH = 5  # losses, from which on their median tells


def allowance(count: int) -> float:
    """Return what chance an alarm may have at one step, so that all steps together have a small one.

    Of the n-th step it is EVER / (n ln² n), whose sum over all n is finite: a long training is looked at often, and
    still the chance that it is ever warned of by accident stays below a bound.

    Args:
        count: losses so far.

    >>> sum(map(allowance, range(100_000))) < EVER / 2
    True
    """
    count += BEFORE
    return EVER / (count * math.log(count) ** 2)


def chance_of_hits(hits: int, of: int, before: int, among: int) -> float:
    """Return how likely so many of some losses are above a level, by how many earlier ones were.

    The share above the level is uniform beforehand, so that the number of hits is beta-binomial. The chance of a single
    one is Laplace's rule of succession, (before + 1) / (among + 2).

    Args:
        hits: at least so many are above the level
        of: so many losses.
        before: so many were above it
        among: so many earlier ones.

    >>> round(chance_of_hits(1, 1, 0, 8), 12), round(chance_of_hits(2, 2, 0, 8), 12) == round(2 / 110, 12)
    (0.1, True)
    """
    above = before + 1
    below = among - before + 1
    normalization = _log_beta(above, below)
    return sum(
        math.comb(of, i) * math.exp(_log_beta(above + i, below + of - i) - normalization)
        for i in range(hits, of + 1)
    )


def chance_of_run(length: int, level: float, scale: float, losses: Sequence[float]) -> float:
    """Return how likely so many losses in a row are above a level, by earlier losses.

    Where some of them were above it, their number tells. Otherwise the tail is continued, from the scale or from the
    median: what is likelier counts, as losses that are near zero for long have a wide tail.

    Args:
        length: of the row.
        level: above the scale.
        scale: positive.
        losses: earlier ones.
    """
    above = sum(loss >= level for loss in losses)
    if above:
        return chance_of_hits(length, length, above, len(losses))
    floors = [scale]
    if len(losses) >= ENOUGH and median(losses) > 0:
        floors.append(min(median(losses), scale))
    return max(chance_in_tail(length, level, floor, losses) for floor in floors)


def chance_in_tail(length: int, level: float, floor: float, losses: Sequence[float]) -> float:
    """Return how likely so many losses in a row are above a level, by what earlier ones exceed a lower level by.

    Logarithms of losses exceed the floor by exponential amounts of an unknown rate, which has a gamma distribution
    after k such excesses of sum S. Then all are above the level with chance (1 + length · ln(level/floor) / S)^−(k+1),
    times the chance that they are above the floor.

    Args:
        length: of the row.
        level: above the floor.
        floor: positive.
        losses: earlier ones.
    """
    excesses = [math.log(loss / floor) for loss in losses if loss > floor]
    total = EXCESS + sum(excesses)
    beyond = (1 + length * math.log(level / floor) / total) ** -(len(excesses) + 1)
    return chance_of_hits(length, length, len(excesses), len(losses)) * beyond


def _log_beta(a: int, b: int) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
