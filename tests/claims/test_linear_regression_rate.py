"""Descents of linear-regression-rate against closed forms and dense powers."""

import jax
import numpy as np
import pytest

from steepest.claims.descent._least_squares import diabetes, follow, steps_to_target
from steepest.claims.descent.linear_regression_rate.claim import LinearRegressionRate
from steepest.claims.descent.linear_regression_rate.experiment import late_rate

RNG = np.random.default_rng(0)
VALUES = np.array([1.0, 0.4, 0.05])
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
GRAM = (TURN * VALUES) @ TURN.T
START = RNG.normal(size=3)


def test_descent_is_its_closed_form():
    """‖θ_t − θ*‖² = Σ w_i² (1 − ηλ_i)^{2t} to rounding."""
    path = follow(GRAM[None], START[None], 1.7, 0.0, 60)[0]
    powers = (1 - 1.7 * VALUES) ** (2 * np.arange(61)[:, None])
    np.testing.assert_allclose(path**2, powers @ (START @ TURN) ** 2, rtol=1e-9)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_powers_of_the_companion_matrix(nesterov):
    step, momentum = 0.8, 0.6
    path = follow(GRAM[None], START[None], step, momentum, 40, nesterov)[0]
    eye = np.eye(3)
    kept = eye - step * GRAM
    first = (1 + momentum) * kept if nesterov else kept + momentum * eye
    second = -momentum * kept if nesterov else -momentum * eye
    matrix = np.block([[first, second], [eye, 0 * eye]])
    state = np.concatenate([START, START])
    lengths = []
    for _ in range(41):
        lengths.append(np.linalg.norm(state[:3]))
        state = matrix @ state
    np.testing.assert_allclose(path, lengths, rtol=1e-9)


def test_readings_of_a_known_path():
    t = np.arange(200)
    path = np.exp(-0.1 * t)[None]
    assert late_rate(path)[0] == pytest.approx(0.1)
    assert steps_to_target(path)[0] == np.ceil(6 * np.log(10) / 0.1)
    assert np.isinf(steps_to_target(path[:, :50])[0])


def test_conditions_are_those_of_the_remark():
    setting = LinearRegressionRate().setting(jax.random.key(0))
    conditions = []
    for gram in setting.real:
        eigenvalues = np.linalg.eigvalsh(gram)
        conditions.append(eigenvalues[-1] / eigenvalues[0])
    assert conditions[0] == pytest.approx(470, abs=0.5)
    assert conditions[1] == pytest.approx(99_828, rel=1e-3)
    assert diabetes().shape == (442, 10)


def test_problems_have_their_condition():
    claim = LinearRegressionRate(kappas=(10.0, 50.0, 70.0), seeds=3)
    for kappa, grams in zip(claim.kappas, claim.setting(jax.random.key(1)).grams, strict=True):
        for gram in grams:
            assert np.linalg.cond(gram) == pytest.approx(kappa)
