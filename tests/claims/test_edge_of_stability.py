"""What edge-of-stability measures and compares with, by other ways: a dense Hessian, a plain loop, a quadratic."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.claims.descent._digits_network import relative_sharpness, tanh_on_digits
from steepest.claims.descent.edge_of_stability.claim import EdgeOfStability
from steepest.claims.descent.edge_of_stability.experiment import (
    EdgePoint,
    follow_descents_and_flow,
)

TINY = {"lr": 0.3, "steps": 20, "width": 5, "depth": 2, "n": 12, "seeds": 3, "products": 40}


@pytest.fixture(scope="module")
def network():
    with jax.enable_x64(True):
        setting = tanh_on_digits(jax.random.key(2), 3, n=12, width=5, depth=2, c_w=0.5)
        start, unravel = ravel_pytree(setting.net.init(setting.keys[0]))
        risk = lambda flat: setting.risk(unravel(flat))
        return setting, start, risk


def test_the_sharpness_is_the_largest_eigenvalue_of_the_dense_hessian(network):
    setting, start, risk = network
    with jax.enable_x64(True):
        dense = float(np.linalg.eigvalsh(jax.hessian(risk)(start))[-1])
        measured = relative_sharpness(setting.risk, setting.net.init(setting.keys[0]), 60)
    assert float(measured["value"]) == pytest.approx(dense, rel=1e-6)


def test_descent_is_followed_as_a_plain_loop_does(network):
    """The last sharpness of each network and step comes from twenty steps by hand."""
    claim = EdgeOfStability(**TINY)
    with jax.enable_x64(True):
        setting = EdgePoint.of(claim).networks(jax.random.key(2))
        seen = follow_descents_and_flow(EdgePoint.of(claim), setting, claim.step_sizes)
        start, unravel = ravel_pytree(setting.net.init(setting.keys[1]))
        risk = lambda flat: setting.risk(unravel(flat))
        slope = jax.jit(jax.grad(risk))
        for place, step_size in enumerate(claim.step_sizes):
            flat = start
            for _ in range(claim.steps):
                flat = flat - step_size * slope(flat)
            dense = float(np.linalg.eigvalsh(jax.hessian(risk)(flat))[-1])
            followed = np.asarray(seen["sharpness"])[1, place, -1]
            assert float(followed) == pytest.approx(dense, rel=1e-4)


@pytest.mark.parametrize("over, grows", [(0.99, False), (1.01, True)])
def test_on_a_quadratic_two_over_the_step_is_the_limit(over, grows):
    """The law's number: descent on ``λw²/2`` multiplies w by ``1 − ηλ``, so that |w| grows from λ = 2/η on."""
    claim = EdgeOfStability()
    law = claim.predict(None)
    for step_size, limit in zip(claim.step_sizes, np.asarray(law["sharpness"]), strict=True):
        w = 1.0
        for _ in range(500):
            w -= step_size * over * limit * w
        assert (abs(w) > 1) == grows
