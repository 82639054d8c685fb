"""Rank correlations, one per repetition."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.signatures import checked

RankKind = Literal["spearman", "kendall"]
"""Which correlation of ranks: Spearman's ρ or Kendall's τ_b."""


@checked
def rank_correlation(x: ArrayLike, y: ArrayLike, kind: RankKind = "spearman") -> np.ndarray:
    r"""Return how well the order of x along the last axis is that of y, between −1 and 1, for each repetition.

    ``"spearman"`` is the correlation of ranks, of equal values their mean rank; ``"kendall"`` is

    .. math:: \tau_b = \frac{\sum_{i<j}\mathrm{sign}(x_i-x_j)\,\mathrm{sign}(y_i-y_j)}
        {\sqrt{\#\{x_i\ne x_j\}\,\#\{y_i\ne y_j\}}},

    the share of pairs in the same order less that in the opposite one. An interval over repetitions is that of the
    mean of what is returned; the points of one repetition need not be independent for it.

    Args:
        x: shape ``(*repetitions, points)``.
        y: of a shape that broadcasts with it, for example ``(points,)``, but with as many points.
        kind: which one.

    Returns:
        Shape ``(*repetitions,)``; NaN, as SciPy has it, where x or y is constant or not finite: nothing is ordered.

    Raises:
        UserError: fewer than two points, different numbers of points, an unknown kind.

    Source: Kendall, Rank Correlation Methods (1948).

    >>> margins = [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]]
    >>> rank_correlation(margins, [1.0, 2.0, 4.0, 3.0]).round(6).tolist()
    [0.8, -0.8]
    >>> rank_correlation(margins, [1.0, 2.0, 4.0, 3.0], "kendall").round(6).tolist()
    [0.666667, -0.666667]
    """
    x = np.asarray(x, float)
    y = np.asarray(y, float)
    if kind not in get_args(RankKind):
        raise UserError(f"a rank correlation is 'spearman' or 'kendall', got {kind!r}")
    if x.ndim == 0 or y.ndim == 0 or x.shape[-1] != y.shape[-1] or x.shape[-1] < 2:
        raise UserError(
            "a rank correlation needs two points or more along the last axis, as many of x as of y; "
            f"got shapes {x.shape} and {y.shape}"
        )
    x, y = np.broadcast_arrays(x, y)
    ordered = np.isfinite(x).all(-1) & np.isfinite(y).all(-1)
    ordered &= (np.ptp(x, axis=-1) > 0) & (np.ptp(y, axis=-1) > 0)
    result = np.full(ordered.shape, np.nan)
    correlate = _spearman if kind == "spearman" else _kendall
    result[ordered] = correlate(x[ordered], y[ordered])
    return result


def _spearman(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Correlate ranks of ``(repetitions, points)``."""
    from scipy.stats import rankdata

    middle = (x.shape[-1] + 1) / 2
    x_ranks = rankdata(x, axis=-1) - middle
    y_ranks = rankdata(y, axis=-1) - middle
    # both variances: ranks have mean (n + 1)/2, with ties too
    sizes = (x_ranks**2).sum(-1) * (y_ranks**2).sum(-1)
    return (x_ranks * y_ranks).sum(-1) / np.sqrt(sizes)


def _kendall(x: np.ndarray, y: np.ndarray) -> list[float]:
    """Compare all pairs of ``(repetitions, points)``, one repetition at a time for the memory of it."""
    return [_kendall_of_one(ranked, other) for ranked, other in zip(x, y, strict=True)]


def _kendall_of_one(x: np.ndarray, y: np.ndarray) -> float:
    x_signs = np.sign(x[:, None] - x)
    y_signs = np.sign(y[:, None] - y)
    pairs = np.count_nonzero(x_signs) * np.count_nonzero(y_signs)
    # ordered pairs count each pair twice, in the numerator and under the root of the product alike
    return float((x_signs * y_signs).sum() / np.sqrt(pairs))
