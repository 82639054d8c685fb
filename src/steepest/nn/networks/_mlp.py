"""Fully connected networks of any width, depth, activation and parameterization."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.given import traced
from steepest.core.signatures import checked
from steepest.nn.activations import activation as named
from steepest.nn.networks._limit import LayerLimit, Limit
from steepest.nn.networks._parameterization import (
    ByLayer,
    Parameterization,
    _check_variances,
    _number_or_traced,
    check_limit,
    parameterization,
    width_factor,
)
from steepest.nn.types import Key, Network, Params

SMALL = 2**14  # numbers that may be drawn in vain


def _unset(*_: Any) -> Any:
    raise UserError("build networks with mlp(), which fills in preactivations, features and limit")


@dataclass(frozen=True)
class Mlp(Network):
    """A fully connected network; build it with :func:`mlp`.

    Attributes:
        widths: input dimension, hidden widths, output dimension.
        parameterization: how the width enters.
        preactivations: maps parameters and inputs to the list of z^(1), …, z^(L+1), each ``(..., n_l)``.
        features: maps parameters and inputs to σ(z^(L)), shape ``(..., n_L)``: what the last layer reads.
        limit: gives the network's infinitely wide limit, for ``nngp``, ``ntk`` and ``gram`` of ``steepest.kernels``.
    """

    widths: tuple[int, ...] = ()
    parameterization: Parameterization | None = None
    preactivations: Callable[..., list[Array]] = _unset
    features: Callable[..., Array] = _unset
    limit: Callable[[], Limit] = _unset


@checked
def mlp(
    widths: Sequence[int],
    activation: str | Callable = "relu",
    *,
    parameterized: str | Parameterization = "standard",
    c_w: float | Sequence[float] = 1.0,
    c_b: float = 0.0,
    bias: bool = True,
    skip: float = 0.0,
    normalize: bool = False,
) -> Mlp:
    """Build z^(l+1) = b + W σ(z^(l)), with effective weights of variance C_W/n_l and biases of variance C_b.

    Parameters are a tuple of layers ``{"w": (n_{l+1}, n_l), "b": (n_{l+1},)}`` (no ``"b"`` without bias). With an
    output dimension of one the output's last axis is dropped, so that scalar networks give ``(...,)``.

    Args:
        widths: input dimension, hidden widths, output dimension: at least two numbers.
        activation: a name or a function on arrays.
        parameterized: ``"standard"``, ``"ntk"``, ``"mean-field"``, ``"mup"`` or a :class:`Parameterization`.
        c_w: C_W, one for all layers or one a layer.
        c_b: C_b of every layer.
        bias: whether there are biases at all.
        skip: residual branches between hidden layers, z^(l+1) = skip z^(l) + b + W σ(z^(l)).
        normalize: layer normalization (mean zero, variance one over the layer) before every σ.

    Raises:
        UserError: widths that are not positive whole numbers, or unequal where residual branches need them equal; an
            unknown activation or parameterization.

    Source: ORF 543, lecture 9/14.

    >>> net = mlp((3, 8, 1), "tanh")
    >>> net.apply(net.init(jax.random.key(0)), jnp.ones((5, 3))).shape
    (5,)
    """
    branched = traced(skip) or bool(skip)
    widths = _checked(widths, branched)
    abc = parameterization(parameterized)
    sigma = named(activation)
    depth = len(widths) - 1
    variances = _one_each(c_w, depth)
    multipliers = [
        _factor(widths, i, abc.multiplier, variances[i], abc.constants_in_multiplier)
        for i in range(depth)
    ]
    scales = [
        _factor(widths, i, abc.scale, variances[i], not abc.constants_in_multiplier)
        for i in range(depth)
    ]

    def init(key: Key) -> Params:
        pairs = jax.vmap(jax.random.split)(jax.random.split(key, depth))  # of weights and biases
        shapes = list(itertools.pairwise(widths))
        weights = _normals(pairs[:, 0], [(n, fan_in) for fan_in, n in shapes])
        layers = [{"w": scale * w} for scale, w in zip(scales, weights, strict=True)]
        if not bias:
            return tuple(layers)
        if isinstance(c_b, (int, float)) and c_b == 0:
            shifts = [jnp.zeros(n) for n in widths[1:]]
        else:
            drawn = _normals(pairs[:, 1], [(n,) for n in widths[1:]])
            shifts = [jnp.sqrt(c_b) * b for b in drawn]
        return tuple({**layer, "b": b} for layer, b in zip(layers, shifts, strict=True))

    def activate(z: Array) -> Array:
        return sigma.function(_normalized(z) if normalize else z)

    def preactivations(params: Params, x: Float[Array, "... d"]) -> list[Array]:
        z: list[Array] = []
        for i, layer in enumerate(params):
            linear = multipliers[i] * ((activate(z[-1]) if i else x) @ layer["w"].T) + layer.get(
                "b", 0.0
            )
            z.append(skip * z[-1] + linear if branched and 0 < i < depth - 1 else linear)
        return z

    def apply(params: Params, x: Float[Array, "... d"]) -> Array:
        out = preactivations(params, x)[-1]
        return out[..., 0] if widths[-1] == 1 else out

    def features(params: Params, x: Float[Array, "... d"]) -> Array:
        return activate(preactivations(params, x)[-2]) if depth > 1 else x

    def trained(i: int, c_w: Any) -> Any:
        """Return ``t_w = multiplier² fan-in``, which is C_W over the variance of a weight."""
        # multiplier² scale² = C_W/fan-in; the scale of C_W = 1, as C_W cancels where it stands in the scale
        of_one = _factor(widths, i, abc.scale, 1.0, not abc.constants_in_multiplier)
        return (c_w if abc.constants_in_multiplier else 1.0) / of_one**2

    def limit() -> Limit:
        check_limit(abc)
        _check_variances(c_b=c_b)
        shift = _number_or_traced(c_b) * bias
        layers = [
            LayerLimit(c_w, shift, trained(i, c_w), float(bias)) for i, c_w in enumerate(variances)
        ]
        return Limit(sigma, tuple(layers), skip, normalize, f"limit of the {name}", widths[0])

    kinds = [f"{sigma.name} network {'-'.join(map(str, widths))}", abc.name]
    skipped = ["skip" if traced(skip) else f"skip {skip:g}"] * branched
    name = ", ".join([*kinds, *skipped, *["layer normalization"] * normalize])
    return Mlp(init, apply, name, widths, abc, preactivations, features, limit)


def _normals(keys: Key, shapes: list[tuple[int, ...]]) -> list[Array]:
    """Return ``normal(key, shape)`` of every key and shape, from one draw where that is cheap.

    Every draw takes a quarter of a second to compile. The numbers of a small array are the first of a larger one's with
    the same key (JAX counts them one by one), so that all arrays can be cut out of one draw of the largest size.
    """
    sizes = [math.prod(shape) for shape in shapes]
    config: Any = jax.config
    wasteful = len(sizes) * max(sizes) > 3 * sum(sizes) + SMALL
    if wasteful or not config.jax_threefry_partitionable:
        return [jax.random.normal(keys[i], shape) for i, shape in enumerate(shapes)]
    rows = jax.vmap(lambda key: jax.random.normal(key, (max(sizes),)))(keys)
    return [row[:size].reshape(shape) for row, size, shape in zip(rows, sizes, shapes, strict=True)]


def _checked(widths: Sequence[int], branched: bool) -> tuple[int, ...]:
    widths = tuple(widths)
    if len(widths) < 2 or any(int(n) != n or n < 1 for n in widths):
        raise UserError(
            f"widths must be at least two positive whole numbers (input, hidden, output), got {widths}"
        )
    if branched and len(set(widths[1:-1])) > 1:
        raise UserError(
            f"residual branches need hidden layers of one width, got {widths[1:-1]}; try skip=0"
        )
    return widths


def _one_each(c_w: float | Sequence[float], depth: int) -> tuple[float, ...]:
    """Return C_W of each layer."""
    _check_variances(c_w=c_w)
    variances = (
        tuple(map(_number_or_traced, c_w))  # pyright: ignore
        if isinstance(c_w, Sequence) or np.ndim(c_w) == 1
        else (_number_or_traced(c_w),) * depth
    )
    if len(variances) != depth:
        raise UserError(
            f"c_w needs one number, or one for each of the {depth} layers, got {len(variances)}"
        )
    return variances


def _normalized(z: Float[Array, "... n"]) -> Float[Array, "... n"]:
    """Normalize a layer: mean zero and variance one over the neurons."""
    centred = z - z.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True))


@checked
def deep_linear(widths: Sequence[int], *, c_w: float = 1.0, parameterized: str = "standard") -> Mlp:
    """Build a product of matrices W_L … W_1 without biases, as a network.

    >>> net = deep_linear((3, 4, 2))
    >>> params = net.init(jax.random.key(0))
    >>> bool(jnp.allclose(net.apply(params, jnp.eye(3)).T, params[1]["w"] @ params[0]["w"]))
    True
    """
    return mlp(widths, "linear", parameterized=parameterized, c_w=c_w, bias=False)


def _factor(
    widths: tuple[int, ...], i: int, exponents: ByLayer, variance: float, constants: bool
) -> float:
    """Return the parameterization's factor on layer i: width to the power −exponent, and maybe the constants.

    A hidden or last layer's width is its own fan-in, which makes unequal widths follow W_ij ~ N(0, C_W/n_l).
    """
    last = len(widths) - 2
    exponent = exponents.first if i == 0 else exponents.last if i == last else exponents.hidden
    width = (widths[1] if last > 0 else 1) if i == 0 else widths[i]
    # √C_W everywhere; 1/√n_0 in the first layer, whose width factor is of its outputs
    constant = (variance / (widths[0] if i == 0 else 1)) ** 0.5 if constants else 1.0
    return width_factor(exponent, width) * constant


@checked
def step_scale(net: Mlp, reference: int = 1) -> float:
    """Return the factor n^-c by which the parameterization multiplies the step size, relative to a reference width.

    >>> step_scale(mlp((2, 100, 1), parameterized="mean-field"))
    100.0
    """
    hidden = max(net.widths[1:-1], default=1)
    abc: Any = net.parameterization
    return float((hidden / reference) ** -abc.step)
