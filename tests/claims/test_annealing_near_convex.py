"""The worst bumps in two ways, valleys of ripples, and the speed far from equilibrium."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.special import i0

from steepest.claims.noise.annealing_near_convex.claim import (
    PROPOSAL,
    AnnealingNearConvex,
    _arrivals,
    _drift,
    _steps_over_dimension,
)
from steepest.claims.noise.annealing_near_convex.experiment import (
    DEPTH,
    FARTHEST,
    NEEDLE,
    REACH,
    THIN,
    Bumps,
    bumpy,
    fall,
    far_starts,
    langevin_steps,
    ripples,
    valley,
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


def test_descent_ends_in_the_valley_of_its_start():
    start = np.linspace(-8, 8, 997)[:, None]
    end, slope = fall(start, 2, 0.5, 500)
    own, nearest = valley(start, 2, 0.5)
    assert slope < 1e-9
    assert np.abs(end - own).max() < 1e-10
    # by a grid: F has no maximum between start and end
    amplitude, frequency = ripples(2, 0.5)
    F = lambda x: x**2 / 2 + amplitude * np.cos(frequency * x)
    for a, b in zip(start[::40, 0], end[::40, 0], strict=True):
        assert np.all(np.diff(F(np.linspace(a, b, 200))) <= 1e-12)
    assert np.any(np.abs(nearest - own) > 0.01)


def test_starts_are_of_one_height_and_where_ripples_hold():
    starts = far_starts(np.random.default_rng(1), 2000, 16)
    assert np.abs(starts).max() <= FARTHEST
    assert (starts**2).mean(1) == pytest.approx(np.full(2000, REACH**2 / 3))


def test_descent_with_long_steps_leaps_over_ripples():
    start = np.random.default_rng(2).uniform(-8, 8, 200)
    period = 2 * np.pi / ripples(4, 0.5)[1]
    short = np.abs(fall(start, 4, 0.5, 300)[0] - start) / period
    long = np.abs(fall(start, 4, 0.5, 300, lr=0.5)[0] - start) / period
    # from just beyond a maximum to the minimum: half a period and what the tilt adds
    assert (short <= 0.5 + np.arcsin((np.abs(start) + period) / 12) / np.pi).all()
    assert np.median(long) > 10


@pytest.mark.parametrize("height", [0.5, 1.0, 3.0, 40.0])
def test_the_drift_by_quadrature(height):
    mean = -(PROPOSAL**2) / 2
    width = PROPOSAL * height**0.5
    normal = lambda z: np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    moved = lambda z: (mean + width * z) * min(1.0, np.exp(mean + width * z)) * normal(z)
    expected = -2 * quad(moved, -12, 12, points=[-mean / width])[0]
    assert _drift(height) == pytest.approx(expected, abs=1e-9)


def test_steps_by_integrating_the_drift():
    path = solve_ivp(
        lambda t, v: [_drift(v[0])], (0, _steps_over_dimension(20.0)), [20.0], rtol=1e-9
    )
    assert path.y[0, -1] == pytest.approx(3.0, rel=1e-5)


def test_arrivals_are_interpolated():
    marks = np.array([0, 1, 2, 4])
    course = np.broadcast_to([8.0, 4.0, 3.5, 2.5], (2, 10, 4))
    assert np.allclose(_arrivals(course, marks), 3.0)


def test_a_needle_is_out_of_range():
    claim = AnnealingNearConvex(dimensions=(2, 3, 4), walkers=3, needle=50.0)
    setting = claim.setting(jax.random.key(0))
    held = [hypothesis.holds for hypothesis in claim.hypotheses(setting)]
    assert held == [True, False, True, True]
    fine = AnnealingNearConvex(dimensions=(2, 3, 4), walkers=3)
    bumps = fine.setting(jax.random.key(0)).bumps
    assert fine.largest(setting._replace(bumps=bumps)) <= 0.5


def test_the_needle_holds_the_minimum_and_the_mass():
    """At d = 1 by quadrature with T = ½, at every d ≤ 64 by Laplace's method on the needle's bottom."""
    T = 0.5
    F = lambda x: x**2 / 2 - DEPTH * np.exp(-((x - NEEDLE) ** 2) / THIN)
    weight = lambda x: np.exp(-F(x) / T)
    inside = quad(weight, NEEDLE - 0.05, NEEDLE + 0.05, points=[NEEDLE], limit=400)[0]
    assert inside > 100 * np.sqrt(2 * np.pi * T)
    for d in (1, 2, 16, 64):
        curvature = 1 + 2 * DEPTH * d / THIN
        assert (DEPTH - NEEDLE**2 / 2) / T - np.log(curvature) / 2 > 4
        bumps = Bumps(d, 0.0, 1.0, 0.0, 0.0, DEPTH * d)
        assert float(bumpy(bumps, jnp.full(d, NEEDLE))) == pytest.approx(-7 * d)


def test_large_bumps_are_out_of_range():
    for delta in (4.0, 20.0):
        claim = AnnealingNearConvex(dimensions=(2, 3, 4), walkers=3, delta=delta)
        held = [
            hypothesis.holds for hypothesis in claim.hypotheses(claim.setting(jax.random.key(0)))
        ]
        assert not held[2]
    assert not held[3]


def mobility(ratio, step, nodes=128):
    """Return how fast the phase ωx of a step drifts, over its tilt, by the stationary law of its chain on the circle.

    The chain is φ ← φ + s sin φ + τ + √(2s T/a) N(0, 1), with s = aω²/2L and τ the tilt.
    """
    phase = 2 * np.pi * np.arange(nodes) / nodes
    orders = np.arange(-50, 51)
    spread = np.exp(-(orders**2) * step / ratio)

    def velocity(tilt):
        mean = phase + step * np.sin(phase) + tilt
        waves = spread * np.exp(-1j * np.multiply.outer(mean, orders))
        chances = (waves @ np.exp(1j * np.multiply.outer(orders, phase))).real / nodes
        equations = np.vstack([chances.T - np.eye(nodes), np.ones(nodes)])
        law = np.linalg.lstsq(equations, np.append(np.zeros(nodes), 1.0), rcond=None)[0]
        return tilt + step * (law @ np.sin(phase))

    return (velocity(1e-3) - velocity(-1e-3)) / 2e-3


@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.0])
def test_the_mobility_of_noisy_descent_by_the_chain_of_its_phase(ratio):
    """With short steps it is 1/I₀², and with those of 1/2L, s = ½, up to 5 % more."""
    assert 1 / mobility(ratio, 0.02) == pytest.approx(i0(ratio) ** 2, rel=2e-3)
    faster = mobility(ratio, 0.5) * i0(ratio) ** 2
    assert 1 < faster < 1.05


def test_noisy_descents_take_the_steps_of_their_mobility():
    rng = np.random.default_rng(3)
    steps = langevin_steps(rng, 1.0, 16.0, 20, 200)
    expected = 2 * 257 / mobility(1.0, 256 / 514)
    assert abs(steps.mean() - expected) < 4 * steps.std() / 20**0.5 + 0.01 * expected
    smooth = langevin_steps(rng, 1.0, 16.0, 20, 200, smooth=True)
    assert smooth.mean() == pytest.approx(2 * 257, rel=0.05)
