"""Weak recovery: the formula against spiked Wishart matrices and large draws, eigenvectors against dense ones."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

from steepest.claims.descent.weak_recovery import experiment, theory
from steepest.claims.descent.weak_recovery.claim import WeakRecovery

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("neurons", [1, 2, 5])
@pytest.mark.parametrize("ratio", [0.4, 3.0, 12.0])
def test_a_step_is_a_spiked_wishart_matrix(neurons, ratio):
    """Its overlap is the closed form of Baik, Ben Arous and Péché: γ = d/n⁺ and a spike E[y | y > t]."""
    cut = 2.0
    share = chi2.sf(cut * neurons, neurons)
    spike = chi2.sf(cut * neurons, neurons + 2) / share - 1
    gamma = 1 / (ratio * share)
    closed = max(0.0, (1 - gamma / spike**2) / (1 + gamma / spike))
    assert theory.overlap(theory.step(cut), 1.0, ratio, neurons) == pytest.approx(closed, abs=2e-3)


@pytest.mark.parametrize("neurons", [1, 2, 4])
def test_one_over_the_variance_is_the_threshold(neurons):
    """Just above it there is an overlap, just below none; the variance by an integral."""
    spread = lambda z: (z / neurons - 1) ** 2 * chi2.pdf(z, neurons)
    variance = quad(spread, 1e-12, 200)[0]
    least = theory.least_examples(neurons)
    assert least == pytest.approx(1 / variance, rel=1e-4)
    assert theory.overlap(theory.best, 1.0, 0.98 * least, neurons) == 0
    assert theory.overlap(theory.best, 1.0, 1.1 * least, neurons) > 0.005


def test_no_rule_has_a_lower_threshold():
    """Steps, clipped labels and the inverse with any constant: E[(y − 1)r]² ≤ Var(y) E r²."""
    for neurons in (1, 3):
        below = 0.95 * theory.least_examples(neurons)
        for cut in (0.5, 1.0, 2.0, 4.0):
            assert theory.overlap(theory.step(cut), 1.0, below, neurons) == 0
            assert theory.overlap(theory.clipped(cut), cut, below, neurons) == 0


def test_half_seen_is_where_the_overlap_is_a_half():
    ratio = theory.half_seen(2)
    assert theory.overlap(theory.best, 1.0, ratio, 2) == pytest.approx(0.5)
    rows = np.array([[0.1, 0.4, 0.6], [0.2, 0.1, 0.3]])
    crossings = experiment.half_seen(np.array([1.0, 2.0, 8.0]), rows)
    assert crossings == pytest.approx([4, 8])


@pytest.mark.parametrize("rule", ["best", "clipped"])
def test_the_formula_is_that_of_a_large_draw(rule):
    weight, largest, function = {
        "best": (theory.best, 1.0, experiment.inverse),
        "clipped": (theory.clipped(3.0), 3.0, lambda y: np.minimum(y, 3.0)),
    }[rule]
    directions = experiment.teacher(RNG, 700, 3)
    inputs, labels = experiment.examples(RNG, directions, 4200)
    moment = inputs.T @ (function(labels)[:, None] * inputs)
    vectors = np.linalg.eigh(moment)[1][:, -3:]
    measured = ((directions.T @ vectors) ** 2).sum() / 3
    assert measured == pytest.approx(theory.overlap(weight, largest, 6.0, 3), abs=0.06)


@pytest.mark.parametrize("neurons", [1, 3])
def test_eigenvectors_are_those_of_a_dense_solver(neurons):
    directions = experiment.teacher(RNG, 60, neurons)
    inputs, labels = experiment.examples(RNG, directions, 300)
    rules = [experiment.inverse, *(experiment.random_rule(RNG, neurons, s) for s in (True, False))]
    for rule in rules:
        weights = rule(labels)
        shares = experiment.overlaps(inputs, weights, directions, (50, 300))
        for count, share in zip((50, 300), shares, strict=True):
            moment = inputs[:count].T @ (weights[:count, None] * inputs[:count])
            vectors = np.linalg.eigh(moment)[1][:, -neurons:]
            dense = np.linalg.norm(directions.T @ vectors) ** 2 / neurons
            assert share == pytest.approx(dense, abs=1e-4)


def test_labels_are_mean_squares():
    directions = experiment.teacher(RNG, 9, 4)
    assert np.allclose(directions.T @ directions, np.eye(4))
    inputs, labels = experiment.examples(RNG, directions, 5)
    by_hand = [np.mean([(x @ theta) ** 2 for theta in directions.T]) for x in inputs]
    assert np.allclose(labels, by_hand)


def test_near_the_threshold_is_out_of_range():
    claim = WeakRecovery(**{**WeakRecovery.tiny, **WeakRecovery.out_of_scope})
    assert not all(h.holds for h in claim.hypotheses(None))


def test_the_judge_refutes_wrong_thresholds():
    claim = WeakRecovery(d=40, ratios=(1.0, 1.5, 2.5), seeds=3, tries=30)
    law = claim.predict(None)
    observed = claim.observe(None, jax.random.key(0))
    exact = {}
    for name in ("overlap", "half", "below", "other"):
        values = np.stack([law[name]] * 3)
        dims = observed.quantity(name).dims
        exact[name] = (" ".join(dims), values + 1e-3 * RNG.normal(size=values.shape))
    observed = observed.replace(**exact, search=("attempt", np.full(30, 0.1)))
    fails = lambda **wrong: {
        check.id
        for check in claim.checks(law.replace(**wrong), observed)
        if check.verdict.value == "fails"
    }
    assert not fails()
    assert fails(half=("neurons", 1.5 * law["half"])) == {"half"}
    assert fails(overlap=("neurons ratio", claim.best(claim.ratios, 0.6))) == {"overlap"}
