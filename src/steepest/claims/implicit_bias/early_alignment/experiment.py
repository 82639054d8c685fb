"""What is read off the neurons of networks that start small."""

from typing import NamedTuple

import numpy as np

from steepest.claims.implicit_bias._small_starts import TINY, logarithm
from steepest.nn.networks import Neurons
from steepest.nn.types import Values


class Setting(NamedTuple):
    """Data and initial networks of scale one, one a seed."""

    x: Values  # (seeds, n, d)
    y: Values  # (seeds, n)
    start: Neurons  # (seeds, h, d) and (seeds, h)


def over_class_mean(size: Values, label: Values) -> Values:
    """Return sizes over their mean in the class of each example, ``(seeds, n)``."""
    positive = label > 0
    means = [
        np.where(mine, size, 0.0).sum(1, keepdims=True) / mine.sum(1, keepdims=True)
        for mine in (positive, ~positive)
    ]
    return size / np.where(positive, *means)


def polar(weights: Values, target: Values) -> tuple[Values, Values, Values]:
    """Return sizes of weights, cosines of their angles to targets of unit length, and log tan of half of these.

    Args:
        weights: shape ``(…, d)``.
        target: shape ``(…, d)``, which may lack leading axes.
    """
    size = np.linalg.norm(weights, axis=-1)
    unit = weights / size.clip(TINY)[..., None]
    # |u − t| = 2 sin(θ/2) and |u + t| = 2 cos(θ/2) for unit vectors at an angle θ
    # by chords, which are exact for small angles
    near, far = (np.linalg.norm(unit - sign * target, axis=-1) for sign in (1, -1))
    return size, (unit * target).sum(-1), logarithm(near) - logarithm(far)
