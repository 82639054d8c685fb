"""Problems that take half of the bounds of one pass: labels that barely favour one sign."""

import numpy as np

from steepest.claims.noise._one_pass import exponentiated, hinge, sgd
from steepest.nn.types import Values

SMALL = 0.1  # B: margins stay below one, where the hinge loss is a line


def hard_for_sgd(rng: np.random.Generator, seeds: int, n: int, d: int, told_by: int) -> Values:
    """Return SGD's excess over the ball where each example tells one coordinate's sign, barely; shape ``(seeds,)``.

    Inputs are √d e_i and labels s_i with a bias δ = √(d/n'), which n' examples tell. In the ball of a small B the hinge
    loss is a line, and the best weights are B s/√d.
    """
    bias = np.sqrt(d / told_by)
    places = rng.integers(0, d, (seeds, n))
    x = np.zeros((seeds, n, d))
    np.put_along_axis(x, places[..., None], np.sqrt(d), 2)
    signs = rng.choice([-1.0, 1.0], (seeds, d))
    y = np.take_along_axis(signs, places, 1) * _biased(rng, bias, (seeds, n))
    margins = np.sqrt(d) * signs * sgd(x, y, SMALL)
    # labels agree with s_i with chance (1 + δ)/2, whatever the coordinate: (seeds, d)
    risk = (1 + bias) / 2 * hinge(margins) + (1 - bias) / 2 * hinge(-margins)
    # B s/√d has margins ±B with these chances, and so the risk 1 − δB
    return risk.mean(1) - (1 - SMALL * bias)


def hard_for_exponentiated(
    rng: np.random.Generator, seeds: int, n: int, d: int, told_by: int
) -> Values:
    """Return its excess over the ball where one coordinate of d tells the label, barely; shape ``(seeds,)``.

    Labels agree with x_1 with a bias δ = √(2 log 2d/n'), which n' examples tell; the best weights are B e_1, and the
    loss is a line.
    """
    bias = np.sqrt(2 * np.log(2 * d) / told_by)
    x = 2 * rng.integers(0, 2, (seeds, n, d), dtype=np.int8) - 1
    y = x[..., 0] * _biased(rng, bias, (seeds, n))
    weights = exponentiated(x, y, SMALL)
    # |⟨w, x⟩| ≤ B < 1: the population's loss is 1 − δ w_1
    return bias * (SMALL - weights[:, 0])


def _biased(rng: np.random.Generator, bias: float, shape: tuple[int, ...]) -> Values:
    """Return signs of mean ``bias``."""
    return np.where(rng.random(shape) < (1 + bias) / 2, 1.0, -1.0)
