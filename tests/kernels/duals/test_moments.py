"""Dual activations with certified errors: 50-digit references, finite differences, ill-conditioned covariances."""

import json
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.kernels import covariance_map, variance_map
from steepest.nn.activations import Activation, activation, closed_form
from tests.kernels import references

REFERENCES = json.loads(references.PLACE.read_text("utf-8"))
NAMES = sorted({name for name, *_ in REFERENCES})
NUMERICAL = ("tanh", "silu", "softplus", "elu", "abs_power(1.5)", "hard_tanh", "sigmoid")


@lru_cache
def without_closed_form(name):
    """The same activation, for which only the numerical way is left."""
    known = activation(name)
    return Activation(
        f"numerical {name}", lambda z: known.function(z), known.derivative, known.kinks
    )


def of(name):
    rows = [(triple, values) for each, triple, values in REFERENCES if each == name]
    triples = np.array([triple for triple, _ in rows])
    values = np.array([[np.nan if v is None else float(v) for v in values] for _, values in rows])
    return triples, values


@pytest.mark.parametrize("numerical", [False, True], ids=["best way", "quadrature"])
@pytest.mark.parametrize("name", NAMES)
def test_against_fifty_digits(name, numerical):
    """Relative error at most 1e-10 at variances up to 400, and never above the returned bound."""
    triples, exact = of(name)
    sigma = without_closed_form(name) if numerical else activation(name)
    if (
        numerical and name == "sin"
    ):  # E sin sin is 1e-80 at variance 200: quadrature bounds its absolute error
        triples = triples[:2]
        exact = exact[:2]
    jet = covariance_map(sigma, triples)
    for found, wanted in ((jet.value, exact[:, 0]), (jet.first, exact[:, 1])):
        known = np.isfinite(wanted)
        error = np.abs(found.value - wanted)[known]
        # the references' integrals have fifty digits after the point: a value of 1e-55 is zero to them
        assert (error <= 1e-10 * np.abs(wanted[known]) + 1e-45).all()
        assert (error <= found.error[known] + 1e-45).all()


def test_the_references_cover_what_the_engine_promises():
    assert {
        "tanh",
        "erf",
        "gelu",
        "silu",
        "softplus",
        "relu",
        "leaky_relu(0.2)",
        "elu",
        "sin",
        "step",
    } <= set(NAMES)
    assert "abs_power(1.5)" in NAMES
    assert max(triple[0] for _, triple, _ in REFERENCES) > 200


def test_a_stored_reference_is_what_its_program_computes():
    """One of each kind, again, at twenty digits."""
    with references.mp.workdps(20):
        pair = references.CONDITIONAL["gelu"][0]
        (triple, exact), *_ = zip(*of("gelu"), strict=True)
        found = references.by_conditional_mean(*pair, *(references.Q(each) for each in triple))
        assert float(found) == pytest.approx(exact[0], rel=1e-14)


@pytest.mark.parametrize(
    "name", [*NUMERICAL, "relu", "erf", "gelu", "step", "relu_power(2)", "polynomial(1,2,0,-1)"]
)
def test_derivatives_are_those_of_the_map(name):
    """Central differences in K_αβ of the value and of the first derivative, to their own accuracy."""
    sigma = activation(name)
    size = 1e-4
    triples = np.array([[1.3, 0.7, 0.4], [2.0, 5.0, -2.1]])
    shift = np.array([0, 0, size])
    up, down, jet = (
        covariance_map(sigma, each) for each in (triples + shift, triples - shift, triples)
    )
    np.testing.assert_allclose(
        (up.value.value - down.value.value) / (2 * size), jet.first.value, rtol=1e-6, atol=1e-9
    )
    second = (up.first.value - down.first.value) / (2 * size)
    if np.isfinite(jet.second.value).all():
        np.testing.assert_allclose(second, jet.second.value, rtol=1e-6, atol=1e-9)
    else:
        assert name in ("step", "abs_power(1.5)")


@pytest.mark.parametrize(
    "name", ["exp", "gaussian", "cos", "relu_power(2)", "polynomial(1,2,0,-1)", "abs", "gelu"]
)
def test_closed_forms_agree_with_quadrature(name):
    triples = np.array([[0.5, 0.8, 0.3], [1.0, 1.0, 1.0], [1.5, 0.2, -0.5], [1.0, 1.0, -0.99]])
    found = covariance_map(activation(name), triples)
    numerical = covariance_map(without_closed_form(name), triples)
    for one, other in zip(found[:2], numerical[:2], strict=True):
        np.testing.assert_allclose(one.value, other.value, rtol=1e-11, atol=1e-13)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["relu", "erf", "gelu", "step", "gaussian"]),
    st.floats(-3, 2.6),
    st.floats(-3, 2.6),
    st.floats(-1, 1),
)
def test_bounds_of_quadrature_hold_at_any_covariance(name, log_a, log_b, rho):
    """The closed form is the truth: no error is above the bound, from variance 1e-3 to 400 and up to ρ = ±1."""
    a = 10**log_a
    b = 10**log_b
    triple = np.array([a, b, rho * np.sqrt(a * b)])
    exact = covariance_map(activation(name), triple).value
    found = covariance_map(without_closed_form(name), triple).value
    assert abs(found.value - exact.value) <= found.error + exact.error


@pytest.mark.parametrize("name", NUMERICAL)
def test_perfect_correlation_is_one_variable(name):
    """At ρ = ±1 the pair is one Gaussian: E σ(u)σ(±u)."""
    sigma = activation(name)
    for k in (1e-6, 1.0, 300.0):
        found = covariance_map(sigma, np.array([[k, k, k], [k, k, -k]])).value.value
        x = np.linspace(-13, 13, 400001)
        density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
        values = [np.asarray(sigma(jnp.asarray(side * np.sqrt(k) * x))) for side in (1, -1)]
        exact = [(values[0] * each) @ density for each in values]
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-12 * k)


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "elu"])
def test_variance_map(name):
    """The derivatives fall on the density: compare with differences of the value."""
    for k in (0.1, 2.0, 100.0):
        jet, up, down = (variance_map(activation(name), each) for each in (k, 1.001 * k, 0.999 * k))
        assert (up.value.value - down.value.value) / (0.002 * k) == pytest.approx(
            jet.first.value, rel=1e-5
        )
        change = (up.first.value - down.first.value) / (0.002 * k)
        assert change == pytest.approx(float(jet.second.value), rel=1e-5, abs=1e-9 / k)


def test_a_scale_invariant_activation_of_the_user_gets_its_closed_form():
    assert closed_form(Activation("mine", lambda z: jnp.where(z > 0, 2 * z, 0.5 * z))) is not None
    assert closed_form(activation("tanh")) is None


@pytest.mark.parametrize(
    ("covariance", "sentence"),
    [
        ([1.0, 1.0, 2.0], "no covariance has"),
        ([-1.0, 1.0, 0.0], "no covariance has"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([1.0, 1.0, np.nan], "finite"),
        ([1.0, 1.0], "shape"),
    ],
)
def test_what_is_no_covariance_gets_one_sentence(covariance, sentence):
    with pytest.raises(UserError, match=sentence):
        covariance_map(activation("tanh"), covariance)


def test_growth_beyond_the_gaussian_is_named():
    explosive = Activation("exp(z²)", lambda z: jnp.exp(z**2))
    with pytest.raises(UserError, match="grows"):
        covariance_map(explosive, [4.0, 4.0, 1.0])
    with pytest.raises(UserError, match="variance"):
        variance_map(activation("tanh"), 0.0)


def test_a_tolerance_that_cannot_be_met_says_which_can():
    saw = Activation("fast sine", lambda z: jnp.sin(40 * z) + jnp.abs(z - 0.123))
    with pytest.raises(UserError, match="could; declare its kinks"):
        covariance_map(saw, [100.0, 100.0, 1.0], tolerance=1e-12)
