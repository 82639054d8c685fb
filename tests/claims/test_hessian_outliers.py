"""What the claim about outliers rests on: lanes of one shape are classifiers of C classes and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from steepest.catalogue import load
from steepest.claims.curvature._trained import Training, lanes
from steepest.claims.curvature.hessian_outliers.experiment import class_rows
from steepest.measurement.quantities import three_levels


def test_absent_classes_do_not_matter():
    """Ten outputs of which three count have the Hessian of a network with three outputs, and zeros."""
    lane = jax.tree.map(lambda a: a[0], lanes(jax.random.key(0), (3,), 3, 30))
    training = Training(4, 1, 0.1, 0.0, 10, 10)
    w = jnp.concatenate(
        [leaf.ravel() for leaf in jax.tree.leaves(training.net.init(jax.random.key(1)))]
    )

    def small(w):
        first, last = training.unflatten(w)
        f = jax.nn.relu(lane.x @ first["w"].T + first["b"]) @ last["w"][:3].T + last["b"][:3]
        return -jnp.take_along_axis(jax.nn.log_softmax(f), lane.y[:, None], 1).mean()

    a, b = (jax.grad(of)(w) for of in (small, lambda w: training.objective(w, lane)))
    assert np.allclose(a, b, atol=1e-12)


def test_lanes_are_balanced_and_centred():
    found = lanes(jax.random.key(0), (2, 5), 3, 60)
    assert found.x.shape == (6, 60, 64) and np.abs(found.x.mean(1)).max() < 1e-12
    assert (
        np.bincount(found.y[0]).tolist() == [30, 30]
        and np.bincount(found.y[-1]).tolist() == [12] * 5
    )


def test_prediction_follows_the_classes():
    claim = load("hessian-outliers")(classes=(4, 7))
    assert claim.predict(None)["leading"].tolist() == [3, 6]


def test_class_rows_are_those_of_three_levels():
    """One product a class gives the class part that the sum over pairs of classes gives; absent classes have none."""
    lane = jax.tree.map(lambda a: a[0], lanes(jax.random.key(0), (3,), 3, 30))
    training = Training(4, 1, 0.1, 0.0, 10, 10)
    w = ravel_pytree(training.net.init(jax.random.key(1)))[0]
    outputs, back = jax.vjp(lambda w: training.outputs(w, lane), w)
    expected = three_levels(lambda u: back(u)[0], outputs, lane.y).classes
    found = class_rows(training, w, lane, lane.y)
    assert np.allclose(found.T @ found, expected.T @ expected, atol=1e-13)
    assert np.abs(found[3:]).max() == 0
