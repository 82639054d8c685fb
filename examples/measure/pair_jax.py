"""A function of JAX and a tree of arrays, as flax gives them: ``(module.apply, variables)``.

Measure it with ``steepest measure examples/measure/pair_jax.py:build``. The optimizer is the pair of a transformation
of optax and its state.
"""

import jax
import jax.numpy as jnp
import optax
from jax import Array
from sklearn.datasets import load_wine

HELD_OUT = 60


def apply(variables, x: Array) -> Array:
    """Scores ``(b, 3)`` of the wines ``(b, 13)``, by two dense layers."""
    first = variables["params"]["Dense_0"]
    last = variables["params"]["Dense_1"]
    hidden = jax.nn.gelu(x @ first["kernel"] + first["bias"], approximate=False)
    return hidden @ last["kernel"] + last["bias"]


def start(key: Array, sizes: tuple[int, ...] = (13, 32, 3)):
    """Kernels ``(in, out)`` of variance 1/in and biases of zero."""
    keys = jax.random.split(key, len(sizes) - 1)
    layers = {
        f"Dense_{place}": {
            "kernel": jax.random.normal(keys[place], (sizes[place], sizes[place + 1]))
            / sizes[place] ** 0.5,
            "bias": jnp.zeros(sizes[place + 1]),
        }
        for place in range(len(sizes) - 1)
    }
    return {"params": layers}


def cross_entropy(outputs: Array, targets: Array) -> Array:
    """Mean over the wines."""
    return optax.softmax_cross_entropy_with_integer_labels(outputs, targets).mean()


def build(lr: float = 1e-3, steps: int = 100):
    """The pair trained by Adam on all examples, its loss, these, the optimizer and its state, and held-out examples."""
    x, y = load_wine(return_X_y=True)
    order = jax.random.permutation(jax.random.key(1), len(y))
    x = jnp.asarray(x)[order]
    x = (x - x.mean(0)) / x.std(0)
    y = jnp.asarray(y)[order]
    training = (x[HELD_OUT:], y[HELD_OUT:])
    optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=lr)
    variables = start(jax.random.key(0))
    state = optimizer.init(variables)
    risk = lambda variables: cross_entropy(apply(variables, training[0]), training[1])
    slope = jax.jit(jax.grad(risk))
    for _ in range(steps):
        updates, state = optimizer.update(slope(variables), state)
        variables = optax.apply_updates(variables, updates)
    return (
        (apply, variables),
        cross_entropy,
        training,
        (optimizer, state),
        (x[:HELD_OUT], y[:HELD_OUT]),
    )
