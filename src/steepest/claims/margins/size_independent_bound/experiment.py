"""Points of the plane with coin tosses for labels, and networks that are trained to correlate with them."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.nn.types import Values

SEARCHED = 256  # directions of a neuron
STEP = 0.5  # length of the first steps
DEEP = 4  # width of deep networks
TINY = 1e-30


class Sample(NamedTuple):
    """Points of one size and a coin toss for each.

    Attributes:
        x: points, ``(seeds, draws, n, 2)``.
        signs: tosses, ``(seeds, draws, n)``.
    """

    x: Values
    signs: Values


def draw(
    rng: np.random.Generator, n: int, shape: tuple[int, int], aspect: float, repeated: float
) -> Sample:
    """Draw Gaussian points of mean square length one, a part of them copies of the first, and tosses.

    Args:
        rng: draws.
        n: number of points.
        shape: number of seeds, and of sets of each.
        aspect: standard deviation of the second coordinate over that of the first.
        repeated: part of the points that are copies.
    """
    x = rng.standard_normal((*shape, n, 2)) * np.array([1.0, aspect]) / np.sqrt(1 + aspect**2)
    copies = int(repeated * n)
    x[..., :copies, :] = x[..., :1, :]
    return Sample(x, rng.choice([-1.0, 1.0], (*shape, n)))


def search(x: Values, signs: Values) -> Values:
    """Return the largest correlation of a neuron of norm one with each set's signs, by trying directions.

    Args:
        x: points, ``(draws, n, 2)``.
        signs: of each, ``(draws, n)``.

    Returns:
        correlations, ``(draws,)``.
    """
    angles = 2 * np.pi * np.arange(SEARCHED) / SEARCHED
    directions = np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    active = np.maximum(x.astype(np.float32) @ directions, 0)
    # (draws, directions): max over ±u of Σ_i σ_i relu⟨u, x_i⟩
    sums = signs[:, None].astype(np.float32) @ active
    return np.abs(sums).max((1, 2)) / signs.shape[-1]


def pad(sample: Sample, n: int) -> tuple[Values, Values]:
    """Add points at the origin with no sign, which correlate with nothing, to each seed's first set.

    Returns:
        points ``(seeds, n, 2)``, and signs over the number of points that were drawn ``(seeds, n)``.
    """
    size = sample.signs.shape[-1]
    x = np.pad(sample.x[:, 0], ((0, 0), (0, n - size), (0, 0)))
    return x, np.pad(sample.signs[:, 0], ((0, 0), (0, n - size))) / size


def shallow(
    x: jax.Array,
    signs: jax.Array,
    start: tuple[jax.Array, jax.Array],
    together: jax.Array,
    is_spectral: jax.Array,
    steps: int,
) -> tuple[jax.Array, jax.Array]:
    """Train ReLU networks of two layers, which share out a bank of neurons, by normalized ascent.

    Args:
        x: points, ``(n, 2)``.
        signs: of each, over the number of points, ``(n,)``.
        start: weights of the hidden and of the last layer, ``(bank, 2)`` and ``(bank,)``.
        together: one where two neurons are of one network, else zero, ``(bank, bank)``.
        is_spectral: whether each layer has spectral norm one; else ½‖θ‖² = 1.
        steps: of the ascent, each shorter than the one before it.

    Returns:
        the largest correlation of a network before training, and after it.
    """

    def correlations(layers: tuple[jax.Array, jax.Array]) -> jax.Array:
        hidden, last = layers
        return jnp.abs(together @ (last * (signs @ jax.nn.relu(x @ hidden.T))))

    def scaled(layers: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        hidden, last = layers
        # a, b and c are the entries of the Gram matrix WᵀW of a network's hidden layer, (2, 2)
        a = together @ hidden[:, 0] ** 2
        b = together @ (hidden[:, 0] * hidden[:, 1])
        c = together @ hidden[:, 1] ** 2
        squares = together @ last**2
        # ½‖θ‖² = 1, with ‖θ‖² = tr WᵀW + ‖v‖²
        norms = jnp.sqrt((a + c + squares) / 2)
        # largest eigenvalue of a symmetric matrix of two rows, whose root is the spectral norm
        spectral = jnp.sqrt((a + c) / 2 + jnp.sqrt(((a - c) / 2) ** 2 + b**2))
        of_hidden = jnp.where(is_spectral, spectral, norms)
        return hidden / of_hidden[:, None], last / jnp.where(is_spectral, jnp.sqrt(squares), norms)

    def step(layers: tuple[jax.Array, jax.Array], length: jax.Array) -> tuple:
        # every neuron counts its network, so that a network of m is counted m times
        slopes = jax.grad(lambda theta: (correlations(theta) / together.sum(1)).sum())(layers)
        hidden, last = slopes
        size = jnp.sqrt(together @ ((hidden**2).sum(1) + last**2) + TINY)
        moved = (layers[0] + length * hidden / size[:, None], layers[1] + length * last / size)
        return scaled(moved), None

    start = scaled(start)
    end = jax.lax.scan(step, start, _lengths(steps))[0]
    return correlations(start).max(), correlations(end).max()


def deep(
    x: jax.Array,
    signs: jax.Array,
    start: tuple[jax.Array, jax.Array],
    used: jax.Array,
    slope: jax.Array,
    steps: int,
) -> jax.Array:
    """Train a deep network with ‖θ‖² = L by normalized ascent, and return its correlation with the signs.

    Args:
        x: points, ``(n, width)``.
        signs: of each, over the number of points, ``(n,)``.
        start: weights of hidden layers ``(layers, width, width)`` and of the last ``(width,)``.
        used: one of each hidden layer that the network has, else zero, ``(layers,)``.
        slope: of the activation where it is negative: zero for a ReLU, one for a linear network.
        steps: of the ascent.
    """
    depth = 1 + used.sum()

    def correlation(layers: tuple[jax.Array, jax.Array]) -> jax.Array:
        def layer(hidden: jax.Array, part: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            weights, is_used = part
            z = hidden @ weights.T
            # max(z, az) is a leaky ReLU of slope a below zero, for a ≤ 1
            return jnp.where(is_used > 0, jnp.maximum(z, slope * z), hidden), None

        hidden = jax.lax.scan(layer, x, (layers[0], used))[0]
        return jnp.abs(signs @ (hidden @ layers[1]))

    def scaled(layers: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        hidden, last = layers
        # both layers' squares sum to L
        norm = jnp.sqrt(((hidden**2).sum() + (last**2).sum()) / depth)
        return hidden / norm, last / norm

    def step(layers: tuple[jax.Array, jax.Array], length: jax.Array) -> tuple:
        hidden, last = jax.grad(correlation)(layers)
        size = jnp.sqrt((hidden**2).sum() + (last**2).sum() + TINY)
        return scaled((layers[0] + length * hidden / size, layers[1] + length * last / size)), None

    start = (start[0] * used[:, None, None], start[1])
    return correlation(jax.lax.scan(step, scaled(start), _lengths(steps))[0])


def _lengths(steps: int) -> jax.Array:
    return STEP * (1 - jnp.arange(steps) / max(steps, 1)) ** 2


class Run(NamedTuple):
    """How networks are trained."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    neurons: int  # in a bank, which networks of each width share out
    steps: int


def correlations(rng: np.random.Generator, run: Run, samples: list[Sample]) -> dict[str, Values]:
    """Train networks on the first set of each seed.

    Returns:
        the largest correlation of networks of two layers: ``wide``, ``spectral`` and, before training, ``untrained``,
        ``(sizes, seeds, widths)``; of deep ones ``deep`` and ``deep_relu``, ``(sizes, seeds, depths)``.
    """
    largest = max(sample.signs.shape[-1] for sample in samples)
    padded = [pad(sample, largest) for sample in samples]
    seeds = len(samples[0].x)
    banks = np.arange(run.neurons)
    together = np.array([banks[:, None] // m == banks // m for m in run.widths], float)
    start = (
        jnp.asarray(rng.standard_normal((seeds, run.neurons, 2))),
        jnp.asarray(rng.standard_normal((seeds, run.neurons))),
    )
    hidden = max(run.depths) - 1
    used = np.array([np.arange(hidden) < depth - 1 for depth in run.depths], float)
    deep_start = (
        jnp.asarray(rng.standard_normal((seeds, hidden, DEEP, DEEP))),
        jnp.asarray(rng.standard_normal((seeds, DEEP))),
    )
    two_layers = partial(shallow, steps=run.steps)
    layers = partial(deep, steps=run.steps // 2)
    fixed = (None, None, None)

    def train(x: jax.Array, signs: jax.Array) -> tuple[jax.Array, ...]:
        by_width = jax.vmap(two_layers, (*fixed, 0, None))
        by_norm = jax.vmap(by_width, (*fixed, None, 0))
        untrained, wide = jax.vmap(by_norm, (0, 0, 0, None, None))(
            x, signs, start, jnp.asarray(together), jnp.array([False, True])
        )
        flat = jnp.pad(x, ((0, 0), (0, 0), (0, DEEP - 2)))
        by_depth = jax.vmap(layers, (*fixed, 0, None))
        by_slope = jax.vmap(by_depth, (*fixed, None, 0))
        layered = jax.vmap(by_slope, (0, 0, 0, None, None))(
            flat, signs, deep_start, jnp.asarray(used), jnp.array([1.0, 0.0])
        )
        return wide[:, 0], wide[:, 1], untrained[:, 0], layered[:, 0], layered[:, 1]

    compiled = kit.compiled(train)
    results = [compiled(*sample) for sample in padded]
    names = ("wide", "spectral", "untrained", "deep", "deep_relu")
    return {
        name: np.array(part) for name, part in zip(names, zip(*results, strict=True), strict=True)
    }
