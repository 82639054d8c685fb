"""A network of layers: one description of the finite network and of its limit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from steepest.core.errors import UserError
from steepest.core.given import key as random_key
from steepest.nn.layers._beside import Beside, as_graphs, one_size
from steepest.nn.layers._composition import serial
from steepest.nn.layers._layer import LayerLike, Scheme, Signal
from steepest.nn.layers._masks import as_mask, blanked
from steepest.nn.layers._nodes import Draft, WideLimit
from steepest.nn.layers._window import times
from steepest.nn.networks import Parameterization, parameterization
from steepest.nn.networks._parameterization import _check_variances, _number_or_traced
from steepest.nn.types import Key, Network, Params


def _unset(*_: Any) -> Any:
    raise UserError("build networks of layers with network(), which fills in the limit")


@dataclass(frozen=True)
class LayeredNetwork(Network):
    """A network of layers; build it with :func:`network`.

    Attributes:
        apply: maps parameters, inputs and, if some positions do not exist, a mask to outputs (:func:`network`); graphs
            belong to ``aggregate()``, and a key draws what ``dropout`` leaves out.
        shape: of one input.
        output: shape of one output.
        parameterization: how widths enter.
        limit: gives the network's limit of infinitely many channels, for ``gram`` of ``steepest.kernels``.
        graphs: numbers of positions of the graphs that it reads beside inputs: one number at most.
        watched: the ``apply`` that :func:`network` made, in which all weights can be watched; another one may read them
            in other ways too.
    """

    apply: Callable[..., Array]
    shape: tuple[int, ...] = ()
    output: tuple[int, ...] = ()
    parameterization: Parameterization | None = None
    limit: Callable[[], WideLimit] = _unset
    watched: Callable[..., Array] | None = None
    graphs: frozenset[int] = frozenset()


def network(
    *layers: LayerLike,
    shape: tuple[int, ...],
    parameterized: str | Parameterization = "standard",
    c_w: float = 1.0,
    c_b: float = 0.0,
    bias: bool = True,
) -> LayeredNetwork:
    """Build a network of layers, one after the other.

    Parameters are a tuple with one entry a layer, ``{"w": …, "b": …}`` of ``dense`` and ``conv``, tuples of branches of
    ``add``, and empty ones of layers without weights. ``limit()`` gives the same network with infinitely many
    channels, or says which layer has no known limit.

    ``apply(params, x, mask)`` reads inputs some of whose positions do not exist: sequences of different length that are
    filled up, or images with missing pixels. The mask has True where a position exists, shape ``(n, *space)``.
    Positions that do not exist are zero to convolutions and ``flatten``, do not count in pooling, and are no keys of
    attention; without padding a window must exist as a whole.

    ``apply(params, x, mask, graphs=A)`` reads a graph beside each input, if ``aggregate()`` without a matrix is among
    the layers: weights between positions, shape ``(n, P, P)``, or ``(P, P)`` for all inputs alike.

    ``apply(params, x, mask, key=key)`` is the network in training: ``dropout`` draws from the key what it leaves out,
    for each row of x by itself. Without a key nothing is left out.

    Args:
        layers: ``dense``, ``conv``, activations by name, ``pool``, ``flatten``, ``global_pool``, ``add``,
            ``layer_norm``, ``dropout``, ``attention``, ``serial`` and others of ``steepest.nn.layers``.
        shape: of one input: space first, channels last, as ``(height, width, channels)``.
        parameterized: ``"standard"``, ``"ntk"``, ``"mean-field"``, ``"mup"`` or a ``Parameterization``.
        c_w: C_W of all layers that do not say otherwise: variance of the effective weights times fan-in.
        c_b: C_b, the variance of the biases.
        bias: whether there are biases at all.

    Raises:
        UserError: shapes that do not fit, an unknown activation or parameterization; the message names the layer.

    >>> import jax
    >>> from steepest.nn.layers import conv, dense, flatten, pool
    >>> net = network(conv(16), "relu", pool(2), flatten(), dense(10), shape=(8, 8, 3), parameterized="ntk")
    >>> net.apply(net.init(jax.random.key(0)), jnp.ones((5, 8, 8, 3))).shape
    (5, 10)
    """
    shape = _checked_shape(shape)
    _check_variances(c_w=c_w, c_b=c_b)
    if not isinstance(bias, bool):
        raise UserError(f"bias must be True or False, got {bias!r}; try bias=True")
    abc = parameterization(parameterized)
    body = serial(*layers)
    start = Signal(shape[:-1], shape[-1], weighted=False)
    part = body.build(
        start, Scheme(abc, _number_or_traced(c_w), _number_or_traced(c_b), bias), last=True
    )
    one_size(part.graphs)  # refuses layers that no graph could serve together
    scalar = part.output.shape == (1,)
    output = () if scalar else part.output.shape

    def apply(
        params: Params,
        x: Float[Array, "..."],
        mask: Bool[Array, "..."] | None = None,
        graphs: Float[Array, "..."] | None = None,
        *,
        key: Key | None = None,
    ) -> Array:
        x = jnp.asarray(x)
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            x = x.astype(float)  # or weights of positions would be rounded to whole numbers too
        if x.shape[x.ndim - len(shape) :] != shape:
            raise UserError(
                f"this network reads inputs of shape {shape} behind any others, got {x.shape}"
            )
        batch = x.shape[: x.ndim - len(shape)]
        x = x.reshape(math.prod(batch), *shape)
        if mask is not None:
            mask = as_mask(mask, (*batch, *start.space), jnp).reshape(x.shape[:-1])
            x = blanked(x, mask, jnp)
        weights = as_graphs(graphs, part.graphs, batch, jnp)
        drawn = None if key is None else random_key("key", key)
        y = part.apply(params, x, Beside(mask, weights), drawn)
        return y.reshape(*batch, *output)

    name = f"network of {len(layers)} layers on {times(shape)}, {abc.name}"

    def limit() -> WideLimit:
        draft = Draft(start.space)
        part.extend(draft, 0)
        return WideLimit(
            shape,
            tuple(draft.nodes),
            tuple(draft.spaces),
            f"limit of the {name}",
            tuple(draft.stages),
        )

    return LayeredNetwork(part.init, apply, name, shape, output, abc, limit, apply, part.graphs)


def _checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of one input.

    Raises:
        UserError: something else than whole numbers from one on.
    """
    try:
        sizes = np.asarray(shape, float)
    except (TypeError, ValueError):
        sizes = np.empty(0)
    if sizes.ndim != 1 or not sizes.size or (sizes < 1).any() or (sizes % 1 != 0).any():
        raise UserError(
            f"shape needs the sizes of one input, space first and channels last, as (32, 32, 3), got {shape!r}"
        )
    return tuple(map(int, sizes))
