"""Contrastive losses of several negatives at a time, by draws."""

from typing import NamedTuple

import numpy as np

from steepest.measurement.quantities import LOG_TWO
from steepest.nn.types import Values


class Several(NamedTuple):
    """What is left between contrastive losses of several negatives and of class means, for each number of them.

    Attributes:
        slack: the difference, by draws whose tangent has been subtracted, with little noise.
        left: the difference itself.
        without_own: the same where no negative is of x's own class, though the losses of means have such.
    """

    slack: Values
    left: Values
    without_own: Values


def several_negatives(
    features: Values, numbers: tuple[int, ...], draws: int, rng: np.random.Generator
) -> Several:
    """Return what is left between losses ℓ(v) = log₂(1 + Σ_i e^(−v_i)) of k negatives and of class means.

    Class means stand for the positive and for every negative, so that one of x's own class is a tie, with v_i = 0. All
    classes are alike.

    Args:
        features: shape ``(10, n, k)``.
        numbers: of negatives, each of any class.
        draws: of x, its positive and its negatives.
        rng: source of randomness.
    """
    classes, n, width = features.shape
    rows = features.reshape(-1, width)
    products = rows @ rows.T
    of_means = rows @ features.mean(1).T
    own_class = rng.integers(classes, size=draws)
    x = own_class * n + rng.integers(n, size=draws)
    positive = products[x, own_class * n + rng.integers(n, size=draws)][:, None]
    shape = (draws, max(numbers))
    any_class = rng.integers(classes, size=shape)
    other_class = (own_class[:, None] + rng.integers(1, classes, size=shape)) % classes
    one_of = lambda classes: products[x[:, None], classes * n + rng.integers(n, size=shape)]
    v = positive - one_of(any_class)
    v_of_others = positive - one_of(other_class)
    centre = of_means[x, own_class][:, None] - of_means[x[:, None], any_class]
    results = []
    for k in numbers:
        weights = np.exp(-centre[:, :k])
        total = 1 + weights.sum(1)
        # ∂ℓ/∂v_i = −e^(−v_i)/((1 + Σ_j e^(−v_j)) log 2), at class means: a term of mean zero
        tangent = -(weights * (v - centre)[:, :k]).sum(1) / total / LOG_TWO
        bits = lambda margins, k=k: np.log2(1 + np.exp(-margins[:, :k]).sum(1))
        difference = bits(v) - np.log2(total)
        without = bits(v_of_others) - np.log2(total)
        results.append([(difference - tangent).mean(), difference.mean(), without.mean()])
    return Several(*np.array(results).T)
