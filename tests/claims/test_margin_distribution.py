"""What margin-distribution rests on: ordered pairs, trainings that stop at one risk after as many steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from steepest import kit
from steepest.catalogue import load
from steepest.claims.margins.margin_distribution.experiment import Goal, ordered, train_both
from steepest.nn.losses import cross_entropy, mean_risk
from steepest.programs import spectral_complexity, weight_matrices


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
