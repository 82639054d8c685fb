"""Staircases and broken lines of residual networks against interpolation and quadrature."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from steepest.claims.expressivity.residual_staircases.experiment import (
    TARGETS,
    broken_line_errors,
    increasing_blocks,
    line_network,
    staircase,
    staircase_errors,
)
from steepest.claims.expressivity.residual_staircases.theory import (
    leading_error,
    line_error,
    staircase_error,
)
from steepest.geometry import preactivations


def by_blocks(thresholds, factors, x):
    """One block after the other, by hand."""
    for threshold, factor in zip(thresholds, factors, strict=True):
        x = x + factor * np.maximum(x - threshold, 0.0)
    return x


def test_blocks_make_every_increasing_function_exactly():
    """Any slopes, against interpolation; in another order of the blocks they do not."""
    rng = np.random.default_rng(0)
    breaks = np.sort(rng.random(7))
    slopes = rng.exponential(size=8) + 0.05
    thresholds, factors = increasing_blocks(breaks, slopes)
    x = np.linspace(0, 1, 1001)
    knots = np.concatenate([[0.0], breaks, [1.0]])
    values = np.append(0.0, np.cumsum(slopes * np.diff(knots)))
    expected = np.interp(x, knots, values)
    np.testing.assert_allclose(slopes[0] * by_blocks(thresholds, factors, x), expected, rtol=1e-12)
    network = line_network(thresholds, factors, slopes[0], 0.0)
    np.testing.assert_allclose(preactivations(network, x[:, None])[-1][:, 0], expected, rtol=1e-12)
    reverse = slopes[0] * by_blocks(thresholds[::-1], factors[::-1], x)
    assert np.abs(reverse - expected).max() > 0.05


def test_a_staircase_has_its_levels_in_any_order():
    levels = np.random.default_rng(1).standard_normal(9)
    network = staircase(levels)
    assert len(network) == 3 * 8 + 1
    x = (np.arange(9)[:, None] + np.linspace(0.01, 0.99, 50)) / 9
    outputs = preactivations(network, x.reshape(-1, 1))[-1].reshape(9, 50)
    np.testing.assert_allclose(outputs, levels[:, None] * np.ones(50), atol=2e-3)


@pytest.mark.parametrize("name", list(TARGETS))
def test_errors_of_staircases_by_quadrature(name):
    """No network: steps at the middle values, by SciPy; and no other levels do better."""
    target = TARGETS[name]
    for steps in (8, 16):
        total = 0.0
        for a, b in itertools.pairwise(np.arange(steps + 1) / steps):
            middle = (a + b) / 2
            gap = lambda x, shift, middle=middle: abs(target(x) - target(middle) - shift)
            gaps = [quad(gap, a, b, (shift,), points=[middle])[0] for shift in (0, 0.02, -0.02)]
            total += gaps[0]
            assert gaps[0] == min(gaps)
        assert staircase_error(name, steps) == pytest.approx(total, rel=1e-6)
        assert staircase_errors(target, steps)[0] == pytest.approx(total, rel=1.5e-3)
    assert staircase_error("x²", 8) == pytest.approx(1 / 32) == leading_error("x²", 8)
    wide = staircase_error("sin 4πx", 800)
    assert wide == pytest.approx(2 / 800, rel=1e-4)  # the variation, eight, over 4M
    assert leading_error("sin 4πx", 8) > 1.03 * staircase_error("sin 4πx", 8)


@pytest.mark.parametrize("breaks", [1, 2, 3])
def test_no_broken_line_is_nearer_to_a_parabola(breaks):
    """Least mean distance over breaks and lines, piece by piece, by SciPy."""
    x = np.linspace(0, 1, 4001)

    def distance(places):
        knots = np.concatenate([[0.0], np.sort(np.clip(places, 0.01, 0.99)), [1.0]])
        total = 0.0
        for a, b in itertools.pairwise(knots):
            t = a + (b - a) * (x[1:] + x[:-1]) / 2
            line = np.polynomial.Polynomial.fit(t, t**2, 1)
            fit = minimize(
                lambda p, t=t: np.abs(t**2 - p[0] - p[1] * t).mean(),
                line.convert().coef,
                method="Nelder-Mead",
                options={"xatol": 1e-7, "fatol": 1e-12},
            )
            total += (b - a) * fit.fun
        return total

    equal = np.arange(1, breaks + 1) / (breaks + 1)
    least = distance(equal)
    assert least == pytest.approx(line_error(breaks), rel=1e-4)
    assert all(distance(equal + shift) >= least for shift in (0.03, -0.05))
    assert broken_line_errors(breaks)[0] == pytest.approx(line_error(breaks), rel=1e-4)
