"""What walkers ask of their starts and of the function that they walk on."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.errors import UserError


def floats(what: str, name: str, values: Any) -> Array:
    """Return a place or a velocity as an array of floats; refuse whole numbers, in which no walker can move."""
    array = jnp.asarray(values)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise UserError(
            f"{what}: expected {name} of floats, got {array.dtype}; try jnp.asarray({name}, float)"
        )
    return array


def scalar(what: str, f: Callable[[Array], Array], x: Array) -> None:
    """Refuse a function whose value at a place is not one number."""
    shape = jnp.shape(jax.eval_shape(f, x))
    if shape:
        raise UserError(
            f"{what}: expected a function f with a scalar value, got one of shape {shape} at a place of shape "
            f"{x.shape}; sum over its coordinates, or map over walkers with jax.vmap"
        )
