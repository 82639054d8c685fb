"""Valleys of ripples, and the mobility of descent with noise."""

import numpy as np
import pytest
from scipy.special import i0

from steepest.claims.noise._rippled_bowl import fall, ripples
from steepest.claims.noise.ripples_hold_descent.experiment import langevin_steps, valley


def test_descent_ends_in_the_valley_of_its_start():
    start = np.linspace(-8, 8, 997)[:, None]
    end, slope = fall(start, 2, 0.5, 500)
    reached, nearest = valley(start, 2, 0.5)
    assert slope < 1e-9
    assert np.abs(end - reached).max() < 1e-10
    # by a grid: F has no maximum between start and end
    amplitude, frequency = ripples(2, 0.5)
    F = lambda x: x**2 / 2 + amplitude * np.cos(frequency * x)
    for a, b in zip(start[::40, 0], end[::40, 0], strict=True):
        assert np.all(np.diff(F(np.linspace(a, b, 200))) <= 1e-12)
    assert np.any(np.abs(nearest - reached) > 0.01)


def test_descent_with_long_steps_leaps_over_ripples():
    start = np.random.default_rng(2).uniform(-8, 8, 200)
    period = 2 * np.pi / ripples(4, 0.5)[1]
    short = np.abs(fall(start, 4, 0.5, 300)[0] - start) / period
    long = np.abs(fall(start, 4, 0.5, 300, lr=0.5)[0] - start) / period
    # from just beyond a maximum to the minimum: half a period and what the tilt adds
    assert (short <= 0.5 + np.arcsin((np.abs(start) + period) / 12) / np.pi).all()
    assert np.median(long) > 10


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
    """With short steps it is 1/I₀², and with steps of 1/2L, s = ½, up to 5 % more."""
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
