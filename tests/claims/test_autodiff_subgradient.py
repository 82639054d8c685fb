"""The networks of autodiff-subgradient: their Clarke sets by enumeration of cells, against the box in the claim."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.descent.autodiff_subgradient.claim import AutodiffSubgradient, overshoot
from steepest.landscapes import clarke


def test_the_box_is_the_set_that_random_directions_find():
    claim = AutodiffSubgradient(nets=3)
    setting = claim.setting(jax.random.key(3))
    predicted = claim.predict(setting)
    for tie in range(3):

        def network(x, relu, tie=tie):
            before = jnp.asarray(setting.w[0]) @ x + jnp.asarray(setting.shift[0, tie])
            back = jnp.asarray(setting.back[0])
            return jnp.asarray(setting.outer[0]) @ relu(before) - relu(-back * before).sum()

        hull = clarke(network, setting.points[0, tie], jax.random.key(0))
        slopes = hull.vertices @ np.linalg.inv(setting.w[0])  # gradient = slopes @ w
        assert np.allclose(slopes.min(0), predicted["low"][0, tie])
        assert np.allclose(slopes.max(0), predicted["high"][0, tie])
        wrong = jax.grad(network)(jnp.asarray(setting.points[0, tie]), jax.nn.relu)
        assert hull.distance(wrong) > 0.1


def test_overshoot_is_zero_inside_and_relative_outside():
    claim = AutodiffSubgradient(nets=3)
    predicted = claim.predict(claim.setting(jax.random.key(3)))
    low = predicted["low"]
    high = predicted["high"]
    assert overshoot((low + high) / 2, low, high).max() == 0
    assert overshoot(1.5 * high, low, high) == pytest.approx(np.full(high.shape, 0.5))
