"""Moments of a batch's gradient, over the draw of the batch, exactly from the gradients of all examples."""

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jax.core import Tracer

from steepest.core.errors import UserError, nearest
from steepest.core.signatures import checked

Sampling = Literal["independent", "fixed", "replacement"]
"""How a batch is drawn: every example by its own coin, so many without or with replacement."""


class GradientMoments(NamedTuple):
    """Mean and second moments of the gradient of a random batch.

    Attributes:
        mean: the full gradient, shape ``(d,)``.
        covariance: C, shape ``(d, d)``.
        second: the second moment C̃ = C + mean meanᵀ, shape ``(d, d)``.
    """

    mean: Any
    covariance: Any
    second: Any


@checked
def batch_factor(examples: int, batch: Any, sampling: Sampling) -> Any:
    """Return c with C = c (1/m) Σ g_k g_kᵀ, of centred g_k unless the batch is drawn by independent coins.

    Batches of b among m examples: (1/b)(1 − b/m) for independent coins of probability b/m, whose batches differ in
    size; (1/b)(m − b)/(m − 1) for b different ones; 1/b with replacement.

    Args:
        examples: m.
        batch: b; between 1 and m, but with replacement; may be traced.
        sampling: how a batch is drawn.

    Raises:
        UserError: a batch that is empty or larger than the data, an unknown way to draw.

    >>> batch_factor(100, 20, "independent"), round(batch_factor(100, 20, "fixed"), 5)
    (0.04, 0.0404)
    """
    ways = get_args(Sampling)
    if sampling not in ways:
        raise UserError(
            f"a batch is drawn in one of the ways {', '.join(ways)}, got {sampling!r}; "
            f"{nearest(str(sampling), ways)}"
        )
    known = not isinstance(batch, Tracer)  # a traced size was checked when it was made
    if known and (not batch >= 1 or (sampling != "replacement" and batch > examples)):
        raise UserError(
            f"a batch must hold between 1 and {examples} examples, got {batch}; the data have no more"
        )
    if sampling == "independent":
        # Var of a coin over b² is (b/m)(1 − b/m)/b²; times m for the mean over examples
        return (1 - batch / examples) / batch
    if sampling == "fixed":
        # sampling without replacement: the finite-population factor (m − b)/(m − 1)
        return (examples - batch) / (max(examples - 1, 1) * batch)
    return 1 / batch


@checked
def gradient_moments(
    gradients: Any, batch: float, sampling: Sampling = "independent"
) -> GradientMoments:
    """Return mean, covariance C and second moment C̃ of a batch's gradient (1/b) Σ_{k in batch} g_k.

    With independent coins the size of a batch is random too, so that C does not vanish where all gradients agree: it is
    that of the raw second moment, not of the centred one (ORF 543, lecture of 11/16, whose text calls both covariance).

    Args:
        gradients: g_k of all examples at one point, shape ``(m, d)``; NumPy's or JAX's, also inside a program.
        batch: mean size b of the batches.
        sampling: ``"independent"`` coins, a ``"fixed"`` number without replacement, or with ``"replacement"``.

    Raises:
        UserError: as :func:`batch_factor`; gradients that are not a table.

    >>> alike = gradient_moments(np.ones((10, 1)), 5, "independent")
    >>> float(alike.covariance[0, 0]), float(gradient_moments(np.ones((10, 1)), 5, "fixed").covariance[0, 0])
    (0.1, 0.0)
    """
    gradients = _table(gradients)
    examples = gradients.shape[0]
    factor = batch_factor(examples, batch, sampling)
    mean = gradients.sum(0) / examples
    # coins: variances add, of the raw g_k; else their sum is fixed, and the mean drops out
    spread = gradients if sampling == "independent" else gradients - mean
    covariance = factor * (spread.T @ spread) / examples
    # E g gᵀ = C + mean meanᵀ
    return GradientMoments(mean, covariance, covariance + mean[:, None] * mean)


class BatchCumulants(NamedTuple):
    """Cumulants of a batch's gradient along some directions, each of shape ``(directions,)``.

    Attributes:
        variance: κ₂.
        skewness: κ₃/κ₂^(3/2).
        excess: κ₄/κ₂², the excess kurtosis.
    """

    variance: Any
    skewness: Any
    excess: Any


@checked
def batch_cumulants(gradients: Any, batch: float) -> BatchCumulants:
    """Return variance, skewness and excess kurtosis of the gradient of a batch of independent coins, exactly.

    Cumulants of independent coins add up, and those of a coin of probability p = b/m are p(1 − p) = s,
    s(1 − 2p) and s(1 − 6s). With sums over the m examples

        κ₂ = s Σ g²/b²,    skewness = (1 − 2p)/√s · Σ g³/(Σ g²)^(3/2),    excess = (1 − 6s)/s · Σ g⁴/(Σ g²)².

    The skewness falls like b^(−1/2) and the excess like 1/b, which changes its sign near p = 0.21.

    Args:
        gradients: projections of g_k, shape ``(m, directions)``.
        batch: mean size b of the batches, below m.

    Raises:
        UserError: a batch that is empty or not smaller than the data.

    >>> batch_cumulants(np.ones((4, 1)), 2).excess.tolist()  # the binomial law of 4 fair coins: −2/4
    [-0.5]
    """
    gradients = _table(gradients)
    examples = gradients.shape[0]
    if not 1 <= batch < examples:
        raise UserError(
            f"a random batch must hold at least 1 and less than {examples} examples, got {batch}"
        )
    p = batch / examples
    s = p * (1 - p)  # variance of one coin
    squares = (gradients**2).sum(0)
    return BatchCumulants(
        variance=s * squares / batch**2,
        skewness=(1 - 2 * p) / s**0.5 * (gradients**3).sum(0) / squares**1.5,
        excess=(1 - 6 * s) / s * (gradients**4).sum(0) / squares**2,  # κ₄ of a coin is s(1 − 6s)
    )


@checked
def draw_batches(
    gradients: np.ndarray, batch: float, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the gradients of random batches of independent coins, shape ``(draws, directions)``.

    Only the examples that join are drawn: in one row of all draws times all examples the gaps between them are
    geometric. The cost is that of the examples drawn, draws × b, and not of draws × m coins.

    Args:
        gradients: projections of g_k, shape ``(m, directions)``.
        batch: mean size b of the batches, at most m.
        draws: how many batches.
        rng: NumPy's generator.

    Raises:
        UserError: a batch that is empty or larger than the data.

    >>> draw_batches(np.ones((5, 1)), 5, 2, np.random.default_rng(0)).tolist()  # every example, over b
    [[1.0], [1.0]]
    """
    gradients = _table(gradients)
    examples, directions = gradients.shape
    if draws < 1:
        raise UserError(f"expected at least one batch to draw, got draws={draws}")
    batch_factor(examples, batch, "independent")
    p = batch / examples
    cells = draws * examples
    expected = cells * p
    # mean count plus eight standard deviations
    gaps = rng.geometric(p, size=int(expected + 8 * np.sqrt(expected * (1 - p)) + 8))
    joined = np.cumsum(gaps) - 1  # eight standard deviations suffice
    joined = joined[joined < cells]
    rows = joined // examples  # place in one row of draws × examples: which draw
    members = joined % examples
    columns = [
        np.bincount(rows, weights=gradients[members, i], minlength=draws) for i in range(directions)
    ]
    return np.stack(columns, 1) / batch


def _table(gradients: Any) -> Any:
    """Return gradients as an array of two axes; NumPy's or JAX's stay as they are."""
    table = gradients if hasattr(gradients, "shape") else np.asarray(gradients, float)
    if table.ndim != 2:
        raise UserError(
            f"the gradients of all examples are a table (m, d), got shape {tuple(table.shape)}"
        )
    return table
