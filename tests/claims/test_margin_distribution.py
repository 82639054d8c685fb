"""What margin-distribution rests on: ordered pairs, trainings that stop at one risk after as many steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from steepest import kit
from steepest.catalogue import load
from steepest.claims.margins.margin_distribution.experiment import Goal, ordered, train_both
from steepest.claims.margins.margin_distribution.machines import (
    boosted,
    fit_machines,
    gram_matrices,
    least_norm,
)
from steepest.nn.losses import cross_entropy, mean_risk
from steepest.programs import decision_stumps, spectral_complexity, stump_margin, weight_matrices


def test_ordered_pairs_are_the_area_under_the_roc_curve():
    margins = np.random.default_rng(0).normal(size=(2, 3, 20)).round(1)  # with ties
    shares = ordered(*margins)
    assert shares.shape == (3,)
    truth = np.repeat([1, 0], 20)
    assert np.isclose(shares[2], roc_auc_score(truth, np.r_[margins[0, 2], margins[1, 2]]))


@pytest.fixture(scope="module")
def small():
    claim = load("margin-distribution")(n=30, width=12, seeds=3, total=0.5)
    key = jax.random.key(3)
    setting = claim.setting(key)
    return claim, setting, key


def test_trainings_stop_at_one_risk_after_as_many_steps(small):
    claim, setting, key = small
    net = claim.nets(setting)[0]
    runs = train_both(net, setting, 0.2, 0.9, Goal(0.5, 4000), key)
    for trained in runs.values():
        assert (trained.margins > 0).all()
    assert (runs["true"].risk * claim.n <= 0.5).all() and (
        runs["random"].risk * claim.n <= 0.5
    ).all()
    np.testing.assert_allclose(runs["true"].steps / runs["random"].steps, 1, atol=0.05)
    assert (runs["further"].risk * claim.n <= 0.05).all()
    assert (runs["further"].steps > runs["true"].steps).all()


def test_a_training_is_descent_with_momentum(small):
    """By a plain loop, on random labels of the first seed."""
    claim, setting, key = small
    net = claim.nets(setting)[0]
    trained = train_both(net, setting, 0.2, 0.9, Goal(0.5, 4000), key)["random"]
    params = net.init(kit.keys(key, 3)[0])
    x, y = (jnp.asarray(part[0], jnp.float32) for part in (setting.x, setting.random))
    risk = mean_risk(cross_entropy, net.apply, x, y)
    slope = jax.jit(jax.grad(risk))
    velocity = jax.tree.map(jnp.zeros_like, params)
    for _ in range(int(trained.steps[0])):
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, slope(params))
        params = jax.tree.map(lambda p, v: p - 0.2 * v, params, velocity)
    outputs = np.asarray(net.apply(params, x))
    right = (outputs * np.asarray(y)).sum(1)
    wrong = np.where(np.asarray(y) > 0, -np.inf, outputs).max(1)
    np.testing.assert_allclose(trained.margins[0], right - wrong, rtol=1e-2, atol=1e-3)
    matrices = weight_matrices(params)
    start = weight_matrices(net.init(kit.keys(key, 3)[0]))
    assert trained.complexity[0] == pytest.approx(
        float(spectral_complexity(matrices, start)), rel=1e-2
    )
    norms = [np.linalg.norm(np.asarray(matrix), 2) for matrix in matrices]
    assert trained.lipschitz[0] == pytest.approx(np.prod(norms), rel=1e-2)


def test_random_labels_are_those_of_the_same_images(small):
    _, setting, _ = small
    np.testing.assert_array_equal(setting.true.sum(1), setting.random.sum(1))
    assert (setting.true != setting.random).any()
    np.testing.assert_allclose(setting.x.mean(1), 0, atol=1e-12)


def test_isotropic_inputs_are_as_large_as_the_images(small):
    _, setting, _ = small
    np.testing.assert_allclose(
        np.linalg.norm(setting.isotropic, axis=(1, 2)), np.linalg.norm(setting.x, axis=(1, 2))
    )
    np.testing.assert_allclose(setting.isotropic.mean(1), 0, atol=1e-12)


def examples():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 6))
    return x, np.sign(x[:, 0] + 0.5 * rng.standard_normal(20))


def test_kernel_machines_are_of_least_norm_by_a_convex_program():
    import cvxpy as cp

    x, y = examples()
    for gram in gram_matrices(x):
        machine = least_norm(gram, y, 0.5)
        root = np.linalg.cholesky(gram + 1e-10 * np.eye(20))
        w = cp.Variable(20)
        risk = cp.sum(cp.logistic(cp.multiply(-y, root @ w)))
        least = cp.Problem(cp.Minimize(cp.norm(w)), [risk <= machine.risk]).solve()
        assert machine.risk == pytest.approx(0.5, rel=1e-2)
        assert machine.norm == pytest.approx(least, rel=1e-3)


def test_kernels_by_their_formulas():
    x, _ = examples()
    rbf, quadratic = gram_matrices(x)
    distances = ((x[:, None] - x) ** 2).sum(2)
    middle = np.median(distances[distances > 0])
    np.testing.assert_allclose(rbf, np.exp(-distances / middle))
    assert quadratic[2, 3] == pytest.approx((1 + x[2] @ x[3] / (x**2).sum(1).mean()) ** 2)


def test_boosting_stops_at_its_risk_with_a_margin_that_is_possible():
    x, y = examples()
    stumps = decision_stumps(x)
    votes = stumps.matrix()
    machine = boosted(votes, y, 0.5, 4000)
    assert 0.5 * 0.3 < machine.risk <= 0.5
    best = stump_margin(stumps, y).margin
    assert 0 < machine.margins.min() / machine.norm <= best
    early = boosted(votes, y, 0.5, 1)  # the best stump, with AdaBoost's half log odds
    right = max((votes * y[:, None]).mean(0).max(), -(votes * y[:, None]).mean(0).min())
    assert early.norm == pytest.approx(0.5 * np.log((1 + right) / (1 - right)))
    assert fit_machines(x, y, 0.5, 4000)[2].norm == machine.norm
