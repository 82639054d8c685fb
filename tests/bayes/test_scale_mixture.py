"""The scale's mixture against quadrature, closed forms, its own density, and networks drawn from the prior."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, kve
from scipy.stats import chi2

from steepest.bayes import (
    best_variance,
    limit_scale,
    log_evidence,
    posterior_scale,
    scale_density,
    scale_mixture,
)
from steepest.core.errors import UserError


@pytest.mark.parametrize(("n", "power", "rate"), [(20, 10, 30.0), (5, -1.5, 0.2), (10, 10, 1.5)])
def test_one_layer_is_a_bessel_function(n, power, rate):
    """E[s^(−a)e^(−c/s)] = 2(n/2)^(n/2) (2c/n)^(ν/2) K_ν(√(2cn))/Γ(n/2), ν = n/2 − a."""
    order = n / 2 - power
    argument = np.sqrt(2 * rate * n)
    exact = (
        np.log(2)
        + n / 2 * np.log(n / 2)
        + order / 2 * np.log(2 * rate / n)
        + np.log(kve(order, argument))
        - argument
        - gammaln(n / 2)
    )
    assert scale_mixture((n,), power, rate) == pytest.approx(exact, abs=1e-12)


def test_two_layers_are_a_double_integral():
    inner = lambda s: np.exp(scale_mixture((6,), 2.5, 1.3 / s)) * s**-2.5
    outer = quad(lambda s: inner(s) * chi2.pdf(9 * s, 9) * 9, 0, np.inf, epsrel=1e-9)[0]
    assert scale_mixture((6, 9), 2.5, 1.3) == pytest.approx(np.log(outer), abs=1e-8)


@pytest.mark.parametrize("widths", [(10,), (5, 8), (20,) * 4])
def test_the_density_integrates_to_the_mixture(widths):
    u = np.linspace(-9, 5, 4001)
    tilt = np.exp(-5 * u - 4 * np.exp(-u))
    integral = np.trapezoid(scale_density(widths, u) * tilt, u)
    assert np.log(integral) == pytest.approx(scale_mixture(widths, 5, 4.0), abs=1e-9)


def test_without_a_rate_it_is_a_product_of_moments():
    exact = sum(np.log(chi2(n).expect(lambda x, n=n: (x / n) ** -1.5)) for n in (8, 20))
    assert scale_mixture((8, 20), 1.5, 0.0) == pytest.approx(exact, abs=1e-8)
    assert scale_mixture((8, 20), 1.5, 1e-12) == pytest.approx(exact, abs=1e-8)


def test_a_posterior_moment_is_a_derivative_of_the_evidence():
    """d log E[s^(−a)e^(−c/s)]/dc = −E[1/s | data]."""
    widths = (7, 13)
    h = 1e-4
    rise = scale_mixture(widths, 5, 15 + h) - scale_mixture(widths, 5, 15 - h)
    assert posterior_scale(widths, 10, 3.0, -1) == pytest.approx(-rise / (2 * h), rel=1e-7)


def test_posterior_of_drawn_networks():
    """Importance weights on explicit matrices; and the data of three examples near their targets, without weights."""
    rng = np.random.default_rng(0)
    draws = 200_000
    widths = (5, 8)
    inputs = 4
    rows = rng.standard_normal((draws, 1, 8)) / np.sqrt(8)
    rows = rows @ rng.standard_normal((draws, 8, 5)) / np.sqrt(5)
    scale = (rows**2).sum((1, 2))
    theta = (rows @ rng.standard_normal((draws, 5, inputs)))[:, 0] / np.sqrt(inputs)
    size = 2.0
    weights = np.exp(-1 * (np.log(scale) + size / scale))  # P = 2
    error = 4 * np.sqrt(((weights * (scale - 1.5)) ** 2).mean() / draws) / weights.mean()
    assert (weights * scale).mean() / weights.mean() == pytest.approx(
        posterior_scale(widths, 2, size), abs=error
    )
    # θ itself, X the first two axes: y within a small disc, then θ_⊥ of the others
    target = np.array([1.0, 0.0]) * np.sqrt(size * 2 / inputs)
    near = ((theta[:, :2] - target) ** 2).sum(1) < 0.15**2
    off = (theta[near, 2:] ** 2).sum(1)
    exact = (1 - 2 / inputs) * posterior_scale(widths, 2, size)
    assert off.mean() == pytest.approx(exact, abs=4 * off.std() / np.sqrt(near.sum()))
    density = near.mean() / (np.pi * 0.15**2)
    evidence = np.exp(log_evidence(widths, 2, size, inputs=inputs))
    assert density == pytest.approx(evidence, rel=4 / np.sqrt(near.sum()) + 0.01)


def test_evidence_without_layers_is_a_gaussian_density():
    log_density = -5 * np.log(2 * np.pi * 1.7 / 12) - 10 * 3.0 / (2 * 1.7) - 0.4 / 2
    evidence = log_evidence((), 10, 3.0, inputs=12, variance=1.7, log_det=0.4)
    assert evidence == pytest.approx(log_density)


def test_evidence_has_a_best_depth_at_finite_data():
    gains = [log_evidence((20,) * depth, 20, 3.0) for depth in (1, 4, 8, 16, 64)]
    assert np.argmax(gains) == 2
    at_one = [log_evidence((20,) * depth, 20, 1.0) for depth in (0, 1, 4, 8)]
    assert np.all(np.diff(at_one) < 0)


@pytest.mark.parametrize("widths", [(20,), (5, 30, 10)])
def test_the_best_variance_is_the_largest_evidence(widths):
    best = best_variance(widths, 12, 0.7)
    top = log_evidence(widths, 12, 0.7, variance=best)
    for factor in (0.99, 1.01):
        assert log_evidence(widths, 12, 0.7, variance=factor * best) < top
    # it scales with the data
    assert best_variance(widths, 12, 2.1) == pytest.approx(3 * best, rel=1e-9)


def test_the_best_variance_to_leading_order():
    widths = (300, 500, 400)
    inverse = np.array([1 / 200, *(1 / n for n in widths)])
    leading = inverse.sum() - (inverse**2).sum() / inverse.sum()
    assert np.log(best_variance(widths, 200, 5.0) / 5) == pytest.approx(leading, rel=0.02)


@pytest.mark.parametrize("size", [0.3, 3.0])
def test_the_limit(size):
    scale = limit_scale(2.0, size)
    assert np.log(scale) / 2 + 1 == pytest.approx(size / scale)
    exact = posterior_scale((256 * 64 / 2,) * 64, 256, size)
    assert exact == pytest.approx(scale, rel=0.002)
    # few layers: u = Σ log(1 + (P/n)(Ae^(−u) − 1))
    few = limit_scale(4.0, size, layers=4)
    assert few**0.25 == pytest.approx(size / few)
    assert posterior_scale((800,) * 4, 800, size) == pytest.approx(few, rel=0.005)
    assert limit_scale(1e9, size) == pytest.approx(size)
    assert limit_scale(3.0, 1.0) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: scale_mixture((0,), 1.0, 1.0),
        lambda: scale_mixture((5,), 1.0, -1.0),
        lambda: scale_mixture((5,), 2.5, 0.0),
        lambda: scale_mixture((5,), np.inf, 1.0),
        lambda: posterior_scale((5,), 0, 1.0),
        lambda: log_evidence((5,), 5, 1.0, variance=0.0),
        lambda: log_evidence((5,), 5, 1.0, inputs=4),
        lambda: limit_scale(np.nan, 1.0),
        lambda: limit_scale(1.0, np.inf),
        lambda: best_variance((5,), 5, -1.0),
        lambda: scale_density((), np.zeros(1)),
        lambda: limit_scale(-1.0, 1.0),
        lambda: limit_scale(1.0, 1.0, layers=0),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(UserError):
        call()


def test_many_layers_keep_their_digits():
    """As L → ∞ at fixed Σ1/n the scale is lognormal, log s ~ N(−λ', 2λ'), up to terms of order 1/n."""
    spread = 0.5
    layers = 20_000
    u = np.linspace(-8, 6, 4001)
    normal = np.exp(-((u + spread) ** 2) / (4 * spread)) / np.sqrt(4 * np.pi * spread)
    exact = np.log(np.trapezoid(normal * np.exp(-3 * u - 2 * np.exp(-u)), u))
    many = scale_mixture((layers / spread,) * layers, 3, 2.0)
    assert many == pytest.approx(exact, abs=3e-4)
    more = scale_mixture((8 * layers / spread,) * 8 * layers, 3, 2.0)
    assert (more - exact) * 8 == pytest.approx(many - exact, rel=0.01)


def test_moments_on_both_sides_of_stirling():
    for n in (79.0, 81.0):
        for k in (-3.5, 20.0):
            exact = np.log(chi2(n).expect(lambda x, n=n, k=k: (x / n) ** k))
            assert scale_mixture((n,), -k, 0.0) == pytest.approx(exact, abs=1e-8)


def test_infinite_depth_has_the_scale_of_the_data():
    assert limit_scale(np.inf, 3.0) == 3.0
    assert limit_scale(np.inf, 3.0, layers=4) == pytest.approx(limit_scale(1e9, 3.0, layers=4))
