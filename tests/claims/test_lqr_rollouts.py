"""Errors of gradients by rollouts against draws, and against the fourth moment of a Gaussian."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.descent.lqr_rollouts.claim import LqrRollouts, _rollout_error
from steepest.claims.descent.lqr_rollouts.experiment import rollout_gradients
from steepest.landscapes import Lqr, lqr

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 3))
A *= 0.8 / np.linalg.norm(A, 2)
B = RNG.normal(size=(3, 2))
SYSTEM = lqr(A, B, np.eye(3), np.eye(2), np.diag([1.0, 0.5, 0.3]))
PLAIN = Lqr(*map(np.asarray, SYSTEM))


def test_the_error_of_rollouts_is_as_drawn():
    """Variance of 40 000 estimates against the Gaussian fourth moments: heavy tails, so 4 standard errors."""
    zero = jnp.zeros((2, 3))
    both, _ = jax.jit(rollout_gradients, static_argnums=(3, 4, 5))(
        SYSTEM, zero, jax.random.key(0), 40_000, 40, 0.001
    )
    gradient = np.asarray(SYSTEM.gradient(zero))
    estimates = np.asarray(both) - gradient
    squares = (estimates**2).sum((1, 2)) / (gradient**2).sum()
    error = squares.std() / len(squares) ** 0.5
    assert abs(squares.mean() - _rollout_error(PLAIN) ** 2) < 4 * error
    spread = estimates.std(0) / len(estimates) ** 0.5
    assert (np.abs(estimates.mean(0)) < 4 * spread).all()


@pytest.mark.parametrize("a", [0.2, 0.7])
def test_the_error_with_one_state_is_root_two(a):
    """By the fourth moment of a Gaussian, and by the formula of systems of any size."""
    unit = np.ones((1, 1))
    assert _rollout_error(Lqr(a * unit, unit, unit, unit, unit)) == pytest.approx(2**0.5)
    claim = LqrRollouts(pairs=40_000)
    both, single = jax.jit(claim.one_state)(a, jax.random.key(0))
    assert float(both) == pytest.approx(2**0.5, rel=0.05)
    assert float(single) > 5
