"""What the claim about the Gaussian limit rests on: Σ to first order in 1/n, its kernel, and the draws."""

from typing import Any

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.signals._three_inputs import (
    COMBINATIONS,
    characteristic,
    frequencies,
    matrix_of,
    on_entries,
    three_images,
)
from steepest.claims.signals.nngp_limit.experiment import draw_covariances, moments
from steepest.claims.signals.nngp_limit.theory import (
    Case,
    characteristic_shift,
    first_order,
    kurtosis,
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
    off = 60 * (of_networks["cosine"] - characteristic(order.kernel, u)).mean(1)
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
