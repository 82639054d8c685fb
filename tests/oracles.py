"""Slow, dense and obviously right: what the fast algorithms are tested against."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree


def dense_hessian(risk, params):
    """All second derivatives, shape (p, p), by reverse over reverse; rows and columns in the order of ravel_pytree."""
    flat, unflatten = ravel_pytree(params)
    return np.asarray(jax.jit(jax.jacrev(jax.jacrev(lambda w: risk(unflatten(w)))))(flat))


def dense_ntk(apply, params, x):
    """⟨∇f(x_i), ∇f(x_j)⟩ from one gradient an example, shape (n, n)."""
    gradient = jax.jit(jax.grad(lambda p, one: jnp.squeeze(apply(p, one[None]))))
    rows = np.stack([ravel_pytree(gradient(params, one))[0] for one in jnp.asarray(x)])
    return np.array([[a @ b for b in rows] for a in rows])


def random_symmetric(seed, p, spectrum=None):
    """A random symmetric matrix, or one with this spectrum in a random basis."""
    square = np.random.default_rng(seed).normal(size=(p, p))
    if spectrum is None:
        return (square + square.T) / 2
    basis, _ = np.linalg.qr(square)
    matrix = basis @ np.diag(spectrum) @ basis.T
    return (matrix + matrix.T) / 2
