"""Kernels of one hidden layer: Hermite expansions, sampling, Jacobians, harmonics as second ways to every number."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import hermite_e

from steepest.kernels import empirical_ntk
from steepest.kernels.spectra._hidden import (
    _DEGREES,
    first_layer_kernel,
    generic_rank,
    hermite_degrees,
    hidden_kernel,
    resolved_spectrum,
    sampled_first_layer_kernel,
    sampled_hidden_kernel,
    sphere_dimension,
)
from steepest.nn.activations import Activation, Estimate, activation, gaussian_mean

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)


def hermite_coefficients(σ, top):
    """σ_j = E σ(z) h_j(z) with orthonormal h_j, by quadrature."""
    series = [np.eye(top + 1)[j] / math.sqrt(math.factorial(j)) for j in range(top + 1)]
    basis = lambda z, c: jnp.polyval(jnp.asarray(hermite_e.herme2poly(c)[::-1]), z)
    return np.array(
        [
            float(gaussian_mean(lambda z, c=c: σ(z) * basis(z, c), 1.0, σ.kinks).value)
            for c in series
        ]
    )


@pytest.mark.parametrize("name", ["erf", "gelu", "exp", "polynomial(0.5,1,-1,2)"])
def test_the_expected_kernel_is_its_hermite_series(name):
    """Σ_j σ_j² (x·y)^j on unit inputs; on the diagonal the series is slow and E σ² is taken."""
    σ = activation(name)
    gram = X @ X.T
    coefficients = hermite_coefficients(σ, 24)
    series = sum(c**2 * gram**j for j, c in enumerate(coefficients))
    found = hidden_kernel(σ, X)
    off = ~np.eye(4, dtype=bool) & (np.abs(gram) < 0.6)
    assert off.sum() >= 4
    np.testing.assert_allclose(np.asarray(found.value)[off], series[off], atol=1e-8)
    second = float(gaussian_mean(lambda z: σ(z) ** 2, 1.0).value)
    np.testing.assert_allclose(np.diag(found.value), second, rtol=1e-12)


@pytest.mark.parametrize("name", ["relu", "erf", "polynomial(0,1,1)"])
def test_closed_forms_lie_within_the_error_of_quadrature(name):
    closed = activation(name)
    inputs = X * np.array([[0.5], [1.0], [2.0], [1.0]])
    plain = Activation("own", lambda z: closed.function(z), closed.derivative, closed.kinks)
    if name == "relu":  # hide that it is scale invariant, by a kink that moves everything by a hair
        plain = Activation(
            "own", lambda z: closed.function(z) + 1e-300 * z**2, closed.slope, closed.kinks
        )
    a = hidden_kernel(closed, inputs)
    b = hidden_kernel(plain, inputs)
    assert np.all(np.abs(a.value - b.value) <= np.asarray(a.error) + np.asarray(b.error))
    np.testing.assert_allclose(
        first_layer_kernel(closed, inputs), first_layer_kernel(plain, inputs), atol=1e-11
    )


def test_the_first_layers_kernel_is_the_slope_of_the_other():
    """d/dρ E σσ = E σ'σ' (Price), by a difference of the kernel in ρ."""
    σ = activation("erf")
    step = 1e-5
    pair = lambda rho: jnp.array([[1.0, 0.0], [rho, math.sqrt(1 - rho**2)]])
    kernel = lambda rho: float(hidden_kernel(σ, pair(rho)).value[0, 1])
    slope = (kernel(0.4 + step) - kernel(0.4 - step)) / (2 * step)
    assert float(first_layer_kernel(σ, pair(0.4))[0, 1]) == pytest.approx(0.4 * slope, rel=1e-8)


def test_samples_are_the_parts_of_the_tangent_kernel(key):
    """Both layers by their Jacobian."""
    for_w, for_a = jax.random.split(key)
    w = jax.random.normal(for_w, (7, 3))
    a = jax.random.normal(for_a, (7,))
    σ = activation("tanh")
    f = lambda w, a, x: σ(x @ w.T) @ a / math.sqrt(7)
    first = empirical_ntk(lambda p, x: f(p, a, x), w, X)
    outer = empirical_ntk(lambda p, x: f(w, p, x), a, X)
    np.testing.assert_allclose(sampled_first_layer_kernel(σ, X, w, a), first, rtol=1e-10)
    np.testing.assert_allclose(sampled_hidden_kernel(σ, X, w), outer, rtol=1e-10)


@pytest.mark.parametrize("name", ["erf", "relu"])
def test_samples_have_the_expected_mean(name, key):
    """Within four standard errors of each entry, for both kernels."""
    σ = activation(name)
    w = jax.random.normal(key, (500, 40, 3))
    ones = jnp.ones(40)
    for sample, mean in (
        (lambda one: sampled_hidden_kernel(σ, X, one), hidden_kernel(σ, X).value),
        (lambda one: sampled_first_layer_kernel(σ, X, one, ones), first_layer_kernel(σ, X)),
    ):
        drawn = np.asarray(jax.vmap(sample)(w))
        error = drawn.std(0, ddof=1) / math.sqrt(len(drawn)) + 1e-12
        assert np.all(np.abs(drawn.mean(0) - mean) <= 4 * error)


@pytest.mark.parametrize("name", sorted(set(_DEGREES) - {"step"}))
def test_the_table_of_degrees_agrees_with_hermite_coefficients(name):
    """Parities that end do end, and infinite ones still go on at degrees 6 to 11; exp has no small coefficient."""
    found = np.abs(hermite_coefficients(activation(name), 11))
    for parity, top in enumerate(hermite_degrees(activation(name))):
        mine = found[parity::2]
        degrees = np.arange(12)[parity::2]
        assert np.all(mine[degrees > top] < 1e-10)
        if math.isinf(top):
            assert np.all(mine[degrees > 5] > 1e-9)
        elif top >= 0:
            assert mine[degrees == top].item() > 1e-3


@given(st.integers(1, 6), st.integers(0, 7))
@settings(max_examples=40, deadline=None)
def test_dimensions_add_up_over_harmonics(dimension, degree):
    """C(d+p−1, p) = Σ over k = p, p−2, … of the harmonics of degree k."""
    harmonics = lambda k: (
        math.comb(dimension + k - 1, k) - (math.comb(dimension + k - 3, k - 2) if k >= 2 else 0)
    )
    assert sphere_dimension(dimension, degree) == sum(harmonics(k) for k in range(degree, -1, -2))


@pytest.mark.parametrize("antipodal", [False, True])
@pytest.mark.parametrize(
    "coefficients", [(0, 1, 1), (0, 0, 0, 1), (0, -3, 0, 1), (1, 0, 1), (2,), (0, 1, 0, 0, 1)]
)
def test_ranks_of_polynomials_by_their_monomials(coefficients, antipodal):
    """The kernel's rank is that of the features (√σ_j² x^{⊗j})_j evaluated at the inputs, one exponent a column."""
    x = np.random.default_rng(1).normal(size=(36, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = np.concatenate([x[:18], -x[:18]]) if antipodal else x
    hermite = hermite_e.poly2herme(np.array(coefficients, float))
    present = [j for j, c in enumerate(hermite) if abs(c) > 1e-12]
    powers = [(a, b, j - a - b) for j in present for a in range(j + 1) for b in range(j + 1 - a)]
    features = np.stack([np.prod(x ** np.array(p), axis=1) for p in powers], 1)
    name = f"polynomial({','.join(map(str, coefficients))})"
    predicted = generic_rank(hermite_degrees(activation(name)), 3, 36, antipodal)
    assert predicted == np.linalg.matrix_rank(features)
    assert predicted == resolved_spectrum(hidden_kernel(activation(name), jnp.asarray(x))).rank


def test_a_repeated_input_costs_one_rank():
    x = jnp.asarray(np.concatenate([X, X[:1]]))
    assert resolved_spectrum(hidden_kernel(activation("erf"), x)).rank == 4


def test_the_level_covers_what_the_error_may_do():
    """Eigenvalues under perturbations as large as the bounds stay within the level."""
    exact = X @ X.T
    error = np.full((4, 4), 1e-6)
    level = resolved_spectrum(Estimate(jnp.asarray(exact), jnp.asarray(error))).level
    for seed in range(20):
        signs = np.sign(np.random.default_rng(seed).normal(size=(4, 4)))
        moved = np.linalg.eigvalsh(exact + 1e-6 * (np.triu(signs) + np.triu(signs, 1).T))
        assert np.abs(moved - np.linalg.eigvalsh(exact)).max() <= level
    assert level < 5e-6


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: hidden_kernel(activation("relu"), jnp.ones(3)),
            r"shape \(m, d\), got shape \(3,\)",
        ),
        (
            lambda: first_layer_kernel(activation("relu"), jnp.ones(3)),
            r"shape \(m, d\), got shape \(3,\)",
        ),
        (lambda: hermite_degrees(Activation("mine", jnp.tanh)), "of mine are not known"),
        (lambda: sphere_dimension(0, 1), "at least one dimension, got 0"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
