"""Rates of lqr-policy-gradient against a dense Hessian and a path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.descent.lqr_policy_gradient.claim import _decays, optimum
from steepest.claims.descent.lqr_policy_gradient.experiment import descent
from steepest.landscapes import Lqr, lqr

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 3))
A *= 0.8 / np.linalg.norm(A, 2)
B = RNG.normal(size=(3, 2))
SYSTEM = lqr(A, B, np.eye(3), np.eye(2), np.diag([1.0, 0.5, 0.3]))
PLAIN = Lqr(*map(np.asarray, SYSTEM))


def test_the_hessian_at_the_optimum_is_2_m_times_sigma():
    curvature, covariance = optimum(PLAIN)
    hessian = jax.jit(jax.jacfwd(SYSTEM.gradient))(SYSTEM.optimum.feedback)
    expected = 2 * np.einsum("ac,bd->abcd", curvature, covariance)
    np.testing.assert_allclose(hessian, expected, atol=1e-7)


@pytest.mark.parametrize("method", [0, 1])
def test_descents_decay_at_the_predicted_rate(method):
    curvature, covariance = optimum(PLAIN)
    best = SYSTEM.optimum
    zero = jnp.zeros((2, 3))
    lr = 0.02
    _, along = jax.jit(descent, static_argnums=6)(SYSTEM, best, zero, zero, method, lr, 1200)
    slow = np.linalg.eigvalsh(curvature)[0]
    slow = slow * np.linalg.eigvalsh(covariance)[0] if method == 0 else slow
    along = np.abs(np.asarray(along))[None, None] / float(jnp.linalg.norm(best.feedback))
    assert _decays(along)[0, 0] == pytest.approx(-np.log(1 - 2 * lr * slow), rel=1e-4)
