"""small-noise-deviation: exact chances and least actions against closed forms."""

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from steepest.claims.noise.small_noise_deviation.claim import SmallNoiseDeviation
from steepest.claims.noise.small_noise_deviation.experiment import (
    OVERSHOOT,
    _leave_at,
    euler_chance,
    exit_factor,
    leave_chance,
    parabola_chance,
    parabola_rate,
    well_chance,
    well_rate,
    well_slope,
)
from steepest.core.errors import UserError


def test_one_and_two_steps_by_quadrature():
    decay = lambda x, step: 0.8 * x
    once = 2 * norm.sf(2.0)
    assert leave_chance(decay, 0.5, 1.0, 1) == pytest.approx(once, rel=1e-12)
    out = lambda x: norm.sf((1 - 0.8 * x) / 0.5) + norm.cdf((-1 - 0.8 * x) / 0.5)
    twice = once + integrate.quad(lambda x: norm.pdf(x, scale=0.5) * out(x), -1, 1)[0]
    assert leave_chance(decay, 0.5, 1.0, 2) == pytest.approx(twice, rel=1e-9)


def test_brownian_motion_by_its_series():
    # P(sup |B| > δ) with variance 2T/β; a tube that seems wider by 0.5826 standard deviations of a step
    beta, scale = 6.0, 0.02
    wider = 1 + OVERSHOOT * np.sqrt(2 * scale) / beta
    k = np.arange(60)
    alive = 4 / np.pi * (-1.0) ** k / (2 * k + 1)
    alive = alive * np.exp(-((2 * k + 1) ** 2) * np.pi**2 * (2 / beta) / (8 * wider**2))
    found = parabola_chance(1e-9, 1.0, 1.0, beta, scale)
    assert found == pytest.approx(1 - alive.sum(), rel=2e-3)


def test_tiny_chances_are_between_those_at_the_end_and_a_sum_over_looks():
    beta = 80.0
    chance = parabola_chance(1.0, 1.0, 1.0, beta, 0.5)
    steps = 160
    times = np.arange(1, steps + 1) / steps
    ends = 2 * norm.sf(1 / np.sqrt((1 - np.exp(-2 * times)) / beta))
    assert ends[-1] < chance < ends.sum() < 1e-16


def test_the_walk_tends_to_the_exact_process():
    # Euler's variance of a step is off by order ε
    chances = [euler_chance(1.0, 1.0, 1.0, 6.0, step) for step in (0.02, 0.005)]
    exact = [parabola_chance(1.0, 1.0, 1.0, 6.0, 6 * step) for step in (0.02, 0.005)]
    errors = np.array(chances) / exact - 1
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize("curvature", [1e-9, 1.0])
def test_the_factor_of_looks_tends_to_that_of_looking_always(curvature):
    # the tube seems wider by 0.5826 standard deviations of a step
    scale = 1e-4
    ahead = curvature / -np.expm1(-2 * curvature * 0.7)
    wider = ahead * OVERSHOOT * np.sqrt(2 * scale)
    always = 2 / (1 - np.tanh(0.7 * curvature))
    factor = exit_factor(curvature, 1.0, 0.7, scale)
    assert factor == pytest.approx(always * np.exp(-wider), rel=2e-4)


def test_the_factor_of_looks_by_lindleys_recursion():
    # max S is max(0, max S + step) in law; E e^{θ max S} on a grid of its places
    curvature = 1.0
    delta = 1.2
    horizon = 0.5
    scale = 0.4
    ahead = curvature * delta / (1 - np.exp(-2 * curvature * horizon))
    fall = curvature * delta / np.tanh(curvature * horizon)
    nodes, weights = np.polynomial.legendre.leggauss(300)
    x = 12 * (nodes + 1)
    kernel = lambda y, x: norm.pdf(y - x, -fall * scale, np.sqrt(2 * scale))
    density = np.zeros(300)
    at_zero = 1.0
    stays = norm.cdf(-(x - fall * scale) / np.sqrt(2 * scale))
    for _ in range(300):
        moved = kernel(x[:, None], x) @ (12 * weights * density) + at_zero * kernel(x, 0.0)
        at_zero = (
            at_zero * norm.cdf(fall * scale / np.sqrt(2 * scale)) + (12 * weights * density) @ stays
        )
        density = moved
    factor = at_zero + (12 * weights * density) @ np.exp(ahead * x)
    assert exit_factor(curvature, delta, horizon, scale) == pytest.approx(factor, rel=1e-6)


def test_least_actions_of_a_small_tube_are_gaussian():
    least = well_rate(1.2, 0.02, 1.0)
    assert least.rate == pytest.approx(least.linearized, rel=0.05)
    assert least.rate < least.linearized  # inward the curvature is weaker
    assert least.latest == 1


def test_least_actions_of_long_times_are_barriers():
    # from the minimum: the difference of f, against the gradient
    assert _leave_at(1.0, 1.0, -0.5, 12.0)[0] == pytest.approx((0.5**2 - 1) ** 2 / 4, rel=1e-4)
    assert parabola_rate(2.0, 0.7, 50.0) == pytest.approx(0.49, rel=1e-12)


def test_the_cheapest_exit_is_at_the_best_time():
    # from 0.3 the tube is left while it is still near the saddle
    start, delta, horizon = 0.3, 0.3, 6.0
    least = well_rate(start, delta, horizon)
    assert least.rate == pytest.approx(0.0118, rel=2e-3)
    assert 0.1 < least.latest < 0.5
    # dS/dt = p (f'(x) − f'(x∞) − p) vanishes with p = (ẋ + f'(x))/2 at the exit
    time = np.linspace(0, least.latest * horizon, len(least.path))
    speed = np.gradient(least.path, time, edge_order=2)[-1]
    noiseless = integrate.solve_ivp(lambda t, x: -well_slope(x), (0, time[-1]), [start], rtol=1e-9)
    momentum = (speed + well_slope(least.path[-1])) / 2
    away = well_slope(least.path[-1]) - well_slope(noiseless.y[0, -1])
    assert momentum == pytest.approx(away, rel=5e-3)
    assert abs(least.path[-1] - noiseless.y[0, -1]) == pytest.approx(delta, rel=1e-4)


def test_exits_before_the_end_are_out_of_scope():
    claim = SmallNoiseDeviation(well_start=0.1, well_deltas=(0.5,), well_horizon=8.0)
    failed = [h.name for h in claim.hypotheses(None) if not h.holds]
    assert failed == ["share of the time at which the cheapest path leaves the well's tube"]
    assert all(h.holds for h in SmallNoiseDeviation().hypotheses(None))


def test_the_chance_in_the_well_is_that_of_a_parabola_in_a_small_tube():
    # at the minimum the curvature is 2; the linear term of the curvature pulls both sides apart to second order
    small = well_chance(1.0, 0.02, 1.0, 20000.0, 200.0)
    assert small == pytest.approx(euler_chance(2.0, 0.02, 1.0, 20000.0, 0.01), rel=0.05)


def test_linearized_slopes_have_gaussian_deviations():
    rates = [-np.log(well_chance(1.2, 1.0, 1.0, b, 0.4, gaussian=True)) / b for b in (64, 128)]
    assert 2 * rates[1] - rates[0] == pytest.approx(well_rate(1.2, 1.0, 1.0).linearized, rel=0.02)


def test_frequent_events_are_out_of_scope():
    claim = SmallNoiseDeviation(betas=(1.0, 2.0, 3.0))
    assert not all(h.holds for h in claim.hypotheses(None))


def test_fields_that_cannot_be_run_are_refused():
    with pytest.raises(UserError, match="walkers: expected a multiple of 16"):
        SmallNoiseDeviation(walkers=100)
    with pytest.raises(UserError, match="betas: expected at least 2 different"):
        SmallNoiseDeviation(betas=(16.0, 16.0, 32.0))
