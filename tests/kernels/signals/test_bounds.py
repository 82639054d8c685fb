"""Bounds at finite width: inverses, exact tails, and the lemmas against networks that strain them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from steepest.kernels import bernstein_radius, bernstein_tail, stay_put
from steepest.kernels.spectra._hidden import sampled_first_layer_kernel
from steepest.nn.activations import activation

positive = st.floats(1e-3, 10.0)


@given(st.floats(1e-8, 1.0), st.integers(1, 500), positive, st.floats(0.0, 10.0))
@settings(max_examples=60, deadline=None)
def test_radius_and_tail_are_inverse(probability, inputs, variance, largest):
    """Against a root finder."""
    t = float(bernstein_radius(probability, inputs, variance, largest))
    assert float(bernstein_tail(t, inputs, variance, largest)) == pytest.approx(
        probability, rel=1e-9
    )
    log = lambda s: math.log(2 * inputs / probability) - s**2 / 2 / (variance + largest * s / 3)
    assert optimize.brentq(log, 0, 2 * t + 1) == pytest.approx(t, rel=1e-9)


@pytest.mark.parametrize("n", [10, 100])
def test_it_bounds_the_exact_tail_of_a_random_sign_matrix(n):
    """Z = Σ ±E_j/n over m blocks: independent binomials on the diagonal, whose largest has an exact law."""
    m = 5
    t = np.array([0.2, 0.4, 0.6, 0.8])
    # each summand is a diagonal matrix of independent signs over n: L = 1/n and U = 1/n
    inside = stats.binom.cdf(np.floor(n * (1 + t) / 2 + 1e-9), n, 0.5) - stats.binom.cdf(
        np.ceil(n * (1 - t) / 2 - 1e-9) - 1, n, 0.5
    )
    exact = 1 - inside**m
    assert np.all(exact <= bernstein_tail(t, m, 1 / n, 1 / n))


def test_without_dimension_or_half_it_would_be_false():
    """Gaussian limit, L = 0: m independent numbers at t = 1.5, one number at t = 3."""
    assert 1 - (1 - 2 * stats.norm.sf(1.5)) ** 16 > bernstein_tail(1.5, 1, 1.0, 0.0) / 2
    assert 2 * stats.norm.sf(3.0) > 2 * math.exp(-9.0)
    assert 2 * stats.norm.sf(3.0) < bernstein_tail(3.0, 1, 1.0, 0.0)


def test_at_the_threshold_both_lengths_agree():
    """Δ*(n) = Δ, by a root finder in the width."""
    bounds = stay_put(3, 0.4, 0.2, 1.0)
    gap = lambda log: float(np.log(stay_put(3, 0.4, 0.2, math.exp(log)).movement / bounds.allowed))
    assert math.exp(optimize.brentq(gap, 0, 40)) == pytest.approx(float(bounds.width), rel=1e-9)
    np.testing.assert_allclose(
        stay_put(3, np.array([0.4, 0.8]), 0.2, 1.0).width, bounds.width * np.array([1, 1 / 16])
    )


def test_the_movement_is_the_integral_of_the_bounds():
    """∫ √(2L/n) dt with dL/dt = −(λ₀/m) L, by a quadrature."""
    m = 4
    smallest = 0.3
    risk = 0.7
    n = 50
    t = np.linspace(0, 40 * m / smallest, 400_001)
    speed = np.sqrt(2 * risk * np.exp(-smallest / m * t) / n)
    assert float(stay_put(m, smallest, risk, n).movement) == pytest.approx(
        np.trapezoid(speed, t), rel=1e-6
    )


@given(st.integers(0, 1000), st.floats(1e-3, 0.3))
@settings(max_examples=20, deadline=None)
def test_lemma_one_on_random_moves(seed, distance):
    """Neurons moved by Δ, each in its own direction, change the kernel by at most 2mΔ."""
    for_x, for_w, for_move = jax.random.split(jax.random.key(seed), 3)
    x = jax.random.normal(for_x, (4, 3))
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    w = jax.random.normal(for_w, (6, 3))
    move = jax.random.normal(for_move, (6, 3))
    move = distance * move / jnp.linalg.norm(move, axis=1, keepdims=True)
    kernel = lambda w: sampled_first_layer_kernel(activation("sin"), x, w, jnp.ones(6))
    assert np.linalg.norm(kernel(w + move) - kernel(w), 2) <= 8 * distance


@pytest.mark.parametrize("probability", [0.0, 5.0])
def test_a_probability_out_of_range_is_refused(probability):
    with pytest.raises(ValueError, match="between 0 and 1"):
        bernstein_radius(probability, 2, 1.0, 1.0)
