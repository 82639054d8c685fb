"""The worst bumps in two ways, starts of walkers, and the speed far from equilibrium."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from steepest.claims.noise._rippled_bowl import (
    FARTHEST,
    PROPOSAL,
    REACH,
    Bumps,
    arrivals,
    bumpy,
    far_starts,
    ripples,
)
from steepest.claims.noise.annealing_near_convex.claim import AnnealingNearConvex
from steepest.claims.noise.annealing_near_convex.theory import (
    drift,
    steps_over_dimension,
    worst_mean,
)


@pytest.mark.parametrize("dimension, ratio", [(1, 0.5), (2, 1.0), (5, 2.0)])
def test_the_worst_mean_is_the_best_threshold(dimension, ratio):
    """By quadrature over a scan of thresholds, and against random weights."""
    density = lambda r: r ** (dimension - 1) * np.exp(-(r**2) / 2)
    radius = np.linspace(0, 12, 20_001)
    mass = density(radius)
    f = radius**2 / 2
    means = []
    for threshold in np.linspace(0, 20, 2001):
        weight = mass * np.exp(ratio * np.sign(f - threshold))
        means.append((weight * f).sum() / weight.sum())
    worst = worst_mean(dimension, ratio) * dimension / 2
    assert max(means) == pytest.approx(worst, rel=2e-3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        knots = rng.uniform(-ratio, ratio, 12)
        weight = mass * np.exp(np.interp(f, np.linspace(0, 10, 12), knots))
        assert (weight * f).sum() / weight.sum() < worst
    assert worst < np.exp(2 * ratio) * dimension / 2


@pytest.mark.parametrize("T", [0.5, 0.125])
def test_ripples_cost_nothing(T):
    """By quadrature over one coordinate, which is all of it, as F is a sum."""
    amplitude, frequency = ripples(4, 0.5)
    weight = lambda x: np.exp(-(x**2 / 2 + amplitude * np.cos(frequency * x)) / T)
    mass = quad(weight, 0, 8, limit=4000)[0]
    height = quad(lambda x: x**2 / 2 * weight(x), 0, 8, limit=4000)[0] / mass
    assert height == pytest.approx(T / 2, rel=1e-6)


def test_bumpy_functions_are_within_delta():
    x = np.random.default_rng(0).normal(size=(200, 5))
    x[:, 3:] = 0
    d = 3
    f = (x**2).sum(1) / 2
    amplitude, frequency = ripples(d, 0.5)
    rippled = Bumps(d, amplitude, frequency, 0.0, 0.0, 0.0)
    worst = Bumps(d, 0.0, 0.0, 0.5, 1.0, 0.0)
    F = jax.vmap(lambda x: jnp.stack([bumpy(rippled, x), bumpy(worst, x)]))(x)
    expected = f + amplitude * np.cos(frequency * x[:, :3]).sum(1)
    assert np.allclose(F[:, 0], expected)
    assert np.allclose(F[:, 1] - f, 0.5 * np.sign(1.0 - f))
    assert np.abs(np.asarray(F) - f[:, None]).max() <= 0.5 + 1e-12


def test_starts_are_of_one_height_and_where_ripples_hold():
    starts = far_starts(np.random.default_rng(1), 2000, 16)
    assert np.abs(starts).max() <= FARTHEST
    assert (starts**2).mean(1) == pytest.approx(np.full(2000, REACH**2 / 3))


@pytest.mark.parametrize("height", [0.5, 1.0, 3.0, 40.0])
def test_the_drift_by_quadrature(height):
    mean = -(PROPOSAL**2) / 2
    width = PROPOSAL * height**0.5
    normal = lambda z: np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    moved = lambda z: (mean + width * z) * min(1.0, np.exp(mean + width * z)) * normal(z)
    expected = -2 * quad(moved, -12, 12, points=[-mean / width])[0]
    assert drift(height) == pytest.approx(expected, abs=1e-9)


def test_steps_by_integrating_thedrift():
    path = solve_ivp(lambda t, v: [drift(v[0])], (0, steps_over_dimension(20.0)), [20.0], rtol=1e-9)
    assert path.y[0, -1] == pytest.approx(3.0, rel=1e-5)


def test_arrivals_are_interpolated():
    marks = np.array([0, 1, 2, 4])
    course = np.broadcast_to([8.0, 4.0, 3.5, 2.5], (2, 10, 4))
    assert np.allclose(arrivals(course, marks), 3.0)


def test_a_needle_is_out_of_range():
    for needle, holds in ((50.0, False), (0.0, True)):
        claim = AnnealingNearConvex(dimensions=(2, 3, 4), walkers=3, needle=needle)
        setting = claim.setting(jax.random.key(0))
        held = [hypothesis.holds for hypothesis in claim.hypotheses(setting)]
        assert held == [True, holds, True, True]


def test_large_bumps_are_out_of_range():
    for delta in (4.0, 20.0):
        claim = AnnealingNearConvex(dimensions=(2, 3, 4), walkers=3, delta=delta)
        held = [
            hypothesis.holds for hypothesis in claim.hypotheses(claim.setting(jax.random.key(0)))
        ]
        assert not held[2]
    assert not held[3]
