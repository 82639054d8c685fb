"""The claim low-rotation-margin: its closed form against a gradient flow, its programs, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import beta

from steepest.claims.features.low_rotation_margin.claim import LowRotationMargin
from steepest.claims.features.low_rotation_margin.experiment import follow, width_needed
from steepest.claims.features.low_rotation_margin.setting import signed_features, units
from steepest.claims.features.low_rotation_margin.theory import (
    edges,
    largest_margin,
    least_share,
)
from steepest.dynamics import flow
from steepest.programs import hard_margin, parity_margins


def problem(width=12, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return signed_features(units(rng, width, d)), rng.choice([-1.0, 1.0], width)


@pytest.mark.parametrize("balanced", [True, False])
def test_the_reduced_flow_is_the_gradient_flow(balanced):
    features, signs = problem()
    start = 0.1
    size = jnp.full(features.shape[1], np.sqrt(start if balanced else 2 * start))
    first = (size, signs * size if balanced else 0 * size)
    log_risk = lambda params: jax.nn.logsumexp(-features @ (params[0] * params[1]))
    margin = lambda params: jnp.stack(
        [
            jnp.log(jnp.abs(params[0] * params[1]).sum()),
            (features @ (params[0] * params[1])).min() / jnp.abs(params[0] * params[1]).sum(),
        ]
    )
    risk = lambda params: jnp.exp(log_risk(params))
    path = flow(risk, first, np.linspace(0.5, 20, 14), "risk", log_risk, {"read": margin})
    size, ratio = np.asarray(path.observed["read"]).T
    ours = follow(features, signs if balanced else None, start, 12.0)
    inside = (size > ours[0, 5]) & (size < ours[0, -1])
    assert inside.sum() >= 3
    # readings between the integrator's steps are interpolated
    np.testing.assert_allclose(np.interp(size[inside], *ours), ratio[inside], atol=3e-3)


def test_the_program_is_that_of_the_library():
    features, signs = problem(40)
    labels = np.ones(len(features))
    assert largest_margin(features) == pytest.approx(hard_margin(features, labels, "l1").margin)
    assert 0 < largest_margin(features, signs) < largest_margin(features)
    assert largest_margin(features[:, :2]) == 0


def test_flows_end_at_their_programs():
    features, signs = problem(40)
    either = follow(features, None, 0.01, 15.0)
    balanced = follow(features, signs, 0.01, 15.0)
    assert either[1, -1] == pytest.approx(largest_margin(features), rel=0.05)
    assert balanced[1, -1] == pytest.approx(largest_margin(features, signs), rel=0.05)
    assert (either[1] <= largest_margin(features) + 1e-9).all()


def test_edges_are_bounds_of_margins():
    rng = np.random.default_rng(0)
    u = units(rng, 200, 4)
    best = np.array([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1]]) / np.sqrt([[2], [1], [2]])
    np.testing.assert_allclose(edges(best), [parity_margins(4, 2).first, 0, 0], atol=1e-12)
    assert largest_margin(signed_features(u)) <= edges(u).max()


def test_widths_are_those_of_a_scan():
    u = units(np.random.default_rng(1), 64, 3)
    wanted = parity_margins(3, 2).first / 2
    grid = np.array([4, 8, 16, 32, 64])
    needed = width_needed(u, wanted, grid)
    features = signed_features(u)
    margins = [largest_margin(features[:, :m]) for m in range(4, 65)]
    assert np.all(np.diff(margins) > -1e-9)
    above = grid[np.searchsorted(grid, needed)]
    assert margins[above - 4] >= wanted > margins[above // 2 - 4]
    assert width_needed(u, 1.0, grid) == np.inf


def test_half_of_the_best_edge_takes_a_share_of_the_direction():
    d = 8
    u = units(np.random.default_rng(2), 20_000, d)
    good = edges(u) >= parity_margins(d, 2).first / 2
    # the law of u₁² + u₂², and the least share as d grows
    assert (u[good, :2] ** 2).sum(1).min() > least_share() - 0.1
    assert good.mean() < beta(1, (d - 2) / 2).sf(least_share() - 0.1)


@pytest.mark.parametrize("fields", [{"widths": (3, 4)}, {"horizon": 5.0}, {"start": 1e4}])
def test_fields_out_of_range(fields):
    claim = LowRotationMargin(seeds=3, **fields)
    hypotheses = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert not all(hypothesis.holds for hypothesis in hypotheses)
