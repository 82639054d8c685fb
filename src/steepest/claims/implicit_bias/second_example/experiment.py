"""Two examples, and when neurons that see one of them see both."""

from typing import NamedTuple

import numpy as np

from steepest.nn.networks import Neurons
from steepest.nn.types import Values


class Setting(NamedTuple):
    """Sets of two examples, and a network of scale one for each."""

    start: Neurons  # (seeds, h, d) and (seeds, h)
    pairs: Values  # the two examples of each set, of unit length, (seeds, 2, d)


def mean_of(times: Values, chosen: Values) -> Values:
    """Return the mean over the chosen neurons of each set, ``(sets,)``."""
    return np.where(chosen, times, 0.0).sum(1) / np.maximum(chosen.sum(1), 1)


def one_sided(setting: Setting) -> np.ndarray:
    """Which neurons with a positive output weight see exactly one of the two examples, shape ``(seeds, h)``."""
    products = np.einsum("shd,sed->she", np.asarray(setting.start.w), np.asarray(setting.pairs))
    return ((products > 0).sum(-1) == 1) & (np.asarray(setting.start.v) > 0)


def meeting(times: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return when a neuron first sees both examples, shape ``(seeds, h)``; infinite where it does not.

    The least of its two products, over the norm that they give, is continued in a straight line from the two readings
    before: at the meeting the second example begins to pull, which is a kink.
    """
    least = (products / np.linalg.norm(products, axis=-1, keepdims=True)).min(-1)
    first = (least > 0).argmax(1)  # of the readings
    last = np.maximum(first - 1, 1)
    seed, neuron = np.indices(first.shape)
    earlier = least[seed, last - 1, neuron]
    later = least[seed, last, neuron]
    step = times[last] - times[last - 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        # where the line through both readings is zero
        met = times[last] + step * later / (earlier - later)
    return np.where(first > 0, met, np.inf)
