"""What the claim about outliers rests on: lanes of one shape are classifiers of C classes and nothing else."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest import kit
from steepest.catalogue import load
from steepest.claims.curvature._trained import Training, lanes
from steepest.claims.curvature.hessian_outliers.experiment import (
    _curvature,
    _lower_end,
    _product,
    class_rows,
)
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


@pytest.mark.parametrize(
    ("one_more", "verdict"), [(0, "holds"), (9, "inconclusive"), (18, "fails")]
)
def test_most_networks_must_have_just_as_many_directions_for_each_number_of_classes(
    one_more, verdict
):
    """Of eighteen networks with four classes some have an eigenvector more; all those with ten have nine."""
    claim = load("hessian-outliers")(classes=(4, 10))
    counts = np.full((2, 18), [[3], [9]])
    counts[0, :one_more] += 1
    ranks = np.arange(21)
    carried = np.where(ranks < counts[..., None], 1.0, 0.1)
    seen = kit.seen(
        class_share=("classes seed rank", carried),
        share=("classes seed moment", np.ones((2, 18, 4))),
        overlap=("classes seed pair", np.ones((2, 18, 2))),
        lowest=("seed looked", -np.ones((18, 3))),
    )
    checks = {check.id: check for check in claim.checks(claim.predict(None), seen)}
    assert checks["leading"].verdict.value == verdict


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


def test_the_lower_end_is_that_of_the_dense_hessian_and_its_convex_part_that_of_the_gauss_newton_matrix():
    lane = jax.tree.map(lambda a: a[0], lanes(jax.random.key(0), (3,), 3, 30))
    training = Training(4, 1, 0.1, 0.0, 10, 10)
    w = np.asarray(ravel_pytree(training.net.init(jax.random.key(1)))[0])
    risk = lambda w: (
        -jnp.take_along_axis(
            jax.nn.log_softmax(training.outputs(w, lane)), lane.y[:, None], 1
        ).mean()
    )
    slope = jax.jit(jax.grad(risk))
    moves = 1e-6 * np.eye(len(w))
    dense = np.array([slope(w + move) - slope(w - move) for move in moves]) / 2e-6
    values, vectors = np.linalg.eigh((dense + dense.T) / 2)
    product = jax.jit(partial(_product, training))
    curvature = kit.compiled(partial(_curvature, training))
    lowest = _lower_end(product, curvature, w, lane, np.random.default_rng(0))[0]
    assert values[0] < 0 and np.isclose(lowest, values[0], rtol=1e-3)
    v = vectors[:, 0]
    outputs = jax.jit(lambda w: training.outputs(w, lane)[:, :3])
    moved = np.asarray(outputs(w + 1e-6 * v) - outputs(w - 1e-6 * v)) / 2e-6
    p = np.asarray(jax.nn.softmax(outputs(w)))
    inner = np.stack([np.diag(q) - np.outer(q, q) for q in p])
    expected = np.einsum("ia,iab,ib->i", moved, inner, moved).mean()
    assert np.isclose(float(curvature(w, lane, v)), expected, rtol=1e-5)
