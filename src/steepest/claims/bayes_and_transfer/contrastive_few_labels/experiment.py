"""Training of linear representations by fresh triples, and mean classifiers of few labels."""

from typing import Any

import jax
import numpy as np

from steepest.claims.bayes_and_transfer._contrastive import CLASSES
from steepest.measurement.quantities import LOG_TWO
from steepest.nn.types import Values


def triple_loss(weights: jax.Array, x: jax.Array, positive: jax.Array, negative: jax.Array) -> Any:
    """Return ℓ(f(x)ᵀ(f(x⁺) − f(x⁻))) in bits, f(x) = Wᵀx."""
    v = ((x @ weights) * ((positive - negative) @ weights)).sum(1)
    return jax.nn.softplus(-v) / LOG_TWO


def pair_accuracy(images: Values, weights: Values, means: Values) -> float:
    """Return the share of images that the mean classifier puts right, over all ordered pairs of classes.

    Args:
        images: shape ``(10, n, 64)``.
        weights: shape ``(64, k)``.
        means: of the features by class, shape ``(10, k)``; a pair's threshold is half-way between them.
    """
    # ⟨f, μ⟩ − ½‖μ‖² orders the means μ as their distances from f do
    scores = images @ weights @ means.T - 0.5 * (means**2).sum(1)  # (class, image, mean)
    right = scores[np.arange(CLASSES), :, np.arange(CLASSES)][:, :, None] > scores
    return float(right.mean(1)[~np.eye(CLASSES, dtype=bool)].mean())


def few_label_accuracy(
    images: Values, weights: Values, labels: int, draws: int, rng: np.random.Generator
) -> float:
    """Return the accuracy with means of a few images of each class, drawn from the same ones, over many draws."""
    features = images @ weights
    scores = []
    for _ in range(draws):
        chosen = rng.permuted(np.tile(np.arange(images.shape[1]), (CLASSES, 1)), axis=1)[:, :labels]
        means = np.take_along_axis(features, chosen[:, :, None], 1).mean(1)
        scores.append(pair_accuracy(images, weights, means))
    return float(np.mean(scores))
