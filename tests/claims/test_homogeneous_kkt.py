"""The smoothed margin and its drops, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.implicit_bias.homogeneous_kkt import HomogeneousKkt, _drop, _smoothed
from steepest.core.arrays import Observation


def test_drops_count_from_the_moment_that_the_sum_is_below_one():
    observed = Observation(
        log_sum=("power seed reading", [[[1.0, -1.0, -8.0, -16.0]]]),
        size=("power seed reading", [[[1.0, 1.0, 2.0, 4.0]]]),
    )
    # margins at degree 2: -1 (not counted), 1, 2, 1: half is lost at the end; at degree 1: 1, 4, 4
    assert _smoothed(observed, 2)[0, 0].tolist() == [-1.0, 1.0, 2.0, 1.0]
    assert _drop(observed, 2)[0, 0] == pytest.approx(0.5)
    assert _drop(observed, 1)[0, 0] == 0


def test_what_is_recorded_belongs_together():
    """Norms, margins and gradients of the recorded weights; Euler's identity ties the last two."""
    claim = HomogeneousKkt(each=4, width=3, seeds=3)
    setting = claim.setting(jax.random.key(0))
    start = jax.tree.map(lambda leaf: leaf[0], setting.starts)
    marks = np.arange(12)
    for power in claim.powers:
        u, size, log_risk, late, slopes = claim.follow(start, power, setting.x, setting.y, marks)
        np.testing.assert_allclose(log_risk, jax.nn.logsumexp(-u, axis=1) - jnp.log(8), rtol=1e-12)
        np.testing.assert_allclose(size[10], jnp.linalg.norm(late[0]), rtol=1e-12)
        np.testing.assert_allclose(slopes[0] @ late[0], 2 * u[10], rtol=1e-9)
        assert np.all(np.diff(log_risk) < 0)


def test_an_offset_is_out_of_range():
    claim = HomogeneousKkt(offset=1.0)
    (hypothesis,) = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert not hypothesis.holds
