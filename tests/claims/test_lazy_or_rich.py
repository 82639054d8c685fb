"""The parts of lazy-or-rich: one draw for all parameterizations, and what the printed remedy does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.signals.lazy_or_rich.claim import SLOPES, LazyOrRich
from steepest.claims.signals.lazy_or_rich.experiment import PRINTED, draw, network, scaled
from steepest.core.intervals import fit_exponent
from steepest.kernels import empirical_ntk
from steepest.kit import compiled
from steepest.nn.networks import mlp

INPUTS = jax.random.normal(jax.random.key(1), (6, 5))
LABELS = jnp.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
WIDTHS = (32, 128, 512)


@pytest.mark.parametrize("name", ["ntk", "mean-field", "mup", "printed"])
def test_one_draw_starts_every_parameterization(name):
    """Scaled weights of variance one have the sizes of the initial networks of the parameterization."""
    net = network(5, name, 64)
    unit = draw(np.random.default_rng(0), net, 50)
    own = jax.vmap(net.init)(jax.random.split(jax.random.key(0), 50))
    for ours, layer in zip(scaled(net, unit), own, strict=True):
        assert ours["w"].shape == layer["w"].shape
        assert ours["w"].std() == pytest.approx(float(layer["w"].std()), rel=0.05)


def test_the_changed_world_is_of_another_law():
    """Mean-field and µP are the same networks with the same steps: neither stands in the place of the other."""
    names = ("ntk", "mean-field", "mup", "printed")
    others = LazyOrRich(parameterizations=names).others()
    assert [names[i] for i in others] == ["printed", "ntk", "ntk", "mup"]


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
