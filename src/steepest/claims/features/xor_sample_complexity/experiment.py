"""The experiments of xor-sample-complexity: networks and kernel regressions on growing samples of the cube."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.linalg import cholesky, solve, solve_triangular
from scipy.optimize import isotonic_regression

from steepest import kit
from steepest.dynamics import descend
from steepest.kernels import ntk
from steepest.nn.losses import logistic
from steepest.nn.networks import Neurons, mlp, two_layer

RIDGE = 1e-8  # keeps the Gram matrix definite where an input is drawn twice
TESTS = 600  # fresh inputs for parities of more bits
SLOPE = 0.4  # the step over d: gradients of inputs of length one fall like 1/d on parities
Dimension = Annotated[int, kit.Within(8, 200)]


class Shape(NamedTuple):
    """How much is computed: neurons, steps of descent, repetitions, and fresh inputs."""

    width: int
    steps: int
    seeds: int
    tests: int


def crossing(samples: np.ndarray, errors: np.ndarray, level: float) -> np.ndarray:
    """Return where falling curves cross a level: monotone fit, then interpolation in log n.

    A curve that starts below the level or ends above it counts as crossing at that end.

    Args:
        samples: n, increasing, shape ``(sizes,)``.
        errors: shape ``(curves, sizes)``.
        level: of the error.
    """
    crossed = []
    for curve in errors:
        falling = isotonic_regression(curve, increasing=False).x
        # interpolation asks for rising places, which minus a falling curve has
        crossed.append(np.exp(np.interp(-level, -falling, np.log(samples))))
    return np.array(crossed)


def draw_signs(generator: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Draw points of {±1}^d, shape ``(count, dimension)``."""
    return generator.choice([-1.0, 1.0], (count, dimension))


def draw_start(generator: np.random.Generator, width: int, dimension: int, scale: float) -> Neurons:
    """Draw the balanced start of ``two_layer``."""
    w = scale * generator.standard_normal((width, dimension)) / math.sqrt(dimension)
    signs: Any = generator.choice([-1.0, 1.0], width)
    weights: Any = w
    return Neurons(weights, signs * np.linalg.norm(w, axis=1))


def network_errors(
    x: jax.Array,
    y: jax.Array,
    test_x: jax.Array,
    test_y: jax.Array,
    start: Neurons,
    step: jax.Array,
    sizes: jax.Array,
    steps: int,
) -> tuple[jax.Array, jax.Array]:
    """Train on the first n examples for each n; return test errors and risks at the end, shape ``(sizes,)``.

    Examples beyond n have weight zero, so that one program serves all n.
    """
    net = two_layer(start.w.shape[1], start.w.shape[0])

    def train(size: jax.Array) -> tuple[jax.Array, jax.Array]:
        weights = (jnp.arange(y.size) < size) / size

        def risk(params: Neurons) -> jax.Array:
            return weights @ logistic(y * net.apply(params, x))

        path = descend(risk, start, optax.sgd(step), steps, record=steps)
        wrong = test_y * net.apply(path.params, test_x) <= 0
        return wrong.mean(), path.risk[-1]

    return jax.vmap(train)(sizes)


def tables_of(dimensions: Sequence[int]) -> list[np.ndarray]:
    """Return the tangent kernel of corners of cubes that differ in 0, …, d signs, one table for each dimension."""
    products = [1 - 2 * np.arange(d + 1) / d for d in dimensions]
    ends = np.cumsum([len(row) for row in products])[:-1]
    return np.split(tangent_kernel(np.concatenate(products)), ends)


def kernel_errors(
    generator: np.random.Generator,
    table: np.ndarray,
    sizes: Sequence[int],
    tests: int,
    bits: int = 2,
) -> np.ndarray:
    """Return test errors of kernel regression on the first n of one sample, for each n, shape ``(sizes,)``.

    One Cholesky factor L of the largest Gram matrix holds those of all smaller ones, so that the regression on the
    first n examples is the sum of the first n terms of ``(L⁻¹ k_x)_i (L⁻¹ y)_i``. The table has the kernel of corners
    that differ in 0, …, d signs.
    """
    dimension = len(table) - 1
    # products of signs are whole, and exact in float32
    x = draw_signs(generator, max(sizes), dimension).astype(np.float32)
    test = draw_signs(generator, tests, dimension).astype(np.float32)
    labels = x[:, :bits].prod(1)
    # ⟨x, x'⟩ = d − 2 · (signs that differ)
    differ = lambda other: ((dimension - x @ other.T) / 2).astype(np.int32)
    gram = table[differ(x)]
    gram[np.diag_indices(len(x))] += RIDGE
    factor = cholesky(gram, lower=True, check_finite=False)
    sides = np.column_stack([labels, table[differ(test)]])
    solved = solve_triangular(factor, sides, lower=True, check_finite=False)
    outputs = np.array([solved[:n, 0] @ solved[:n, 1:] for n in sizes])
    return (outputs * test[:, :bits].prod(1) <= 0).mean(1)


def frozen_error(
    start: Neurons, x: np.ndarray, y: np.ndarray, test_x: np.ndarray, test_y: np.ndarray
) -> float:
    """Return the test error of regression with the tangent features that a network has at its start."""
    w = np.asarray(start.w).T
    v = np.asarray(start.v)
    before = x @ w
    test_before = test_x @ w

    def tangents(left: np.ndarray, left_x: np.ndarray) -> np.ndarray:
        """Return the products of both layers' derivatives with those at the training inputs."""
        outer = np.maximum(left, 0) @ np.maximum(before, 0).T
        # ∂f/∂w_j = v_j 1[⟨w_j, x⟩ > 0] x, and ∂f/∂v_j = ⟨w_j, x⟩₊
        return outer + (left_x @ x.T) * ((left > 0) * v**2 @ (before > 0).T)

    gram = tangents(before, x)
    # of the mean: where no neuron of a narrow network is active on an input its own entry is zero
    gram[np.diag_indices(len(gram))] += RIDGE * gram.diagonal().mean()
    coefficients = solve(gram, y, assume_a="pos", check_finite=False)
    return float((test_y * (tangents(test_before, test_x) @ coefficients) <= 0).mean())


def tangent_kernel(t: np.ndarray) -> np.ndarray:
    """Return the tangent kernel of unit inputs with inner products t, by the library's wide limit of a network."""
    limit = mlp((2, 9, 1), "relu", parameterized="ntk", c_w=2.0, bias=False).limit()
    first = np.array([[1.0, 0.0]])
    others = np.stack([t, np.sqrt(np.maximum(1 - t**2, 0.0))], 1)
    values = ntk(limit, np.concatenate([first, others]), first)[:, 0]
    return 2 * values[1:] / values[0]


def follow_networks(
    generator: np.random.Generator,
    dimensions: Sequence[int],
    sizes: np.ndarray,
    scale: float,
    shape: Shape,
) -> dict[str, np.ndarray]:
    """Train networks on nested samples of each dimension, and regress on the tangent features of each at its start.

    Returns:
        ``errors`` and ``risks`` ``(dimensions, seeds, sizes)``, and errors of ``frozen`` features at the largest size,
        ``(dimensions, seeds)``. Errors are means over the group of a seed, risks the largest.
    """

    def train(lane: tuple) -> tuple[jax.Array, jax.Array]:
        x, y, test_x, test_y, w, v, step, counts = lane
        return network_errors(x, y, test_x, test_y, Neurons(w, v), step, counts, shape.steps)

    rows = []
    for d, counts in zip(dimensions, sizes, strict=True):
        group = group_of(d, dimensions)
        lanes = [_lane(generator, d, counts, scale, shape) for _ in range(shape.seeds * group)]
        frozen = [
            frozen_error(Neurons(w, v), x, y, test_x, test_y)
            for x, y, test_x, test_y, w, v, _, _ in lanes
        ]
        stacked = tuple(np.stack(parts).astype(np.float32) for parts in zip(*lanes, strict=True))

        def of_seeds(lanes: tuple, group: int = group) -> tuple[jax.Array, jax.Array]:
            errors, risks = (
                values.reshape(shape.seeds, group, -1) for values in jax.lax.map(train, lanes)
            )
            return errors.mean(1), risks.max(1)

        # one program for each dimension costs less than zeros for the coordinates that smaller ones have not
        errors, risks = kit.compiled(of_seeds)(stacked)
        rows.append((errors, risks, np.reshape(frozen, (shape.seeds, group)).mean(1)))
    errors, risks, frozen = (np.stack(parts) for parts in zip(*rows, strict=True))
    return {"errors": errors, "risks": risks, "frozen": frozen}


def regress_kernels(
    generator: np.random.Generator, dimensions: Sequence[int], sizes: np.ndarray, shape: Shape
) -> np.ndarray:
    """Return errors of kernel regression on nested samples, means over groups, ``(dimensions, seeds, sizes)``."""
    rows = []
    for table, counts in zip(tables_of(dimensions), sizes, strict=True):
        count = shape.seeds * group_of(len(table) - 1, dimensions)
        errors = [kernel_errors(generator, table, counts, shape.tests) for _ in range(count)]
        rows.append(np.reshape(errors, (shape.seeds, -1, len(counts))).mean(1))
    return np.stack(rows)


def regress_parities(
    generator: np.random.Generator, sizes: Mapping[int, Sequence[int]], draws: int, bits: int
) -> np.ndarray:
    """Return errors of kernel regression on a parity, for sizes by dimension, ``(dimensions, draws, sizes)``."""
    tables = zip(tables_of(list(sizes)), sizes.values(), strict=True)
    return np.array(
        [
            [kernel_errors(generator, table, counts, TESTS, bits) for _ in range(draws)]
            for table, counts in tables
        ]
    )


def group_of(dimension: int, dimensions: Sequence[int]) -> int:
    """Return of how many samples a seed takes the mean: in few dimensions samples scatter more, and cost less."""
    return max(1, round((max(dimensions) / dimension) ** 1.5))


def _lane(
    generator: np.random.Generator, d: int, counts: np.ndarray, scale: float, shape: Shape
) -> tuple:
    """Draw a sample, fresh inputs and a start: the arguments of ``network_errors``."""
    x = draw_signs(generator, counts[-1] + shape.tests, d) / math.sqrt(d)
    y = np.sign(x[:, 0] * x[:, 1])
    start = draw_start(generator, shape.width, d, scale)
    train = slice(0, counts[-1])
    test = slice(counts[-1], None)
    return (x[train], y[train], x[test], y[test], *start, SLOPE * d, counts)


def rich(scale: float) -> list[kit.Hypothesis]:
    """Return what is assumed of the scale of the start: from a large one the network stays its kernel."""
    return [
        kit.assume(
            "scale ε of the start", scale, "<=", 1, "choose --scale at most 1: beyond it is lazy"
        )
    ]


def trained(risks: np.ndarray) -> kit.Hypothesis:
    """Return the assumption that descents ended with a small risk."""
    return kit.assume(
        "share of descents that ended below the risk 0.05",
        float((risks < 0.05).mean()),
        ">=",
        0.95,
        "raise --steps, or choose a smaller --scale or a larger --width",
    )
