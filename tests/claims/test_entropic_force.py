"""The slow law and its parts, against differences, iterated variances and long runs of a single valley."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.claims.noise.entropic_force.experiment import (
    balance_law,
    balance_walk,
    slow_law,
    spread,
    valley_walk,
    walls,
)


@pytest.mark.parametrize("tanh", [0.0, 1.0])
def test_slopes_of_the_walls(tanh):
    place = np.float64(0.7)
    step = 1e-6
    difference = (walls(place + step, tanh, np)[0] - walls(place - step, tanh, np)[0]) / (2 * step)
    assert np.allclose(walls(place, tanh, np)[1], difference, atol=1e-8)


def test_spread_is_the_fixed_point_of_the_variance():
    heights = np.array([3.0, 0.5])
    alphas = np.array([0.2, 0.1])
    variance = np.zeros(2)
    for _ in range(2000):
        variance = (1 - 2 * 0.05 * heights) ** 2 * variance + 0.05**2 * 2 * alphas * heights
    assert np.allclose(spread(heights, alphas, 0.05), variance)


def test_slow_law_is_a_flow_down_the_sum_of_walls():
    """To first order in γ the walker descends on tr H: dθ̂/dt = −½γα Σλ', here with Σλ' = 3θ̂ − 1."""
    alpha = 0.2
    lr = 1e-3
    marks = np.array([10000, 40000])
    flow = solve_ivp(
        lambda t, place: -(lr**2) * alpha / 2 * (3 * place - 1), (0, 40000), [2.5], t_eval=marks
    )
    ours = slow_law(2.5, 0.0, np.full(2, alpha), lr, marks)
    assert np.allclose(ours, flow.y[0], rtol=2e-3)


def test_equal_forces_where_tanh_walls_have_alphas_one_to_two():
    """Σ α_i λ_i' vanishes at α₂ = 2α₁, so that the slow law hardly moves; on either side the sign differs."""
    marks = np.array([1000])
    lr = 0.002
    moved = [slow_law(0.0, 1.0, np.array([0.1, two]), lr, marks)[0] for two in (0.15, 0.2, 0.25)]
    assert moved[0] < 0 < moved[2]
    assert abs(moved[1]) < 0.1 * abs(moved[0])


def test_walkers_follow_both_laws():
    marks = np.array([100, 400])
    balance = jax.vmap(lambda key: balance_walk(2.0, 0.5, 0.05, 0.5, marks, key))(
        jax.random.split(jax.random.key(0), 400)
    )
    assert np.allclose(balance.imbalance, balance.product, rtol=1e-11)
    assert np.allclose(balance.imbalance.mean(0), balance_law(3.75, 0.05, 0.5, marks), rtol=0.01)
    alphas = np.full(2, 0.2)
    held = jax.vmap(
        lambda key: valley_walk(1.0, 0.0, alphas, 1.0, 1.0, lr=0.05, burn=100, marks=marks, key=key)
    )(jax.random.split(jax.random.key(1), 400))
    assert np.all(held.place == 1.0)
    heights = walls(np.float64(1.0), 0.0, np)[0]
    assert np.allclose(held.spread.mean(0), spread(heights, np.full(2, 0.2), 0.05), rtol=0.05)


def test_a_wrong_label_that_stays_is_fitted_and_leaves_the_imbalance():
    """uv ends at 1 + σξ, and D does not change from then on."""
    marks = np.array([500, 2000])
    walk = balance_walk(2.0, 0.5, 0.05, 0.5, marks, jax.random.key(2), fresh=0)
    assert np.isclose(walk.imbalance[0], walk.imbalance[1], rtol=1e-9)
    assert walk.imbalance[1] > 3


def test_noise_of_one_covariance_leaves_steep_walls_lower():
    """⟨θ̄²⟩ = γα/(2λ(1 − γλ)) there."""
    marks = np.array([100, 400])
    alphas = np.full(2, 0.2)
    held = jax.vmap(
        lambda key: valley_walk(1.0, 0.0, alphas, 1.0, 0.0, lr=0.05, burn=100, marks=marks, key=key)
    )(jax.random.split(jax.random.key(3), 400))
    heights = walls(np.float64(1.0), 0.0, np)[0]
    assert np.allclose(held.spread.mean(0), spread(heights, alphas, 0.05) / heights, rtol=0.05)
