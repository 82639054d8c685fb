"""The Hessian of a risk as a symmetric operator."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from steepest.core.given import call, number
from steepest.core.signatures import checked
from steepest.krylov import Operator
from steepest.nn.types import Params, Risk


@checked
def hessian_product(risk: Risk, params: Params) -> Operator:
    """Return v ↦ H v with the Hessian of a risk, forward over reverse, on flat vectors of shape ``(p,)``."""
    flat, unflatten = ravel_pytree(params)
    gradient = jax.grad(lambda w: number("risk", call("risk", risk, unflatten(w))))
    return lambda v: jax.jvp(gradient, (flat,), (jnp.asarray(v, flat.dtype),))[1]
