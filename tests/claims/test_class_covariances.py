"""What the claim about covariances rests on: backpropagated errors by hand are those of automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest.catalogue import load
from steepest.claims.curvature._trained import Training, lanes
from steepest.claims.curvature.class_covariances.claim import carried
from steepest.measurement.quantities import error_parts


def test_errors_are_derivatives_of_the_loss():
    claim = load("class-covariances")(classes=3, depth=2)
    training = Training(5, 2, 0.1, 0.0, 10, 10)
    lane = jax.tree.map(lambda a: a[0], lanes(jax.random.key(0), (3,), 3, 30))
    params = training.net.init(jax.random.key(1))
    w = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(params)])
    _, errors = claim.parts(training, w, lane, lane.y)
    z = training.net.preactivations(params, lane.x)[0]

    def loss(z, label):
        second = params[1]
        head = params[2]
        f = (
            jax.nn.relu(jax.nn.relu(z) @ second["w"].T + second["b"]) @ head["w"][:3].T
            + head["b"][:3]
        )
        return -jax.nn.log_softmax(f)[label], jax.nn.softmax(f)[label]

    each = jax.vmap(lambda z: jax.vmap(lambda c: jax.grad(loss, has_aux=True)(z, c))(jnp.arange(3)))
    delta, p = each(z)
    for found, expected in zip(errors[:, 0], error_parts(delta, p / len(p), lane.y), strict=True):
        assert np.allclose(found, expected, atol=1e-12)


def test_the_common_mean_carries_the_largest_eigenvalue_just_where_it_is_longer_than_the_rest():
    # classes at μ ± e₁ with noise along e₂: the second moment is diagonal
    for length, expected in ((3.0, [[1, 0], [0, 1]]), (0.5, [[0, 1], [1, 0]])):
        rows = np.array([[i, j, length] for i in (1, -1) for j in (0.3, -0.3)])
        y = np.array([0, 0, 1, 1])
        assert np.allclose(carried(rows[None], y, 2), expected)


def test_the_layer_where_the_common_mean_has_the_least_is_taken_for_the_largest():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    low = rng.standard_normal((60, 5)) + 0.7
    high = rng.standard_normal((60, 5)) + 3.0
    shares = carried(np.stack([low, high]), y, 3)
    assert np.allclose(shares[0], carried(low[None], y, 3)[0])
    assert np.allclose(shares[1], carried(high[None], y, 3)[1])
    # by projections: ‖P μ‖² over the eigenvalues, and between class means in the same plane
    moment = high.T @ high / 60
    values, vectors = np.linalg.eigh(moment)
    plane = vectors[:, -3:-1]
    mean = high.mean(0)
    assert np.isclose(shares[1, 0], mean @ plane @ plane.T @ mean / values[-3:-1].sum())
    means = np.stack([high[y == c].mean(0) for c in range(3)]) - mean
    between = means.T @ means / 3
    assert np.isclose(shares[1, 1], np.trace(plane.T @ between @ plane) / values[-3:-1].sum())
