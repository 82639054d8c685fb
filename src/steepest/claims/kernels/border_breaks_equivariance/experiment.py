"""Finite convolutional networks in training, on signals and on the same signals shifted.

All worlds are one program. A convolution reads windows, which are data, so that padding and size are data too; sizes
below the largest have windows of zeros, at which ReLU gives zero. What the last layer reads is a matrix over positions:
one row of 1/N for pooling, the unit matrix over √N for flatten, a row with gaps for a stride.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steepest import kit
from steepest.nn.types import Values


class Task(NamedTuple):
    """Signals as windows, and how the last layer reads positions.

    Attributes:
        train: windows of the training signals, ``(m, P, D)``.
        y: targets, ``(m,)``.
        test: windows of test signals, unshifted and shifted, ``(shifts + 1, tests, P, D)``.
        reads: weights of positions, ``(P, P)``.
    """

    train: Values
    y: Values
    test: Values
    reads: Values


class Weights(NamedTuple):
    """Weights of a network: filters ``(n, D)`` and those of the last layer ``(n, P)``, all of variance one at first."""

    filters: Values
    last: Values


def textures(
    rng: np.random.Generator, count: int, positions: int, channels: int
) -> tuple[Values, Values]:
    """Return signals and labels ±1: noise whose neighbours are alike, or opposite, around a circle.

    Shapes ``(count, N, C)`` and ``(count,)``.
    """
    noise = rng.standard_normal((count, positions, channels))
    labels = np.where(np.arange(count) % 2, 1.0, -1.0)
    # variance one, and covariance ½ label of neighbours
    return (noise + labels[:, None, None] * np.roll(noise, 1, axis=1)) / 2**0.5, labels


def read_windows(signals: Values, taps: int, most: int, *, circular: bool = False) -> Values:
    """Return windows at each position, ``(…, most, taps C)``, and windows of zeros behind the last position."""
    count = signals.shape[-2]
    places = np.arange(count)[:, None] + np.arange(taps) - taps // 2
    inside = (places >= 0) & (places < count)
    read = signals[..., places % count, :]  # (…, N, taps, C)
    if not circular:
        read = np.where(inside[..., None], read, 0.0)
    result = np.zeros((*signals.shape[:-2], most, taps * signals.shape[-1]))
    result[..., :count, :] = read.reshape(*read.shape[:-2], -1)
    return result


def pooling(positions: int, most: int, stride: int = 1) -> Values:
    """Return reads of a mean over every stride-th position."""
    reads = np.zeros((most, most))
    kept = np.arange(0, positions, stride)
    reads[0, kept] = 1 / len(kept)
    return reads


def flattening(positions: int, most: int) -> Values:
    """Return reads of all positions, each with last weights of its own."""
    return np.diag(np.arange(most) < positions) / positions**0.5


def apply(weights: Weights, windows: Values, reads: Values) -> Array:
    """Return outputs of one hidden convolution, ``(…,)`` of windows ``(…, P, D)``, in the NTK parameterization."""
    n, width = weights.filters.shape
    # variances 2/D and 2/n of the weights: C_W = 2, at which ReLU keeps the size of signals
    signals = jax.nn.relu((2 / width) ** 0.5 * windows @ weights.filters.T)
    return (2 / n) ** 0.5 * ((reads @ signals) * weights.last.T).sum((-2, -1))  # (…, P, n)


def train(weights: Weights, task: Task, rate: float, steps: Sequence[int]) -> Array:
    """Return what one network learned of the test signals at some steps, ``(steps, shifts + 1, tests)``.

    Its outputs count from those at the start, so that it starts at zero and has the kernel of the network.
    """
    start = apply(weights, task.train, task.reads)
    at_start = apply(weights, task.test, task.reads)

    def risk(weights: Weights) -> Array:
        return ((apply(weights, task.train, task.reads) - start - task.y) ** 2).mean() / 2

    def step(_: int, weights: Weights) -> Weights:
        slope = jax.grad(risk)(weights)
        return jax.tree.map(lambda w, g: w - rate * g, weights, slope)

    def until(weights: Weights, count: Array) -> tuple[Weights, Array]:
        weights = jax.lax.fori_loop(0, count, step, weights)
        return weights, apply(weights, task.test, task.reads) - at_start

    counts = jnp.asarray(np.diff([0, *steps]))
    return jax.lax.scan(until, weights, counts)[1]


def train_all(
    rng: np.random.Generator,
    tasks: Sequence[Task],
    channels: int,
    networks: int,
    rate: float,
    steps: Sequence[int],
) -> Values:
    """Return what networks learned of the test signals in each world, ``(worlds, networks, steps, shifts + 1, tests)``.

    Args:
        rng: of the weights, of which each world has its own.
        tasks: of the worlds.
        channels: n.
        networks: in each world.
        rate: of descent.
        steps: at which outputs are read.
    """
    positions, width = tasks[0].train.shape[1:]
    draw = lambda *shape: rng.standard_normal((len(tasks), networks, *shape), np.float32)
    weights = Weights(draw(channels, width), draw(channels, positions))
    stacked = Task(*(np.stack(parts).astype(np.float32) for parts in zip(*tasks, strict=True)))

    def world(pair: tuple[Weights, Task]) -> Array:
        weights, task = pair
        return jax.lax.map(lambda network: train(network, task, rate, steps), weights)

    learned = kit.compiled(lambda pair: jax.lax.map(world, pair))((weights, stacked))
    return np.asarray(learned, float)


def deviation(learned: Values) -> Values:
    """Return how far a network's outputs are from those before the shift, ``(…, steps, shifts)``: √ of a mean square.

    Args:
        learned: ``(…, steps, shifts + 1, tests)``.
    """
    before, after = np.split(learned, [1], axis=-2)
    return np.linalg.norm(after - before, axis=-1) / learned.shape[-1] ** 0.5


def largest_move(learned: Values) -> Values:
    """Return the farthest that any output goes under any shift, in units of outputs, ``(…, steps)``."""
    before, after = np.split(learned, [1], axis=-2)
    size = np.linalg.norm(before[..., 0, :], axis=-1) / learned.shape[-1] ** 0.5
    return np.abs(after - before).max((-2, -1)) / size
