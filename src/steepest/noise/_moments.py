"""Moments of a batch's gradient, over the draw of the batch, exactly from the gradients of all examples."""

from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from steepest.core.errors import UserError, nearest

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


def batch_factor(examples: int, batch: float, sampling: Sampling) -> float:
    """Return c with C = c (1/m) Σ g_k g_kᵀ, of centred g_k unless the batch is drawn by independent coins.

    Batches of b among m examples: (1/b)(1 − b/m) for independent coins of probability b/m, whose batches differ in
    size; (1/b)(m − b)/(m − 1) for b different ones; 1/b with replacement.

    Args:
        examples: m.
        batch: b; between 1 and m, but with replacement.
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
    if batch < 1 or (sampling != "replacement" and batch > examples):
        raise UserError(
            f"a batch must hold between 1 and {examples} examples, got {batch}; the data have no more"
        )
    if sampling == "independent":
        return (1 - batch / examples) / batch
    if sampling == "fixed":
        return (examples - batch) / (max(examples - 1, 1) * batch)
    return 1 / batch


def gradient_moments(
    gradients: Any, batch: float, sampling: Sampling = "independent"
) -> GradientMoments:
    """Return mean, covariance C and second moment C̃ of a batch's gradient (1/b) Σ_{k in batch} g_k.

    With independent coins the size of a batch is random too, so that C does not vanish where all gradients agree: it is
    that of the raw second moment, not of the centred one (002, lecture of 11/16, whose text calls both covariance).

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
    if np.ndim(gradients) != 2:
        raise UserError(
            f"the gradients of all examples are a table (m, d), got shape {np.shape(gradients)}"
        )
    examples = gradients.shape[0]
    factor = batch_factor(examples, batch, sampling)
    mean = gradients.sum(0) / examples
    spread = gradients if sampling == "independent" else gradients - mean
    covariance = factor * (spread.T @ spread) / examples
    return GradientMoments(mean, covariance, covariance + mean[:, None] * mean)


def excess_kurtosis(gradients: Any, batch: float) -> Any:
    """Return the excess kurtosis of each entry of the gradient of a batch of independent coins.

    Cumulants of independent coins add up: κ₄ of a coin of probability p = b/m is p(1 − p)(1 − 6p(1 − p)), so the excess
    is (1 − 6p(1 − p)) / (p(1 − p)) · Σ g⁴ / (Σ g²)². It falls like 1/b, and changes its sign near p = 0.21.

    Args:
        gradients: projections of g_k, shape ``(m, directions)``.
        batch: mean size b of the batches, below m.

    Raises:
        UserError: a batch that is empty or not smaller than the data.

    >>> float(excess_kurtosis(np.ones((4, 1)), 2)[0])  # the binomial law of 4 fair coins: −2/4
    -0.5
    """
    examples = gradients.shape[0]
    if not 1 <= batch < examples:
        raise UserError(
            f"a random batch must hold at least 1 and less than {examples} examples, got {batch}"
        )
    p = batch / examples
    coin = (1 - 6 * p * (1 - p)) / (p * (1 - p))
    return coin * (gradients**4).sum(0) / (gradients**2).sum(0) ** 2
