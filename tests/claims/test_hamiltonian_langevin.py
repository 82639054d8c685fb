"""Matrices of the library's step, exact means, and what is searched."""

import jax
import numpy as np
import pytest

from steepest.claims.noise.hamiltonian_langevin.claim import HamiltonianLangevin
from steepest.claims.noise.hamiltonian_langevin.experiment import (
    Lane,
    Radii,
    arrival,
    exact_mean,
    in_data,
    without_momentum,
)
from steepest.noise import baoab_rate


@pytest.fixture(scope="module")
def radii():
    return Radii()


def test_the_librarys_step_has_the_radius_of_the_formula(radii):
    rng = np.random.default_rng(0)
    slow = rng.uniform(0.01, 1, 25)
    fast = slow * rng.uniform(1, 50, 25)
    step = rng.uniform(0.1, 2.2, 25) / np.sqrt(fast)
    friction = rng.uniform(0.05, 4, 25)
    expected = [
        baoab_rate([a, b], h, g) for a, b, h, g in zip(slow, fast, step, friction, strict=True)
    ]
    assert radii(slow, fast, step, friction) == pytest.approx(expected, abs=1e-7)


def test_the_search_ends_at_the_heavy_ball_and_at_two(radii):
    step, friction, radius = radii.best(0.05, 3.0)
    root = 60**0.5
    assert radius == pytest.approx((root - 1) / (root + 1), abs=1e-7)
    assert step == pytest.approx(2 / 3.05**0.5, rel=1e-3)
    assert friction == pytest.approx(-2 * np.log(radius) / step, rel=1e-3)
    assert radii.threshold(0.05, 3.0, 0.7) == pytest.approx(2 / 3**0.5, rel=1e-7)


def test_the_exact_mean_at_critical_friction_is_nearly_the_flow():
    # x(t) = (1 + t√λ) e^{−t√λ} at friction 2√λ
    t = 0.01 * np.arange(1001)
    assert exact_mean(1.0, 0.01, 2.0, 1000) == pytest.approx((1 + t) * np.exp(-t), abs=1e-4)


def test_arrival_is_interpolated_and_may_never_come():
    assert arrival(np.array([1.0, 0.5, 0.06, 0.04])) == pytest.approx(2.5)
    assert np.isnan(arrival(np.ones((2, 3)))).all()


def test_walkers_in_the_data_have_the_exact_mean():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    hessian = basis @ np.diag([0.2, 0.5, 1.0, 2.0]) @ basis.T
    lane = Lane(0.2, 2.0, 2**-0.5, 2 * 0.2**0.5)
    mean = in_data(hessian, lane, 3.0, 4, 50, 20, jax.random.key(0))
    # a hundredth of the start is one standard deviation, over the root of fifty walkers
    assert np.abs(mean - exact_mean(0.2, *lane[2:], 20)).max() < 4 * 0.01 / 50**0.5 * 1.2


def test_walkers_without_momentum_have_their_exact_law():
    lanes = Lane(np.array([0.2]), np.array([2.0]), None, None)
    walk = without_momentum(np.random.default_rng(0), lanes, 3.0, 4, 200, 400)
    steps = np.arange(401)
    assert np.abs(walk["mean"][0].mean(0) - 0.9**steps).max() < 4 * 0.015 / 800**0.5
    assert walk["place"].mean() == pytest.approx(2.0, rel=0.02)  # 1/(1 − ελ/2) at ελ = 1


def test_long_steps_are_out_of_range():
    claim = HamiltonianLangevin(stretch=2.1)
    assert not next(iter(claim.hypotheses(claim.setting(jax.random.key(0))))).holds


def test_small_condition_numbers_and_few_steps_are_out_of_range():
    held = lambda claim: [
        hypothesis.holds for hypothesis in claim.hypotheses(claim.setting(jax.random.key(0)))
    ]
    assert held(HamiltonianLangevin()) == [True, True, True]
    assert held(HamiltonianLangevin(kappas=(2.0, 4.0, 8.0))) == [True, False, False]
    assert held(HamiltonianLangevin(kappas=(10.0, 12.0, 14.0))) == [True, False, False]
    assert held(HamiltonianLangevin(stretch=1.9)) == [True, False, True]


@pytest.mark.parametrize("stretch", [0.1, 0.5, 1.0, 1.9])
def test_the_exact_mean_falls_within_the_steps_that_are_run(stretch):
    claim = HamiltonianLangevin(stretch=stretch)
    predicted = claim.predict(claim.setting(jax.random.key(0)))
    assert np.isfinite(predicted["steps"]).all()
    assert np.isfinite(predicted["data_steps"])


def test_without_momentum_the_best_step_is_off_by_the_condition_number():
    """The variance 2ε/β/(1 − (1 − ελ)²) along the fastest direction at ε = 2/(λ_max + λ_min), times βλ."""
    slow, fast = 0.2, 3.0
    step = 2 / (slow + fast)
    off = 2 * step * fast / (1 - (1 - step * fast) ** 2)
    assert off == pytest.approx(fast / slow + 1)
