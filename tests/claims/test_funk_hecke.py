"""Funk–Hecke: gradients by autodiff, the flow by small steps, the floor of networks of any weights, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.expressivity.funk_hecke.claim import hermite, odd_remainder
from steepest.claims.expressivity.funk_hecke.experiment import (
    BIAS,
    TIMES,
    evenly,
    falling_times,
    feel,
    flow,
    on_sphere,
)
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready
from steepest.kernels import funk_hecke, harmonic_count, relu_multipliers, zonal


def test_what_neurons_feel_is_the_gradient_of_the_loss():
    """Autodiff of ½ E(f − y)² at f = 0 in a, and at the same residual in w, gives the pulls that are compared."""
    rng = np.random.default_rng(0)
    pole = on_sphere(rng.standard_normal((1, 4)))[0]
    x = evenly(4096, 4, rng)
    w = evenly(256, 4, rng)
    size = np.sqrt(harmonic_count(4, 2))
    y = size * zonal(4, range(6), x @ pole)

    def risk(w, a):
        residual = jax.nn.relu(jnp.asarray(x) @ w.T) @ a - y[2]
        return (residual**2).mean() / 2

    with jax.enable_x64(True):
        zero = jnp.zeros(256)
        in_a = -np.asarray(jax.grad(risk, 1)(jnp.asarray(w), zero))
        in_w = -np.asarray(jax.grad(risk)(jnp.asarray(w), zero + 1e-9)) / 1e-9
    expected = relu_multipliers(4, [2])[0] * size * zonal(4, [2], w @ pole)[0]
    np.testing.assert_allclose(in_a, expected, atol=2e-3)
    _, inner, _ = feel(x, w, pole)
    along = in_w - (in_w * w).sum(1)[:, None] * w
    cosine = w @ pole
    # d = 4: P_2 = (4 t² − 1)/3, so that P_2' = 8t/3
    slope = size * (8 * cosine / 3)[:, None] * (pole - cosine[:, None] * w)
    assert (along * slope).sum() / (slope**2).sum() == pytest.approx(inner[2], rel=1e-2)


def test_a_bias_lets_neurons_feel_odd_degrees():
    """The changed world's multipliers, by quadrature of the shifted ReLU."""
    rng = np.random.default_rng(3)
    pole = on_sphere(rng.standard_normal((1, 4)))[0]
    x = evenly(2**14, 4, rng)
    outer, inner, _ = feel(x, evenly(256, 4, rng), pole, BIAS)
    expected = funk_hecke(lambda t: np.maximum(t + BIAS, 0), 4, range(6), breaks=(-BIAS,))
    assert abs(expected[3]) > 0.01
    np.testing.assert_allclose(outer, expected, atol=5e-4)
    np.testing.assert_allclose(inner[1:], expected[1:], atol=5e-4)


def test_the_flow_is_that_of_small_steps():
    rng = np.random.default_rng(1)
    activity = rng.random((40, 6))
    y = rng.standard_normal((6, 40))
    target = y.sum(0)
    a = np.zeros(6)
    step = 1e-3
    end = 20
    for _ in range(int(end / step)):
        a += step * activity.T @ (target - activity @ a / 6) / 40
    left = y @ (target - activity @ a / 6) / (y @ target)
    ours = flow(activity, y[None])
    at = [np.interp(end, TIMES, row) for row in ours]
    np.testing.assert_allclose(at, left, atol=2e-3)


def test_no_unbiased_network_is_below_the_floor():
    rng = np.random.default_rng(2)
    half = rng.standard_normal((30, 3))
    x = np.concatenate([half, -half])
    y = rng.standard_normal(60)
    floor = odd_remainder(x, y)
    features = np.maximum(x @ rng.standard_normal((200, 3)).T, 0)
    best = features @ np.linalg.lstsq(features, y, rcond=None)[0]
    assert ((best - y) ** 2).mean() / (y**2).mean() == pytest.approx(floor, rel=1e-6)


def test_hermite_coefficients_by_quadrature():
    polynomials = [
        lambda z: 1.0 + 0 * z,
        lambda z: z,
        lambda z: (z**2 - 1) / 2**0.5,
        lambda z: (z**3 - 3 * z) / 6**0.5,
        lambda z: (z**4 - 6 * z**2 + 3) / 24**0.5,
        lambda z: (z**5 - 10 * z**3 + 15 * z) / 120**0.5,
    ]
    for value, polynomial in zip(hermite(), polynomials, strict=True):
        z, weight = np.polynomial.hermite_e.hermegauss(180)
        mean = weight @ (np.maximum(z, 0) * polynomial(z)) / np.sqrt(2 * np.pi)
        assert value == pytest.approx(mean, abs=2e-3)


def test_times_of_a_decay_and_of_none():
    left = np.ones((1, 6, len(TIMES)))
    left[0, 1] = np.exp(-TIMES / 50)
    times = falling_times(left)
    assert times[0, 1] == pytest.approx(50, rel=1e-3)
    assert np.isinf(times[0, 0])


def test_uneven_inputs_and_few_neurons_are_out_of_range():
    for fields in ({"stretch": 2.0}, {"neurons": 64}, {"dimension": 8}, {"width": 8}):
        asked = ready("funk-hecke", "tiny", changes={**load("funk-hecke").tiny, **fields})
        assert execute(asked).verdict == "out-of-range"


def test_bad_input():
    with pytest.raises(UserError, match="dimension must be at least 3"):
        ready("funk-hecke", changes={"dimension": 2})
    with pytest.raises(UserError, match="neurons times inputs"):
        ready("funk-hecke", changes={"neurons": 4096, "inputs": 2**17})
