"""Codes of functions on [0, 1] with slopes up to one: by bits, by values, and by trained networks.

A function is given by its values at equally spaced points, straight in between, so that a largest error is one at these
points. A cell is divided into ``FINE`` steps.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.optimize import least_squares
from scipy.spatial import KDTree

from steepest import kit
from steepest.dynamics import descend
from steepest.linalg import sequential
from steepest.nn.types import Values

FINE = 6  # steps of a cell, an even number
BASE = 5040  # steps of a function that is drawn
HIDDEN = 16  # units of each hidden layer
POINTS = 256  # functions on which an autoencoder is trained
SAMPLE = 5000  # functions on which it is judged
TRIES = 30  # starts of the search for two opposite functions of one code
ROOT = 1e-10  # difference of two codes that counts as none
TIGHT = 1e-15  # tolerances of least squares
KNOTS = 12  # random values that a network on the line is trained to fit


# ------------------------------------------------------------------------------------------------ bits


def coded(functions: Values, cells: int, *, remembers: bool = True) -> Values:
    """Return what n = ``cells`` − 1 bits leave of functions ``(functions, cells · FINE + 1)``.

    The reconstruction is flat on the first cell. On every other one it has slope ±1, and the bit says which: the sign
    of what is missing at the end of the cell or, for a code that does not remember, the sign of the rise in the cell.
    """
    ends = functions[:, ::FINE]
    heights = np.zeros_like(ends)
    for cell in range(1, cells):
        target = ends[:, cell + 1] - (heights if remembers else ends)[:, cell]
        heights[:, cell + 1] = heights[:, cell] + _slopes(target) / cells
    knots = np.arange(cells + 1) / cells
    points = np.arange(cells * FINE + 1) / (cells * FINE)
    return np.array([np.interp(points, knots, row) for row in heights])


def _slopes(targets: Values) -> Values:
    return np.where(np.asarray(targets) >= 0, 1, -1)


def worst_for_bits(cells: int, *, remembers: bool = True) -> Values:
    """Return the function whose code is the worst, among all that go up or down by one at each step, ``(1, points)``.

    Dynamic programming: a state is the error at the end of a cell, in steps, and it keeps the way to it with the
    largest error so far. All 2^``FINE`` ways through a cell are tried from each state.
    """
    ways = np.array(list(itertools.product((1, -1), repeat=FINE)))
    rises = np.cumsum(ways, axis=1)
    ramp = np.arange(1, FINE + 1)
    states: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}  # error: (largest, ways so far)
    for cell in range(cells):
        reached: dict[int, tuple[int, tuple[int, ...]]] = {}
        for error, (largest, path) in states.items():
            target = rises[:, -1] + (error if remembers else 0)
            slopes = _slopes(target) if cell else np.zeros(len(ways), int)
            # along the cell, in steps: the function less its reconstruction, (ways, FINE)
            errors = error + rises - slopes[:, None] * ramp
            for way, along in enumerate(errors):
                peak = max(largest, int(np.abs(along).max()))
                # what follows depends on the error at the end alone: one way to it is enough
                if peak > reached.get(int(along[-1]), (-1, ()))[0]:
                    reached[int(along[-1])] = (peak, (*path, way))
        states = reached
    _, path = max(states.values())
    steps = ways[list(path)].ravel()
    return np.concatenate([[0], np.cumsum(steps)])[None] / (cells * FINE)


def left_by_bits(cells: int, *, remembers: bool = True) -> float:
    """Return the error of a code by bits on its worst function."""
    worst = worst_for_bits(cells, remembers=remembers)
    return float(np.abs(worst - coded(worst, cells, remembers=remembers)).max())


def zigzags(cells: int, slopes: tuple[float, float] = (-1.0, 1.0)) -> Values:
    """Return all functions with one of two slopes on each cell, by their values at its ends, ``(2^cells, cells)``."""
    every = np.array(list(itertools.product(slopes, repeat=cells)))
    return np.cumsum(every, axis=1) / cells


def nearest_pair(functions: Values) -> float:
    """Return the smallest distance of two functions, in the supremum."""
    distances, _ = KDTree(functions).query(functions, k=2, p=np.inf)
    return float(distances[:, 1].min())


# ------------------------------------------------------------------------------------------------ numbers


def interpolated(functions: Values, places: Values) -> Values:
    """Return what is left of functions ``(functions, points)`` that are known at 0, and measured at some places.

    It is straight between two places, and constant after the last one.
    """
    points = np.linspace(0, 1, functions.shape[1])
    knots = np.append(0.0, places)
    return np.array(
        [np.interp(points, knots, np.append(0.0, np.interp(places, points, f))) for f in functions]
    )


def worst_for_values(gap: float) -> Values:
    """Return the function that values at multiples of a gap tell the worst, ``(1, points)``, by trying all in each gap.

    In each gap, and after the last, all functions are tried that go up or down by one at each of 2 · ``FINE`` steps,
    and the one that is farthest from its reconstruction is kept.
    """
    step = gap / (2 * FINE)
    total = round(1 / step)
    moves = []
    for first in range(0, total, 2 * FINE):
        size = min(2 * FINE, total - first)
        ways = np.array(list(itertools.product((1, -1), repeat=size)))
        rises = np.cumsum(ways, axis=1)
        # the reconstruction is straight in a whole gap, and constant after the last one
        line = rises[:, -1:] * (np.arange(1, size + 1) / size) if size == 2 * FINE else 0.0
        moves.append(ways[np.abs(rises - line).max(1).argmax()])
    return np.append(0.0, np.cumsum(np.concatenate(moves)))[None] / total


def left_by_values(numbers: int, gap: float) -> float:
    """Return the error of a code by n values at multiples of a gap on its worst function."""
    worst = worst_for_values(gap)
    places = gap * np.arange(1, numbers + 1)
    return float(np.abs(worst - interpolated(worst, places)).max())


# ------------------------------------------------------------------------------------------------ functions


def kinked(count: int, rng: np.random.Generator) -> Values:
    """Draw functions with slopes ±1 that change at random places, 1 to 64 of them, ``(count, BASE + 1)``."""
    rows = []
    for changes in np.exp(rng.uniform(0, np.log(64), count)).astype(int):
        turns = np.zeros(BASE, int)
        turns[rng.integers(0, BASE, changes)] = 1
        slopes = rng.choice([-1, 1]) * (-1) ** np.cumsum(turns)
        rows.append(np.append(0.0, np.cumsum(slopes)) / BASE)
    return np.array(rows)


def networks(key: kit.Key, count: int, steps: int) -> Values:
    """Train ReLU networks to fit random values on the line; return them over their slope, ``(count, BASE + 1)``."""

    def train(key: jax.Array, points: jax.Array) -> jax.Array:
        for_inner, for_outer, for_y = jax.random.split(key, 3)
        x = jnp.linspace(0, 1, KNOTS)
        y = jax.random.normal(for_y, (KNOTS,))
        inner = jax.random.normal(for_inner, (2, 4 * HIDDEN))
        outer = jax.random.normal(for_outer, (4 * HIDDEN,)) / np.sqrt(4 * HIDDEN)

        def output(params: tuple[jax.Array, jax.Array], x: jax.Array) -> jax.Array:
            slopes, places = params[0]
            return jax.nn.relu(4 * slopes * (x[:, None] - 0.5) + places) @ params[1]

        risk = lambda params: ((output(params, x) - y) ** 2).mean()
        path = descend(risk, (inner, outer), optax.adam(0.02), steps, record=steps)
        return output(path.params, points)

    def train_all(key: jax.Array, points: jax.Array) -> jax.Array:
        return jax.vmap(train, (0, None))(jax.random.split(key, count), points)

    values = np.asarray(kit.compiled(train_all)(key, jnp.linspace(0, 1, BASE + 1)))
    values = values - values[:, :1]
    # a difference is a slope over BASE: the steepest slope becomes one
    return values / np.abs(np.diff(values, axis=1)).max(1, keepdims=True) / BASE


def at_cells(functions: Values, cells: int) -> Values:
    """Return functions at the points of some cells, ``(functions, cells · FINE + 1)``."""
    whole = np.linspace(0, 1, functions.shape[1])
    points = np.arange(cells * FINE + 1) / (cells * FINE)
    return np.array([np.interp(points, whole, row) for row in functions])


def errors_by_bits(functions: Values, cells: int, *, remembers: bool = True) -> Values:
    """Return what a code by bits leaves of each function, ``(functions,)``."""
    fine = at_cells(functions, cells)
    return np.abs(fine - coded(fine, cells, remembers=remembers)).max(1)


def errors_by_values(functions: Values, numbers: int) -> Values:
    """Return what values at 2i/(2n + 1) leave of each function, ``(functions,)``."""
    places = 2 * np.arange(1, numbers + 1) / (2 * numbers + 1)
    return np.abs(functions - interpolated(functions, places)).max(1)


# ------------------------------------------------------------------------------------------------ autoencoders


def tents(numbers: int) -> Values:
    """Return n + 1 tents that share [0, 1] with slopes ±1, the last of them cut at its peak, ``(n + 1, points)``.

    Points are the ends of the 2n + 1 sides of tents. A sum of tents times c_j has slopes ±c_j.
    """
    sides = 2 * numbers + 1
    slopes = np.zeros((numbers + 1, sides))
    for tent in range(numbers + 1):
        slopes[tent, 2 * tent] = 1
        # no second side of the last tent, which is cut at its peak
        slopes[tent, 2 * tent + 1 : 2 * tent + 2] = -1
    return np.concatenate([np.zeros((numbers + 1, 1)), np.cumsum(slopes, axis=1)], 1) / sides


class Shape(NamedTuple):
    """Sizes of autoencoders that all have the arrays of the largest one."""

    numbers: int  # of the largest code; functions have a coefficient more
    starts: int
    steps: int


def autoencoders(key: kit.Key, sizes: tuple[int, ...], shape: Shape, lr: float) -> list[Values]:
    """Train tanh networks R^(n+1) → R^n → R^(n+1), ``starts`` for each n, to tell sums of n + 1 tents.

    A function is Σ c_j times the j-th tent, with the largest |c_j| one; the loss is the mean of Σ_j error_j⁸.

    Returns:
        matrices of the four layers, biases last, ``(sizes · starts, out, in + 1)``.
    """
    top = shape.numbers
    widths = (top + 1, HIDDEN, top, HIDDEN, top + 1)
    matrices = [(out, inp + 1) for inp, out in itertools.pairwise(widths)]

    def train(key: jax.Array, numbers: jax.Array) -> list[jax.Array]:
        for_start, for_data = jax.random.split(key)
        start = [
            jax.random.normal(k, size) / np.sqrt(size[1])
            for k, size in zip(jax.random.split(for_start, 4), matrices, strict=True)
        ]
        code = jnp.arange(top) < numbers
        used = jnp.arange(top + 1) <= numbers
        raw = jax.random.uniform(for_data, (POINTS, top + 1), minval=-1, maxval=1) * used
        c = raw / jnp.abs(raw).max(1, keepdims=True)

        def risk(params: list[jax.Array]) -> jax.Array:
            hidden = jnp.tanh(affine(params[0], c))
            hidden = jnp.tanh(affine(params[2], affine(params[1], hidden) * code))
            return ((affine(params[3], hidden) - c) ** 8 * used).sum(1).mean()

        rate = optax.cosine_decay_schedule(lr, shape.steps)
        return descend(risk, start, optax.adam(rate), shape.steps, record=shape.steps).params

    def run(key: jax.Array) -> list[jax.Array]:
        numbers = jnp.repeat(jnp.array(sizes), shape.starts)
        return jax.vmap(train)(jax.random.split(key, len(numbers)), numbers)

    return [np.asarray(layer) for layer in kit.compiled(run)(key)]


def affine(matrix: jax.Array, x: jax.Array) -> jax.Array:
    """Apply a layer whose last column is its bias."""
    return x @ matrix[:, :-1].T + matrix[:, -1]


@sequential
def largest_error(
    layers: list[Values], numbers: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the largest error of an autoencoder on sums of n + 1 tents, in the supremum.

    Looked for among random sums, and at two opposite ones that have one code: a root of the code's odd part, for which
    up to ``TRIES`` starts are tried. The second number is by how much their codes still differ.
    """
    top = layers[1].shape[0]
    used = slice(0, numbers + 1)
    functions = tents(numbers)

    def code(c: Values) -> Values:
        hidden = np.tanh(c @ layers[0][:, :-1].T + layers[0][:, -1])
        return (hidden @ layers[1][:, :-1].T + layers[1][:, -1]) * (np.arange(top) < numbers)

    def errors(c: Values) -> Values:
        hidden = np.tanh(code(c) @ layers[2][:, :-1].T + layers[2][:, -1])
        missing = (hidden @ layers[3][:, :-1].T + layers[3][:, -1] - c)[:, used]
        return np.abs(missing @ functions).max(1)

    def scaled(drawn: Values) -> Values:
        c = np.zeros((len(drawn), top + 1))
        c[:, used] = drawn / np.abs(drawn).max(1, keepdims=True)
        return c

    def odd(drawn: Values) -> Values:
        c = scaled(drawn[None])
        # odd from the sphere of n + 1 coefficients to n numbers: zero somewhere (Borsuk and Ulam)
        return (code(c) - code(-c))[0, :numbers]

    sampled = errors(scaled(rng.uniform(-1, 1, (SAMPLE, numbers + 1)))).max()
    c = np.zeros((1, top + 1))
    difference = np.inf
    for start in rng.standard_normal((TRIES, numbers + 1)):
        # its cost is half of the square of the difference
        root = least_squares(odd, start, ftol=TIGHT, xtol=TIGHT, gtol=TIGHT)
        if np.sqrt(2 * root.cost) < difference:
            difference = np.sqrt(2 * root.cost)
            c = scaled(root.x[None])
        if difference < ROOT:
            break
    opposite = errors(np.concatenate([c, -c])).max()
    return float(max(sampled, opposite)), float(difference)
