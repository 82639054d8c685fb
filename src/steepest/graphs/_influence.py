"""How much nodes move one another: walks on graphs, and derivatives of graph networks."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy import ndarray
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.graphs._refine import check_adjacency
from steepest.nn.types import Network


@checked
def lazy_walk(adjacency: ArrayLike) -> Float[ndarray, "n n"]:
    """Return P = D̃⁻¹(A + I), the walk that stays or takes an edge, all with equal probability.

    Args:
        adjacency: A, symmetric, of zeros and ones, without loops, shape ``(n, n)``.

    Raises:
        UserError: for a graph with loops, one-way edges or weights.

    >>> lazy_walk([[0, 1], [1, 0]]).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    edges = check_adjacency(adjacency)
    stays = edges + np.eye(edges.shape[-1])
    return stays / stays.sum(-1, keepdims=True)


@checked
def influence(
    net: Network,
    params: Any,
    x: Float[Array, "n d"],
    power: float = 1.0,
    nodes: ArrayLike | None = None,
    layers: ArrayLike | None = None,
) -> Float[Array, "k nodes n"]:
    """Return Σ|∂h_x/∂h_y|^p over features: how much node y's features move node x's states, in each layer.

    Args:
        net: a network that returns the states of all nodes in every layer, shape ``(k, n, width)``, such as
            :func:`steepest.nn.networks.graph_convolution`.
        params: its parameters.
        x: features of the nodes.
        power: p.
        nodes: which x, some of the n; all by default. With few, derivatives are taken backward, which costs less.
        layers: which of the k layers; all by default.

    Raises:
        UserError: for a power that is not above zero.

    Source: Xu et al. 2018, "Representation learning on graphs with jumping knowledge networks", definition 3.1 (p = 1).

    >>> from steepest.nn.networks import graph_convolution
    >>> net = graph_convolution(lazy_walk([[0, 1], [1, 0]]), 3, 8, 1, "linear")
    >>> moved = influence(net, net.init(jax.random.key(0)), jnp.ones((2, 3)))
    >>> bool(jnp.allclose(moved[0, 0, 0], moved[0, 0, 1]))
    True
    """
    if not power > 0:
        raise UserError(f"influence: expected a power above zero, got {power:g}; try 1")
    chosen = slice(None) if layers is None else jnp.asarray(layers)
    if nodes is None:
        slopes = jax.jacfwd(lambda x: net.apply(params, x)[chosen])(x)
    else:
        slopes = jax.jacrev(lambda x: net.apply(params, x)[chosen][:, jnp.asarray(nodes)])(x)
    sizes = jnp.abs(slopes)  # (k, nodes, width, n, d)
    return (sizes if power == 1 else sizes**power).sum((2, 4))
