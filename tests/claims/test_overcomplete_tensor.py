"""Sums over pairs of overcomplete-tensor against sums one by one, and its threshold against the second derivative."""

import jax
import numpy as np
import pytest

from steepest.claims.descent.overcomplete_tensor.claim import (
    OvercompleteTensor,
    _units,
    sum_over_pairs,
)
from steepest.claims.descent.overcomplete_tensor.experiment import merging_overlap
from steepest.landscapes import pair_angle

RNG = np.random.default_rng(0)


def pair_squares(components):
    return sum_over_pairs(components, lambda c: np.tan(pair_angle(c)) ** 2)


def test_sums_over_pairs_are_sums_one_by_one():
    components = _units(RNG, 30, 64)
    sums = pair_squares(components)
    for k in (0, 7, 29):
        others = np.delete(components, k, 0)
        angles = pair_angle(np.abs(others @ components[k]))
        assert sums[k] == pytest.approx((np.tan(angles) ** 2).sum(), rel=0.02)


def test_sums_tend_to_first_order_in_high_dimension():
    """E c⁶ = 15/(d(d+2)(d+4)); what is above it is of order 1/d, and large: a half at d = 128."""
    for d, excess in ((128, 0.55), (1024, 0.06)):
        sums = pair_squares(_units(RNG, 800, d))
        ratio = sums.mean() / (799 * 15 / (d * (d + 2) * (d + 4)))
        assert 1 < ratio < 1 + 2 * excess


def test_two_components_merge_at_a_half():
    assert merging_overlap() == pytest.approx(0.5, abs=0.002)


def test_units_are_units():
    np.testing.assert_allclose(np.linalg.norm(_units(RNG, 3, 5, 7), axis=-1), 1, rtol=1e-6)


SMALL = OvercompleteTensor(
    d=24, counts=(18, 36, 54), seeds=3, starts=4, steps=20, small=(8,), failing=12
)


@pytest.mark.parametrize(("farthest", "verdict"), [(0.95, "holds"), (0.9, "fails")])
def test_one_end_that_is_not_near_refutes(farthest, verdict):
    """Thirty-five ends are near a component; the last of all decides."""
    overlap = np.full((3, 3, 4), 0.98)
    overlap[2, 1, 3] = farthest
    setting = SMALL.setting(jax.random.key(0))
    observed = SMALL.observe(setting, jax.random.key(1)).replace(overlap=("n seed start", overlap))
    checks = {check.id: check for check in SMALL.checks(SMALL.predict(setting), observed)}
    assert checks["near"].verdict.value == verdict


def test_theory_knows_no_ends_and_the_experiment_no_theory():
    claim = SMALL
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    assert predicted["squares"].shape == (3, 3, 54)
    assert (predicted["squares"][1, :, 36:] == 0).all()
    observed = claim.observe(setting, jax.random.key(1))
    assert observed["overlap"].shape == (3, 3, 4)
    assert observed["shown"].shape == (2, 20)
    assert (observed["value"][0] > 1).all()
