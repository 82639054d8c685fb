"""Langevin walkers beside those of blackjax: the same law after the same steps."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from steepest.noise import langevin

WALKERS = 8000
STEPS = 60


def test_walkers_have_the_law_of_blackjax():
    f = lambda x: (x**2 - 1) ** 2 / 4
    slope = jax.grad(lambda x: -4.0 * f(x))  # of the log density at β = 4
    sampler = blackjax.sgld(lambda x, _: slope(x))
    # its step in the log density is ours over β
    move = lambda x, key: sampler.step(key, x, None, 0.2 / 4)
    chain = lambda key: jax.lax.scan(
        lambda x, k: (move(x, k), None), jnp.array(0.5), jax.random.split(key, STEPS)
    )[0]
    theirs = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), WALKERS)))
    ours = np.asarray(langevin(f, np.full(WALKERS, 0.5), 0.2, 4.0, STEPS, jax.random.key(1)).x)
    for power in (1, 2, 4):
        gap = (theirs**power).mean() - (ours**power).mean()
        error = np.hypot((theirs**power).std(), (ours**power).std()) / np.sqrt(WALKERS)
        assert abs(gap) < 4 * error
