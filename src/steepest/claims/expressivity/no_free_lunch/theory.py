"""The share of cells that no sample hits; the nearest neighbour's error on a row of cells, and on a circle."""

import math

import numpy as np
from scipy.special import roots_legendre

from steepest.nn.types import Values


def unseen(cells: int, m: Values | int) -> Values:
    """Return the probability that a cell is among none of m draws, (1 − 1/N)^m."""
    return (1 - 1 / cells) ** np.asarray(m, float)


def line_error(cells: int, m: int, changes: int) -> float:
    """Return the nearest neighbour's mean error on a row of cells with changes of sign at random borders.

    The nearest of m samples is farther than k from a cell with probability ``(1 − w/N)^m``, w the number of cells
    within k of it. Of s changes on N − 1 borders, an odd number falls on k given ones with a probability ½(1 − χ_k).
    """
    borders = cells - 1
    total = math.comb(borders, changes)
    distances = np.arange(cells)
    odd = np.empty(cells)
    for k in range(cells):
        # E (−1)^J of the hypergeometric J, how many of s changes fall on k borders of N − 1
        signed = sum(
            (-1) ** j * math.comb(k, j) * math.comb(borders - k, changes - j)
            for j in range(min(k, changes) + 1)
        )
        odd[k] = (1 - signed / total) / 2
    error = 0.0
    for cell in range(cells):
        # cells within k of this one, for every k; the row cuts off what is beyond its ends
        window = np.minimum(cell, distances) + np.minimum(borders - cell, distances) + 1
        farther = (1 - window / cells) ** m
        # P(distance = k) = P(distance > k − 1) − P(distance > k)
        at = np.concatenate([[1.0], farther[:-1]]) - farther
        error += at @ odd
    return float(error / cells)


def circle_error(m: int, cycles: int, lean: float) -> float:
    """Return the nearest neighbour's mean error where the label +1 has probability ½ + ½ a cos 2πkx, x on a circle.

    A point at distance r from its neighbour has the other label with a mean probability ½ − ¼ a² cos 2πkr, as the mean
    of cos 2πkx cos 2πk(x + r) over x is ½ cos 2πkr; and the nearest of m samples has the density 2m(1 − 2r)^(m−1).

    Args:
        m: samples, uniform on a circle of length one.
        cycles: k, of the probability around it.
        lean: a, how far the probability is from a half at most, times two.
    """
    nodes, weights = roots_legendre(40 * (cycles + 8))
    r = (nodes + 1) / 4  # from zero to one half
    # ¼ for dr on nodes in [−1, 1]
    density = 2 * m * (1 - 2 * r) ** (m - 1) / 4
    alike = weights @ (density * np.cos(2 * np.pi * cycles * r))
    return float(0.5 - lean**2 / 4 * alike)
