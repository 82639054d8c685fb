"""Trials of step sizes on networks close to their targets: does the risk stay at or below its start?"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest import kit
from steepest.claims.signals._near_fit_networks import (
    Law,
    Roles,
    Shape,
    cut_out,
    kernel,
    kernel_parts,
    numbers_in,
    output,
    roles,
)
from steepest.nn.data import digits
from steepest.nn.types import Params

Case = tuple[Shape, Law]


class Setting(NamedTuple):
    """What theory and experiment both see."""

    x: kit.Values  # inputs, (P, 16)
    direction: kit.Values  # of the residual, (P,)
    numbers: (
        kit.Values
    )  # Gaussian, of which the first siblings of every shape are cut out, (seeds, most weights)
    top: dict[
        Case, kit.Values
    ]  # λ_max(Θ/P) at the start, (seeds, siblings); the first sibling is trained
    share: float  # smallest share of the initial risk along the top eigenvector


class Search(NamedTuple):
    """How the largest stable step is searched for: by bisection on a logarithmic scale."""

    residual: float
    steps: int
    smallest: float
    largest: float
    halvings: int


def draw(key: kit.Key, cases: Sequence[Case], *, examples: int, seeds: int, count: int) -> Setting:
    """Draw networks with their siblings, all shapes from the same numbers, and measure their tangent kernels."""
    x, direction = pooled_digits(examples)
    shapes = sorted({shape for shape, _ in cases})
    largest = max(map(numbers_in, shapes))

    def one(key: kit.Key) -> tuple[Array, list[Array]]:
        numbers = jax.random.normal(key, (count, largest))
        return numbers[0], [_kernels_of_shape(shape, numbers, x) for shape in shapes]

    every = lambda key: jax.lax.map(one, kit.keys(key, seeds))
    numbers, measured = kit.compiled(every)(key)
    parts = {shape: np.array(part, float) for shape, part in zip(shapes, measured, strict=True)}
    top = {}
    shares = []
    for shape, law in cases:
        # JJᵀ/P has the eigenvalues of JᵀJ/P, the curvature of the mean of ½(f − y)² where f = y
        values, vectors = np.linalg.eigh(kernel(shape, law, parts[shape]) / len(x))
        top[shape, law] = values[..., -1]
        shares.append((vectors[:, 0, :, -1] @ direction) ** 2 / len(x))  # ‖direction‖² = P
    return Setting(x, direction, np.asarray(numbers), top, float(np.min(shares)))


def pooled_digits(examples: int) -> tuple[kit.Values, kit.Values]:
    """Return digits 0 and 1 pooled to 4×4 pixels of mean square one, and the direction of the residual."""
    data = digits((0, 1), examples)
    pixels = np.asarray(data.x)
    x = pixels.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)  # mean of 2×2 pixels
    labels = np.asarray(data.y)[:, 0]
    return x / np.sqrt((x**2).mean()), labels / np.sqrt((labels**2).mean())


def largest_steps(
    setting: Setting, cases: Sequence[Case], search: Search
) -> dict[Case, np.ndarray]:
    """Return the largest stable step of the first sibling of every seed, ``(seeds,)`` for every case."""
    laws = {shape: [law for other, law in cases if other == shape] for shape, _ in cases}

    def every(numbers: Array) -> list[Array]:
        return [_steps_of_shape(shape, laws[shape], numbers, setting, search) for shape in laws]

    by_shape = kit.compiled(every)(setting.numbers)
    return {
        (shape, law): np.array(steps, float)
        for shape, of_shape in zip(laws, by_shape, strict=True)
        for law, steps in zip(laws[shape], of_shape, strict=True)
    }


def mean_steps(setting: Setting, steps: dict[Case, np.ndarray]) -> dict[Case, np.ndarray]:
    """Return an estimate of the mean step for every seed: one over the mean of 1/step.

    The mean of 1/step by its ratio to λ_max, which costs so little that many networks can have it. Whatever the ratio
    is, its mean times that of λ_max is the mean of 1/step, but for their covariance.
    """
    return {
        case: step * setting.top[case][:, 0] / setting.top[case].mean(1)
        for case, step in steps.items()
    }


def _steps_of_shape(
    shape: Shape, laws: Sequence[Law], numbers: Array, setting: Setting, search: Search
) -> Array:
    """Return the largest stable steps of all networks of one shape, ``(laws, seeds)``: one program for all laws."""
    every = [roles(shape, law) for law in laws]
    stacked = jax.tree.map(lambda *of_laws: jnp.stack(of_laws), *every)

    def of_law(role: Roles) -> Array:
        search_one = lambda row: _largest_step(shape, role, cut_out(shape, row), setting, search)
        return jax.lax.map(search_one, numbers)

    return jax.lax.map(of_law, stacked)


def _kernels_of_shape(shape: Shape, numbers: Array, x: kit.Values) -> Array:
    """Return the parts of the tangent kernel of all siblings of one shape."""
    return jax.vmap(lambda row: kernel_parts(shape, cut_out(shape, row), x))(numbers)


def _largest_step(
    shape: Shape, role: Roles, drawn: Params, setting: Setting, search: Search
) -> Array:
    """Search by bisection for the largest step size at which the risk stays at or below its start."""
    start = tuple(
        {"w": scale * layer["w"], "b": layer["b"]}
        for scale, layer in zip(role.scale, drawn, strict=True)
    )
    apply = partial(output, shape, jnp.asarray(role.multiplier), x=jnp.asarray(setting.x))
    y = apply(start) - search.residual * setting.direction  # f − y = ε direction at the start
    risk = jax.value_and_grad(lambda params: 0.5 * jnp.mean((apply(params) - y) ** 2))
    trained = {"w": role.of_weights, "b": role.of_biases}

    def move(lr: Array, params: Params, slope: Params) -> Params:
        layers = zip(params, slope, strict=True)
        return tuple({k: p[k] - lr * trained[k] * g[k] for k in p} for p, g in layers)

    def stays(lr: Array) -> Array:
        """Descend for as long as the risk is not above its start; NaN compares false."""

        def step(state: tuple) -> tuple:
            taken, params, first, _ = state
            last, slope = risk(params)
            return taken + 1, move(lr, params, slope), jnp.where(taken == 0, last, first), last

        # the risk is read before each step: one reading more than there are steps
        going = lambda state: (state[0] <= search.steps) & (state[3] <= state[2])
        _, _, first, last = jax.lax.while_loop(going, step, (0, start, jnp.inf, 0.0))
        return jnp.less_equal(last, first)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        stable = stays(jnp.exp(middle))
        return jnp.where(stable, middle, ends[0]), jnp.where(stable, ends[1], middle)

    ends = jnp.log(search.smallest), jnp.log(search.largest)
    low, high = jax.lax.fori_loop(0, search.halvings, halve, ends)
    return jnp.exp((low + high) / 2)
