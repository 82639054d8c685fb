"""Networks on graphs by messages: each node combines its own state with what it aggregates from its neighbours."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.activations import activation as activation_of
from steepest.nn.types import Key, Params, Values

Aggregate = Literal["sum", "mean", "max"]


class MessageLayer(NamedTuple):
    """Parameters of one layer.

    Attributes:
        own: weights of a node's own state, shape ``(width, inputs)``.
        beside: weights of what it aggregates from its neighbours, shape ``(width, inputs)``.
        bias: shape ``(width,)``.
    """

    own: Float[Array, "width inputs"]
    beside: Float[Array, "width inputs"]
    bias: Float[Array, " width"]


class GraphInput(NamedTuple):
    """What a network on graphs reads.

    Attributes:
        adjacency: of zeros and ones, symmetric, shape ``(..., n, n)``.
        features: one row a node, shape ``(..., n, dimension)``.
    """

    adjacency: Values
    features: Values


class GraphNetwork(NamedTuple):
    """A network that reads graphs: as ``Network``, with another kind of input.

    Attributes:
        init: draws the initial parameters from a key.
        apply: maps parameters and a :class:`GraphInput` to representations.
        name: how pages and tables call it.
    """

    init: Callable[[Key], Params]
    apply: Callable[[Params, GraphInput], Array]
    name: str


@checked
def message_passing(
    dimension: Count,
    width: Count,
    depth: int,
    aggregate: Aggregate = "sum",
    readout: Aggregate | None = None,
    activation: str = "tanh",
) -> GraphNetwork:
    """Build h_v ← φ(W h_v + U AGG{h_u : u ~ v} + b), k layers of it, and a readout of all nodes after every layer.

    Weights are Gaussian of variance 1/inputs, biases of variance 1. A node without neighbours aggregates zero. What is
    applied is ``apply(params, GraphInput(adjacency, features))``; it returns the graph's representation after 1, …, k
    layers, shape ``(..., k, width)``.

    Args:
        dimension: of the features of a node.
        width: of every layer.
        depth: k.
        aggregate: ``"sum"``, ``"mean"`` or ``"max"`` over the neighbours, coordinate by coordinate.
        readout: the same over all nodes; None for what aggregates.
        activation: φ, by name.

    Raises:
        UserError: for another word, or a dimension, width or depth below one.

    Source: Xu, Hu, Leskovec and Jegelka 2019, "How powerful are graph neural networks?".

    >>> net = message_passing(1, 8, 2)
    >>> path = jnp.eye(3, k=1) + jnp.eye(3, k=-1)
    >>> net.apply(net.init(jax.random.key(0)), GraphInput(path, jnp.ones((3, 1)))).shape
    (2, 8)
    """
    readout = aggregate if readout is None else readout
    for name, word in (("aggregate", aggregate), ("readout", readout)):
        if word not in ("sum", "mean", "max"):
            raise UserError(f"message_passing: {name} must be 'sum', 'mean' or 'max', got {word!r}")
    for name, count in (("dimension", dimension), ("width", width), ("depth", depth)):
        if count < 1:
            raise UserError(f"message_passing: expected a {name} of at least 1, got {count}")
    nonlinear = activation_of(activation)

    def init(key: Key) -> tuple[MessageLayer, ...]:
        # all in one draw: one program, not one a layer
        # own weights, weights of the neighbours and the bias side by side
        shapes = [(width, 2 * inputs + 1) for inputs in (dimension, *[width] * (depth - 1))]
        ends = np.cumsum([rows * columns for rows, columns in shapes])
        drawn = jnp.split(jax.random.normal(key, (int(ends[-1]),)), ends[:-1])
        layers = []
        for numbers, (rows, columns) in zip(drawn, shapes, strict=True):
            matrix = numbers.reshape(rows, columns)
            inputs = columns // 2
            own, beside = jnp.split(matrix[:, :-1] / np.sqrt(inputs), 2, axis=1)
            layers.append(MessageLayer(own, beside, matrix[:, -1]))
        return tuple(layers)

    def apply(params: tuple[MessageLayer, ...], graphs: GraphInput) -> Float[Array, "... k width"]:
        adjacency, states = graphs
        readouts = []
        for layer in params:
            gathered = gather(aggregate, adjacency, states)
            states = nonlinear(states @ layer.own.T + gathered @ layer.beside.T + layer.bias)
            everyone = jnp.ones((*adjacency.shape[:-2], 1, adjacency.shape[-1]))
            readouts.append(gather(readout, everyone, states)[..., 0, :])
        return jnp.stack(readouts, axis=-2)

    return GraphNetwork(
        init, apply, f"message passing by {aggregate}, {depth} layers of width {width}"
    )


def gather(
    aggregate: Aggregate, adjacency: Float[Array, "... m n"], states: Float[Array, "... n d"]
) -> Float[Array, "... m d"]:
    """Return the sum, mean or largest of the states in each row of the adjacency, zero where the row is empty."""
    if aggregate == "max":
        present = adjacency[..., None] > 0
        largest = jnp.where(present, states[..., None, :, :], -jnp.inf).max(-2)
        return jnp.where(present.any(-2), largest, 0.0)
    sums = adjacency @ states
    if aggregate == "sum":
        return sums
    return sums / jnp.maximum(adjacency.sum(-1, keepdims=True), 1)
