"""Alignment of neurons with directions that belong to signs of their output weights."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from steepest.core.errors import UserError


class SignedAlignment(NamedTuple):
    """How the neurons of a two-layer network are aligned with signed directions.

    Attributes:
        cosines: of each neuron with the nearest direction of its sign, shape ``(*batch, h)``; 0 for dead neurons.
        nearest: the number of that direction, shape ``(*batch, h)``.
        weights: ``|v_j| ‖w_j‖``, summing to one, shape ``(*batch, h)``.
        cosine: mean cosine with these weights, shape ``(*batch,)``.
        shares: sum of the weights of the neurons nearest to each direction, shape ``(*batch, k)``.
    """

    cosines: Float[Array, "*batch h"]
    nearest: Int[Array, "*batch h"]
    weights: Float[Array, "*batch h"]
    cosine: Float[Array, "*batch"]
    shares: Float[Array, "*batch k"]


def signed_alignment(
    w: Float[Any, "*batch h d"],
    v: Float[Any, "*batch h"],
    directions: Float[Any, "k d"],
    signs: Float[Any, " k"],
) -> SignedAlignment:
    """Compare the neurons ``v_j relu(⟨w_j, ·⟩)`` with directions that are wanted with a sign of the output weight.

    A neuron is compared with the directions of its own sign only. Means are weighted by ``|v_j| ‖w_j‖``, what the
    neuron can add to the output: neurons that died or never moved keep their first direction and no weight.

    Args:
        w: input weights.
        v: output weights.
        directions: not zero; their lengths do not matter.
        signs: ±1, one for each direction, both present.

    Raises:
        UserError: shapes that do not match, a direction that is zero, or signs that are not ±1, both.

    >>> two = signed_alignment([[3.0, 0.1], [0.0, 1.0]], [3.0, -1.0], [[1.0, 0.0], [0.0, 1.0]], [1, -1])
    >>> two.nearest.tolist(), two.shares.round(3).tolist(), round(float(two.cosine), 4)
    ([0, 1], [0.9, 0.1], 0.9995)
    """
    directions = np.asarray(directions, float)
    signs = np.asarray(signs, float)
    w = jnp.asarray(w)
    v = jnp.asarray(v)
    if v.shape != w.shape[:-1] or directions.shape != (len(signs), w.shape[-1]):
        raise UserError(
            "signed alignment: expected w (*, h, d), v (*, h), directions (k, d) and signs (k,), got shapes "
            f"{w.shape}, {v.shape}, {directions.shape} and {signs.shape}"
        )
    if set(signs.tolist()) != {-1.0, 1.0}:
        raise UserError(
            f"signed alignment: expected signs -1 and +1, both present, got {signs.tolist()}"
        )
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise UserError("signed alignment: expected directions that are not zero; drop those")
    sizes = jnp.linalg.norm(w, axis=-1)
    products = w @ (directions / lengths).T / jnp.where(sizes > 0, sizes, 1.0)[..., None]
    own = jnp.where(v[..., None] * signs > 0, products, -jnp.inf)
    nearest = jnp.argmax(own, axis=-1)
    weights = jnp.abs(v) * sizes
    total = weights.sum(-1, keepdims=True)
    weights = weights / jnp.where(total > 0, total, 1.0)
    cosines = jnp.where(weights > 0, own.max(-1), 0.0)
    is_nearest = nearest[..., None] == jnp.arange(len(signs))
    shares = (weights[..., None] * is_nearest).sum(-2)
    return SignedAlignment(cosines, nearest, weights, (weights * cosines).sum(-1), shares)
