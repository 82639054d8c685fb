"""The two losses of classifiers that collapse, and the measure of their collapse."""

from typing import Any

import jax
import jax.numpy as jnp

from steepest import kit
from steepest.measurement.quantities import collapse
from steepest.nn.losses import cross_entropy, squared

LOSSES = ("cross-entropy", "squared")
LOOK = kit.compiled(collapse)  # hundreds of looks of one shape, in double precision


def loss_of(square: Any, outputs: jax.Array, targets: jax.Array) -> jax.Array:
    """Return the squared loss of every example or its cross-entropy: one compiled descent for both."""
    return jnp.where(square, squared(outputs, targets), cross_entropy(outputs, targets))
