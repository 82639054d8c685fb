"""Path-SGD: descent that does not see how the weights of a ReLU network are balanced."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Params


@checked
def path_sgd(lr: float | Array) -> optax.GradientTransformation:
    r"""Return path-SGD ``w_e⁺ = w_e - η g_e / κ_e`` as an optax transformation for ``descend``.

    .. math:: κ_e = \sum_{\text{paths } p ∋ e} \prod_{e' ∈ p,\, e' ≠ e} w_{e'}^2 = ∂ π_2^2 / ∂ (w_e^2)

    The sum is over all paths from an input to an output, and ``π₂`` is their norm of order two, ``path_norm(weights,
    2)``. All κ cost one pass forward and one backward. For ReLU and other positively homogeneous activations, a
    neuron's incoming weights may be multiplied and its outgoing ones divided by any positive number: the descent then
    goes through the same functions, step by step. The gradient of an edge on dead paths only (κ = 0) is zero, and the
    edge stays as it is. A single layer has κ = 1 everywhere, which is gradient descent.

    The parameters are a chain of layers without biases, ``({"w": (n_1, n_0)}, …, {"w": (n_{L+1}, n_L)})``, as those of
    ``mlp(widths, bias=False)``. In the standard parameterization these are the weights that the network computes with.
    Other parameterizations multiply all weights of a layer by one factor; that changes the step sizes of the layers
    against each other, and not the invariance.

    Args:
        lr: η, the step size.

    Raises:
        UserError: from ``init`` and ``update``, for other parameters than such a chain.

    Source: Neyshabur, Salakhutdinov and Srebro 2015, Path-SGD, section 4, with p = 2 and one gradient for a batch.

    >>> params = ({"w": jnp.array([[2.0]])}, {"w": jnp.array([[3.0]])})
    >>> step = path_sgd(1.0)
    >>> updates, _ = step.update(params, step.init(params), params)  # a gradient of (2, 3); κ = (9, 4)
    >>> [round(float(layer["w"][0, 0]), 4) for layer in updates]
    [-0.2222, -0.75]
    """

    def init(params: Params) -> optax.EmptyState:
        _weights(params)
        return optax.EmptyState()

    def update(
        updates: optax.Updates, state: optax.OptState, params: Params | None = None
    ) -> tuple[optax.Updates, optax.OptState]:
        factors = _path_factors(_weights(params))
        return tuple(
            # κ = 0: every path through the edge is dead, so that its gradient is zero too
            {"w": -lr * g * jnp.where(kappa > 0, 1 / jnp.where(kappa > 0, kappa, 1.0), 0.0)}
            for g, kappa in zip(_weights(updates), factors, strict=True)
        ), state

    return optax.GradientTransformation(init, update)


def _path_factors(
    weights: Sequence[Float[Array, "above below"]],
) -> list[Float[Array, "above below"]]:
    """Return κ of every edge: paths into its lower end times paths out of its upper end, with squared weights."""
    squares = [w**2 for w in weights]
    into = [jnp.ones(squares[0].shape[1])]
    out = [jnp.ones(squares[-1].shape[0])]
    # Σ over paths into each neuron of the products of squared weights, layer by layer
    for square in squares[:-1]:
        into.append(square @ into[-1])
    # the same from the outputs down; [:0:-1] leaves out the first layer, below which no edge is
    for square in squares[:0:-1]:
        out.append(out[-1] @ square)
    # κ_e = out(upper end) into(lower end)
    return [jnp.outer(above, below) for above, below in zip(reversed(out), into, strict=True)]


def _weights(params: Any) -> list[Float[Array, "above below"]]:
    """Return the matrices of a chain without biases, first layer first."""
    chain = isinstance(params, Sequence) and all(
        isinstance(layer, dict) and set(layer) == {"w"} for layer in params
    )
    shapes = [jnp.shape(layer["w"]) for layer in params] if chain else []
    fits = all(len(s) == 2 for s in shapes) and all(
        above[1] == below[0] for below, above in pairwise(shapes)
    )
    if not (shapes and fits):
        got = (
            f"shapes {shapes}"
            if shapes
            else "parameters of another form"
            if params is not None
            else "none"
        )
        raise UserError(
            'path_sgd: expected the parameters of a chain without biases, ({"w": (n_1, n_0)}, {"w": (n_2, n_1)}, …), '
            f"got {got}; build the network with mlp(widths, bias=False)"
        )
    return [layer["w"] for layer in params]
