"""What the claim about AdaBoost rests on: its guarantee, its steps, and the geometry of its rival."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.implicit_bias.adaboost_margin import _euclidean
from steepest.dynamics import adaboost
from steepest.programs import decision_stumps, hard_margin, stump_margin


def test_the_guarantee_is_the_least_margin_of_any_edges():
    """Σ −ln Z(γ_t) − ln n over Σ ν artanh γ_t is least when every edge is γ̄."""
    claim = load("adaboost-margin")(n=40, steps=400)
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    rng = np.random.default_rng(0)
    for i, margin in enumerate(predicted["margin"]):
        for j, nu in enumerate(claim.shrinkages):
            edges = rng.uniform(margin, 0.99, size=(200, claim.steps))
            edges[0] = margin
            alpha = np.arctanh(edges)
            falls = -np.log(np.cosh(nu * alpha) - edges * np.sinh(nu * alpha))
            found = (falls.sum(1) - np.log(40)) / (nu * alpha.sum(1))
            assert found.min() == pytest.approx(predicted["guarantee"][i, j], rel=1e-9)


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
    claim = load("adaboost-margin")(n=40, contradictions=1)
    separable, coupled, exact = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert exact.holds and coupled.holds and not separable.holds
