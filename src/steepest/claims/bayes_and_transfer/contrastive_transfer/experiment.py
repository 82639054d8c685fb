"""The slack of the contrastive bound where blocks of examples stand in place of single ones, by draws."""

import numpy as np

from steepest.measurement.quantities import LOG_TWO
from steepest.nn.types import Values


def block_slacks(
    features: Values, blocks: tuple[int, ...], draws: int, rng: np.random.Generator
) -> Values:
    """Return the slack of the bound from blocks, (L_block − τ)/(1 − τ) − L_sup, for each size of block.

    A block puts means of b positives and of b negatives in place of one each. The loss's tangent at v's mean given x
    is subtracted, whose mean is zero, so that little noise is left. All classes are alike.
    """
    classes, n, _ = features.shape
    means = features.mean(1)
    slacks = []
    for block in blocks:
        positive_class = rng.integers(classes, size=draws)
        negative_class = rng.integers(classes, size=draws)
        x = features[positive_class, rng.integers(n, size=draws)]
        positives = features[positive_class[:, None], rng.integers(n, size=(draws, block))].mean(1)
        negatives = features[negative_class[:, None], rng.integers(n, size=(draws, block))].mean(1)
        v = (x * (positives - negatives)).sum(1)
        centre = (x * (means[positive_class] - means[negative_class])).sum(1)
        # ℓ'(v) = −1/((1 + e^v) log 2)
        tangent = (centre - v) / (1 + np.exp(centre))
        excess = np.logaddexp(0, -v) - np.logaddexp(0, -centre) - tangent
        slacks.append(excess.mean() / LOG_TWO / (1 - 1 / classes))
    return np.array(slacks)
