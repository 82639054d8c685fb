"""Networks from their posterior by elliptical slices, with the first layer integrated over and drawn afterwards."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.bayes import Slices, elliptical_slice
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.data import Data

EVERY = 5
"""Sweeps from one record to the next."""


class Shape(NamedTuple):
    """Where the entries of W^(L+1), …, W^(2) lie in one vector of weights, and their prior standard deviations.

    Networks of different shapes fill arrays of one shape, so that one program serves them. Where a matrix has no entry
    the place is the one behind the last weight, which holds zero; what is no layer is left out of the product.

    Attributes:
        deviations: 1/√fan-in, shape ``(weights,)``; zero beyond a network's own weights.
        top: places of W^(L+1), shape ``(n,)``.
        inner: places of W^(L), …, W^(2), shape ``(layers, n, n)``.
        present: whether there is such a layer, shape ``(layers,)``.
    """

    deviations: kit.Values
    top: kit.Values
    inner: kit.Values
    present: kit.Values


def padded(architectures: Sequence[Sequence[int]]) -> Shape:
    """Return the shapes of networks with these hidden widths, each array with an axis of networks in front."""
    networks = len(architectures)
    layers = max(map(len, architectures)) - 1
    widest = max(max(widths) for widths in architectures)
    weights = max(widths[-1] + sum(n * m for n, m in pairwise(widths)) for widths in architectures)
    shape = Shape(
        np.zeros((networks, weights)),
        np.full((networks, widest), weights),
        np.full((networks, layers, widest, widest), weights),
        np.zeros((networks, layers), bool),
    )
    for i, widths in enumerate(architectures):
        shape.top[i, : widths[-1]] = np.arange(widths[-1])
        shape.deviations[i, : widths[-1]] = widths[-1] ** -0.5
        first = widths[-1]
        for k, (rows, columns) in enumerate(pairwise(widths[::-1])):
            places = first + np.arange(rows * columns)
            shape.inner[i, k, :rows, :columns] = places.reshape(rows, columns)
            shape.deviations[i, places] = columns**-0.5
            shape.present[i, k] = True
            first += rows * columns
    return shape


def product_row(weights: jax.Array, shape: Shape) -> jax.Array:
    """Return v = W^(L+1) ⋯ W^(2), shape ``(n,)``, of which only the first n_1 entries are not zero."""
    entries = jnp.append(weights, 0.0)

    def layer(v: jax.Array, one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        places, is_layer = one
        return jnp.where(is_layer, v @ entries[places], v), None

    inner = (jnp.asarray(shape.inner), jnp.asarray(shape.present))
    return jax.lax.scan(layer, entries[jnp.asarray(shape.top)], inner)[0]


def sample_rows(
    shape: Shape, points: float, size: Any, key: kit.Key, sweeps: int, burn: int
) -> Slices:
    """Sample W^(2), …, W^(L+1) from their posterior, W^(1) integrated, and record the product row v.

    Given v the outputs are N(0, ‖v‖² XᵀX/n_0), so that the logarithm of the likelihood is
    −(P/2)(log‖v‖² + A/‖v‖²) up to a constant.
    """

    def log_likelihood(weights: jax.Array) -> jax.Array:
        square = (product_row(weights, shape) ** 2).sum()
        return -points / 2 * (jnp.log(square) + size / square)

    def sample_prior(key: kit.Key) -> jax.Array:
        # single precision halves the time, and rounds at 1e-7
        return shape.deviations * jax.random.normal(key, shape.deviations.shape, jnp.float32)

    return elliptical_slice(
        log_likelihood,
        sample_prior,
        key,
        sweeps,
        observe={"row": lambda weights: product_row(weights, shape)},
        burn=burn,
        every=EVERY,
    )


class FirstLayer(NamedTuple):
    """What is read off the whole product θᵀ = vW^(1), W^(1) drawn given v and the data; the shape is that of rows.

    Attributes:
        square: ‖θ_⊥‖².
        along: a fixed direction's component of θ_⊥.
        residual: ‖Xᵀθ − y‖/‖y‖.
    """

    square: kit.Values
    along: kit.Values
    residual: kit.Values


def draw_first_layer(rows: kit.Values, data: Data, rng: np.random.Generator) -> FirstLayer:
    """Draw W^(1), n × n_0, from its Gaussian conditional on interpolation, and read θ off the product.

    A draw W from the prior becomes one from the conditional by the least change that interpolates,
    W + v(y − Xᵀθ)ᵀX⁺/‖v‖² (Matheron's rule).

    Args:
        rows: v, shape ``(..., n)``.
        data: P of n_0 dimensions.
        rng: of the draws.
    """
    inputs = len(data.x)
    flat = rows.reshape(-1, rows.shape[-1])
    direction = _off_span(data)
    measured = []
    for some in np.array_split(flat, max(1, len(flat) // 2000)):  # 2000 matrices at a time
        first = rng.standard_normal((*some.shape, inputs)) / np.sqrt(inputs)
        gap = data.y - np.einsum("rn,rni->ri", some, first) @ data.x
        norms = (some**2).sum(1)
        first += some[:, :, None] * (gap @ data.inverse / norms[:, None])[:, None]
        theta = np.einsum("rn,rni->ri", some, first)
        off = theta - data.interpolant
        residual = np.linalg.norm(theta @ data.x - data.y, axis=1) / np.linalg.norm(data.y)
        measured.append(((off**2).sum(1), off @ direction, residual))
    parts = [np.concatenate(part) for part in zip(*measured, strict=True)]
    return FirstLayer(*(part.reshape(rows.shape[:-1]) for part in parts))


def _off_span(data: Data) -> kit.Values:
    """Return a fixed unit vector orthogonal to all inputs; zero where there is none."""
    left, _, _ = np.linalg.svd(data.x)
    return left[:, -1] if len(data.x) > len(data.y) else np.zeros(len(data.x))


def sample_all_rows(
    architectures: Sequence[Sequence[int]],
    points: int,
    sizes: Sequence[float],
    key: kit.Key,
    *,
    chains: int,
    sweeps: int,
    burn: int,
) -> kit.Values:
    """Return the product rows of all networks, ``(networks, chains, records, n)``, from one program."""
    shapes = padded(architectures)

    def lane(inputs: tuple[Shape, jax.Array, jax.Array]) -> jax.Array:
        network, size, seeds = inputs

        def chain(key: kit.Key) -> jax.Array:
            record = sample_rows(network, float(points), size, key, sweeps, burn)
            return record.observed["row"]

        return jax.vmap(chain)(seeds)

    def lanes(shapes: Shape, sizes: jax.Array, key: kit.Key) -> jax.Array:
        seeds = jax.random.split(key, (len(architectures), chains))
        return jax.lax.map(lane, (shapes, sizes, seeds))

    return np.asarray(kit.compiled(lanes)(shapes, np.array(sizes), key))
