"""One function by many ways: against closed forms by hand, wrong functions, and what its theory rests on."""

import jax
import numpy as np
import pytest
from scipy.special import expit

from steepest.claims.kernels.representer.claim import Representer
from steepest.claims.kernels.representer.experiment import (
    WAYS,
    Problem,
    draw_problems,
    logistic_weights,
    ridge_outputs,
    share_outside,
    sparse_weights,
)
from steepest.claims.kernels.representer.theory import (
    logistic_function,
    ridge_function,
    ridge_norm,
)

SEED = 20261125


@pytest.fixture
def problem():
    rng = np.random.default_rng(SEED)
    every = rng.normal(size=(9, 12))
    return Problem(every[:6], every, np.sign(rng.normal(size=6)), 0.7)


def kernel_of(problem):
    return problem.every @ problem.inside.T


def test_one_point_by_hand():
    """f(x) = K(x, x₁) y/(K(x₁, x₁) + λ) with one training point."""
    kernel = np.array([[2.0], [3.0]])
    assert np.allclose(ridge_function(kernel, np.array([1.0]), 0.5), [0.8, 1.2])
    assert ridge_norm(kernel, np.array([1.0]), 0.5) == pytest.approx(2 * 0.4**2)


def test_every_way_is_the_function_of_the_kernel(problem):
    expected = ridge_function(kernel_of(problem), problem.y, problem.ridge)
    outputs = ridge_outputs(problem, steps=4000)
    assert set(outputs) == set(WAYS)
    for way in WAYS:
        assert np.allclose(outputs[way], expected, atol=1e-11), way


def test_no_way_is_a_wrong_function(problem):
    wrong = ridge_function(kernel_of(problem), problem.y, problem.ridge / 2)
    for outputs in ridge_outputs(problem, steps=4000).values():
        assert np.abs(outputs - wrong).max() > 1e-2


def test_the_logistic_minimum_is_stationary(problem):
    theta = logistic_weights(problem, np.ones(12))
    share = expit(-problem.y * (problem.inside @ theta))
    slope = problem.inside.T @ (problem.y * share) - problem.ridge * theta
    assert np.abs(slope).max() < 1e-12
    assert share_outside(problem, theta) < 1e-12
    expected = logistic_function(kernel_of(problem), problem.y, problem.ridge)
    assert np.allclose(problem.every @ theta, expected, atol=1e-12)


def test_an_l1_penalty_leaves_the_span(problem):
    assert share_outside(problem, sparse_weights(problem)) > 0.1


def test_the_infinite_width_has_exact_features():
    """Features factored from the tangent kernel give it back at all points, and λ is by its mean."""
    few, many, infinite = draw_problems(jax.random.key(SEED), 8, 4, (5, 20), 0.1)
    assert few.inside.shape == (8, 5)
    assert many.every.shape == (12, 20)
    gram = infinite.every @ infinite.every.T
    assert np.linalg.eigvalsh(gram).min() > -1e-10
    assert infinite.ridge == pytest.approx(0.1 * np.diag(gram)[:8].mean())


@pytest.mark.parametrize("way", WAYS)
def test_one_way_that_deviates_refutes(way):
    """Outputs of one way only, at one point of one kernel, off by a part in 10⁸."""
    claim = Representer(**Representer.tiny)
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
        law = claim.predict(setting)
        seen = claim.observe(setting, jax.random.key(1))
    verdict = lambda world: {c.id: c.verdict.value for c in claim.checks(law, world)}["outputs"]
    assert verdict(seen) == "holds"
    outputs = seen["outputs"].copy()
    outputs[1, WAYS.index(way), 3] *= 1 + 1e-8
    outputs[1, WAYS.index(way), 3] += 1e-8
    assert verdict(seen.replace(outputs=("kernel way point", outputs))) == "fails"
