"""Residuals by JAX's gradients, margins by a linear program, descents step by step, and fields that are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from steepest.claims.features.prelu_kkt import (
    NETWORKS,
    STEP,
    PreluKkt,
    grouped,
    network,
    residuals,
    weighed,
)
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready
from steepest.nn.networks import Neurons, two_layer
from steepest.programs import kkt_residuals


def problem(k):
    return np.eye(k), np.where(np.arange(k) % 2 == 0, 1.0, -1.0)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
def test_residuals_are_those_of_jax(power):
    x, y = problem(6)
    x = x + 0.02 * np.random.default_rng(0).standard_normal(x.shape)
    params = grouped(x, y, power, "averages")
    params = Neurons(params.w * 1.2, params.v)
    net = two_layer(6, 2, power=power)
    by_jax = kkt_residuals(lambda params: y * net.apply(params, x), params, 2)
    by_hand = residuals(params, x=x, y=y, power=power)
    assert by_hand.margin == pytest.approx(by_jax.margin)
    assert by_hand.stationarity == pytest.approx(by_jax.stationarity, abs=1e-9)
    assert by_hand.complementarity == pytest.approx(by_jax.complementarity, abs=1e-9)
    assert by_hand.largest > 1e-3


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.5])
@pytest.mark.parametrize("k", [4, 10])
def test_groups_are_kkt_points_with_their_margins(power, k):
    x, y = problem(k)
    half = k // 2
    sizes = {"centres": [1] * half, "uneven": [1, half - 1], "averages": [half]}
    for name in NETWORKS:
        params = grouped(x, y, power, name)
        outputs = two_layer(k, len(params.v), power=power).apply(params, x)
        np.testing.assert_allclose(outputs, y, rtol=1e-12)
        kkt = residuals(params, x=x, y=y, power=power)
        assert kkt.largest < 1e-9
        expected = 1 / (4 * sum(m ** (power / 2) for m in sizes[name]))
        assert kkt.margin == pytest.approx(expected)
        # Euler: the multipliers are the sum of |v|‖w‖ over all neurons
        assert kkt.multipliers.sum() == pytest.approx((params.v**2).sum())


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 2.5, 4.0])
def test_no_network_has_a_larger_margin(power):
    """All directions in the span of two centres, by a linear program: the least Σ|v|‖w‖ with margins of one."""
    angles = np.linspace(0, np.pi / 2, 201)
    cover = np.stack([np.cos(angles), np.sin(angles)]).clip(0) ** power
    program = linprog(np.ones(201), A_ub=-cover, b_ub=-np.ones(2))
    x, y = problem(4)
    both = [residuals(grouped(x, y, power, name), x=x, y=y, power=power) for name in NETWORKS]
    # two classes, and ‖θ‖² is twice the sum
    assert max(kkt.margin for kkt in both) == pytest.approx(1 / (4 * program.fun), rel=1e-6)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
def test_unequal_weights_are_kkt_points_at_two_only(power):
    x, y = problem(8)
    mixed = weighed(x, y, power, all_of_them=True)
    net = two_layer(8, 8, power=power)
    outputs = y * net.apply(mixed, x)
    np.testing.assert_allclose(outputs, outputs[0], rtol=1e-12)
    kkt = residuals(mixed, x=x, y=y, power=power)
    assert (kkt.largest < 1e-9) == (power == 2)
    single = weighed(x, y, power, all_of_them=False)
    assert residuals(single, x=x, y=y, power=power).largest > 0.1
    if power == 2:
        assert kkt.margin == pytest.approx(1 / 16)


def test_one_side_of_a_kink_is_not_enough():
    x, y = problem(4)
    centres = grouped(x, y, 1.0, "centres")
    assert residuals(centres, x=x, y=y, power=1.0).largest < 1e-9
    assert residuals(centres, x=x, y=y, power=1.0, clarke=False).largest > 0.5
    off = network(np.eye(4) - 1e-3, y, 1.0)  # no kinks: dead on other examples
    kkt = residuals(off, x=x, y=y, power=1.0)
    assert 1e-4 < kkt.largest < 1e-2


def test_descents_are_steps_on_log_risk():
    """Of the first four examples, with the gradient of log Σ e^(−u) taken by JAX."""
    claim = PreluKkt(
        trained_powers=(3.0,), trained_clusters=(4, 6), width=5, scale=0.8, steps=3, seeds=3
    )
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
        ends = claim.descents(setting)
        net = two_layer(6, 5, power=3.0)
        x, y = problem(6)
        risk = lambda params: jax.nn.logsumexp(-y[:4] * net.apply(params, x[:4]))
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf[1]), setting.starts)
        slope = jax.jit(jax.grad(risk))
        for _ in range(3):
            squares = float((params.w**2).sum() + (params.v**2).sum())
            step = STEP / max(1.0, squares / 4)
            params = jax.tree.map(lambda w, g, step=step: w - step * g, params, slope(params))
    assert ends.w.shape == (3, 1, 2, 5, 6)
    np.testing.assert_allclose(ends.w[1, 0, 0], params.w, rtol=1e-9)
    np.testing.assert_allclose(ends.v[1, 0, 0], params.v, rtol=1e-9)


def test_starts_that_do_not_see_a_class():
    w = np.array([[[1.0, -1, 1, -1], [-1, 1, -1, 1]], [[1, 1, 1, 1], [1, 1, -1, -1]]])
    v = np.array([[1.0, -1.0], [1.0, -1.0]])
    assert PreluKkt(trained_clusters=(4,)).blind(Neurons(w, v)) == 1
    assert PreluKkt(trained_clusters=(4,)).blind(Neurons(w, -v)) == 3


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"clusters": [4, 7]}, "--clusters must be even, half of each class, got 7"),
        ({"trained_clusters": [5]}, "--trained-clusters must be even"),
        ({"powers": [0.5]}, "powers must be"),
        ({"spread": -0.1}, "spread must be at least 0"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("prelu-kkt", changes=fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"overlap": 0.3},
        {"spread": 0.1},
        {"scale": 0.1},
        {"width": 2},
        {"trained_powers": (2.0,)},
        {"powers": (1.9,)},
    ],
)
def test_out_of_range(fields):
    claim = PreluKkt(**({"width": 60, "trained_clusters": (4,), "seeds": 3} | fields))
    with jax.enable_x64(True):
        hypotheses = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert [one.holds for one in hypotheses].count(False) == 1


def test_centres_with_an_overlap():
    x = PreluKkt(overlap=0.3, width=2).setting(jax.random.key(0)).x
    np.testing.assert_allclose(x @ x.T, 0.7 * np.eye(16) + 0.3, atol=1e-12)


def test_an_overlap_is_out_of_range():
    from steepest.catalogue import load

    asked = ready("prelu-kkt", "tiny", changes={**load("prelu-kkt").tiny, "overlap": 0.1})
    assert execute(asked).verdict == "out-of-range"
