"""What the claim about AdaBoost rests on: its guarantee, its cycle, its edges, and the geometry of its rival."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq, linprog

from steepest.catalogue import load
from steepest.claims.implicit_bias.adaboost_margin.claim import (
    CYCLIC,
    _alike,
    _between,
    _edge,
    _euclidean,
    _fall,
)
from steepest.core.errors import UserError
from steepest.dynamics import adaboost
from steepest.programs import decision_stumps, hard_margin, stump_margin


def test_the_guarantee_is_the_least_margin_of_any_edges():
    """Σ −ln Z(γ_t) − ln n over Σ ν artanh γ_t is least when every edge is γ̄."""
    claim = load("adaboost-margin")(n=40, subsets=1, steps=400)
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    rng = np.random.default_rng(0)
    for i, margin in enumerate(predicted["limit"][:, 0]):
        for j, nu in enumerate(claim.shrinkages):
            edges = rng.uniform(margin, 0.99, size=(200, claim.steps))
            edges[0] = margin
            alpha = np.arctanh(edges)
            falls = -np.log(np.cosh(nu * alpha) - edges * np.sinh(nu * alpha))
            found = (falls.sum(1) - np.log(40)) / (nu * alpha.sum(1))
            assert found.min() == pytest.approx(predicted["guarantee"][i, 0, j], rel=1e-9)


def test_the_theorem_has_room():
    """Already 4 ln n/γ̄² exact steps give γ̄/4, as the remark says."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.normal(size=(50, 3))
        y = np.where(x.sum(1) > 0, 1.0, -1.0)
        stumps = decision_stumps(x)
        best = stump_margin(stumps, y).margin
        steps = int(np.ceil(4 * np.log(50) / best**2))
        assert float(adaboost(stumps, y, steps).margin[-1]) >= best / 4


def test_the_euclidean_rival_is_the_support_vector_machine_on_the_dictionary():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 2))
    y = np.where(x.sum(1) > 0, 1.0, -1.0)
    stumps = decision_stumps(x)
    w = hard_margin(stumps.matrix(), y).direction
    expected = (y * (stumps.matrix() @ w)).min() / np.abs(w).sum()
    assert _euclidean(stumps, y) == pytest.approx(expected, rel=1e-5)


def test_contradictions_are_not_separable():
    claim = load("adaboost-margin")(n=40, subsets=1, contradictions=1)
    separable, coupled, exact = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert exact.holds and coupled.holds and not separable.holds


def test_three_eighths_is_the_largest_margin_of_the_matrix_of_eight():
    """In fractions, from both sides; and by a linear program over all columns and their negatives."""
    votes = [[Fraction(int(vote)) for vote in row] for row in CYCLIC]
    weights = [Fraction(k, 16) for k in (2, 3, 4, 1, 2, 2, 1, 1)]  # of the columns
    shares = [Fraction(k, 16) for k in (2, 3, 2, 1, 2, 2, 3, 1)]  # of the examples
    dot = lambda one, other: sum(a * b for a, b in zip(one, other, strict=True))
    assert sum(weights) == sum(shares) == 1
    assert min(dot(weights, row) for row in votes) == Fraction(3, 8)
    assert max(abs(dot(shares, column)) for column in zip(*votes, strict=True)) == Fraction(3, 8)
    signed = np.hstack([CYCLIC, -CYCLIC])
    program = linprog(
        np.append(np.zeros(16), -1),
        np.hstack([-signed, np.ones((8, 1))]),
        np.zeros(8),
        np.append(np.ones(16), 0)[None],
        [1],
        bounds=[(0, None)] * 16 + [(None, None)],
    )
    assert -program.fun == pytest.approx(3 / 8, abs=1e-12)
    assert hard_margin(CYCLIC, np.ones(8), norm="l1").margin == pytest.approx(3 / 8, abs=1e-8)


def test_the_cycle_repeats_by_hand():
    """Weights ½, (√5 − 1)/4, (3 − √5)/4 of the three parts come back, turned by one, after an exact step."""
    root = 5**0.5
    parts = np.array([1 / 2, (root - 1) / 4, (3 - root) / 4])
    edge = 1 - 2 * parts[2]
    assert parts.sum() == pytest.approx(1) and edge == pytest.approx((root - 1) / 2)
    alpha = np.arctanh(edge)
    moved = parts * np.exp([-alpha, -alpha, alpha])
    np.testing.assert_allclose(moved / moved.sum(), parts[[1, 2, 0]], rtol=1e-12)
    # the margin of equal weights on three classifiers, each example wrong in one at most
    assert float(_fall(np.array(edge), np.ones(()))) == pytest.approx(1 / 3, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_step_cycles_in_any_order_of_the_columns(seed):
    rng = np.random.default_rng(seed)
    run = adaboost(CYCLIC[:, rng.permutation(8)], np.ones(8), 2000)
    np.testing.assert_allclose(run.edge[-9:], (5**0.5 - 1) / 2, rtol=1e-10)
    assert len(set(np.asarray(run.chosen[-9:]).tolist())) == 3
    assert float(run.margin[-1]) == pytest.approx(1 / 3, rel=0.01)


def test_edges_of_a_fall_are_its_inverse():
    """Bisection against another root finder; for small ν and γ̄ the edge is γ̄/(1 − ν/2), for ν → 0 it is γ̄."""
    for margin, nu in ((0.2, 1.0), (0.4, 0.3), (0.05, 0.1)):
        fall = lambda edge, margin=margin, nu=nu: (
            float(_fall(np.array(edge), np.array(nu))) - margin
        )
        edge = float(_edge(np.array(margin), np.array(nu)))
        assert edge == pytest.approx(brentq(fall, margin, 0.9999, xtol=1e-14), rel=1e-9)
    assert float(_edge(np.array(0.001), np.array(0.3))) == pytest.approx(0.001 / 0.85, rel=1e-5)
    assert float(_edge(np.array(0.3), np.array(1e-6))) == pytest.approx(0.3, rel=1e-5)


def test_the_log_risk_stays_between_its_two_sides():
    """Υ_ν(γ̄) ≤ −log R/‖w‖₁ ≤ γ̄ + ln n/‖w‖₁, and margins below it by at most ln n/‖w‖₁."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(50, 3))
    y = np.where(x.sum(1) > 0, 1.0, -1.0)
    stumps = decision_stumps(x)
    best = stump_margin(stumps, y).margin
    for nu in (1.0, 0.3):
        run = adaboost(stumps, y, 500, nu)
        slack = np.log(50) / np.asarray(run.norm)
        smoothed = -np.asarray(run.log_risk) / np.asarray(run.norm)
        assert (smoothed >= _fall(np.array(best), np.array(nu)) - 1e-12).all()
        assert (smoothed <= best + slack).all()
        assert (run.margin <= smoothed + 1e-12).all() and (run.margin >= smoothed - slack).all()
        falls = np.asarray(_fall(np.asarray(run.edge), np.array(nu))) * np.abs(run.amount)
        np.testing.assert_allclose(-np.asarray(run.log_risk), falls.cumsum(), rtol=1e-9)


def test_filling_up_the_stumps_of_a_subset_changes_no_step():
    rng = np.random.default_rng(6)
    inputs = [np.round(rng.normal(size=(20, 2)), 1) for _ in range(3)]
    labels = [np.where(x.sum(1) > 0, 1.0, -1.0) for x in inputs]
    stumps = [decision_stumps(x) for x in inputs]
    assert len({one.size for one in stumps}) > 1
    together = _alike(stumps)
    for i in range(3):
        own = adaboost(stumps[i], labels[i], 50, 0.3)
        filled = jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i]), together)
        other = adaboost(filled, labels[i], 50, 0.3)
        np.testing.assert_array_equal(own.chosen, other.chosen)
        np.testing.assert_array_equal(own.margin, other.margin)


def test_growth_and_edges_are_those_of_the_steps_between():
    """Sums between two readings, against a loop over the steps; they obey the law of a constant edge."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(30, 3))
    run = adaboost(decision_stumps(x), np.where(x.sum(1) > 0, 1.0, -1.0), 60, 0.3)
    size = np.abs(np.asarray(run.amount))
    sums = [run.log_risk, run.norm, size.cumsum(), (size * np.asarray(run.edge)).cumsum()]
    growth, edge = _between([np.asarray(column) for column in sums], 19, 59)
    assert edge == pytest.approx(np.average(run.edge[20:], weights=size[20:]), rel=1e-9)
    fall = float(run.log_risk[19] - run.log_risk[59]) / float(run.norm[59] - run.norm[19])
    assert growth == pytest.approx(fall, rel=1e-12)


def test_near_misses_of_edges_and_growth_fail():
    """Paths that obey the law are refuted by 1 − ν/4 for 1 − ν/2, and by edges of the margin itself."""
    claim = load("adaboost-margin")(n=100, subsets=2, steps=1000, readings=30)
    setting = claim.setting(jax.random.key(0))
    observed = claim.observe(setting, jax.random.key(1))
    predicted = claim.predict(setting)
    ideal = observed.replace(
        growth=("set draw small", predicted["growth"]), edge=("set draw small", predicted["edge"])
    )
    verdicts = lambda theory: {c.id: c.verdict.value for c in claim.checks(theory, ideal)}
    assert [verdicts(predicted)[id] for id in ("growth", "edges")] == ["holds", "holds"]
    wrong = {rival.id: rival.prediction for rival in claim.wrong_theories(setting, predicted)}
    assert verdicts(wrong["quarter_step"])["edges"] == "fails"
    assert verdicts(wrong["edge_is_margin"])["edges"] == "fails"
    assert verdicts(wrong["lower_side"])["growth"] == "fails"


def test_more_examples_than_there_are_are_refused():
    with pytest.raises(UserError, match="more than the 357"):
        load("adaboost-margin")(n=200, subsets=2).setting(jax.random.key(0))
