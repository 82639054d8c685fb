"""Activations by name, their slopes, and one-dimensional Gaussian means against closed forms and mpmath."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.nn.activations import (
    Activation,
    activation,
    activation_names,
    closed_form,
    gaussian_mean,
    homogeneous_slopes,
    leaky_relu,
    one_sided_taylor,
    relu_power,
)

REFERENCE = {  # the same functions, written independently for mpmath
    "tanh": mpmath.tanh,
    "silu": lambda z: z / (1 + mpmath.exp(-z)),
    "gelu": lambda z: z * mpmath.ncdf(z),
    "elu": lambda z: z if z > 0 else mpmath.expm1(z),
    "softplus": lambda z: mpmath.log1p(mpmath.exp(z)),
}


def exact_second_moment(name: str, variance: float) -> float:
    with mpmath.workdps(25):
        deviation = mpmath.sqrt(variance)
        ends = [-14, -8, -4, -2, -0.5, 0, 0.5, 2, 4, 8, 14]
        integrand = lambda t: REFERENCE[name](deviation * t) ** 2 * mpmath.npdf(t)
        return float(mpmath.quad(integrand, ends))


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("variance", [1e-6, 0.7, 30.0])
def test_second_moment_agrees_with_high_precision(name, variance):
    """E σ² is right to 1e-12 and the error estimate is no smaller than the error."""
    σ = activation(name)
    estimate = gaussian_mean(lambda z: σ(z) ** 2, variance, σ.kinks)
    exact = exact_second_moment(name, variance)
    assert float(estimate.value) == pytest.approx(exact, rel=1e-12)
    assert abs(float(estimate.value) - exact) <= float(estimate.error) + 1e-15 * exact


@pytest.mark.parametrize("variance", [1e-6, 1.0, 20.0, 400.0])
def test_closed_forms_over_eight_decades_of_variance(variance):
    """sin: (1 − e^{−2K})/2; erf: (2/π) arcsin(2K/(1+2K)); ReLU: K/2; a corner away from 0: N-function formula."""
    exact = {
        "sin": -np.expm1(-2 * variance) / 2,
        "erf": 2 / np.pi * np.arcsin(2 * variance / (1 + 2 * variance)),
        "relu": variance / 2,
        "quadratic": 3 * variance**2,
    }
    for name, value in exact.items():
        σ = activation(name)
        found = gaussian_mean(lambda z, σ=σ: σ(z) ** 2, variance, σ.kinks)
        assert float(found.value) == pytest.approx(value, rel=1e-12), name
    call = gaussian_mean(
        lambda z: jnp.maximum(z - 0.3, 0), variance, (0.3,)
    ).value  # Bachelier's formula
    deviation = mpmath.sqrt(variance)
    moneyness = mpmath.mpf("0.3") / deviation
    price = deviation * mpmath.npdf(moneyness) - mpmath.mpf("0.3") * mpmath.ncdf(-moneyness)
    assert float(call) == pytest.approx(float(price), rel=1e-12, abs=1e-16)


def test_a_kink_that_is_not_declared_shows_in_the_error_estimate():
    """The estimate does not promise more digits than there are."""
    estimate = gaussian_mean(lambda z: jnp.maximum(z - 0.3, 0), 1.0)
    exact = gaussian_mean(lambda z: jnp.maximum(z - 0.3, 0), 1.0, (0.3,)).value
    assert 1e-9 < abs(float(estimate.value - exact)) < 10 * float(estimate.error)


def test_variance_zero_gives_the_value_at_zero():
    assert float(gaussian_mean(jnp.cos, 0.0).value) == 1.0
    assert float(gaussian_mean(activation("sigmoid"), 0.0, (0.0, 1.0)).value) == 0.5


def test_gaussian_mean_is_jitted_mapped_and_batched():
    variances = jnp.array([[0.0, 1.0], [2.0, 3.0]])
    batch = gaussian_mean(jnp.square, variances).value
    mapped = jax.jit(jax.vmap(jax.vmap(lambda k: gaussian_mean(jnp.square, k).value)))(variances)
    np.testing.assert_allclose(batch, variances, rtol=1e-12)
    np.testing.assert_allclose(mapped, batch, rtol=1e-14)


def test_gaussian_mean_agrees_with_sampling(key):
    """Monte Carlo within four standard errors."""
    for name in activation_names():
        σ = activation(name)
        draws = np.asarray(σ(jnp.sqrt(2.0) * jax.random.normal(key, (20_000,))))
        error = draws.std() / np.sqrt(draws.size)
        mean = float(gaussian_mean(σ, 2.0, σ.kinks).value)
        assert abs(draws.mean() - mean) <= 4 * error, name


@pytest.mark.parametrize("name", activation_names())
def test_slope_is_the_derivative(name):
    """Against central differences away from the kinks, for arrays of any shape."""
    σ = activation(name)
    z = jnp.array([[-3.1, -0.7], [0.4, 2.9]])
    step = 1e-6
    np.testing.assert_allclose(
        σ.slope(z), (σ(z + step) - σ(z - step)) / (2 * step), rtol=1e-7, atol=1e-9
    )
    assert σ(z).shape == z.shape


def test_one_sided_taylor():
    """ELU is e^z − 1 on the left and z on the right of 0."""
    np.testing.assert_allclose(one_sided_taylor(activation("elu"), -1), [0, 1, 1, 1], atol=1e-12)
    np.testing.assert_allclose(one_sided_taylor(activation("elu"), 1), [0, 1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(one_sided_taylor(activation("tanh"), 1), [0, 1, 0, -2], atol=1e-12)


slopes = st.floats(-2, 2).filter(
    lambda a: a == 0 or abs(a) > 1e-6
)  # below, a relative test has nothing to hold on


@settings(max_examples=20, deadline=None)
@given(left=slopes, right=slopes)
def test_every_scale_invariant_function_is_recognized(left, right):
    σ = Activation("two slopes", lambda z: jnp.where(z > 0, right * z, left * z), kinks=(0.0,))
    assert homogeneous_slopes(σ) == pytest.approx((left, right))


@pytest.mark.parametrize(
    "name", ["tanh", "sin", "gelu", "silu", "elu", "softplus", "quadratic", "relu_power"]
)
def test_others_are_not_scale_invariant(name):
    assert homogeneous_slopes(activation(name)) is None


def test_names_families_and_functions():
    assert activation("leaky_relu(0.2)") is leaky_relu(0.2)
    assert activation("relu_power(3)") is relu_power(3.0)
    assert activation(jax.nn.relu) is activation("ReLU")
    assert activation(jnp.sinh).name == "sinh"
    assert activation(leaky_relu(0.2).name) == leaky_relu(0.2)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("thanh", "no activation 'thanh'; did you mean 'tanh'"),
        ("swish", "did you mean"),
        ("leaky(0.1)", "did you mean 'leaky_relu'"),
        ("relu_power(0.5)", "needs a power p ≥ 1, got 0.5"),
        (3, "a name, an elementwise function or an Activation, got int"),
    ],
)
def test_bad_input_gets_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        activation(wrong)


def gelu_in_many_digits(a, b, c):
    """Return E σσ by Stein's lemma as it is written down, and its derivative by differences, in 100 digits."""
    a, b, c = map(mpmath.mpf, (a, b, c))

    def value(c):
        d = mpmath.sqrt((1 + a) * (1 + b) - c**2)
        quadrant = (mpmath.pi - mpmath.acos(c / mpmath.sqrt((1 + a) * (1 + b)))) / (2 * mpmath.pi)
        mixed = -c * (a / (1 + a) + b / (1 + b))
        return c * quadrant + (a * b + c**2 + c * mixed) / (2 * mpmath.pi * d)

    with mpmath.workdps(100):
        step = mpmath.mpf(10) ** -40
        slope = (value(c + step) - value(c - step)) / (2 * step)
        return float(value(c)), float(slope)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4, 1e10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tilt", [0.0, 0.25, 0.5, 1.0, 2.0])
def test_gelu_at_any_variance(size, dtype, tilt):
    """Raw pixels have variances of ten thousand: no terms may cancel there, for parallel signals least of all."""
    a, b = dtype(size), dtype(3 * size)
    c = dtype(np.sqrt(3) * size * (1 - tilt) * (1 - 1e-3))
    computed = closed_form(activation("gelu"))(jnp.asarray(a), jnp.asarray(b), jnp.asarray(c))
    exact = gelu_in_many_digits(float(a), float(b), float(c))
    scale = np.sqrt(3) * float(size), 1.0
    tolerance = 64 * np.finfo(dtype).eps
    for number, right, unit in zip(computed, exact, scale, strict=True):
        assert abs(float(number) - right) <= tolerance * unit
