"""Points of an ellipsoid, and codes of an ellipse by one number."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend

HIDDEN = 16  # units of each hidden layer of an autoencoder
CELLS = 256  # of the discontinuous code
ANGLES = 64  # points of the boundary that it is trained on
FINE = 2048  # points of the boundary on which it is judged


def shell(axes: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw points of the surface of an ellipsoid ``(size, d)``, as many in each section of the longest axes, and 0."""
    normal = rng.standard_normal((size, len(axes)))
    section = rng.integers(1, len(axes) + 1, size)
    # zero beyond the section: over its length a normal vector is uniform on the sphere there
    normal *= np.arange(len(axes)) < section[:, None]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.concatenate([np.zeros((1, len(axes))), axes * normal])


def boundary(short: float, angles: int) -> np.ndarray:
    """Return points of the ellipse with the axes 1 and ``short``, shape ``(angles, 2)``."""
    turn = 2 * np.pi * np.arange(angles) / angles
    return np.stack([np.cos(turn), short * np.sin(turn)], axis=1)


def quantized(short: float) -> np.ndarray:
    """Return the distances of the boundary's points from the nearest of some of them, shape ``(angles,)``."""
    many = boundary(short, FINE)
    cells = many[:: FINE // CELLS]
    return np.linalg.norm(many[:, None] - cells, axis=-1).min(1)


def autoencoders(key: kit.Key, short: float, networks: int, steps: int, lr: float) -> np.ndarray:
    """Train networks R² → R → R² on the boundary of an ellipse: errors there, ``(powers, networks, angles)``.

    The loss is the mean of error², or of error⁸, which is nearer to the largest error.
    """
    widths = (2, HIDDEN, HIDDEN, 1, HIDDEN, HIDDEN, 2)
    sizes = [(out, inp + 1) for inp, out in itertools.pairwise(widths)]
    ends = np.cumsum([out * inp for out, inp in sizes])
    # the code is linear, as the output is
    linear = (2, 5)

    def reconstruct(params: list[jax.Array], x: jax.Array) -> jax.Array:
        for place, matrix in enumerate(params):
            x = x @ matrix[:, :-1].T + matrix[:, -1]
            x = x if place in linear else jnp.tanh(x)
        return x

    def one(lane: tuple[jax.Array, jax.Array], few: jax.Array, many: jax.Array) -> jax.Array:
        key, power = lane
        drawn = jnp.split(jax.random.normal(key, (int(ends[-1]),)), ends[:-1])
        start = [
            numbers.reshape(size) / np.sqrt(size[1])
            for numbers, size in zip(drawn, sizes, strict=True)
        ]

        def risk(params: list[jax.Array]) -> jax.Array:
            squares = ((reconstruct(params, few) - few) ** 2).sum(1)
            return jnp.where(power > 2, squares**4, squares).mean()

        path = descend(risk, start, optax.adam(lr), steps, record=steps)
        return jnp.linalg.norm(reconstruct(path.params, many) - many, axis=1)

    def run(key: jax.Array, few: jax.Array, many: jax.Array) -> jax.Array:
        lanes = (jax.random.split(key, 2 * networks), jnp.repeat(jnp.array([2, 8]), networks))
        return jax.vmap(lambda key, power: one((key, power), few, many))(*lanes)

    errors = kit.compiled(run)(key, boundary(short, ANGLES), boundary(short, FINE))
    return np.asarray(errors).reshape(2, networks, FINE)
