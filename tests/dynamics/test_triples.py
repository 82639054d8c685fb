"""Fresh triples: their law, and that descent follows them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import descend, triples
from steepest.measurement.quantities import contrastive


def test_the_law_of_triples():
    """Examples carry their class and number: x and x⁺ share a class, which collides as often as Σρ²."""
    codes = jnp.stack(jnp.broadcast_arrays(jnp.arange(3.0)[:, None], jnp.arange(4.0)), -1)
    shares = jnp.array([5.0, 3.0, 2.0])
    size = 20_000

    def record(which, x, positive, negative):
        events = [
            x[:, 0] != positive[:, 0],
            x[:, 0] == negative[:, 0],
            x[:, 1] == positive[:, 1],
            x[:, 0] == 0,
            negative[:, 0] == 0,
        ]
        return which @ jnp.stack(events).astype(float)

    risk = triples(record, codes, size, shares)
    draw = jax.jit(jax.vmap(lambda which: risk(which, jax.random.key(0))))
    frequencies = np.asarray(draw(jnp.eye(5)))
    exact = np.array([0, 0.38, 0.25, 0.5, 0.5])
    assert np.all(np.abs(frequencies - exact) <= 4 * np.sqrt(exact * (1 - exact) / size))


def test_its_mean_is_the_contrastive_loss_and_descent_lowers_it():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((4, 1, 6))
    images = jnp.asarray(centres + 0.3 * rng.standard_normal((4, 8, 6)))

    def loss(weights, x, positive, negative):
        v = ((x @ weights) * ((positive - negative) @ weights)).sum(1)
        return jax.nn.softplus(-v) / jnp.log(2.0)

    start = jnp.asarray(0.5 * rng.standard_normal((6, 2)))
    risk = triples(loss, images, 20_000)
    full = lambda weights: contrastive(images @ weights).un
    stochastic = triples(loss, images, 64)
    key = jax.random.key(2)
    path = descend(full, start, optax.sgd(0.3), 100, record=100, stochastic=stochastic, key=key)
    assert float(jax.jit(risk)(start, jax.random.key(1))) == pytest.approx(
        float(path.risk[0]), rel=0.04
    )
    assert path.risk[1] < 0.8 * path.risk[0]


@pytest.mark.parametrize(
    ("shape", "size", "shares"),
    [((3, 4), 5, None), ((3, 4, 2), 0, None), ((3, 4, 2), 5, jnp.ones(2))],
)
def test_bad_input_is_refused(shape, size, shares):
    with pytest.raises(UserError, match="triples"):
        triples(lambda *a: a[1], jnp.ones(shape), size, shares)
