"""Edges of rules with momentum: steps against optax, curvature against dense Hessians, edges on a parabola."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.claims.training import _tanh_network as tanh_network
from steepest.claims.training.adaptive_edge import claim as claim_module
from steepest.claims.training.adaptive_edge import experiment
from steepest.claims.training.adaptive_edge import point as point_module
from steepest.claims.training.adaptive_edge.claim import AdaptiveEdge
from steepest.claims.training.adaptive_edge.experiment import BETA2, EPSILON, Rule

KEY = jax.random.key(0)


def rule(*numbers):
    return Rule(*(jnp.asarray(number) for number in numbers))


@pytest.mark.parametrize(
    ("numbers", "optimizer"),
    [
        ((0.1, 0.8, 0.0, 0.0), optax.sgd(0.1, 0.8)),
        ((0.1, 0.8, 1.0, 0.0), optax.sgd(0.1, 0.8, nesterov=True)),
        ((0.01, 0.7, 0.0, 1.0), optax.adam(0.01, 0.7, BETA2, EPSILON)),
    ],
    ids=["momentum", "nesterov", "adam"],
)
def test_steps_are_those_of_optax(numbers, optimizer):
    readings = experiment.train(KEY, rule(*numbers), (3, 7))
    w = tanh_network.start(KEY)
    state = optimizer.init(w)
    for number in range(1, 8):
        update, state = optimizer.update(jax.grad(tanh_network.risk)(w), state, w)
        w = optax.apply_updates(w, update)
        if number == 3:
            np.testing.assert_allclose(readings.weights[0], w, rtol=1e-6)
    np.testing.assert_allclose(readings.weights[1], w, rtol=1e-6)


def test_curvature_is_the_dense_hessians():
    readings = experiment.train(KEY, rule(0.1, 0.5, 0.0, 0.0), (300,))
    scale = jnp.linspace(0.5, 2.0, readings.weights.shape[-1])[None]
    root = np.sqrt(np.asarray(scale[0]))
    dense = np.asarray(jax.hessian(tanh_network.risk)(readings.weights[0])) / root[:, None] / root
    wanted = np.linalg.eigvalsh(dense)[-1]
    curvature = tanh_network.sharpness(KEY, readings.weights, scale)
    assert float(curvature[0]) == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("part", [0.98, 1.02])
def test_laws_are_the_edges_of_a_parabola(part):
    """Below the edge a parabola's iterates shrink, above it they grow, by the largest root of the recursion."""
    claim = AdaptiveEdge()
    law = claim.predict(None)
    for place, beta in enumerate(claim.betas):
        for kind, products in enumerate(law["momentum"][:, place]):
            curve = part * float(products)  # η times curvature
            first = 1 + beta - curve * (1 + beta * kind)
            second = -beta * (1 - curve * kind)
            radius = max(abs(np.roots([1, -first, -second])))
            assert (radius > 1) == (part > 1)
    for place, beta in enumerate(claim.adam_betas):
        curve = part * float(law["adam"][place])
        radius = max(abs(np.roots([1, -(1 + beta - curve * (1 - beta)), beta])))
        assert (radius > 1) == (part > 1)


def test_step_sizes_put_both_betas_at_one_edge():
    claim = AdaptiveEdge()
    turn = claim.predict(None)["momentum"]
    np.testing.assert_allclose(turn / claim.step_sizes, claim.edge, rtol=0.01)


def test_the_point_asks_what_the_claim_asks():
    assert (point_module.LOOKS, point_module.BEYOND) == (claim_module.LOOKS, claim_module.BEYOND)
    claim = AdaptiveEdge(adam_betas=(0.5,))
    point = AdaptiveEdge.point.of(claim)
    law = claim.predict(None)["adam"][0]
    assert point.predict(None)["product"] == pytest.approx(law)
    assert point.step_size == pytest.approx(claim.adam_steps[0], rel=1e-3)
