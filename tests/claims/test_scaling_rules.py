"""Stationary risks: fixed points against the recursions they end, gradients against autodiff, steps against optax."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray

from steepest.claims.training.scaling_rules import experiment, theory
from steepest.claims.training.scaling_rules.claim import ScalingRules
from steepest.claims.training.scaling_rules.experiment import Rule
from tests.claims.numpy_points import KEY, generator, observed_at

CURVATURES = np.array([1.0, 0.5, 0.3])


def test_gradient_noise_of_gaussian_examples():
    """One example has the second moment 2HVH + tr(HV)H + H of its gradient, whatever V is the error's."""
    rng = np.random.default_rng(0)
    size = 300_000
    error = np.array([0.7, -0.4, 0.2])
    x = np.sqrt(CURVATURES) * rng.standard_normal((size, 3))
    gradients = (x @ error - rng.standard_normal(size))[:, None] * x
    pull = CURVATURES * error
    wanted = 2 * np.outer(pull, pull) + (error @ pull + 1) * np.diag(CURVATURES)
    np.testing.assert_allclose(gradients.T @ gradients / size, wanted, atol=0.02)


@pytest.mark.parametrize("batch", [1, 4, 32])
def test_risk_of_sgd_is_where_the_second_moment_stays(batch):
    eta = 0.3
    hessian = np.diag(CURVATURES)
    step = np.eye(3) - eta * hessian
    moment = np.zeros((3, 3))
    for _ in range(400):
        noise = hessian @ moment @ hessian + (np.trace(hessian @ moment) + 1) * hessian
        moment = step @ moment @ step + eta**2 / batch * noise
    wanted = np.trace(hessian @ moment) / 2
    assert theory.sgd_risk(CURVATURES, batch, eta) == pytest.approx(wanted, rel=1e-9)


def test_risk_of_adam_is_where_momentum_on_noise_stays():
    """With v held at its mean, weights and average are a linear system of two variables, whose variance is Adam's."""
    batch = 6
    eta = 0.1
    beta = 0.8
    wanted = theory.adam_risk(CURVATURES, batch, eta, beta)
    moments = np.zeros((3, 2, 2))
    for _ in range(3000):
        variances = moments[:, 0, 0]
        total = CURVATURES @ variances
        noises = CURVATURES / batch * (1 + total + CURVATURES * variances)
        steps = eta / np.sqrt(CURVATURES**2 * variances + noises)
        new = []
        for curvature, step, noise, moment in zip(CURVATURES, steps, noises, moments, strict=True):
            on_average = np.array([(1 - beta) * curvature, beta])
            matrix = np.array([[1.0, 0.0] - step * on_average, on_average])
            push = (1 - beta) * np.array([-step, 1.0])
            new.append(matrix @ moment @ matrix.T + noise * np.outer(push, push))
        moments = np.array(new)
    assert wanted == pytest.approx(CURVATURES @ moments[:, 0, 0] / 2, rel=1e-6)


def test_adams_step_has_its_size_near_the_limit_of_stability():
    noise = np.array([0.01, 0.3, 2.0])
    memory = 0.5
    step = theory.adam_step(CURVATURES, noise, 3.0, memory)
    variances = step * noise / (CURVATURES * (2 - step * CURVATURES * memory))
    assert (variances > 0).all()
    np.testing.assert_allclose(step * np.sqrt(CURVATURES**2 * variances + noise), 3.0)


def test_both_risks_tend_to_the_rules():
    small = 1e-4
    sgd, adam = theory.small_step_risks(CURVATURES, 5, small)
    assert theory.sgd_risk(CURVATURES, 5, small) == pytest.approx(sgd, rel=1e-3)
    assert theory.adam_risk(CURVATURES, 5, small, 0.9) == pytest.approx(adam, rel=1e-3)


def test_exponents_of_small_steps_are_one_and_a_half():
    claim = ScalingRules(sgd_step=1e-4, adam_step=1e-4)
    exponents = claim.predict(claim.setting(jax.random.key(0)))["exponent"]
    np.testing.assert_allclose(exponents, [[1.0] * 2, [0.5] * 2, [0.5] * 2], atol=2e-3)


def test_gradients_are_those_of_half_the_mean_square():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 5, 3))
    y = rng.standard_normal((2, 5))
    weights = rng.standard_normal((2, 3, 4))

    def risk(weights):
        return 0.5 * ((x @ weights - y[..., None]) ** 2).mean(1).sum()

    with jax.enable_x64(True):
        wanted = jax.grad(risk)(jnp.asarray(weights))
    np.testing.assert_allclose(experiment.gradient(x, y, weights), wanted, atol=1e-12)


def test_steps_are_those_of_optax():
    rule = Rule(
        adam=np.array([0.0, 1.0]),
        eta=np.array([0.2, 0.05]),
        beta1=np.array([0.9, 0.8]),
        beta2=np.array([0.99, 0.95]),
    )
    steps = 6
    late = experiment.late_risks(np.random.default_rng(2), CURVATURES, 4, rule, 1, steps, steps - 1)
    optimizers = [optax.sgd(0.2), optax.adam(0.05, 0.8, 0.95, experiment.EPSILON)]
    for column, optimizer in enumerate(optimizers):
        rng = np.random.default_rng(2)
        weights = jnp.zeros(3)
        state = optimizer.init(weights)
        for _ in range(steps):
            x = np.sqrt(CURVATURES) * rng.standard_normal((1, 4, 3))[0]
            y = rng.standard_normal((1, 4))[0]
            slope = x.T @ (x @ np.asarray(weights) - y) / 4
            update, state = optimizer.update(jnp.asarray(slope), state)
            weights = optax.apply_updates(weights, update)
        wanted = 0.5 * CURVATURES @ np.asarray(weights) ** 2
        assert late[0, column] == pytest.approx(wanted, rel=1e-4)


def test_exponents_are_read_off_a_power_law():
    claim = ScalingRules()
    powers = np.array(claim.powers)
    factor = np.array([1.0, 4.0, 16.0])[:, None]
    risk = np.broadcast_to(factor ** (2 * powers - 0.8), (3, 3, 3, len(powers)))
    law = xarray.Dataset(coords={"optimizer": list("abc"), "factor": [4.0, 16.0]})
    measured = xarray.DataArray(risk, dims=("seed", "optimizer", "batch", "power"))
    np.testing.assert_allclose(claim.exponents(law, measured), 0.4, atol=1e-9)


def test_the_point_is_one_batch_of_the_claim():
    claim = ScalingRules(
        dimension=3, batches=(4, 16), powers=(0.5, 1.0), steps=60, burn_in=30, seeds=3
    )
    setting = claim.setting(KEY)
    point = ScalingRules.point.of(replace(claim, batches=(16,)))
    rules = claim.rules(4.0)
    wanted = experiment.late_risks(generator(), setting.curvatures, 16, rules, 3, 60, 30)
    observed = observed_at(point, point.setting(KEY))
    np.testing.assert_allclose(observed["sgd"], wanted[:, 0])
    np.testing.assert_allclose(observed["adam"], wanted[:, 2])
    law = ScalingRules(batches=(4, 16, 64)).predict(ScalingRules().setting(KEY))
    curvatures = ScalingRules().setting(KEY).curvatures
    kept = [
        ScalingRules.point.of(ScalingRules()).keeping_exponents(curvatures, b) for b in (16, 64)
    ]
    np.testing.assert_allclose(np.transpose(kept), law["exponent"][:2], atol=1e-6)
