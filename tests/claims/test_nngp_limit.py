"""What the claim about the Gaussian limit rests on: Σ to first order in 1/n, the kurtosis of signs, and the draws."""

import itertools
from typing import Any

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.signals.nngp_limit.experiment import (
    GROWTH_C_W,
    _signs,
    draw_covariances,
    draw_relu_outputs,
    draw_wide,
    largest_shares,
    moments,
    of_variance,
    three_images,
)
from steepest.claims.signals.nngp_limit.theory import (
    COMBINATIONS,
    Case,
    characteristic,
    characteristic_shift,
    exponential_kernel,
    first_order,
    frequencies,
    kurtosis,
    kurtosis_of_signs,
    matrix_of,
    on_entries,
)
from steepest.kernels import finite_width
from steepest.nn.activations import activation

RELU = Case(activation("relu"), 2.0, 0.0)
TANH = Case(activation("tanh"), 1.5, 0.1)
INPUTS = three_images()


@pytest.mark.parametrize("case", [RELU, TANH], ids=["relu", "tanh"])
def test_one_input_alone_is_as_in_the_library(case):
    """Variance and shift of the diagonal against the corrections of one input in two hidden layers."""
    order = first_order(case, INPUTS, 2)
    for i, start in enumerate((INPUTS**2).mean(1) * case.c_w + case.c_b):
        corrections = finite_width(*case, float(start), (1, 1))
        of_diagonal = 3 * order.spread[i, i] / order.kernel[i] ** 2
        assert of_diagonal == pytest.approx(float(corrections.kurtosis[-1]), rel=0.04)
    assert kurtosis(TANH, INPUTS, [1], 2)[0] == pytest.approx(1.7, rel=0.05)
    if case is RELU:
        np.testing.assert_allclose(order.shift[:3], 0, atol=1e-3)


def test_the_kernel_of_relu_is_the_arc_cosine():
    order = first_order(RELU, INPUTS, 1)
    x = INPUTS / np.linalg.norm(INPUTS, axis=1, keepdims=True)
    cosine = float(x[0] @ x[1])
    angle = np.arccos(cosine)
    size = np.sqrt((2 * INPUTS**2).mean(1))
    expected = size[0] * size[1] * (np.sin(angle) + (np.pi - angle) * cosine) / np.pi
    assert order.kernel[3] == pytest.approx(expected)


@pytest.mark.parametrize("hidden", [1, 2, 3])
def test_the_departure_is_that_of_wide_networks(hidden):
    """Mean over frequencies, of 20 000 networks of 60 tanh neurons a layer."""
    order = first_order(TANH, INPUTS, hidden)
    u = frequencies(order.kernel)
    drawn = draw_covariances(TANH, INPUTS, 60, hidden, 20_000, np.random.default_rng(1))[0]
    of_networks = moments(drawn, u, 10)
    off = 60 * (of_networks.cosine - characteristic(order.kernel, u)).mean(1)
    error = off.std(ddof=1) / np.sqrt(10)
    assert off.mean() == pytest.approx(characteristic_shift(order, u).mean(), abs=4 * error + 0.01)


def test_the_characteristic_function_is_that_of_samples():
    order = first_order(RELU, INPUTS, 2)
    u = frequencies(order.kernel)
    assert len(COMBINATIONS) == 13
    z = np.random.default_rng(0).multivariate_normal(np.zeros(3), matrix_of(order.kernel), 200_000)
    cosines = np.cos(z @ u.T)
    errors = cosines.std(0) / np.sqrt(len(z))
    assert (np.abs(cosines.mean(0) - characteristic(order.kernel, u)) < 4 * errors).all()
    a = np.random.default_rng(1).normal(size=(3, 3))
    entries = (a + a.T)[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    np.testing.assert_allclose(on_entries(u) @ entries, np.einsum("ua,ab,ub->u", u, a + a.T, u))


def test_kurtosis_of_signs_in_closed_form():
    """ReLU: 3/n with one hidden layer, 18/n − 9/n² with two."""
    for n in (1, 8, 50):
        assert kurtosis_of_signs(n, 1) == pytest.approx(3 / n)
        assert kurtosis_of_signs(n, 2) == pytest.approx(18 / n - 9 / n**2)


def test_kurtosis_of_signs_by_all_matrices():
    """Two ReLU layers of width two: every sign matrix and readout, Gaussian quadrature for the first layer."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    first = np.array(list(itertools.product(nodes, repeat=2)))
    mass = np.array([a * b for a, b in itertools.product(weights, repeat=2)])
    second = fourth = 0.0
    signs = list(itertools.product((-1.0, 1.0), repeat=6))
    for row in signs:
        matrix = np.reshape(row[:4], (2, 2))
        hidden = np.maximum(np.maximum(first, 0) @ matrix, 0)
        z = hidden @ np.array(row[4:])
        second += mass @ z**2 / len(signs)
        fourth += mass @ z**4 / len(signs)
    # the kink of the second layer costs the quadrature some accuracy
    assert fourth / second**2 - 3 == pytest.approx(kurtosis_of_signs(2, 2), rel=0.01)


def test_signs_are_fair_and_independent():
    draws = _signs(np.random.default_rng(0), (400, 101))
    assert set(np.unique(draws)) == {-1.0, 1.0}
    z = draws.sum() / np.sqrt(draws.size)
    lag = (draws[:, 1:] * draws[:, :-1]).sum() / np.sqrt(draws[:, 1:].size)
    assert abs(z) < 4 and abs(lag) < 4


@pytest.mark.parametrize("signs", [True, False])
def test_explicit_networks_have_the_kernel(signs):
    """With one hidden layer E z z' is K at every width, whatever the law of the weights."""
    drawn = draw_relu_outputs(INPUTS, 5, 1, 4, 20_000, np.random.default_rng(2), signs=signs)
    products = np.einsum("kao,kbo->kab", drawn, drawn) / 4
    errors = products.std(0) / np.sqrt(len(products))
    assert (
        np.abs(products.mean(0) - matrix_of(first_order(RELU, INPUTS, 1).kernel)) < 4 * errors
    ).all()


def test_a_departure_like_another_power_is_refuted():
    """The exponent −3/2 of the discrepancy, that is n^(−3/4), and the departure of one hidden layer less."""
    claim: Any = load("nngp-limit")()
    key = jax.random.key(0)
    setting = claim.setting(key)
    law = claim.predict(setting)
    seen = claim.observe(setting, key)
    verdict = {check.id: str(check.verdict) for check in claim.checks(law, seen)}
    assert set(verdict.values()) == {"holds"}
    widths = np.array(claim.widths) / claim.widths[0]
    slower = law["departure"] * widths**0.25
    wrong = law.replace(departure=("activation width", slower))
    verdict = {check.id: str(check.verdict) for check in claim.checks(wrong, seen)}
    assert verdict["joint_exponent"] != "holds"
    fewer = law.replace(departure=("activation width", law["departure"] / 2))
    assert {c.id: str(c.verdict) for c in claim.checks(fewer, seen)}["joint_departure"] == "fails"


def test_the_kernel_of_exponentials_by_quadrature():
    """E exp(z_a + z_b) by 40 × 40 nodes, layer by layer."""
    inputs = of_variance(INPUTS, 0.8)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    kernel = GROWTH_C_W * inputs @ inputs.T / 64
    assert kernel.diagonal().max() == pytest.approx(0.8)
    for _ in range(2):
        after = np.empty((3, 3))
        for a, b in itertools.product(range(3), repeat=2):
            if a == b:
                z = np.sqrt(kernel[a, a]) * nodes
                after[a, a] = GROWTH_C_W * weights @ np.exp(z) ** 2
                continue
            root = np.linalg.cholesky(kernel[np.ix_([a, b], [a, b])])
            first = root[0, 0] * nodes[:, None]
            second = root[1, 0] * nodes[:, None] + root[1, 1] * nodes
            after[a, b] = GROWTH_C_W * weights @ (np.exp(first) * np.exp(second)) @ weights
        kernel = after
    deep = matrix_of(exponential_kernel(GROWTH_C_W, inputs, 2))
    np.testing.assert_allclose(deep, kernel, rtol=1e-6)
    bare = GROWTH_C_W * np.exp(GROWTH_C_W * inputs @ inputs.T / 64)
    shallow = matrix_of(exponential_kernel(GROWTH_C_W, inputs, 1, bare=True))
    np.testing.assert_allclose(shallow, bare)


def test_wide_draws_are_those_of_explicit_networks():
    """With neurons |z|, and outputs by explicit matrices: 4000 networks of 5 neurons a layer."""
    rng = np.random.default_rng(4)
    inputs = of_variance(INPUTS, 0.8)
    u = frequencies(GROWTH_C_W**2 * np.ones(6))
    drawn = draw_wide(lambda z: np.log(np.abs(z)), inputs, u, (10, 400, 5), rng)
    scale = np.sqrt(GROWTH_C_W / 5)
    z = np.sqrt(GROWTH_C_W / 64) * inputs @ rng.standard_normal((4000, 64, 5))
    z = scale * np.abs(z) @ rng.standard_normal((4000, 5, 5))
    z = scale * np.abs(z) @ rng.standard_normal((4000, 5, 1))
    cosines = np.cos(z[..., 0] @ u.T)
    errors = np.hypot(cosines.std(0) / 4000**0.5, drawn.cosine.std(0) / 10**0.5)
    assert (np.abs(cosines.mean(0) - drawn.cosine.mean(0)) < 4 * errors).all()
    assert drawn.cosine.mean() < 0.9


def test_shares_are_those_of_sums():
    """At a small variance nothing overflows: five networks by plain sums, and one alone."""
    deep, shallow = largest_shares(0.2, (3,), 4, 1, np.random.default_rng(0))
    np.testing.assert_allclose([deep, shallow], 1.0)
    deep, shallow = largest_shares(0.2, (3,), 1, 5, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    first = GROWTH_C_W * np.exp(0.2**0.5 * rng.standard_normal((5, 3))) ** 2
    variance = first.mean(1)
    second = GROWTH_C_W * (
        np.exp(variance[:, None] ** 0.5 * rng.standard_normal((5, 3))) ** 2
    ).mean(1)
    assert shallow[0, 0] == pytest.approx(variance.max() / variance.sum())
    assert deep[0, 0] == pytest.approx(second.max() / second.sum())
