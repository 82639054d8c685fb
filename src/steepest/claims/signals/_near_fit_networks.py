"""Networks near a fit: their shapes, their parameterizations, and what of them is trained."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.nn.activations import activation
from steepest.nn.networks import mlp
from steepest.nn.types import Params

INPUTS = 16
"""Pixels of a pooled digit."""
CRITICAL = {"relu": 2.0, "linear": 1.0, "tanh": 1.0}
"""C_W that preserves signals."""


class Law(NamedTuple):
    """A law of the width: the parameterization, and what is trained, the weights ``"w"`` or the biases ``"b"``."""

    parameterization: str
    trained: str


LAWS = {"standard": Law("standard", "w"), "ntk": Law("ntk", "w"), "biases": Law("standard", "b")}


class Shape(NamedTuple):
    """Widths of a network, input and output with them, and its activation."""

    widths: tuple[int, ...]
    sigma: str


def shape_of(width: int, depth: int, sigma: str) -> Shape:
    """Return the shape of a network with so many hidden layers of one width."""
    return Shape((INPUTS, *[width] * depth, 1), sigma)


def deviations(shape: Shape) -> Float[np.ndarray, " layers"]:
    """Return the deviation (C_W/fan-in)^½ of the effective weights of every layer."""
    return np.sqrt(CRITICAL[shape.sigma] / np.array(shape.widths[:-1]))


class Roles(NamedTuple):
    """How a law reads one Gaussian draw w ~ N(0, 1): its parameters are scale · w, its weights multiplier · parameter.

    All are numbers and no program, so that the laws of one shape share what is compiled.
    """

    scale: Array | np.ndarray  # (layers,)
    multiplier: Array | np.ndarray  # (layers,)
    of_weights: Array | np.ndarray  # (), one if they are trained, else zero
    of_biases: Array | np.ndarray


def roles(shape: Shape, law: Law) -> Roles:
    """Return the numbers of a law: standard networks have their deviations in the start, NTK in the multipliers."""
    deviation = deviations(shape)
    ones = np.ones_like(deviation)
    standard = law.parameterization == "standard"
    return Roles(
        deviation if standard else ones,
        ones if standard else deviation,
        np.array(float(law.trained == "w")),
        np.array(float(law.trained == "b")),
    )


def output(shape: Shape, multiplier: Array, params: Params, x: Array) -> Array:
    """Evaluate a network whose effective weights are multiplier · parameter."""
    net = mlp(shape.widths, shape.sigma, parameterized="standard")
    layers = [
        {"w": factor * layer["w"], "b": layer["b"]}
        for factor, layer in zip(multiplier, params, strict=True)
    ]
    return net.apply(tuple(layers), x)


def numbers_in(shape: Shape) -> int:
    """Return how many weights a network of this shape has."""
    return sum(fan_in * n for fan_in, n in itertools.pairwise(shape.widths))


def cut_out(shape: Shape, numbers: Float[Array, " m"]) -> Params:
    """Return the network whose weights are the first of some Gaussian numbers, with biases zero."""
    layers = []
    begin = 0
    for fan_in, n in itertools.pairwise(shape.widths):
        end = begin + fan_in * n
        layers.append({"w": numbers[begin:end].reshape(n, fan_in), "b": jnp.zeros(n)})
        begin = end
    return tuple(layers)


def kernel_parts(
    shape: Shape, params: Params, x: Array | np.ndarray
) -> Float[Array, "layers 2 P P"]:
    """Return the tangent kernel in the NTK parameterization in parts: those of weights and biases of each layer."""
    widths, sigma = shape
    net = mlp(widths, sigma, parameterized="ntk", c_w=CRITICAL[sigma])

    def at(biases: Sequence[Array], x: Array) -> Array:
        layers = zip(params, biases, strict=True)
        return net.apply(tuple({"w": layer["w"], "b": b} for layer, b in layers), x)

    # ∂f/∂b of a layer is Δ = ∂f/∂z, and ∂f/∂w the product of Δ and what enters the layer, m A
    slopes = jax.vmap(jax.grad(at), (None, 0))([layer["b"] for layer in params], x)
    entering = [x, *(activation(sigma)(z) for z in net.preactivations(params, x)[:-1])]
    parts = []
    for features, slope in zip(entering, slopes, strict=True):
        through = slope @ slope.T  # Σ_i Δ_i(x) Δ_i(x')
        squared_multiplier = CRITICAL[sigma] / features.shape[1]
        parts.append([squared_multiplier * features @ features.T * through, through])
    return jnp.array(parts)


def kernel(
    shape: Shape, law: Law, parts: Float[np.ndarray, "... layers 2 P P"]
) -> Float[np.ndarray, "... P P"]:
    """Add up the tangent kernel of what a law trains, from its parts in the NTK parameterization."""
    if law.trained == "b":
        return parts[..., 1, :, :].sum(-3)
    # with W = c w, a derivative with respect to W is that with respect to w over c
    factors = deviations(shape) if law.parameterization == "standard" else np.ones(1)
    return (parts[..., 0, :, :] / factors[:, None, None] ** 2).sum(-3)
