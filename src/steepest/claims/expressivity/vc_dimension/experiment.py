"""Dichotomies by sin ωx, halfspaces and layers of threshold units; networks that look labels up, or are trained."""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.polynomial.chebyshev import chebvander
from scipy.optimize import linprog

from steepest import kit
from steepest.dynamics import descend
from steepest.geometry import Layer, bit_reader, cells, preactivations, relu_layers, weights_used
from steepest.linalg import sequential
from steepest.nn.types import Values

FROZEN_INPUTS = 5
"""Dimensions of the inputs of frozen features."""
SLAB = 1e-9
"""Half of the distance between the two threshold units around a group, in standard deviations of the points."""


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


def halfspace_patterns(points: Values) -> Values:
    """Return all dichotomies of points, ``(m, d)``, by halfspaces: the cells that w·x_i + b = 0 makes of all (w, b)."""
    # each point is a hyperplane through the origin of the space of all (w, b)
    bordered = np.column_stack([points, np.ones(len(points))])
    return cells(bordered, np.zeros(len(points))).signs


def halfspace_dichotomies(points: Values) -> int:
    """Count the dichotomies of points, ``(m, d)``, by halfspaces."""
    return len(halfspace_patterns(points))


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


def shallow_weights(width: int, dimension: int) -> int:
    """Return the number of weights and biases of a ReLU network of one hidden layer."""
    return (dimension + 2) * width + 1


def fitted(points: Values, labels: Values, sizes: Values, starts: Values, steps: int) -> Values:
    """Say which labellings Adam fits with a ReLU network of one hidden layer, from the best of its starts.

    Neurons that start at zero stay there, so that narrower networks are trained beside wider ones.

    Args:
        points: of all draws, shape ``(draws, most, d)``; the set of size m is the first m.
        labels: ±1, shape ``(draws, most)``.
        sizes: m of each set, shape ``(networks, sizes)``.
        starts: first weights of each neuron, its offset and its weight in the output, shape ``(networks, draws,
            starts, width, d + 2)``.
        steps: of each descent on the logistic loss.

    Returns:
        whether all m labels are right in the end, shape ``(networks, sizes, draws)``.
    """
    _, most, d = points.shape

    def one(x: jax.Array, signs: jax.Array, start: jax.Array, size: jax.Array) -> jax.Array:
        present = jnp.arange(most) < size

        def outputs(params: tuple[jax.Array, jax.Array]) -> jax.Array:
            neurons, offset = params
            hidden = jax.nn.relu(x @ neurons[:, :d].T + neurons[:, d])
            return hidden @ neurons[:, d + 1] + offset

        risk = lambda params: jnp.where(
            present, jax.nn.softplus(-signs * outputs(params)), 0.0
        ).sum()
        end = descend(risk, (start, jnp.zeros(())), optax.adam(0.03), steps, record=steps).params
        return jnp.where(present, signs * outputs(end) > 0, True).all()

    over_starts = jax.vmap(one, (None, None, 0, None))
    over_draws = jax.vmap(over_starts, (0, 0, 0, None))
    over_sizes = jax.vmap(over_draws, (None, None, None, 0))
    train = kit.compiled(jax.vmap(over_sizes, (None, None, 0, 0)))
    return np.asarray(train(points, labels, starts, sizes)).any(-1)


def separated(features: Values, labels: Values) -> bool:
    """Say whether some weights give all examples their signs, by a linear program.

    Args:
        features: shape ``(n, p)``.
        labels: ±1, shape ``(n,)``.
    """
    signed = features * labels[:, None]
    p = features.shape[1]
    answer = linprog(np.zeros(p), A_ub=-signed, b_ub=-np.ones(len(signed)), bounds=(None, None))
    return answer.status == 0


def separated_features(
    rng: np.random.Generator, weights: Sequence[int], ratios: Sequence[float], draws: int, kind: str
) -> Values:
    """Say which random labels weights on frozen features separate, as zeros and ones ``(weights, ratios, draws)``.

    Args:
        rng: draws normal inputs of ``FROZEN_INPUTS`` dimensions, features and labels.
        weights: numbers p of features.
        ratios: of the numbers of points to p.
        draws: of each size.
        kind: ``"tanh"`` of random linear functions, or these as they are, ``"linear"``.
    """
    separable = np.zeros((len(weights), len(ratios), draws))
    for i, p in enumerate(weights):
        for j, ratio in enumerate(ratios):
            for draw in range(draws):
                x = rng.standard_normal((round(ratio * p), FROZEN_INPUTS))
                features = x @ rng.standard_normal((FROZEN_INPUTS, p)) + rng.standard_normal(p)
                if kind == "tanh":
                    features = np.tanh(features)
                separable[i, j, draw] = separated(features, rng.choice([-1.0, 1.0], len(x)))
    return separable


def threshold_functions(inputs: int) -> Values:
    """Return all functions of h ≤ 3 bits that a threshold unit computes, shape ``(functions, 2^h)``.

    Whole weights of at most h, and thresholds half-way between whole numbers, reach all of them.
    """
    codes = np.array(list(itertools.product((0, 1), repeat=inputs)))
    weights = np.array(list(itertools.product(range(-inputs, inputs + 1), repeat=inputs)))
    thresholds = np.arange(-(inputs**2) - 0.5, inputs**2 + 1)
    on = (weights @ codes.T)[:, None] > thresholds[:, None]
    return np.unique(on.reshape(-1, 2**inputs), axis=0).astype(int)


def threshold_dichotomies(patterns: Values, units: int) -> int:
    """Count the dichotomies of points by networks of h ≤ 3 threshold units in a layer and a threshold on them.

    All of them: a unit makes one of the dichotomies by halfspaces, or its complement, and the last one any threshold
    function of what the h units say. A dichotomy is a whole number here, a bit for each point.

    Args:
        patterns: all dichotomies of the m points by halfspaces, each once or more, shape ``(patterns, m)``.
        units: h.
    """
    m = patterns.shape[1]
    # a dichotomy as a binary number, in which the last point has the highest bit
    halves = np.unique(patterns @ 2 ** np.arange(m))
    halves = halves[halves < 2 ** (m - 1)]  # the last unit takes complements too
    layers = np.array(list(itertools.combinations(halves, units)))
    everything = 2**m - 1
    # the points at which the units say this code, for all 2^h codes
    at_code = [
        np.bitwise_and.reduce(np.where(code, layers, everything ^ layers), axis=1)
        for code in itertools.product((0, 1), repeat=units)
    ]
    made = np.zeros(2**m, bool)
    made[np.stack(at_code, 1) @ threshold_functions(units).T] = True
    return int(made.sum())


def moment_curve(places: Values, dimension: int) -> Values:
    """Return points of the moment curve, shape ``(m, d)``, in Chebyshev's coordinates T_1(t), …, T_d(t)."""
    return chebvander(places, dimension)[:, 1:]


def dichotomies_of_layers(
    points: Sequence[Sequence[Values]], sets: Sequence[tuple[int, int, int]]
) -> Values:
    """Count the dichotomies by layers of threshold units, shape ``(sets, draws)``.

    Args:
        points: draws of points, ``(most, d)``, for d = 1, 2, ….
        sets: d, the number of units and that of points.
    """
    largest = [max(n for d, _, n in sets if d == i + 1) for i in range(len(points))]
    patterns = [
        [halfspace_patterns(draw[:n]) for draw in draws]
        for draws, n in zip(points, largest, strict=True)
    ]
    return np.array(
        [[threshold_dichotomies(of[:, :n], h) for of in patterns[d - 1]] for d, h, n in sets], float
    )


def group_units(points: Values, sizes: Sequence[int]) -> Values:
    """Return how many threshold units separate the first half of n points from the others in groups.

    Args:
        points: of all draws, shape ``(draws, most, d)``.
        sizes: n of each set, the first of the points.

    Returns:
        shape ``(sizes, draws)``.
    """
    return np.array(
        [[units_around(draw[: n // 2], draw[n // 2 : n]) for draw in points] for n in sizes]
    )


def units_around(points: Values, others: Values) -> float:
    """Return how many threshold units separate points from others, two of them close around a group of the points.

    The points are divided into as few groups as get all labels right, by trying; it is infinite if none do.
    """
    everything = np.concatenate([points, others])
    labels = np.arange(len(everything)) < len(points)
    for number in range(1, len(points) + 1):
        planes = np.stack([_nearest_plane(group) for group in np.array_split(points, number)])
        values = everything @ planes[:, :-1].T + planes[:, -1]
        # of each pair one unit is on beside the slab, and both are on in it
        units = np.concatenate([values > -SLAB, values < SLAB], axis=1)
        if np.array_equal(units.sum(1) > number, labels):
            return 2.0 * number
    return np.inf


def _nearest_plane(points: Values) -> Values:
    """Return a normal of length one and the offset of the hyperplane nearest to points, shape ``(d + 1,)``."""
    centre = points.mean(0)
    normal = np.linalg.svd(points - centre)[2][-1]
    return np.append(normal, -normal @ centre)
