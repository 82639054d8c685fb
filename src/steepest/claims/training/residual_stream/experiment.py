"""Residual networks of ReLU blocks with layer normalization, at their start: streams and gradients of each block."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.nn.types import Key


class Weights(NamedTuple):
    """Matrices of all blocks, each of shape ``(blocks, d, d)``, entries of variance 1/d."""

    first: Array
    second: Array


class Signals(NamedTuple):
    """What is read of one network.

    Attributes:
        variance: mean square of the stream behind each block, ``(blocks,)``.
        square: of the Frobenius norm of the gradient of each block's second matrix, over d/2, ``(blocks,)``.
    """

    variance: Array
    square: Array


Step = Callable[[Array, Array, Array, Array], Array]
"""The stream behind a block, of the stream before it, the block's number from one on, and its two matrices."""


def normalized(x: Array) -> Array:
    """Return x less its mean, with variance one."""
    centred = x - x.mean()
    return centred / jnp.sqrt((centred**2).mean())


def block(x: Array, first: Array, second: Array) -> Array:
    """Return ``W₂ relu(W₁ x)``."""
    # ReLU keeps half of a symmetric signal's mean square, matrices of variance 1/d keep it all
    return second @ jax.nn.relu(first @ x)


def pre(x: Array, number: Array, first: Array, second: Array) -> Array:
    """Normalize what the block reads."""
    return x + block(normalized(x), first, second)


def post(x: Array, number: Array, first: Array, second: Array) -> Array:
    """Normalize the sum."""
    return normalized(x + block(x, first, second))


def plain(x: Array, number: Array, first: Array, second: Array) -> Array:
    """Normalize nothing."""
    return x + block(x, first, second)


def damped(x: Array, number: Array, first: Array, second: Array) -> Array:
    """Normalize what the block reads, and divide by the root of the block's number."""
    return x + block(normalized(x), first, second) / jnp.sqrt(number)


def draw(key: Key, width: int, depth: int) -> tuple[Weights, Array, Array]:
    """Draw a network, an input of variance one, and the gradient behind the last normalization, of length one."""
    of_first, of_second, of_input, of_end = jax.random.split(key, 4)
    matrices = lambda key: jax.random.normal(key, (depth, width, width)) / width**0.5
    end = jax.random.normal(of_end, (width,))
    start = normalized(jax.random.normal(of_input, (width,)))
    return Weights(matrices(of_first), matrices(of_second)), start, end / jnp.linalg.norm(end)


def signals(weights: Weights, start: Array, end: Array, depth: int, step: Step) -> Signals:
    """Return the signals of the network of the first blocks, behind which the stream is normalized once more."""
    first = weights.first[:depth]
    second = weights.second[:depth]
    numbers = jnp.arange(1.0, depth + 1)

    def output(second: Array) -> tuple[Array, Array]:
        def next_block(x: Array, of_block: tuple) -> tuple[Array, Array]:
            x = step(x, *of_block)
            return x, (x**2).mean()

        x, variance = jax.lax.scan(next_block, start, (numbers, first, second))
        return end @ normalized(x), variance

    gradient, variance = jax.grad(output, has_aux=True)(second)
    # ∂/∂W₂ = g relu(W₁x̂)ᵀ has the square ‖g‖² d/2, g the gradient at the stream
    return Signals(variance, (gradient**2).sum((1, 2)) / (len(start) / 2))
