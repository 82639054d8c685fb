"""How the distance to a reference moves along a descent: the telescope behind its guarantees."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Params, Risk


class Telescope(NamedTuple):
    """The three sums of a telescope, after each of T steps.

    Attributes:
        left: ‖W_t − W̄‖² − ‖W_0 − W̄‖² for t = 1, …, T, shape ``(T,)``.
        inner: Σ_{s<t} ⟨∇R(W_s), W_s − W̄⟩, shape ``(T,)``.
        squares: Σ_{s<t} ‖∇R(W_s)‖², shape ``(T,)``.
    """

    left: Float[Array, " T"]
    inner: Float[Array, " T"]
    squares: Float[Array, " T"]


@checked
def telescope(risk: Risk, points: Params, reference: Params) -> Telescope:
    """Sum what moves a descent towards or away from a reference.

    For gradient descent with the step size η, any risk and any reference W̄, expanding the square gives ::

        ‖W_T − W̄‖² − ‖W_0 − W̄‖² = −2η Σ_{t<T} ⟨∇R(W_t), W_t − W̄⟩ + η² Σ_{t<T} ‖∇R(W_t)‖²

    Gradients are computed again at the recorded points, so that the path may come from anywhere. The function is pure
    JAX; mapped over references it computes each gradient once.

    Args:
        risk: from parameters to a number.
        points: W_0, …, W_T: parameters with a leading axis of T + 1, as ``descend(…, record=1)`` observes them.
        reference: W̄, parameters without that axis.

    Raises:
        UserError: fewer than two points; a reference of another shape than a point.

    Source: Telgarsky's talk, the last ten minutes.

    >>> risk = lambda w: 0.5 * w @ w
    >>> path = jnp.array([[4.0, 0.0], [2.0, 0.0], [1.0, 0.0]])  # η = ½
    >>> sums = telescope(risk, path, jnp.array([1.0, 1.0]))
    >>> (sums.left + 2 * 0.5 * sums.inner - 0.25 * sums.squares).tolist()
    [0.0, 0.0]
    """
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(points)]
    wanted = [shape[1:] for shape in shapes]
    given = [np.shape(leaf) for leaf in jax.tree.leaves(reference)]
    if wanted != given:
        raise UserError(
            f"a reference must have the shapes of one point, {wanted}, got {given}; points have an axis of steps in "
            "front"
        )
    if not shapes or not shapes[0] or shapes[0][0] < 2:
        raise UserError(
            "a telescope needs at least the points before and after one step; got fewer"
        )

    def terms(point: Params) -> tuple[Array, Array, Array]:
        slope = ravel_pytree(jax.grad(risk)(point))[0]
        away = ravel_pytree(point)[0] - ravel_pytree(reference)[0]
        return away @ away, slope @ away, slope @ slope  # the three terms of the expanded square

    distance, inner, squares = jax.lax.map(terms, points)
    # sums over s < t: the last gradient does not enter
    return Telescope(distance[1:] - distance[0], jnp.cumsum(inner[:-1]), jnp.cumsum(squares[:-1]))
