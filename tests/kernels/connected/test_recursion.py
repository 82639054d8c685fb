"""The covariance recursion against closed forms, mpmath, sampling and its own symmetries."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.kernels import (
    chi_parallel,
    chi_perpendicular,
    criticality,
    depth_scales,
    dual,
    finite_width,
    first_layer,
    layer_map,
    pair_mean,
    propagate,
    variance_map,
)
from steepest.nn.activations import Activation, activation, gaussian_mean

CORRELATIONS = [-1.0, -1 + 1e-9, -0.999, -0.4, 0.0, 0.5, 0.99, 1 - 1e-12, 1.0]
quadrature = jax.jit(lambda triple, σ: pair_mean(σ, σ, triple, σ.kinks).value, static_argnums=1)
variances = st.floats(1e-3, 20.0)
correlations = st.floats(-1.0, 1.0)


def covariance(first: float, second: float, rho: float):
    return jnp.array([first, second, rho * np.sqrt(first * second)])


@pytest.mark.parametrize("name", ["linear", "relu", "leaky_relu(0.3)", "erf", "sin", "quadratic"])
def test_closed_forms_agree_with_quadrature_up_to_correlation_one(name):
    σ = activation(name)
    for rho in CORRELATIONS:
        triple = covariance(1.3, 4.0, rho)
        assert float(dual(σ)(triple)) == pytest.approx(
            float(quadrature(triple, σ)), rel=1e-12, abs=1e-13
        )


@pytest.mark.parametrize("name", ["tanh", "elu"])
def test_at_correlation_one_the_pair_is_one_variable(name):
    σ = activation(name)
    for variance in (1e-3, 1.0, 20.0):
        single = gaussian_mean(lambda z: σ(z) ** 2, variance, σ.kinks).value
        mirrored = gaussian_mean(lambda z: σ(z) * σ(-z), variance, σ.kinks).value
        assert float(quadrature(covariance(variance, variance, 1.0), σ)) == pytest.approx(
            float(single), rel=1e-12
        )
        found = float(quadrature(covariance(variance, variance, -1.0), σ))
        assert found == pytest.approx(float(mirrored), rel=1e-10)


def test_a_kink_away_from_zero_stays_accurate_near_correlation_one():
    """Against a rule with half as many nodes again on each panel."""
    σ = Activation("shifted", lambda z: jnp.maximum(z - 0.37, 0), kinks=(0.37,))
    finer = jax.jit(lambda triple: pair_mean(σ, σ, triple, σ.kinks, level=2).value)
    for rho in (-0.9999, 0.9, 0.9999, 1 - 1e-9):
        triple = covariance(1.0, 2.0, rho)
        fine = finer(triple)
        assert float(quadrature(triple, σ)) == pytest.approx(float(fine), abs=1e-12)


def test_tanh_agrees_with_high_precision():
    """Mehler's expansion Σ a_k² ρ^k in 25 digits, with a_k = E σ(√K x) h_k(x)."""
    variance = 1.5
    rho = 0.4
    with mpmath.workdps(25):
        total = mpmath.mpf(0)
        for k in range(1, 20, 2):
            hermite = lambda x, k=k: (
                mpmath.hermite(k, x / mpmath.sqrt(2)) / mpmath.mpf(2) ** (mpmath.mpf(k) / 2)
            )
            integrand = lambda x, h=hermite: (
                mpmath.tanh(mpmath.sqrt(variance) * x) * h(x) * mpmath.npdf(x)
            )
            coefficient = 2 * mpmath.quad(integrand, [0, 1, 2, 4, 7, 12])
            total += coefficient**2 / mpmath.factorial(k) * mpmath.mpf(rho) ** k
    found = float(quadrature(covariance(variance, variance, rho), activation("tanh")))
    assert found == pytest.approx(float(total), rel=1e-8)


def test_layer_map_agrees_with_sampling(key):
    """C_b + C_W E σ(u)σ(v) within four standard errors, unequal variances."""
    triple = covariance(0.5, 3.0, -0.6)
    root = jnp.linalg.cholesky(jnp.array([[triple[0], triple[2]], [triple[2], triple[1]]]))
    u, v = root @ jax.random.normal(key, (2, 50_000))
    for name in ("tanh", "gelu", "relu"):
        σ = activation(name)
        products = np.stack([σ(u) ** 2, σ(v) ** 2, σ(u) * σ(v)])
        error = products.std(axis=1) / np.sqrt(products.shape[1])
        found = np.asarray(_step(name)(triple))
        assert np.all(np.abs(0.2 + 1.4 * products.mean(axis=1) - found) <= 4 * 1.4 * error), name


@settings(max_examples=40, deadline=None)
@given(
    first=variances,
    second=variances,
    rho=correlations,
    name=st.sampled_from(["tanh", "relu", "elu"]),
)
def test_exchanging_the_inputs_exchanges_the_covariances(first, second, rho, name):
    step = _step(name)
    here = step(covariance(first, second, rho))
    there = step(covariance(second, first, rho))
    np.testing.assert_allclose(here, there[jnp.array([1, 0, 2])], rtol=1e-11, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    first=variances,
    second=variances,
    rho=correlations,
    name=st.sampled_from(["tanh", "relu", "elu"]),
)
def test_a_covariance_is_mapped_to_a_covariance(first, second, rho, name):
    """|K_αβ| ≤ √(K_αα K_ββ) after every layer (Cauchy–Schwarz)."""
    out = np.asarray(_step(name)(covariance(first, second, rho)))
    assert abs(out[2]) <= np.sqrt(out[0] * out[1]) * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(
    variance=variances,
    factor=st.floats(1.001, 3.0),
    name=st.sampled_from(["tanh", "erf", "linear"]),
)
def test_the_variance_map_of_an_odd_increasing_activation_increases(variance, factor, name):
    step = _step(name)
    assert float(step(covariance(factor * variance, 1.0, 0.0))[0]) > float(
        step(covariance(variance, 1.0, 0.0))[0]
    )


_STEPS = {}


def _step(name):
    return _STEPS.setdefault(name, jax.jit(layer_map(activation(name), 1.4, 0.2)))


def test_propagate_linear_is_a_geometric_sequence():
    """K^{(l)} = C_W^l K: the notes' exponent 2 is a slip."""
    start = jnp.array([2.0, 1.0, -0.5])
    path = propagate(activation("linear"), 0.9, 0.0, start, 20)
    np.testing.assert_allclose(path, 0.9 ** np.arange(21)[:, None] * start, rtol=1e-12)


def test_propagate_relu_angle_recursion():
    """At C_W = 2 variances stand still and cos θ' = (sin θ + (π − θ) cos θ)/π."""
    path = np.asarray(propagate(activation("relu"), 2.0, 0.0, jnp.array([1.0, 1.0, -0.2]), 30))
    theta = np.arccos(path[:-1, 2])
    np.testing.assert_allclose(path[:, :2], 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        path[1:, 2], (np.sin(theta) + (np.pi - theta) * np.cos(theta)) / np.pi, rtol=1e-12
    )


def test_propagate_tanh_decays_like_one_over_two_l():
    """1/K^{(l)} = 2 l + O(log l) at criticality: the slope between layers 200 and 400 is 2 within two per cent."""
    inverse = (
        1
        / np.asarray(propagate(activation("tanh"), 1.0, 0.0, jnp.array([1.0, 1.0, 0.3]), 400))[:, 0]
    )
    assert (inverse[400] - inverse[200]) / 200 == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("name", ["tanh", "elu", "relu", "relu_power(2)"])
def test_slopes_are_the_derivatives_of_the_map(name):
    """χ∥ = dK'_αα/dK_αα and χ⊥ = dK'_αβ/dK_αβ at equal inputs, by differences of the map itself."""
    σ = activation(name)
    k = 1.7
    step = 1e-3
    apply = jax.jit(layer_map(σ, 1.3, 0.1))
    parallel = (apply(covariance(k + step, 1, 0))[0] - apply(covariance(k - step, 1, 0))[0]) / (
        2 * step
    )
    assert float(chi_parallel(σ, 1.3, k)) == pytest.approx(float(parallel), rel=1e-5)
    # The second difference is one-sided, with an error of order step or, at a corner, √step.
    closer = (apply(covariance(k, k, 1.0))[2] - apply(covariance(k, k, 1 - 1e-8))[2]) / (k * 1e-8)
    assert float(chi_perpendicular(σ, 1.3, k)) == pytest.approx(float(closer), rel=2e-4)


@pytest.mark.parametrize("name", ["elu", "sigmoid", "leaky_relu(0.3)"])
def test_slopes_are_continuous_at_variance_zero(name):
    σ = activation(name)
    for chi in (chi_parallel, chi_perpendicular):
        assert float(chi(σ, 1.0, 0.0)) == pytest.approx(
            float(chi(σ, 1.0, 1e-9)), rel=1e-3, abs=1e-6
        )


def test_slope_at_zero_diverges_at_a_corner_with_an_offset():
    σ = Activation(
        "relu + 1", lambda z: jnp.maximum(z, 0) + 1, lambda z: jnp.where(z > 0, 1.0, 0.0), (0.0,)
    )
    assert float(chi_parallel(σ, 1.0, 0.0)) == np.inf
    assert float(chi_parallel(σ, 1.0, 1e-6)) > 100


def test_first_layer_of_the_notes():
    x = jnp.array([[1.0, 2.0, 2.0], [0.0, 3.0, 0.0]])
    np.testing.assert_allclose(first_layer(x, 2.0, 0.5), [0.5 + 2 * 3, 0.5 + 2 * 3, 0.5 + 2 * 2])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda σ: propagate(σ, -1.0, 0.0, jnp.ones(3), 2), "C_W is a variance"),
        (lambda σ: propagate(σ, 1.0, jnp.nan, jnp.ones(3), 2), "C_b is a variance"),
        (lambda σ: propagate(σ, 1.0, 0.0, jnp.ones(2), 2), r"shape \(3,\), got shape \(2,\)"),
        (lambda σ: propagate(σ, 1.0, 0.0, jnp.array([1.0, 1.0, 1.1]), 2), "No covariance has"),
        (lambda σ: first_layer(jnp.ones((3, 2)), 1.0, 0.0), r"shape \(2, d\), got shape \(3, 2\)"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(activation("tanh"))


DIRECTIONS = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])


@pytest.mark.parametrize("name", ["relu", "abs", "relu_power(2)", "erf", "tanh"])
@pytest.mark.parametrize("triple", [(1.3, 0.7, 0.4), (1.0, 1.0, 1.0), (0.8, 0.8, -0.8)])
def test_gradients_of_duals_are_differences(name, triple):
    """At perfect correlation along the line of equal inputs: elsewhere nearby are no covariances."""
    f = dual(name)
    slope = np.asarray(jax.grad(f)(jnp.array(triple)))
    a, b, c = triple
    lines = DIRECTIONS if a * b > c**2 else ([1.0, 1.0, np.sign(c)],)
    for line in lines:
        step = 1e-5 * jnp.array(line)
        difference = (f(jnp.array(triple) + step) - f(jnp.array(triple) - step)) / 2e-5
        assert slope @ np.array(line) == pytest.approx(float(difference), abs=1e-9)


def test_the_gradient_of_relu_at_equal_inputs():
    np.testing.assert_allclose(jax.grad(dual("relu"))(jnp.ones(3)), [0.0, 0.0, 0.5], atol=1e-12)


def test_propagate_is_differentiated_by_its_variances():
    """Two layers of ReLU at equal inputs: K = C_b + C_W/2 (C_b + C_W s)."""
    x = jnp.array([[1.0, 2.0], [1.0, 2.0]])

    def last(c):
        return propagate("relu", c[0], c[1], first_layer(x, c[0], c[1]), 1)[-1, 2]

    found = jax.grad(last)(jnp.array([1.5, 0.3]))
    np.testing.assert_allclose(found, [0.3 / 2 + 1.5 * 2.5, 1 + 1.5 / 2], rtol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda sigma: depth_scales(sigma, 1.9, 0.1),
        lambda sigma: criticality(sigma),
        lambda sigma: variance_map(sigma, 1.0),
        lambda sigma: chi_perpendicular(sigma, 1.0, 1.0),
        lambda sigma: finite_width(sigma, 1.0, 0.1, 1.0, (10,)).kernel.tolist(),
    ],
)
def test_activations_are_known_by_their_names(call):
    assert call("gelu") == call(activation("gelu"))
    with pytest.raises(UserError, match="did you mean 'gelu'"):
        call("gelo")
