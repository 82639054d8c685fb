"""How likely the right one of many predictors has the least empirical risk, if all others are worthless: exactly."""

import numpy as np
from scipy.stats import binom, norm

from steepest.nn.types import Values

SPAN = 10.0  # chances are computed up to so many times 1/ε²
NEAR = 0.35


def chance_right(samples: int, edge: float, own: int, longest: int, penalty: float = 0.0) -> Values:
    """Return the chance that the right predictor is chosen, for names of up to 0, 1, … ``longest`` bits.

    There are 2^(j−1) names of j bits, and one of none. The right predictor has one of ``own`` bits and accuracy
    ½ + ``edge``; errors of all others are fair coins, independent of one another. Names cost √(j log 2/2m) times
    ``penalty``, and ties lose:

        P = Σ_k P(B(m, ½ + ε) = k) Π_j P(B(m, ½)/m − cost_j < k/m − cost_own)^(N_j)

    Returns:
        chances, ``(longest + 1,)``; where names are shorter than the right one's, those with it added to them.

    >>> chance_right(1, 0.5, 0, 1).tolist()  # the only other name errs with chance ½, and a tie loses
    [1.0, 0.5]
    """
    agreements = np.arange(samples + 1)
    below = binom.logcdf(agreements, samples, 0.5)  # log P(B ≤ k)
    # a cost √(j log 2/2m) of the share is √(jm log 2/2) agreements
    costs = penalty * np.sqrt(np.arange(longest + 1) * samples * np.log(2) / 2)
    logs = np.zeros(samples + 1)
    chances = []
    weights = binom.pmf(agreements, samples, 0.5 + edge)
    for bits, cost in enumerate(costs):
        names = 2 ** max(0, bits - 1) - (bits == own)
        if names:
            # the largest number of agreements with which a name of so many bits still loses
            losing = np.ceil(agreements + cost - costs[own] - 1e-9).astype(int) - 1
            chance = np.where(losing < 0, -np.inf, below[np.clip(losing, 0, samples)])
            # names are independent: all lose with the product of their chances
            logs = logs + names * chance
        chances.append((weights * np.exp(logs)).sum())
    return np.array(chances)


def thresholds(edge: float, own: int, longest: int, penalty: float = 0.0) -> Values:
    """Return how many examples make the right predictor as likely as not, for names of up to so many bits.

    Charged by √length, the chance is ragged in m, as agreements are whole numbers. So it is where a line crosses zero:
    that of the chances' normal quantiles over √m, by least squares, where chances are ½ ± NEAR.

    Returns:
        examples, ``(longest + 1,)``; no numbers where SPAN/ε² are too few.
    """
    samples = np.arange(1, int(SPAN / edge**2))
    table = np.array([chance_right(int(m), edge, own, longest, penalty) for m in samples])
    return np.array([_crossing(samples, chances) for chances in table.T])


def _crossing(samples: Values, chances: Values) -> float:
    near = np.abs(chances - 0.5) < NEAR
    if near[-1] or chances[-1] < 0.5:
        return np.nan
    roots = np.sqrt(samples[near])
    quantiles = norm.ppf(chances[near])
    slope = np.cov(roots, quantiles)[0, 1] / np.var(roots, ddof=1)
    # zero of the line of slope b through the means: √m = mean(√m) − mean(q)/b
    return float((roots.mean() - quantiles.mean() / slope) ** 2)
