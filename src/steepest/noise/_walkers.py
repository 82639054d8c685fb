"""What walkers ask of their starts and of the function that they walk on."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
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


def scalar(what: str, f: Callable[[Array], Array], x: Array | jax.ShapeDtypeStruct) -> None:
    """Refuse a function whose value at a place is not one number."""
    shape = jnp.shape(jax.eval_shape(f, x))
    if shape:
        raise UserError(
            f"{what}: expected a function f with a scalar value, got one of shape {shape} at a place of shape "
            f"{x.shape}; sum over its coordinates, or map over walkers with jax.vmap"
        )


def positive(
    what: str, name: str, value: Any, *, zero: bool = False, endless: bool = False, tip: str = ""
) -> None:
    """Refuse numbers that are not above zero or not finite; ``zero`` and ``endless`` allow these two.

    Numbers that are traced pass: they were checked when they were made, or have no value yet.
    """
    if isinstance(value, Tracer):
        return
    numbers = np.asarray(value, float)
    allowed = numbers >= 0 if zero else numbers > 0
    if not (allowed & (np.isfinite(numbers) | endless)).all():
        least = "not negative" if zero else "above zero"
        raise UserError(f"{what}: expected {name} {least}, got {value}{tip}")
