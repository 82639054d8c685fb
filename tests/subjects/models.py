"""Small networks as readers build them."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest.nn.networks import mlp

X = np.random.default_rng(0).standard_normal((12, 4))
Y = np.sign(X[:, 0])


def half_square(outputs, targets):
    return 0.5 * ((outputs - targets) ** 2).mean()


def linear(seed=0):
    """x·w: its tangent kernel is the matrix of inner products, whatever w."""
    w = jax.random.normal(jax.random.key(seed), (4,))
    return (lambda w, x: x @ w, w), half_square, (X, Y)


def alone():
    """The same without a seed."""
    return linear(3)


def tanh(seed=0, width=1.0):
    """A network of ours in the NTK parameterization."""
    n = round(50 * width)
    net = mlp((4, n, n, 1), "tanh", parameterized="ntk", bias=False)
    return (net, net.init(jax.random.key(seed))), half_square, (X, Y)


def standard(seed=0, width=1.0):
    """The same with torch's kind of initial weights."""
    n = round(50 * width)
    net = mlp((4, n, n, 1), "tanh", bias=False)
    return (net, net.init(jax.random.key(seed))), half_square, (X, Y)


def relu(seed=0):
    """Three hidden layers of ReLU."""
    net = mlp((4, 40, 40, 40, 2), "relu")
    loss = lambda outputs, targets: jnp.mean((outputs - targets[:, None]) ** 2)
    return (net, net.init(jax.random.key(seed))), loss, (X, Y)
