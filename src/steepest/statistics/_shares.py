"""Intervals of shares, which have width even where all trials agree."""

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.statistics._quantiles import normal_quantile, student_quantile


@checked
def wilson(
    successes: ArrayLike, trials: ArrayLike, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the ends of Wilson's interval of the probability of a success.

    It holds all p that the score test accepts, with p̂ successes among n trials and the normal quantile z:

    .. math:: |\hat p - p| \le z\sqrt{p(1-p)/n} \iff
        p \in \frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n}

    Unlike Student's it does not shrink to a point where all trials agree. The trials must be independent of each
    other; for trials that share a network or a data set use :func:`clustered_share`. Its coverage is ``level``
    on average over p; for some p it is less by a few percent.

    Args:
        successes: their number, any shape.
        trials: their number, of a shape that broadcasts with it; no trial at all gives the interval [0, 1].
        level: probability that the interval holds.

    Returns:
        Lower and upper ends within [0, 1], of the common shape; NaN where ``successes`` is.

    Raises:
        UserError: negative counts, or more successes than trials.

    Source: Wilson, Probable inference, the law of succession, and statistical inference (1927).

    >>> low, high = wilson([0, 14, 28], 28)
    >>> high.round(2).tolist()
    [0.12, 0.67, 1.0]
    """
    hits = np.asarray(successes, float)
    counts = np.asarray(trials, float)
    if np.any(hits < 0) or np.any(hits > counts):
        raise UserError(
            f"successes lie between 0 and the number of trials, got successes from {hits.min():g} to {hits.max():g} "
            f"of trials from {counts.min():g}"
        )
    share = hits / np.maximum(counts, 1)
    return _score_interval(share, counts, normal_quantile(level))


@checked
def clustered_share(
    successes: ArrayLike, trials: int, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the share of successes with an interval that holds for trials that depend on each other within clusters.

    A cluster is, say, one network asked at many inputs, or one data set with many starts. Wilson's interval is taken
    with the number of independent trials whose share would scatter as much as the share does over clusters,

    .. math:: n_0 = \hat p(1-\hat p) \,/\, (s^2/K),\qquad K \le n_0 \le KT,

    with s² the variance of the shares of K clusters of T trials. It is at least K, since no dependence makes a cluster
    worth less than one trial, and K where all trials agree, since these say nothing of their dependence; at most all
    trials, so that clusters that happen to be alike do not count for more. A few rare outcomes say little about their
    dependence either: one success among 400 trials scatters as independent trials do, whatever the truth. The
    correlation ρ within clusters that n_0 amounts to is therefore drawn towards 1, with the weight of one rare outcome,

    .. math:: KT/n_0 = 1 + (T-1)\rho_0,\quad \rho = \rho_0 + \frac{1-\rho_0}{1 + n_0\min(\hat p, 1-\hat p)},\quad
        n_\mathrm{eff} = \frac{KT}{1 + (T-1)\rho}.

    The normal quantile is replaced by that of Student's t with K − 1 degrees of freedom, for s² is estimated from K
    shares only, too small too often. In simulations of beta-binomial clusters (2 to 30 of them, of 2 to 100 trials, p
    from 0.01 to 0.5, ρ from 0 to 0.99) intervals at the level 0.95 hold in 92 to 100 % of cases, 99 % on average, least
    where K trials would see no success at all, as Wilson's own; without the second step in 84 % for a few skewed
    clusters. With one trial per cluster nothing is estimated, and the
    interval is :func:`wilson`'s.

    Args:
        successes: their number in each cluster, shape ``(clusters, *points)``; clusters are independent.
        trials: number of trials in each cluster.
        level: probability that the interval of one point holds.

    Returns:
        Share, lower and upper end, shape ``(*points,)`` each, never of zero width; NaN where some count is not finite.

    Raises:
        UserError: fewer than two clusters, no trial, counts below 0 or above ``trials``.

    Source: Korn and Graubard, Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data (1998); Dean and Pagano, Evaluating confidence interval methods for binomial proportions
    in clustered surveys (2015).

    >>> share, low, high = clustered_share([10, 0, 10, 10, 0, 0, 10, 0], trials=10)
    >>> float(share), float(low.round(2)), float(high.round(2))  # eight trials in effect, not eighty
    (0.5, 0.18, 0.82)
    """
    hits = np.asarray(successes, float)
    if hits.ndim == 0 or len(hits) < 2 or trials < 1:
        raise UserError(
            "the interval of a clustered share needs at least two clusters along the first axis, with at least one "
            f"trial each; got successes of shape {hits.shape} and {trials} trials; use more seeds"
        )
    if np.any(hits < 0) or np.any(hits > trials):
        raise UserError(
            f"successes in a cluster lie between 0 and its {trials} trials, got {hits.min():g} to {hits.max():g}"
        )
    hits = np.where(np.isfinite(hits).all(0), hits, np.nan)
    clusters = len(hits)
    share = hits.mean(axis=0) / trials
    counts = _effective_trials(hits / trials, trials)
    if trials == 1:
        quantile = normal_quantile(level)
    else:
        quantile = student_quantile(level, clusters - 1)
    return share, *_score_interval(share, counts, quantile)


def _effective_trials(shares: np.ndarray, trials: int) -> np.ndarray:
    """Return the number of independent trials that scatter as these shares ``(clusters, *points)``, or fewer."""
    clusters = len(shares)
    every = clusters * trials
    mean = shares.mean(axis=0)
    single = mean * (1 - mean)  # variance of one trial
    scatter = shares.var(axis=0, ddof=1) / clusters  # variance of the mean of K shares
    with np.errstate(divide="ignore", invalid="ignore"):
        # n_0 = p̂(1 − p̂)/(s²/K), between K and KT
        plain = np.clip(single / scatter, clusters, every)
    plain = np.where(single == 0, clusters, plain)
    correlation = (every / plain - 1) / max(trials - 1, 1)  # ρ_0 from KT/n_0 = 1 + (T − 1)ρ_0
    rare = plain * np.minimum(mean, 1 - mean)  # rarer outcomes, in independent trials
    # drawn towards 1 with the weight of one rare outcome
    correlation += (1 - correlation) / (1 + rare)
    return every / (1 + (trials - 1) * correlation)  # n_eff = KT/(1 + (T − 1)ρ)


def _score_interval(
    share: np.ndarray, trials: np.ndarray, quantile: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return all p with ``|share − p| ≤ quantile · √(p(1 − p)/trials)``; the ends 0 and 1 are exact where reached."""
    squared = quantile**2
    # numerator and denominator of Wilson's formula, times n
    centre = (trials * share + squared / 2) / (trials + squared)
    # z √(p̂(1 − p̂)/n + z²/4n²)/(1 + z²/n), times n in both parts
    half = np.sqrt(trials * share * (1 - share) + squared / 4) * quantile / (trials + squared)
    low = np.where(share <= 0, 0.0, centre - half)
    # no trial at all leaves everything possible
    high = np.where((share >= 1) | (trials == 0), 1.0, centre + half)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
