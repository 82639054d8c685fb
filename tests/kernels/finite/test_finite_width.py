"""Corrections of order 1/n against sampled networks, closed forms, derivatives of the map and exact asymptotics."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import chi_parallel, criticality, planar_inputs
from steepest.kernels.finite._finite_width import (
    finite_width,
    homogeneous_kurtosis,
    recommended_width,
    variance_curvature,
)
from steepest.nn.activations import activation, gaussian_mean
from steepest.nn.networks import sample_grams

CASES = [("tanh", 1.5, 0.1), ("gelu", 1.9, 0.2), ("elu", 1.2, 0.05), ("relu", 2.0, 0.1)]
NETWORKS = 8_000
WIDTH = 200
DEPTH = 6
START = 1.0


@cache
def sampled(name, c_w, c_b, width=WIDTH, depth=DEPTH, networks=NETWORKS):
    """Empirical variances G = (1/n) Σ z² of one input, shape (networks, layers)."""
    x = planar_inputs(START, c_w, c_b, (1.0, 0.3)).astype(jnp.float32)
    grams = sample_grams(jax.random.key(2), networks, activation(name), c_w, c_b, width, depth, x)
    return np.asarray(grams[:, :, 0, 0], float)


@pytest.mark.parametrize("case", CASES)
def test_mean_and_variance_of_sampled_networks(case):
    """E G = K + δ and Var G = Var Σ (1 + 2/n) + (2/n)(K + δ)² in every layer within four standard errors."""
    found = finite_width(activation(case[0]), *case[1:], START, (WIDTH,) * DEPTH)
    grams = sampled(*case)
    mean = found.kernel + found.mean_shift
    error = grams.std(axis=0) / np.sqrt(NETWORKS)
    assert np.abs((grams.mean(axis=0) - mean) / error).max() <= 4
    squares = (grams - grams.mean(axis=0)) ** 2
    expected = found.variance * (1 + 2 / WIDTH) + 2 / WIDTH * mean**2
    assert (
        np.abs((squares.mean(axis=0) - expected) / (squares.std(axis=0) / np.sqrt(NETWORKS))).max()
        <= 4
    )


def test_sampling_sees_the_corrections():
    """Where a correction is large, networks agree with it and not with the limit: the test above has power."""
    width = 400
    depth = 24
    found = finite_width(activation("tanh"), 1.0, 0.0, START, (width,) * depth)
    last = sampled("tanh", 1.0, 0.0, width, depth)[:, -1]
    error = last.std() / np.sqrt(NETWORKS)
    assert abs(last.mean() - found.kernel[-1] - found.mean_shift[-1]) <= 4 * error
    assert abs(last.mean() - found.kernel[-1]) > 4 * error
    grams = sampled(*CASES[0])[:, -1]
    kernel = finite_width(activation("tanh"), 1.5, 0.1, START, (WIDTH,) * DEPTH).kernel
    squares = (grams - grams.mean()) ** 2
    assert abs(squares.mean() - 2 / WIDTH * kernel[-1] ** 2) > 4 * squares.std() / np.sqrt(NETWORKS)


@pytest.mark.parametrize(
    ("name", "factor"), [("relu", 5), ("linear", 2), ("leaky_relu(0.5)", 2 + 27 / 25)]
)
def test_homogeneous_kurtosis_is_the_correction_up_to_second_order(name, factor):
    """3 (Π(1 + κ/n_l) − 1) − kurtosis falls four times when every width doubles."""
    widths = np.array([100, 70, 130])
    gaps = []
    for scale in (1, 2, 4):
        exact = 3 * (homogeneous_kurtosis(activation(name), scale * widths) - 1)
        gaps.append(
            exact - finite_width(activation(name), 1.7, 0.0, 0.6, scale * widths).kurtosis[-1]
        )
    assert homogeneous_kurtosis(activation(name), (100,)) == pytest.approx(
        1 + factor / 100, rel=1e-12
    )
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.02)
    assert gaps[1] / gaps[2] == pytest.approx(4, rel=0.02)


def test_homogeneous_kurtosis_of_narrow_networks():
    """E Σ²/(E Σ)² = 2.25 at two layers of width ten: E G² = E Σ² (1 + 2/n), and E G = K exactly."""
    networks = 60_000
    squares = sampled("relu", 2.0, 0.0, 10, 2, networks)[:, 2] ** 2 / START**2 / (1 + 2 / 10)
    error = squares.std() / np.sqrt(networks)
    assert abs(squares.mean() - homogeneous_kurtosis(activation("relu"), (10, 10))) <= 4 * error
    assert abs(squares.mean() - 2.0) > 4 * error  # first order alone, 1 + 5/10 + 5/10


@pytest.mark.parametrize("name", ["tanh", "gelu", "elu", "relu", "softplus"])
def test_curvature_is_the_derivative_of_the_slope(name):
    """F'' = dχ∥/dK, by differences."""
    k = jnp.array([0.05, 1.0, 9.0])
    slope, bend = (jax.jit(f, static_argnums=0) for f in (chi_parallel, variance_curvature))
    below, above = slope(activation(name), 1.3, jnp.stack([0.999 * k, 1.001 * k]))
    np.testing.assert_allclose(
        bend(activation(name), 1.3, k), (above - below) / (0.002 * k), rtol=1e-5, atol=1e-9
    )


def test_curvature_of_closed_forms():
    """The map of erf is C_W (2/π) arcsin(2K/(1 + 2K)), that of the square 3 C_W K²; batches keep their shape."""
    erf = lambda k: 2 / np.pi * jnp.arcsin(2 * k / (1 + 2 * k))
    k = jnp.array([[1e-3, 0.1], [1.0, 20.0]])
    twice = jax.vmap(jax.vmap(jax.grad(jax.grad(erf))))(k)
    np.testing.assert_allclose(variance_curvature(activation("erf"), 1.0, k), twice, rtol=1e-9)
    np.testing.assert_allclose(variance_curvature(activation("quadratic"), 2.0, k), 12.0, rtol=1e-9)


def test_critical_tanh_tends_to_its_asymptotes():
    """With K = 1/(2l), F'' = −4 and χ∥ = 1 − 2/l: n Var Σ/K² → (2/3) l and n δ/K → −l/3, logarithms slow."""
    found = finite_width(activation("tanh"), 1.0, 0.0, 1.0, (1,) * 4000)
    variance = found.variance / found.kernel**2
    shift = found.mean_shift / found.kernel
    assert (variance[4000] - variance[2000]) / 2000 == pytest.approx(2 / 3, rel=0.01)
    assert (shift[4000] - shift[2000]) / 2000 == pytest.approx(-1 / 3, rel=0.01)
    assert shift[64] / 64 == pytest.approx(-0.3038, abs=1e-4)  # still on the way there at l = 64


def test_figures_of_gelu_at_criticality():
    """After 64 layers the shift is +66/n from K = 2 but −5/n from K* itself: the start matters."""
    gelu = activation("gelu")
    c = criticality(activation("gelu"))
    for start, shift in ((2.0, 65.78), (c.k_star, -5.06)):
        found = finite_width(gelu, c.c_w, c.c_b, start, (1,) * 64)
        assert found.mean_shift[-1] / found.kernel[-1] == pytest.approx(shift, abs=0.01)


def test_one_layer_is_a_gaussian_integral():
    """After one hidden layer Var Σ = C_W² Var σ²/n and nothing is shifted."""
    σ = activation("elu")
    k = 1.4
    second, fourth = (
        float(gaussian_mean(lambda z, p=p: σ(z) ** p, k, σ.kinks).value) for p in (2, 4)
    )
    found = finite_width(σ, 1.3, 0.2, k, (50,))
    assert found.kernel[1] == pytest.approx(0.2 + 1.3 * second, rel=1e-12)
    assert found.variance[1] == pytest.approx(1.3**2 * (fourth - second**2) / 50, rel=1e-12)
    assert found.mean_shift[1] == 0


def test_corrections_are_proportional_to_one_over_the_width():
    one, other = (finite_width(activation("gelu"), 1.8, 0.1, 2.0, (n,) * 9) for n in (1, 64))
    for name in ("variance", "kurtosis", "mean_shift"):
        np.testing.assert_allclose(getattr(one, name), 64 * getattr(other, name), rtol=1e-12)


@pytest.mark.parametrize("name", ["tanh", "relu", "softplus", "elu"])
def test_an_input_of_zero_gives_no_nan(name):
    found = finite_width(activation(name), 1.5, 0.0, 0.0, (10, 10, 10))
    for values in (found.kernel, found.variance, found.kurtosis, found.mean_shift):
        assert np.all(np.isfinite(values))
    assert found.variance[1] == 0


def test_small_variances_lose_no_digits():
    """A tanh network far below its nonlinearity is linear: kurtosis 3 · 2 Σ1/n, no shift."""
    found = finite_width(activation("tanh"), 1.0, 0.0, 1e-12, (10,) * 20)
    np.testing.assert_allclose(found.kurtosis, 0.6 * np.arange(21), rtol=1e-6)
    assert np.abs(found.mean_shift / found.kernel).max() < 1e-9


@pytest.mark.parametrize("case", [*CASES, ("tanh", 1.0, 0.0)])
@pytest.mark.parametrize("accuracy", [0.3, 0.05])
def test_recommended_width_is_the_smallest(case, accuracy):
    """At that width both errors are within the accuracy, one neuron fewer and one of them is not."""
    σ = activation(case[0])
    depth = 12

    def worst(width):
        found = finite_width(σ, *case[1:], START, (width,) * depth)
        return max(np.sqrt(found.variance[-1]), abs(found.mean_shift[-1])) / found.kernel[-1]

    width = recommended_width(σ, *case[1:], START, depth, accuracy)
    assert worst(width) <= accuracy * (1 + 1e-9) < worst(width - 1)


def test_bad_requests_are_refused_in_one_sentence():
    σ = activation("tanh")
    with pytest.raises(UserError, match="C_W"):
        finite_width(σ, -1.0, 0.0, 1.0, (10,))
    with pytest.raises(UserError, match="first layer's variance"):
        finite_width(σ, 1.0, 0.0, -1.0, (10,))
    with pytest.raises(UserError, match="widths"):
        finite_width(σ, 1.0, 0.0, 1.0, (10, 0))
    with pytest.raises(UserError, match="accuracy"):
        recommended_width(σ, 1.0, 0.0, 1.0, 5, 1.5)
    with pytest.raises(UserError, match="kernel is 0"):
        recommended_width(σ, 1.0, 0.0, 0.0, 5, 0.1)
    with pytest.raises(UserError, match="scale-invariant"):
        homogeneous_kurtosis(σ, (10,))
