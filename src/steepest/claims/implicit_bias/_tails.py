"""Losses of margins with an exponential tail and with a power's: the worlds in which margins do and do not decide."""

import jax
import jax.numpy as jnp


def log_loss(margins: jax.Array, power: bool | jax.Array) -> jax.Array:
    """Return log Σ e^(−u), or log Σ 1/(1 + u) where ``power`` is true; margins u ``(examples,)``."""
    above = jnp.maximum(margins, -0.999)  # where it is not used, u may be less than −1
    return jax.nn.logsumexp(jnp.where(power, -jnp.log1p(above), -margins))


def multipliers(margins: jax.Array, power: bool | jax.Array) -> jax.Array:
    """Return the loss's own weights of the examples, its slopes over their sum, ``(examples,)``."""
    slopes = -jax.grad(log_loss)(margins, power)
    return slopes / slopes.sum()


def off_margin(margins: jax.Array, weights: jax.Array) -> jax.Array:
    """Return Σ q (u/min u − 1), the weight on examples off the margin: it is zero where complementarity holds."""
    return weights @ (margins / margins.min() - 1)
