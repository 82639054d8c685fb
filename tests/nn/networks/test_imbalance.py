"""Imbalances of neighbouring layers: conserved by the flow of any loss of the product, by differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.networks import deep_linear, imbalance


def test_it_does_not_move_to_first_order():
    """Along −∇R of a loss of the product, at any point; along a random direction it does."""
    net = deep_linear((3, 4, 5, 2))
    rng = np.random.default_rng(0)
    draw = lambda: tuple({"w": rng.normal(size=shape)} for shape in ((4, 3), (5, 4), (2, 5)))
    x = rng.normal(size=(6, 3))
    risk = lambda p: jnp.sum(jnp.tanh(net.apply(p, x)) ** 3)

    @jax.jit
    def speeds(params, noise):
        along = lambda direction: jax.jvp(imbalance, (params,), (direction,))[1]
        return along(jax.grad(risk)(params)), along(noise)

    downhill, anywhere = speeds(draw(), draw())
    assert [part.shape for part in downhill] == [(4, 4), (5, 5)]
    assert max(float(np.abs(part).max()) for part in downhill) < 1e-13
    assert min(float(np.abs(part).max()) for part in anywhere) > 0.1


def test_leading_axes_and_numpy():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(7, 4, 3)), rng.normal(size=(7, 2, 4))
    (together,) = imbalance(({"w": first}, {"w": second}))
    (alone,) = imbalance(({"w": first[3]}, {"w": second[3]}))
    assert isinstance(together, np.ndarray)
    assert np.array_equal(together[3], alone)
    assert np.allclose(alone, second[3].T @ second[3] - first[3] @ first[3].T)


def test_biases_are_refused():
    params = ({"w": np.eye(2), "b": np.zeros(2)}, {"w": np.eye(2)})
    with pytest.raises(UserError, match="no bias"):
        imbalance(params)
