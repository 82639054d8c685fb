"""Linear attention on regressions: Γ against sampled moments, the layer against one written out token by token."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize

from steepest import kit
from steepest.claims.training.in_context_regression import experiment, theory
from steepest.claims.training.in_context_regression.claim import InContextRegression
from steepest.claims.training.in_context_regression.experiment import Sizes
from tests.claims.numpy_points import generator, observed_at

RNG = np.random.default_rng(0)
VARIANCES = np.array([1.5, 0.7, 0.3])
LENGTH = 4


def answer(weights, tokens, query):
    """Answer as attention does: each token's value, times how its key meets the query."""
    total = 0.0
    for token in tokens:
        value = token @ weights[:, -1]
        score = token @ (weights[:, :-1] @ query)
        total += value * score
    return total / (len(tokens) - 1)


def a_prompt():
    x = RNG.standard_normal((LENGTH + 1, 3)) * np.sqrt(VARIANCES)
    labels = x @ RNG.standard_normal(3)
    label = labels[-1]
    labels[-1] = 0
    tokens = np.concatenate([x, labels[:, None]], 1)
    return tokens, x[-1], label


def as_prompts(several):
    tokens = np.stack([prompt[0] for prompt in several])
    moments = tokens.swapaxes(1, 2) @ tokens / LENGTH
    queries = np.stack([prompt[1] for prompt in several])
    labels = np.array([prompt[2] for prompt in several])
    return experiment.Prompts(moments[None], queries[None], labels[None])


def test_gamma_is_the_second_moment_of_what_the_layer_sees():
    """E[hhᵀ] = ΛΓ for h = (1/N) Σ (w·x_i) x_i, and E[hwᵀ] = Λ."""
    x = RNG.standard_normal((200_000, LENGTH, 3)) * np.sqrt(VARIANCES)
    w = RNG.standard_normal((200_000, 3))
    h = np.einsum("rni,rnj,rj->ri", x, x, w) / LENGTH
    wanted = np.diag(VARIANCES * theory.gammas(VARIANCES, LENGTH))
    np.testing.assert_allclose(h.T @ h / len(h), wanted, atol=0.06)
    np.testing.assert_allclose(h.T @ w / len(h), np.diag(VARIANCES), atol=0.03)


def test_risk_by_sampled_prompts():
    weights = np.array([0.2, 0.5, 0.9])
    x = RNG.standard_normal((200_000, LENGTH, 3)) * np.sqrt(VARIANCES)
    w = RNG.standard_normal((200_000, 3))
    query = RNG.standard_normal((200_000, 3)) * np.sqrt(VARIANCES)
    h = np.einsum("rni,rnj,rj->ri", x, x, w) / LENGTH
    errors = (query * (weights * h - w)).sum(1)
    wanted = theory.risk(VARIANCES, LENGTH, weights)
    assert (errors**2).mean() / 2 == pytest.approx(wanted, rel=0.03)


def test_least_risk_is_at_the_inverse_of_gamma():
    least = minimize(lambda weights: theory.risk(VARIANCES, LENGTH, weights), np.ones(3))
    inverse = 1 / theory.gammas(VARIANCES, LENGTH)
    np.testing.assert_allclose(least.x, inverse, rtol=1e-4)
    printed = (VARIANCES.sum() - (VARIANCES**2 * inverse).sum()) / 2
    assert theory.risk(VARIANCES, LENGTH, inverse) == pytest.approx(printed)


def test_best_scalar_by_search():
    least = minimize(lambda c: theory.risk(VARIANCES, LENGTH, c * np.ones(3)), [0.5])
    assert theory.best_scalar(VARIANCES, LENGTH) == pytest.approx(least.x[0], rel=1e-4)


def test_answers_and_slopes_by_tokens_and_by_autodiff():
    several = [a_prompt() for _ in range(5)]
    weights = RNG.standard_normal((1, 4, 4))

    def risk(weights):
        errors = [answer(weights, tokens, query) - label for tokens, query, label in several]
        return sum(error**2 for error in errors) / (2 * len(errors))

    answers, slopes = experiment.answers_and_slopes(weights, as_prompts(several))
    wanted = [answer(weights[0], tokens, query) for tokens, query, _ in several]
    np.testing.assert_allclose(answers[0], wanted)
    np.testing.assert_allclose(slopes[0], jax.grad(risk)(jnp.asarray(weights[0])), rtol=1e-5)


def test_preconditioner_is_how_labels_meet_queries():
    """Labels enter an answer through h alone, but for a term of their squares: it is even in them."""
    weights = RNG.standard_normal((1, 4, 4))
    tokens, query, _ = a_prompt()
    flipped = tokens.copy()
    flipped[:, -1] *= -1
    odd = (answer(weights[0], tokens, query) - answer(weights[0], flipped, query)) / 2
    h = tokens[:, :-1].T @ tokens[:, -1] / LENGTH
    matrix = experiment.preconditioner(weights)[0]
    assert query @ matrix @ h == pytest.approx(odd)


def test_prompts_have_the_moments_that_they_should():
    sizes = Sizes(2, 30_000, LENGTH)
    for heavy in (False, True):
        prompts = experiment.draw(RNG, VARIANCES, sizes, heavy=heavy)
        second = np.einsum("tbi,tbj->ij", prompts.queries, prompts.queries) / 60_000
        np.testing.assert_allclose(second, np.diag(VARIANCES), atol=0.06)
        mean = prompts.moments[..., :3, :3].mean((0, 1))
        # the query is one more token, and the sum is divided by N
        np.testing.assert_allclose(mean, np.diag(VARIANCES) * (1 + 1 / LENGTH), atol=0.06)
        assert (prompts.labels**2).mean() == pytest.approx(VARIANCES.sum(), rel=0.05)


def test_start_is_the_theorems():
    weights = experiment.start(RNG, 2, 3, 0.4)
    for matrix in weights:
        assert np.linalg.norm(matrix[:3, :3]) == pytest.approx(0.4)
        assert np.linalg.eigvalsh(matrix[:3, :3]).min() > -1e-12
        assert matrix[3, 3] == 0.4
        assert np.abs(matrix[3, :3]).max() == np.abs(matrix[:3, 3]).max() == 0


def test_training_is_that_of_optax():
    sizes = Sizes(1, 8, LENGTH)
    first = experiment.start(RNG, 1, 3, 0.4)
    rng = np.random.default_rng(1)
    last = experiment.train(rng, VARIANCES, sizes, first, 0.05, 3, heavy=False).last
    rng = np.random.default_rng(1)
    falling = optax.linear_schedule(0.05, 0.0, 3)
    optimizer = optax.adam(falling, experiment.BETA1, experiment.BETA2, experiment.EPSILON)
    weights: Any = jnp.asarray(first)
    state = optimizer.init(weights)
    for _ in range(3):
        prompts = experiment.draw(rng, VARIANCES, sizes, heavy=False)
        slopes = experiment.answers_and_slopes(np.asarray(weights), prompts)[1]
        update, state = optimizer.update(jnp.asarray(slopes), state)
        weights = optax.apply_updates(weights, update)
    np.testing.assert_allclose(last, weights, rtol=1e-5)


def test_risk_of_the_best_layer_is_the_theorems():
    inverse = 1 / theory.gammas(VARIANCES, LENGTH)
    weights = np.zeros((1, 4, 4))
    weights[0, :3, :3] = np.diag(inverse)
    weights[0, 3, 3] = 1
    sizes = Sizes(1, 100_000, LENGTH)
    measured = experiment.risk(RNG, VARIANCES, sizes, weights, heavy=False)[0]
    assert measured == pytest.approx(theory.risk(VARIANCES, LENGTH, inverse), rel=0.03)


def test_a_training_that_has_not_ended_is_out_of_range():
    claim = InContextRegression(lengths=(5,), examples=100, prompts=50, seeds=3)
    still = np.ones((3, 1, 4))
    observed = kit.seen(
        weights=("seed length variance", still), halfway=("seed length variance", 0.9 * still)
    )
    assert not next(iter(claim.run_conditions(observed))).holds
    ended = kit.seen(
        weights=("seed length variance", still), halfway=("seed length variance", 0.97 * still)
    )
    assert next(iter(claim.run_conditions(ended))).holds


def test_the_point_is_one_length_of_the_claim():
    claim = InContextRegression(lengths=(5,), steps=30, examples=60, prompts=50, seeds=3)
    point = InContextRegression.point.of(claim)
    weights, _, risk = claim.trained(generator(), heavy=False)
    observed = observed_at(point)
    np.testing.assert_allclose(observed["largest"], weights[:, 0, 0])
    np.testing.assert_allclose(observed["least"], weights[:, 0, -1])
    np.testing.assert_allclose(observed["risk"], risk[:, 0])
    predicted = point.predict(None)
    law = claim.predict(None)
    assert [predicted["largest"], predicted["least"]] == list(law["weights"][0, [0, -1]])
    assert predicted["risk"] == law["risk"][0]
