"""Graph networks that average over neighbours, from the matrix of a walk."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.activations import Activation, Elementwise
from steepest.nn.activations import activation as activation_of
from steepest.nn.types import Key, Network


@checked
def graph_convolution(
    walk: ArrayLike,
    dimension: Count,
    width: Count,
    depth: int,
    activation: str | Elementwise | Activation = "relu",
) -> Network:
    """Build h ← φ(P h Wᵀ), k layers of it: every node takes the mean over its neighbours, then weights.

    Weights are Gaussian of variance 2/inputs. Applied to the features of all nodes, ``(..., n, dimension)``, the
    network returns their states after 1, …, k layers, ``(..., k, n, width)``.

    Args:
        walk: P, shape ``(n, n)``, such as :func:`steepest.graphs.lazy_walk`; a traced matrix is fine.
        dimension: of the features of a node.
        width: of every layer.
        depth: k.
        activation: φ, a name or a function.

    Raises:
        UserError: for a matrix that is not square, or a dimension, width or depth below one.

    Source: Kipf and Welling 2017; Xu et al. 2018, "Jumping knowledge networks".

    >>> walk = jnp.array([[0.5, 0.5], [0.5, 0.5]])
    >>> net = graph_convolution(walk, 3, 8, 2)
    >>> net.apply(net.init(jax.random.key(0)), jnp.ones((2, 3))).shape
    (2, 2, 8)
    """
    shape = np.shape(walk)
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise UserError(f"graph_convolution: expected a walk of shape (n, n), got {shape}")
    if not isinstance(walk, Tracer) and not np.isfinite(walk).all():
        raise UserError("graph_convolution: the walk must be of finite numbers")
    for name, count in (("dimension", dimension), ("width", width), ("depth", depth)):
        if count < 1:
            raise UserError(f"graph_convolution: expected a {name} of at least 1, got {count}")
    nonlinear = activation_of(activation)

    def init(key: Key) -> tuple[Array, ...]:
        # all in one draw: one program, not one a layer
        inputs = [dimension] + [width] * (depth - 1)
        ends = np.cumsum([width * number for number in inputs])
        drawn = jnp.split(jax.random.normal(key, (int(ends[-1]),)), ends[:-1])
        return tuple(
            numbers.reshape(width, number) * np.sqrt(2 / number)
            for numbers, number in zip(drawn, inputs, strict=True)
        )

    def apply(
        params: tuple[Array, ...], x: Float[Array, "... n dimension"]
    ) -> Float[Array, "... k n width"]:
        states = []
        for matrix in params:
            x = nonlinear(jnp.asarray(walk) @ x @ matrix.T)
            states.append(x)
        return jnp.stack(states, axis=-3)

    return Network(init, apply, f"graph convolution, {depth} layers of width {width}")
