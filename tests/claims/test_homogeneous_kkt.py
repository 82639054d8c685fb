"""The smoothed margin, its drops and what they pay for, by hand; descents and kinks against slower ways."""

import jax
import numpy as np
import pytest
import xarray
from jax.flatten_util import ravel_pytree

from steepest.claims.implicit_bias.homogeneous_kkt.claim import (
    MOMENTS,
    WINDOWS,
    HomogeneousKkt,
    _drop,
    _over_gained,
)
from steepest.dynamics import descend, steepest_descent
from steepest.nn.losses import exponential, log_margin_risk


def test_drops_count_from_the_moment_that_the_sum_is_below_one():
    dims = ("power", "seed", "reading")
    log_sum = xarray.DataArray([[[1.0, -1.0, -8.0, -16.0]]], dims=dims)
    size = xarray.DataArray([[[1.0, 1.0, 2.0, 4.0]]], dims=dims)
    # margins at degree 2: -1 (not counted), 1, 2, 1: half is lost at the end; at degree 1: 1, 4, 4
    assert _drop(log_sum, size, 2).item() == pytest.approx(0.5)
    assert _drop(log_sum, size, 1).item() == 0


def test_a_part_that_stays_pays_all_of_the_margin_gained():
    """θ = (1, r) with log(1/Σ) = r²: tan² of the distance is 1/r², and log(r²/(1 + r²)) gains ∫ 2 tan² d log ‖θ‖."""
    r = np.geomspace(3.0, 300.0, len(MOMENTS))
    size = np.sqrt(1 + r**2)
    margins = np.log(r**2) - 2 * np.log(size)
    ratios = _over_gained(1 / size, np.log(size), margins, 2.0)
    np.testing.assert_allclose(ratios, 1, rtol=0.05)  # trapezoids over coarse moments
    assert ratios.shape == (len(WINDOWS) - 1,)
    lost = np.log(r**2) - 3 * np.log(size)
    assert np.isinf(_over_gained(1 / size, np.log(size), lost, 3.0)).all()


@pytest.fixture(scope="module")
def small():
    """A claim of four images and three neurons, and twelve steps of both activations."""
    claim = HomogeneousKkt(each=2, width=3, seeds=3)
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
        start = jax.tree.map(lambda leaf: leaf[0], setting.starts)
        follow = lambda power: claim.follow(
            start, power=power, x=setting.x, y=setting.y, step=0.05, marks=np.arange(35)
        )
        paths = [jax.tree.map(np.asarray, follow(power)) for power in claim.powers]
    return claim, setting, start, paths


def test_what_is_recorded_belongs_together(small):
    """Norms, margins and gradients of the recorded weights; Euler's identity ties the last two."""
    _, _, _, paths = small
    for path in paths:
        np.testing.assert_allclose(path.size[10], np.linalg.norm(path.late[0]), rtol=1e-12)
        np.testing.assert_allclose(path.slopes[0] @ path.late[0], 2 * path.margins[10], rtol=1e-9)
        log_risk = np.log(np.exp(-path.margins).sum(1))
        assert np.all(np.diff(log_risk) < 0)


def test_steps_are_those_of_steepest_descent(small):
    """The library's own loop, and drops of margins recorded at its every step."""
    claim, setting, start, paths = small
    with jax.enable_x64(True):
        for power, path in zip(claim.powers, paths, strict=True):
            net = claim.network(power)
            margins = lambda p, net=net: setting.y * net.apply(p, setting.x)
            risk = log_margin_risk(exponential, net.apply, setting.x, setting.y)
            rule = steepest_descent("l2", 0.05, "log-risk")
            record = {"u": margins}
            expected = descend(risk, start, rule, 34, observe=record).observed["u"]
            np.testing.assert_allclose(path.margins, expected, rtol=1e-9)
            smoothed = -np.log(np.exp(-path.margins).sum(1)) / path.size**2
            plain = path.margins.min(1) / path.size**2
            for values, drop in ((smoothed, path.drop), (plain, path.plain_drop)):
                fitted = values[:-1][smoothed[:-1] > 0]  # a step sees where it starts
                largest = np.maximum.accumulate(fitted)
                assert drop == pytest.approx((1 - fitted / largest).max(initial=0.0), abs=1e-12)


def test_jumps_are_what_gradients_gain_on_the_other_side(small):
    """Weights moved across one kink: their gradient is that of one side plus the jump."""
    claim, setting, _, paths = small
    w = paths[0].late[-1][:-3].reshape(3, 64).copy()
    v = paths[0].late[-1][-3:]
    x = np.asarray(setting.x)
    w[1] -= (1 - 1e-9) * (w[1] @ x[2]) / (x[2] @ x[2]) * x[2]
    theta = np.concatenate([w.ravel(), v])
    pairs = claim.reached(x, theta, 1e-7)
    assert np.argwhere(pairs).tolist() == [[2, 1]]
    kinks = claim.kinks(setting, theta, pairs)
    w[1] -= 2e-9 * np.sign(w[1] @ x[2]) * x[2]
    beyond = np.concatenate([w.ravel(), v])
    net = claim.network(1.0)
    with jax.enable_x64(True):
        restore = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], setting.starts))[1]
        slope = jax.grad(lambda t: setting.y[2] * net.apply(restore(t), setting.x[2]))
        gained = np.asarray(slope(beyond) - slope(theta))
    assert kinks.example.tolist() == [2]
    np.testing.assert_allclose(gained, kinks.jump[0], atol=1e-7)


def test_an_offset_is_out_of_range():
    claim = HomogeneousKkt(offset=1.0)
    homogeneity, forgotten = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert not homogeneity.holds and forgotten.holds


def test_a_start_that_is_not_forgotten_is_out_of_range():
    """What a referee found: at width 32 and scale 1 the limit has not been reached."""
    claim = HomogeneousKkt(width=32, scale=1.0)
    homogeneity, forgotten = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert homogeneity.holds and not forgotten.holds
