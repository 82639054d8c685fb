"""Functions of parameters and inputs whose empirical kernels are taken, the same for both interpreters."""

import jax
import jax.numpy as jnp

from benchmarks.configurations import inputs as given

PARAMS = {"hidden": given.HIDDEN, "readout": given.READOUT}
MOVED = jax.tree_util.tree_map(lambda w: w + 0.1, PARAMS)


def network(params, x):
    return jnp.tanh(x @ params["hidden"]) @ params["readout"]


def scalar(params, x):
    return network(params, x)[:, :1]


def lines(filters, x):
    """Return outputs ``(n, positions, channels)`` of a filter over three positions."""
    reads = [x[:, shift : shift + 4] @ filters[shift] for shift in range(3)]
    return jnp.tanh(sum(reads))


def of_two(params, x):
    """Read a pair of arrays."""
    first, second = x
    return network(params, first) * second[:, :1]


def of_dict(params, x):
    return {"sum": network(params, x["a"] + x["b"]), "product": network(params, x["a"] * x["b"])}


def squared(f, y):
    """Return half the mean of squares over inputs and outputs."""
    return 0.5 * jnp.mean((f - y) ** 2)


def cross_entropy(f, y):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(f) * y, -1))
