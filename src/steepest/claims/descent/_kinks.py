"""Ways to write a ReLU, the slope that each gets at its kink, and a program that loses the slope of x there."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

Relu = Callable[[jax.Array], jax.Array]
PRIMITIVES: dict[str, tuple[Relu, float]] = {
    "jax.nn.relu(x)": (jax.nn.relu, 0.0),
    "jnp.where(x > 0, x, 0)": (lambda x: jnp.where(x > 0, x, 0), 0.0),
    "jnp.maximum(x, 0)": (lambda x: jnp.maximum(x, 0), 0.5),
    "jnp.where(x >= 0, x, 0)": (lambda x: jnp.where(x >= 0, x, 0), 1.0),
}
"""Ways to write a ReLU, and the slope s that each gives at a tie."""
SLOPES = np.array([slope for _, slope in PRIMITIVES.values()])


def identity(x: jax.Array, relu: Relu) -> jax.Array:
    """Return x, the long way."""
    return (relu(x) - relu(-x)).sum()
