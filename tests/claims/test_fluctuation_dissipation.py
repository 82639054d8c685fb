"""What a run averages, against moments from the table of all gradients."""

import jax
import numpy as np
import pytest

from steepest.claims.noise.fluctuation_dissipation.claim import FluctuationDissipation
from steepest.claims.noise.fluctuation_dissipation.experiment import averages, minimum, patients
from steepest.noise import gradient_moments


@pytest.mark.parametrize("logistic", [False, True])
def test_averages_of_one_step_are_those_of_the_table(logistic):
    x, y = patients(128)
    w, _ = minimum(x, y, 0.1, logistic)
    start = w + np.linspace(-0.5, 0.5, w.size)
    lr = 0.2
    early, _ = averages(
        x, y, 0.1, float(logistic), w, start, lr, 32, jax.random.key(0), burn=1, steps=1
    )

    def risk(theta, x, y):
        output = x @ theta
        loss = jax.nn.softplus(-y * output) if logistic else (output - y) ** 2 / 2
        return loss.mean() + 0.05 * theta @ theta

    gradients = jax.vmap(jax.grad(risk), (None, 0, 0))(start, x[:, None], y[:, None])
    hessian = jax.hessian(risk)(start, x, y)
    moments = gradient_moments(np.asarray(gradients), 32)
    replaced = gradient_moments(np.asarray(gradients), 32, "replacement")
    assert np.allclose(early.alignment, (start - w) @ moments.mean)
    assert np.allclose(early.dissipation, lr / 2 * np.trace(moments.second))
    assert np.allclose(early.covariance, lr / 2 * np.trace(moments.covariance))
    assert np.allclose(early.replaced, lr / 2 * np.trace(replaced.second))
    assert np.allclose(early.slope, moments.mean @ moments.mean)
    assert np.allclose(early.curved, lr / 2 * np.trace(hessian @ moments.second))
    assert np.allclose(early.curved_covariance, lr / 2 * np.trace(hessian @ moments.covariance))


def test_minimum_is_one():
    x, y = patients(128)
    w, hessian = minimum(x, y, 0.1, True)
    slope = (-y / (1 + np.exp(y * (x @ w)))) @ x / 128 + 0.1 * w
    assert np.abs(slope).max() < 1e-12
    assert np.linalg.eigvalsh(hessian)[0] > 0.1


def test_a_step_beyond_finite_second_moments_is_out_of_range():
    claim = FluctuationDissipation(shares=(0.95,))
    assumed = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert not all(hypothesis.holds for hypothesis in assumed)
