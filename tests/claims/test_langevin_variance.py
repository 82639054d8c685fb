"""langevin-variance: variances on the way by hand, and what its fields refuse."""

import jax
import numpy as np
import pytest

from steepest.claims.noise.langevin_variance.claim import LangevinVariance
from steepest.core.errors import UserError


def test_variances_on_the_way_to_the_stationary_law():
    claim = LangevinVariance(burn=2)
    fraction = np.array([[0.5]])
    by_hand = 1.0
    readings = []
    for step in range(1, 5):
        by_hand = by_hand * 0.5**2 + 2 * 0.5 / 1 * 1.0 / 1  # in units of 1/βλ: (1 − ελ)² v + 2ελ
        if step > 2:
            readings.append(by_hand)
    assert claim.over_time(fraction, 1 / (1 - fraction / 2))[0, 0] == pytest.approx(
        np.mean(readings)
    )


def test_a_step_beyond_the_stable_one_is_out_of_scope():
    claim = LangevinVariance(multiples=(2.5,), walkers=32)
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))


def test_walkers_that_cannot_be_divided_are_refused():
    with pytest.raises(UserError, match="walkers: expected a multiple of 32"):
        LangevinVariance(walkers=100)
