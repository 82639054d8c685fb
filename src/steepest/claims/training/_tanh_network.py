"""A small tanh network on a Chebyshev polynomial: its risk on all data, and the curvature of that."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from steepest.nn.data import chebyshev
from steepest.nn.networks import mlp
from steepest.nn.types import Key, Network

POINTS = 20
DEGREE = 4  # of the Chebyshev polynomial that is learned
WIDTHS = (1, 16, 8, 1)
PRODUCTS = 80  # of the Hessian, for an eigenvalue


def network() -> Network:
    """Return the network that is trained."""
    return mlp(WIDTHS, "tanh", c_w=1.5, c_b=0.3)


def start(key: Key) -> Array:
    """Draw its weights, flat."""
    return ravel_pytree(network().init(key))[0]


def risk(weights: Array) -> Array:
    """Return half the mean square of what flat weights leave."""
    data = chebyshev(POINTS, DEGREE)
    net = network()
    unflatten = ravel_pytree(net.init(jax.random.key(0)))[1]
    outputs = net.apply(unflatten(weights), jnp.asarray(data.x))
    return 0.5 * ((outputs - jnp.asarray(data.y).ravel()) ** 2).mean()


def sharpness(key: Key, weights: Array, scale: Array) -> Array:
    """Return the largest eigenvalue of D^(−½) H D^(−½), D the scale, by powers, for weights ``(…, p)``."""

    def of_one(weights: Array, scale: Array, first: Array) -> Array:
        root = jnp.sqrt(scale)

        def product(vector: Array) -> Array:
            return jax.jvp(jax.grad(risk), (weights,), (vector / root,))[1] / root

        def step(vector: Array, _: None) -> tuple[Array, Array]:
            after = product(vector)
            # Rayleigh's quotient of the unit vector, whose error is the square of the vector's
            return after / jnp.linalg.norm(after), vector @ after

        _, quotients = jax.lax.scan(step, first / jnp.linalg.norm(first), None, PRODUCTS)
        return quotients[-1]

    flat = weights.reshape(-1, weights.shape[-1])
    starts = jax.random.normal(key, flat.shape)
    eigenvalues = jax.vmap(of_one)(flat, scale.reshape(flat.shape), starts)
    return eigenvalues.reshape(weights.shape[:-1])
