"""The perceptron of a Gram matrix: against explicit weights, and where its bound is known by hand."""

import jax
import numpy as np
import pytest

from steepest.claims.features.perceptron_mistakes.claim import PerceptronMistakes
from steepest.claims.features.perceptron_mistakes.experiment import Examples, limit, perceptron
from steepest.programs import hard_margin, kernel_margin

RNG = np.random.default_rng(0)


def example(x, y):
    return Examples("set", y[:, None] * (x @ x.T) * y, y, x.shape[1], kernel_margin(x @ x.T, y))


def points():
    x = RNG.normal(size=(40, 15))
    y = np.sign(x @ RNG.normal(size=15))
    return x, y


def test_it_is_the_perceptron_of_explicit_weights():
    x, y = points()
    order = RNG.permutation(len(x))
    best = hard_margin(x, y)
    radius = np.linalg.norm(x, axis=1).max()
    w = np.zeros(15)
    errors = 0
    longest = 0.0
    least = np.inf
    while True:
        before = errors
        for i in order:
            if y[i] * (x[i] @ w) <= 0:
                w = w + y[i] * x[i]
                errors += 1
                longest = max(longest, w @ w / (radius**2 * errors))
                least = min(least, w @ best.direction / (best.margin * errors))
        if errors == before:
            break
    run = perceptron(example(x, y), order, 10**6)
    assert run.mistakes == errors
    assert np.isclose(run.length, longest, rtol=1e-9)
    assert np.isclose(run.progress, least, rtol=1e-5)
    assert np.isclose(limit(example(x, y)), (radius / best.margin) ** 2, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 7, 30])
def test_orthogonal_sets_are_tight(n):
    y = RNG.choice([-1.0, 1.0], n)
    one = example(3 * np.eye(n), y)
    assert np.isclose(limit(one), n)
    assert perceptron(one, RNG.permutation(n), 10**6).mistakes == n
    assert perceptron(one, None, 10**6).mistakes == n


def test_the_adversary_is_the_worst_of_a_small_set_at_least_as_often_as_not():
    """Of twelve sets: on a single one it may be beaten by most orders, as it takes the next error greedily."""
    beaten = 0
    for _ in range(12):
        x, y = points()
        small = example(x, y)
        worst = perceptron(small, None, 10**6).mistakes
        random = [perceptron(small, RNG.permutation(len(x)), 10**6).mistakes for _ in range(20)]
        assert worst <= limit(small)
        beaten += np.median(random) > worst
    assert beaten <= 6


def test_labels_that_contradict_each_other_have_no_margin():
    claim = PerceptronMistakes(**{**PerceptronMistakes.tiny, "contradictions": 1})
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
