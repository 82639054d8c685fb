"""What the claim about covariances rests on: backpropagated errors by hand are those of automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest.catalogue import load
from steepest.claims.curvature._trained import Training, lanes
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
