"""The diagonal network: linear functions with a nonlinear parameterization."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.types import Key, Network


class DiagonalParams(NamedTuple):
    """Weights of a diagonal network: ``plus`` and ``minus``, each of shape ``(d,)``."""

    plus: Float[Array, " d"]
    minus: Float[Array, " d"]


@checked
def diagonal(
    dimension: Count,
    scale: ArrayLike = 1.0,
    shape: Float[ArrayLike, " d"] | None = None,
    depth: int = 2,
) -> Network:
    """Build ``f(x) = ⟨β, x⟩`` with ``β = θ₊^L - θ₋^L`` entry by entry, started at ``θ± = α θ_0``.

    The start is balanced, so that ``β = 0`` there for every α, and nothing is random: ``init`` ignores its key.

    Args:
        dimension: ``d``, the number of inputs.
        scale: ``α > 0``, the scale of the start; a traced number is fine, so that scales can be swept by ``vmap``.
        shape: ``θ_0 > 0``, its shape, of shape ``(d,)``; ones if not given.
        depth: ``L ≥ 2``, the number of layers that share each weight.

    Raises:
        UserError: if the depth is below 2 or the shape does not have d entries.

    Source: ORF 543, lecture 11/9; Woodworth et al. 2020.

    >>> import jax
    >>> network = diagonal(3, scale=0.1)
    >>> params = network.init(jax.random.key(0))
    >>> diagonal_weights(params).tolist(), network.apply(params, jnp.ones((5, 3))).shape
    ([0.0, 0.0, 0.0], (5,))
    """
    if depth < 2:
        raise UserError(
            f"diagonal network: expected depth ≥ 2, got {depth}; depth 1 is linear regression"
        )
    profile = jnp.ones(dimension) if shape is None else jnp.asarray(shape, dtype=float)
    if profile.shape != (dimension,):
        raise UserError(
            f"diagonal network: expected a shape θ_0 with {dimension} entries, got {profile.shape}"
        )

    def init(key: Key) -> DiagonalParams:
        del key
        start = jnp.asarray(scale * profile)
        return DiagonalParams(plus=start, minus=start)

    def apply(params: DiagonalParams, x: Float[Array, "... d"]) -> Float[Array, "..."]:
        return x @ diagonal_weights(params, depth)

    return Network(init, apply, name=f"diagonal network of depth {depth}")


@checked
def diagonal_weights(params: DiagonalParams, depth: float = 2) -> Float[Array, " d"]:
    """Return the linear weights ``β = θ₊^L - θ₋^L`` that a diagonal network computes with.

    >>> diagonal_weights(DiagonalParams(plus=jnp.array([3.0]), minus=jnp.array([1.0]))).tolist()
    [8.0]
    """
    return params.plus**depth - params.minus**depth
