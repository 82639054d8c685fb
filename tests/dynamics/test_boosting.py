"""AdaBoost against scikit-learn, closed forms, and coordinate descent written with the library's other parts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import AdaBoostClassifier

from steepest.core.errors import UserError
from steepest.dynamics import adaboost, descend, steepest_descent
from steepest.nn.data import breast_cancer, digits, signs
from steepest.programs import decision_stumps


class LeastError(ClassifierMixin, BaseEstimator):
    """The stump of least weighted error, by brute force, the first one of ties."""

    def fit(self, x, y, sample_weight):
        self.classes_ = np.array([-1.0, 1.0])
        best = -np.inf
        for feature, column in enumerate(x.T):
            values = np.unique(column)
            if len(values) == 1:
                continue
            cuts = 0.5 * (values[1:] + values[:-1])
            edges = (
                (sample_weight * y)
                @ np.where(column[:, None] > cuts, 1.0, -1.0)
                / sample_weight.sum()
            )
            first = int(np.argmax(np.abs(edges) >= np.abs(edges).max() - 1e-12))
            if abs(edges[first]) > best + 1e-12:
                best = abs(edges[first])
                self.feature = feature
                self.cut = cuts[first]
                self.sign = np.sign(edges[first])
        return self

    def predict(self, x):
        return self.sign * np.where(x[:, self.feature] > self.cut, 1.0, -1.0)


@pytest.mark.parametrize("shrinkage", [1.0, 0.3])
@pytest.mark.parametrize("name", ["breast cancer", "digits"])
def test_equals_scikit_learn_step_for_step(name, shrinkage):
    """Its weights are twice ours, its errors (1 − γ)/2, its learning rate our shrinkage."""
    data = breast_cancer() if name == "breast cancer" else signs(digits(classes=(3, 8)))
    steps = 40
    x = np.asarray(data.x)
    y = np.asarray(data.y)
    theirs = AdaBoostClassifier(LeastError(), n_estimators=steps, learning_rate=shrinkage).fit(x, y)
    stumps = decision_stumps(x)
    ours = adaboost(stumps, data.y, steps, shrinkage)
    np.testing.assert_allclose(theirs.estimator_weights_, 2 * np.abs(ours.amount), rtol=1e-9)
    np.testing.assert_allclose(theirs.estimator_errors_, (1 - ours.edge) / 2, rtol=1e-9)
    for t, machine in enumerate(theirs.estimators_):
        number = int(ours.chosen[t])
        assert machine.feature == int(stumps.feature[number])
        assert machine.cut == pytest.approx(float(stumps.threshold[number]), abs=1e-12)
        assert machine.sign == np.sign(ours.amount[t])
    votes = (
        theirs.decision_function(x) * theirs.estimator_weights_.sum() / 4
    )  # it counts both classes
    np.testing.assert_allclose(y * votes, ours.scores, atol=1e-8)


def problem(n=30, d=3, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, d))
    return decision_stumps(x), jnp.where(x[:, 0] + x[:, 1] > 0, 1.0, -1.0)


def test_the_record_is_that_of_the_weights():
    stumps, y = problem()
    run = adaboost(stumps, y, 200, 0.5)
    scores = np.asarray(y) * (stumps.matrix() @ np.asarray(run.weights))
    np.testing.assert_allclose(scores, run.scores, atol=1e-10)
    assert float(run.norm[-1]) == pytest.approx(np.abs(run.weights).sum(), rel=1e-12)
    assert float(run.margin[-1]) == pytest.approx(
        scores.min() / np.abs(run.weights).sum(), rel=1e-9
    )
    assert float(run.log_risk[-1]) == pytest.approx(np.log(np.exp(-scores).mean()), abs=1e-9)


def test_each_exact_step_lowers_the_risk_by_its_edge():
    """log R = Σ ½ log(1 − γ_t²)."""
    stumps, y = problem()
    run = adaboost(stumps, y, 100)
    np.testing.assert_allclose(
        run.log_risk, 0.5 * np.log1p(-np.square(run.edge)).cumsum(), rtol=1e-10
    )


def test_small_steps_are_coordinate_descent_on_the_log_risk():
    """Steepest descent in ℓ1 on log R moves the same coordinates, by ηγ in place of η artanh γ."""
    stumps, y = problem(12, 2)
    signed = y[:, None] * stumps.matrix()
    risk = lambda w: jnp.exp(-signed @ w).mean()
    path = descend(risk, jnp.zeros(stumps.size), steepest_descent("l1", 1e-3, "loss", risk), 50)
    run = adaboost(stumps, y, 50, 1e-3)
    moved = np.flatnonzero(run.weights)
    np.testing.assert_array_equal(np.flatnonzero(path.params), moved)
    ratio = np.mean(run.edge) / np.arctanh(np.mean(run.edge))
    np.testing.assert_allclose(path.params[moved], ratio * run.weights[moved], rtol=0.01)


def test_weights_do_not_underflow():
    """After scores of thousands the margin still moves and the log-risk is finite."""
    stumps, y = problem()
    run = jax.jit(lambda y: adaboost(stumps, y, 20_000))(y)
    assert np.isfinite(run.log_risk).all() and float(run.log_risk[-1]) < -1000
    assert np.isfinite(run.margin).all() and float(run.scores.min()) > 1000
    assert float(run.edge.min()) > 0


def test_mapping_over_shrinkages():
    stumps, y = problem()
    together = jax.jit(jax.vmap(lambda nu: adaboost(stumps, y, 30, nu)))(jnp.array([1.0, 0.2]))
    alone = adaboost(stumps, y, 30, 0.2)
    np.testing.assert_array_equal(together.chosen[1], alone.chosen)
    np.testing.assert_allclose(together.margin[1], alone.margin, rtol=1e-12)


def test_a_stump_that_is_never_wrong_takes_all():
    stumps = decision_stumps([[0.0], [1.0], [2.0]])
    run = adaboost(stumps, jnp.array([-1.0, -1.0, 1.0]), 3)
    assert float(run.edge[0]) == pytest.approx(1) and not np.isfinite(run.log_risk[0])


def test_a_matrix_of_votes_is_the_same_dictionary():
    """Up to ties of columns that are equal, which rounding may break another way: here there are none."""
    x = np.random.default_rng(7).normal(size=(25, 3))
    stumps = decision_stumps(x)
    y = jnp.where(x[:, 0] - x[:, 2] > 0, 1.0, -1.0)
    for shrinkage in (1.0, 0.3):
        fast = adaboost(stumps, y, 60, shrinkage)
        dense = adaboost(stumps.matrix(), y, 60, shrinkage)
        np.testing.assert_allclose(dense.edge, fast.edge, rtol=1e-9)
        np.testing.assert_allclose(dense.margin, fast.margin, rtol=1e-9, atol=1e-12)


def test_any_votes_against_a_loop_in_numpy():
    """Random ±1 votes, weights of the examples carried and normalized as in the textbook."""
    rng = np.random.default_rng(3)
    votes = rng.choice([-1.0, 1.0], size=(12, 40))
    y = rng.choice([-1.0, 1.0], size=12)
    run = adaboost(votes, y, 30, 0.5)
    q = np.full(12, 1 / 12)
    w = np.zeros(40)
    for t in range(30):
        edges = (q * y) @ votes
        chosen = int(np.argmax(np.abs(edges) >= np.abs(edges).max() - 1e-12))
        assert chosen == int(run.chosen[t])
        amount = 0.5 * 0.5 * np.log((1 + edges[chosen]) / (1 - edges[chosen]))
        w[chosen] += amount
        q = q * np.exp(-amount * y * votes[:, chosen])
        q = q / q.sum()
    np.testing.assert_allclose(run.weights, w, rtol=1e-10)
    assert float(run.margin[-1]) == pytest.approx((y * (votes @ w)).min() / np.abs(w).sum())


def test_bad_input_is_refused_in_one_sentence():
    stumps, y = problem()
    with pytest.raises(UserError, match="y must be"):
        adaboost(np.ones((12, 2)), y, 3)
    with pytest.raises(UserError, match="votes -1 and"):
        adaboost(np.zeros((30, 2)), y, 3)
    with pytest.raises(UserError, match=r"shape \(30,\)"):
        adaboost(np.ones(30), y, 3)
    with pytest.raises(UserError, match="30 labels"):
        adaboost(stumps, y[:5], 3)
    with pytest.raises(UserError, match="at least 1"):
        adaboost(stumps, y, 0)
    with pytest.raises(UserError, match="only -1 and"):
        adaboost(stumps, y + 1, 3)
