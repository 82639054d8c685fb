"""Margins and steps of ntk-margin-guarantee: drawn neurons, programs, an integrated equation, autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.claims.descent.ntk_margin_guarantee.experiment import (
    cube,
    feature_kernel,
    feature_margins,
    frozen_steps,
    samples_to,
    steps_to,
    trained_steps,
)
from steepest.programs import feature_margin, kernel_margin


def test_margins_of_a_parity_are_those_of_the_programs_on_many_neurons():
    x, y = cube(3)
    margins = feature_margins(x, y)
    weights = np.random.default_rng(1).normal(size=(20_000, 3))
    frobenius = kernel_margin(feature_kernel(x, weights), y).margin
    assert margins.frobenius == pytest.approx(frobenius, rel=0.02)
    assert margins.neuron == pytest.approx(feature_margin(x, y, weights).value, rel=0.02)
    assert feature_margins(*cube(2)).frobenius == pytest.approx(np.sqrt(1 / 8), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 0.01])
def test_the_steps_are_the_time_of_the_one_equation(epsilon):
    """ż = γ² σ(−z) from zero, until log(1 + e^{−z}) = ε."""
    arrived = lambda t, z: np.logaddexp(0, -z[0]) - epsilon
    arrived.terminal = True
    run = solve_ivp(
        lambda t, z: 0.5**2 / (1 + np.exp(z)),
        (0, 1e4),
        [0.0],
        events=arrived,
        rtol=1e-10,
        atol=1e-12,
    )
    assert run.t_events[0][0] == pytest.approx(steps_to(epsilon, 0.5), rel=1e-6)


def test_frozen_steps_count_the_first_step_at_each_risk():
    """One example: margins by a loop of its own."""
    kernel = np.array([[[0.7]]])
    first = frozen_steps(kernel, np.array([1.0]), np.array([[0.2]]), (0.5, 0.1))
    margin = 0.2
    risks = []
    for _ in range(60):
        risks.append(np.logaddexp(0, -margin))
        margin += 0.7 / (1 + np.exp(margin))
    assert first[0].tolist() == [np.argmax(np.array(risks) <= e) for e in (0.5, 0.1)]


def test_trained_steps_are_those_of_plain_descent_and_padding_changes_nothing():
    x, y = cube(2)
    key = jax.random.key(3)
    wide = np.zeros((6, 2))
    wide[:4] = x
    labels = np.append(y, [1.0, 1.0])
    share = np.array([0.25] * 4 + [0.0] * 2)
    run = jax.jit(lambda x, y, share: trained_steps(x, y, share, key, 8, 8, jnp.array([0.5, 0.3])))
    first, moved = run(wide, labels, share)
    for_weights, for_signs = jax.random.split(key)
    weights = np.asarray(jax.random.normal(for_weights, (8, 2), jnp.float32), float)
    start = weights.copy()
    signs = np.asarray(jax.random.rademacher(for_signs, (8,), jnp.float32), float) / np.sqrt(8)
    steps = []
    for _ in range(int(first[-1]) + 1):
        before = x @ weights.T
        margins = y * (np.maximum(before, 0) @ signs)
        steps.append(np.logaddexp(0, -margins).mean())
        pull = y / (1 + np.exp(margins)) / 4
        weights = weights + signs[:, None] * ((before > 0) * pull[:, None]).T @ x
    assert np.argmax(np.array(steps) <= 0.5) == first[0]
    assert np.argmax(np.array(steps) <= 0.3) == first[1]
    assert np.linalg.norm(weights - start, axis=1).max() == pytest.approx(float(moved), rel=1e-3)


def test_samples_are_those_of_descent_on_the_weights_of_the_features():
    """Point by point on explicit features of one set of neurons; more than one set goes on side by side."""
    rng = np.random.default_rng(0)
    x, y = cube(3)
    neurons = rng.standard_normal((2, 50, 3))
    kernels = np.stack([feature_kernel(x, w) for w in neurons])
    outputs = rng.standard_normal((2, 8)) / 3
    samples = samples_to(kernels, y, outputs, (0.3, 0.1), np.random.default_rng(1))
    draws = np.random.default_rng(1)
    fresh = np.array([draws.integers(8, size=2) for _ in range(2000)])
    for i, w in enumerate(neurons):
        features = ((x @ w.T > 0)[:, :, None] * x[:, None]).reshape(8, -1) / np.sqrt(50)
        weights = np.zeros(150)
        risks = []
        for j in fresh[:, i]:
            margins = y * (features @ weights + outputs[i])
            risks.append(np.log(1 + np.exp(-margins)).mean())
            weights = weights + y[j] * features[j] / (1 + np.exp(margins[j]))
        expected = [np.argmax(np.array(risks) <= epsilon) for epsilon in (0.3, 0.1)]
        np.testing.assert_array_equal(samples[i], expected)
