"""A plain network of equinox on the digits of scikit-learn, with cross-entropy, trained by optax.

Measure it with ``steepest measure examples/measure/mlp_equinox.py:build``. What is measured is a pair: a function of
``(params, x)`` for many images, and the arrays of the module.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from sklearn.datasets import load_digits


def mlp(width: int = 64, seed: int = 0) -> eqx.nn.MLP:
    """Two hidden layers of ReLU, from the 64 pixels of one image to ten classes."""
    return eqx.nn.MLP(64, 10, width, depth=2, activation=jax.nn.relu, key=jax.random.key(seed))


def pair(model: eqx.nn.MLP):
    """The module as ``(apply, params)``: everything that is no array stays in ``apply``."""
    params, static = eqx.partition(model, eqx.is_inexact_array)

    def apply(params, x: Array) -> Array:
        return jax.vmap(eqx.combine(params, static))(x)

    return apply, params


def cross_entropy(outputs: Array, targets: Array) -> Array:
    """Mean over the images."""
    return optax.softmax_cross_entropy_with_integer_labels(outputs, targets).mean()


def data(count: int = 1797) -> tuple[Array, Array]:
    """Images ``(count, 64)`` with pixels between 0 and 1, and the digits ``(count,)`` that they show."""
    x, y = load_digits(return_X_y=True)
    return jnp.asarray(x[:count] / 16), jnp.asarray(y[:count])


def train(apply, params, x: Array, y: Array, steps: int = 150):
    """Adam on all images at once; the trained parameters."""
    optimizer = optax.adam(1e-2)

    @jax.jit
    def step(params, state):
        slope = jax.grad(lambda params: cross_entropy(apply(params, x), y))(params)
        updates, state = optimizer.update(slope, state)
        return optax.apply_updates(params, updates), state

    state = optimizer.init(params)
    for _ in range(steps):
        params, state = step(params, state)
    return params


def build():
    """The trained model, its loss, and the data as a pair of arrays."""
    apply, params = pair(mlp())
    x, y = data()
    return (apply, train(apply, params, x, y)), cross_entropy, (x, y)
