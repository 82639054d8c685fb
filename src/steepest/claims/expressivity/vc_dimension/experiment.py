"""Dichotomies by sin ωx, and networks that look labels up."""

from collections.abc import Sequence

import numpy as np

from steepest.geometry import Layer, bit_reader, preactivations, relu_layers, weights_used
from steepest.linalg import sequential
from steepest.nn.types import Values


def halving_points(number: int) -> Values:
    """Return the points ½, ¼, …, 2^(−n), shape ``(n,)``."""
    return 2.0 ** -np.arange(1, number + 1)


def all_labels(number: int) -> Values:
    """Return all labellings of n points by ±1, shape ``(2^n, n)``."""
    codes = np.arange(2**number)[:, None] >> np.arange(number)
    return 1.0 - 2.0 * (codes & 1)


def sine_frequencies(labels: Values, offset: float = 1.0) -> Values:
    """Return ω with sign sin(ω 2^(−k)) = y_k for each labelling, shape ``(labellings,)``.

    With b_k = 1 where y_k = −1, ``ω = π (1 + Σ_k b_k 2^k)``: at 2^(−k) the terms above k are multiples of 2π, the k-th
    is π b_k, and those below add up to between π 2^(−k) and π (1 − 2^(−k)), where the sine is positive.

    Args:
        labels: ±1, shape ``(labellings, n)``.
        offset: the 1 of the formula, which keeps the lower terms off the ends.
    """
    powers = 2.0 ** np.arange(1, labels.shape[1] + 1)
    return np.pi * (offset + (labels < 0) @ powers)


def sine_signs(number: int, offset: float = 1.0) -> tuple[float, int]:
    """Try the frequency of every labelling of ½, …, 2^(−n).

    Returns:
        the least ``y_k sin(ω 2^(−k))`` of all labellings and points, positive where all signs are right; how many
        different sign patterns there were.
    """
    labels = all_labels(number)
    omega = sine_frequencies(labels, offset)
    sines = np.sin(omega[:, None] * halving_points(number))
    return float((labels * sines).min()), len(np.unique(np.packbits(sines > 0, axis=1), axis=0))


def spaced_patterns(points: Values) -> Values:
    """Return all sign patterns of sin ωx at whole numbers, shape ``(patterns, m)``.

    Signs change only at ω = π k/x; one frequency between any two neighbours of these, up to 2π, gives all patterns.
    """
    points = np.asarray(points)
    ends = np.unique(
        np.concatenate([np.arange(2 * x + 1) / x for x in points]).round(12)
    )  # in units of π
    # sin πωx is negative where the whole part of ωx is odd
    middles = (ends[1:] + ends[:-1]) / 2
    return np.unique(np.floor(middles[:, None] * points).astype(int) % 2, axis=0)


@sequential
def read_labels(layers: Sequence[Layer], shape: tuple[int, int]) -> Values:
    """Return which places of a table a network calls one, as its output is above ½, of this shape."""
    rows, columns = np.indices(shape)
    places = np.stack([rows.ravel(), columns.ravel()], 1).astype(float)
    return (preactivations(layers, places)[-1][:, 0] > 0.5).reshape(shape)


def wrong_labels(tables: Values, width: float = 1.0) -> tuple[int, int]:
    """Return how many labels of random tables their networks get wrong, and the most weights of any of them."""
    wrong = 0
    weights = 0
    for table in tables:
        layers = bit_reader(table, width)
        wrong += int((read_labels(layers, table.shape) != table.astype(bool)).sum())
        weights = max(weights, weights_used(layers))
    return wrong, weights


def shallow_reader(table: Values) -> list[Layer]:
    """Return a network of one hidden layer that reads a table of zeros and ones, ``(rows, columns)``.

    It counts the places of the table row by row; two neurons step where the label changes.
    """
    labels = table.ravel().astype(float)
    changes = np.flatnonzero(np.diff(labels)) + 1
    jumps = labels[changes] - labels[changes - 1]
    # a step from zero to its jump between the places c − 1 and c: σ(t − c + 1) − σ(t − c)
    into = np.tile([table.shape[1], 1.0], (2 * len(changes), 1))
    thresholds = np.concatenate([changes - 1, changes]).astype(float)
    return relu_layers(
        [into, np.concatenate([jumps, -jumps])[None]], [-thresholds, np.array([labels[0]])]
    )


def all_tables(rows: int, columns: int) -> Values:
    """Return all tables of this size, shape ``(2^(rows·columns), rows, columns)``."""
    return (all_labels(rows * columns) < 0).reshape(-1, rows, columns)


def counting_bound(layers: Sequence[Layer]) -> float:
    """Bound the VC dimension of a network's architecture, with these weights free, by counting sign patterns.

    On m points the k_l units of layer l see polynomials of degree l in the W_l weights up to there, on each region
    where the signs below are fixed; Warren's bound gives at most ``2 (2e m k_l l/W_l)^W_l`` sign patterns of them.
    The product over layers cannot reach 2^m beyond the m that is returned.
    """
    units = np.array([len(layer.matrix) for layer in layers], float)
    orders = np.arange(1.0, len(units) + 1)
    sums = np.cumsum([weights_used([layer]) for layer in layers])
    m = float(sums[-1])
    for _ in range(100):
        # log₂ of Π_l 2(2e m k_l l/W_l)^W_l, again and again until m is equal to it
        m = float((1 + sums * np.log2(2 * np.e * m * units * orders / sums)).sum())
    return m
