"""The Hessian of a risk as a symmetric operator."""

import jax
from jax.flatten_util import ravel_pytree

from steepest.krylov import Operator
from steepest.nn.types import Params, Risk


def hessian_product(risk: Risk, params: Params) -> Operator:
    """Return v ↦ H v with the Hessian of a risk, forward over reverse, on flat vectors of shape ``(p,)``."""
    flat, unflatten = ravel_pytree(params)
    gradient = jax.grad(lambda w: risk(unflatten(w)))
    return lambda v: jax.jvp(gradient, (flat,), (v,))[1]
