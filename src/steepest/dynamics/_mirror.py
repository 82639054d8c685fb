"""Mirror descent: gradient steps on dual weights."""

from typing import NamedTuple

import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from steepest.core.signatures import checked
from steepest.nn.types import Params
from steepest.programs._potentials import Potential


class MirrorState(NamedTuple):
    """The state of mirror descent.

    Attributes:
        dual: dual weights ``z = ∇ψ(w)``, shape ``(d,)``: exact where the weights themselves round to zero.
    """

    dual: Float[Array, " d"]


@checked
def mirror_descent(potential: Potential, lr: float | Array) -> optax.GradientTransformation:
    """Return mirror descent ``∇ψ(w⁺) = ∇ψ(w) - η ∇R(w)`` as an optax transformation for ``descend``.

    The weights of all leaves together are the vector ``w``. On least squares the dual weights move in the row space of
    the inputs only, whatever the steps: that is why the limit is the interpolant nearest to the start in Bregman's
    divergence, ``argmin D(w, w_0)`` subject to ``Xw = y``.

    Args:
        potential: ψ, such as ``entropy()``.
        lr: η, the step size, in dual units per gradient.

    Raises:
        UserError: from ``init``, for a start outside the domain or a potential that is not strictly convex there.

    Source: Nemirovski and Yudin 1983; Gunasekar, Lee, Soudry and Srebro 2018 (the limit).

    >>> import jax.numpy as jnp
    >>> from steepest.dynamics import descend
    >>> from steepest.programs import entropy
    >>> risk = lambda w: 0.5 * (w.sum() - 1.0) ** 2
    >>> path = descend(risk, jnp.array([0.1, 0.3]), mirror_descent(entropy(), 0.5), steps=200)
    >>> path.params.round(6).tolist()  # proportions are kept: z moves along (1, 1)
    [0.25, 0.75]
    """

    def init(params: Params) -> MirrorState:
        return MirrorState(potential.mirror(potential.check(ravel_pytree(params)[0])))

    def update(
        updates: optax.Updates, state: optax.OptState, params: Params | None = None
    ) -> tuple[optax.Updates, MirrorState]:
        assert isinstance(state, MirrorState)
        dual = state.dual - lr * ravel_pytree(updates)[0]  # ∇ψ(w⁺) = ∇ψ(w) − η∇R(w)
        w, shaped = ravel_pytree(params)
        # optax adds w⁺ − w; the dual is kept, as ∇ψ(w⁺) rounds
        return shaped(potential.unmirror(dual) - w), MirrorState(dual)

    return optax.GradientTransformation(init, update)
