"""What the printed remedy does at the start: velocities by forward derivatives, and its kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.signals._trained_networks import PRINTED
from steepest.claims.signals._trained_widths import SLOPES
from steepest.core.intervals import fit_exponent
from steepest.kernels import empirical_ntk
from steepest.kit import compiled
from steepest.nn.networks import mlp

INPUTS = jax.random.normal(jax.random.key(1), (6, 5))
LABELS = jnp.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
WIDTHS = (32, 128, 512)


def test_the_printed_remedy_moves_features_less_than_the_ntk():
    """Velocities at the start, by forward derivatives along one step of gradient descent of size 1/n."""
    sizes = np.array([velocities(width) for width in WIDTHS])
    measured = [fit_exponent(WIDTHS, column)[0] for column in sizes.T]
    # 48 networks at each width; at 32 neurons the next order is some per cent
    np.testing.assert_allclose(measured, SLOPES["printed"][1:3], atol=0.15)


def test_the_kernel_of_the_printed_remedy_grows_like_the_width():
    """Its last layer's part is Σ σ², which is n times a number, and the others stay of order one."""
    net = mlp((5, 256, 256, 1), "tanh", parameterized=PRINTED, bias=False)
    params = net.init(jax.random.key(2))
    kernel = empirical_ntk(net, params, INPUTS)
    last = net.features(params, INPUTS)
    assert float(jnp.trace(kernel) / jnp.trace(last @ last.T)) == pytest.approx(1, abs=0.05)


def velocities(width: int) -> np.ndarray:
    """Return root mean squares of dz/dt in both hidden layers, over neurons, examples and networks."""
    net = mlp((5, width, width, 1), "tanh", parameterized=PRINTED, bias=False)

    def velocity(key):
        params = net.init(key)
        slope = jax.grad(lambda p: 0.5 * jnp.mean((net.apply(p, INPUTS) - LABELS) ** 2))(params)
        step = jax.tree.map(lambda leaf: -leaf / width, slope)
        hidden = lambda p: net.preactivations(p, INPUTS)[:2]
        return [jnp.mean(move**2) for move in jax.jvp(hidden, (params,), (step,))[1]]

    squares = compiled(jax.vmap(velocity))(jax.random.split(jax.random.key(3), 48))
    return np.sqrt(np.mean(squares, 1))
