"""Gradients, Clarke's sets near by and noisy steps of stochastic-subgradients, each in another way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

from steepest.claims.descent.stochastic_subgradients.experiment import (
    DECAY,
    Problems,
    clarke_distances,
    descend_noisily,
    draw_problems,
    gradients,
    step_sizes,
)
from steepest.landscapes import clarke


def risk_of(x, y):
    """Return ½ mean (f − y)² + λ/2 ‖θ‖² as a function of all weights in one row and of a ReLU."""

    def risk(weights, relu):
        inner = weights[: 4 * x.shape[1]].reshape(4, -1)
        outer = weights[4 * x.shape[1] :]
        outputs = relu(jnp.asarray(x) @ inner.T) @ outer
        return ((outputs - y) ** 2).mean() / 2 + DECAY * (weights**2).sum() / 2

    return risk


def test_gradients_are_those_of_the_penalized_risk():
    problems = draw_problems(np.random.default_rng(0), 2)
    inner, outer = gradients(problems)
    for run in range(2):
        x, y, w, a = (part[run] for part in problems)
        risk = risk_of(x, y)
        slope = jax.jit(jax.grad(lambda at, risk=risk: risk(at, jax.nn.relu)))(
            jnp.concatenate([w.ravel(), a])
        )
        np.testing.assert_allclose(slope, np.concatenate([inner[run].ravel(), outer[run]]), 1e-5)
        size = clarke_distances(problems, 0.0)[run]
        assert size == pytest.approx(float(jnp.linalg.norm(slope)), rel=1e-5)


def test_the_smallest_subgradient_is_that_of_the_set_by_random_directions():
    """Two neurons on the hyperplane of an example each; the least combination of the gradients of four cells."""
    rng = np.random.default_rng(9)
    x = rng.standard_normal((12, 2))
    x[:2] = [[1, 2], [3, -1]]
    w = rng.standard_normal((4, 2))
    w[:2] = [[2, -1], [1, 3]]
    outer = rng.choice([-1.0, 1.0], 4)
    # each kink has another example that pulls the other way, a third as much
    x[2:4] = -0.3 * x[:2] + 0.1 * w[:2]
    y = np.maximum(x @ w.T, 0) @ outer
    y[:4] -= 6.0
    problems = Problems(x, y, w, outer)
    distance = clarke_distances(Problems(*(part[None] for part in problems)), 1e-9)[0]
    weights = np.concatenate([w.ravel(), outer])
    cells = clarke(risk_of(x, y), weights, jax.random.key(0)).vertices
    assert len(cells) == 4
    combined, _ = nnls(np.vstack([cells.T, np.full(4, 1e4)]), np.append(np.zeros(12), 1e4))
    least = np.linalg.norm(combined @ cells)
    assert least < np.linalg.norm(cells, axis=1).min() - 5e-3
    assert distance == pytest.approx(least, rel=1e-4)


def test_noisy_steps_are_a_plain_loop():
    problems = draw_problems(np.random.default_rng(1), 3)
    near, reached = descend_noisily(problems, (40, 80), np.random.default_rng(2), constant=False)
    rng = np.random.default_rng(2)
    inner = problems.inner.copy()
    outer = problems.outer.copy()
    sizes = []
    for step, size in enumerate(step_sizes(np.arange(80)), 1):
        slopes = gradients(problems._replace(inner=inner, outer=outer))
        inner = inner - size * (slopes[0] + 0.1 * rng.standard_normal(inner.shape))
        outer = outer - size * (slopes[1] + 0.1 * rng.standard_normal(outer.shape))
        if step in (68, 70, 73, 75, 78, 80):
            sizes.append(clarke_distances(problems._replace(inner=inner, outer=outer), 0.0))
    np.testing.assert_allclose(reached[:, 1], np.mean(sizes, 0))
    assert (near <= reached + 1e-9).all()
