"""Covariances on a reader's network: the claim's own networks, without training, what is refused."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.claims.curvature._trained import Training, lanes
from steepest.claims.curvature.class_covariances.claim import ClassCovariances
from steepest.claims.curvature.class_covariances.on_subject import CovariancesOnSubject
from steepest.core.errors import UserError
from steepest.measurement.adapters import subject
from tests.claims.on_subject import asked, broken, classifier, clusters
from tests.extras import need
from tests.measurement.adapters import models

torch = need("torch")


def own_network():
    """Return the claim, a network of its own that is not trained, and its images."""
    claim = ClassCovariances(classes=10, n=100, width=12, depth=2)
    training = Training(12, 2, 0.05, 0.02, 32, 60)
    lane = jax.tree.map(lambda a: a[0], lanes(jax.random.key(0), (10,), 3, 100))
    w = ravel_pytree(training.net.init(jax.random.key(1)))[0]
    return claim, training, lane, w


def same_in_torch(params):
    layers = []
    for layer in params:
        linear = torch.nn.Linear(*layer["w"].shape[::-1]).double()
        linear.weight.data = torch.tensor(np.array(layer["w"]))
        linear.bias.data = torch.tensor(np.array(layer["b"]))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_the_claims_own_network_gives_what_the_claim_measures(framework):
    claim, training, lane, w = own_network()
    params = training.unflatten(w)
    x, y = np.array(lane.x), np.array(lane.y)
    if framework == "jax":
        attached = subject((training.net, params), models.cross_entropy, (x, y), check=False)
    else:
        loss = torch.nn.CrossEntropyLoss()
        attached = subject(same_in_torch(params), loss, (x, y), check=False)
    groups = np.random.default_rng(0).permutation(y)
    asked_ = CovariancesOnSubject(classes=10, n=100, depth=2)
    found = asked_.shares_of(attached, [y, groups])
    for shares, labels in zip(found, (y, groups), strict=True):
        parts = jax.tree.map(np.asarray, claim.parts(training, w, lane, labels))
        expected = claim.shares(tuple(part[None] for part in parts))[:, 0]
        np.testing.assert_allclose(shares, expected, rtol=1e-8)
    features = jax.tree.map(np.asarray, claim.parts(training, w, lane, y))[0][:, -1]
    last = asked_.last_layer(attached)
    for name, matrix in (("spectrum", features.sum(0)), ("of_means", features[0])):
        values = np.zeros(20)
        values[:12] = np.linalg.eigvalsh(matrix)[::-1]
        np.testing.assert_allclose(last[name], values, atol=1e-12)


def test_runs_on_a_trained_network_with_batch_normalization():
    result = asked("class-covariances", classifier(steps=60, batch_norm=True), seeds=3)
    ids = ["last_layer", "features_by_depth", "errors_by_depth", "learned"]
    assert [check.id for check in result.checks] == ids
    assert {each.id for each in result.controls} == {"start", "random_classes"}
    assert result.params["n"] == 60


def test_without_training_nothing_is_compared_with_the_start():
    result = asked("class-covariances", classifier(train=False), seeds=3)
    ids = ["last_layer", "features_by_depth", "errors_by_depth"]
    assert [check.id for check in result.checks] == ids
    assert [each.id for each in result.controls] == ["random_classes", "backwards"]
    assert [each.id for each in result.rivals] == ["any_grouping", "early_layers"]
    assert result.verdict.value == "out-of-range"  # it is not trained: errors are left
    assert "largest training error" in result.reason


def test_a_function_of_jax_is_refused():
    x, y = clusters()
    apply = lambda w, x: x @ w
    build = lambda: ((apply, np.zeros((4, 3))), models.cross_entropy, (x, y))
    with pytest.raises(UserError, match="cannot be seen"):
        asked("class-covariances", build)


def test_two_layers_are_too_few():
    with pytest.raises(UserError, match="has 1 that can be seen"):
        asked("class-covariances", classifier(hidden=(8,)))


def test_a_class_without_examples_is_out_of_range():
    def build():
        built = classifier(train=False)()
        x, y = built["data"]
        return built["model"], built["loss"], (x[y < 2], y[y < 2])

    result = asked("class-covariances", build)
    assert result.verdict.value == "out-of-range"
    assert "fewest examples of a class = 0 >= 2" in broken(result)
