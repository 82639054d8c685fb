"""Laws of normalized-network by another integrator."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.claims.features.normalized_network.claim import NormalizedNetwork, turn_of_step
from steepest.claims.features.normalized_network.experiment import (
    angles,
    descend_normalized,
    descend_plain,
    follow_normalized,
    follow_plain,
)
from steepest.core.errors import UserError
from steepest.measurement.quantities import rotation

DIRECTION = np.array([0.6, 0.64, 0.48])


def test_flows_by_scipy():
    """The equations a' = b⟨G,u⟩, b' = a⟨G,u⟩, v' = (ab/‖v‖) P G with G = e^{−f} e₁, and those of the plain neuron."""
    norm = 0.7
    ratio = 4.0
    times = np.linspace(0, 3, 4)

    def normalized(t, z):
        a, b = z[:2]
        size = np.linalg.norm(z[2:])
        u = z[2:] / size
        pull = np.exp(-a * b * u[0]) * np.array([1.0, 0, 0])
        turn = a * b / size * (pull - pull @ u * u)
        return np.concatenate([[b * pull @ u, a * pull @ u], turn])

    def plain(t, z):
        pull = np.exp(-z[0] * z[1]) * np.array([1.0, 0, 0])
        return np.concatenate([[pull @ z[1:]], z[0] * pull])

    options = {"t_eval": np.expm1(times), "rtol": 1e-10, "atol": 1e-12}
    end = np.expm1(times[-1])
    z = solve_ivp(normalized, (0, end), [0.6, 0.15, *(norm * DIRECTION)], **options).y
    ours = jax.jit(follow_normalized)(DIRECTION, 0.3, norm, ratio, times)
    np.testing.assert_allclose(ours.product, z[0] * z[1], rtol=1e-7)
    sine = np.linalg.norm(z[3:], axis=0) / np.linalg.norm(z[2:], axis=0)
    np.testing.assert_allclose(ours.sine, sine, rtol=1e-7)
    np.testing.assert_allclose(ours.imbalance, 0.6**2 - 0.15**2, rtol=1e-7)
    z = solve_ivp(plain, (0, end), [0.6, *(0.15 * DIRECTION)], **options).y
    theirs = jax.jit(follow_plain)(DIRECTION, 0.3, ratio, times)
    np.testing.assert_allclose(theirs.norm, np.linalg.norm(z[1:], axis=0), rtol=1e-7)
    np.testing.assert_allclose(theirs.product, z[0] * theirs.norm, rtol=1e-7)


def test_descents_start_alike_and_steps_are_orthogonal():
    key = jax.random.key(0)
    plain = jax.jit(lambda: descend_plain(key, 3, 7, 0.3))()
    other = jax.jit(lambda: descend_normalized(key, 3, 7, 0.3, 0.5))()
    assert other.risk[0] == pytest.approx(float(plain.risk[0]), rel=1e-12)
    np.testing.assert_allclose(other.weight[0], plain.weight[0], rtol=1e-10)
    np.testing.assert_allclose(angles(other.vectors[0], plain.vectors[0]), 0, atol=1e-12)
    steps = np.diff(other.vectors, axis=0)
    np.testing.assert_allclose((steps * other.vectors[:-1]).sum(-1), 0, atol=1e-14)
    turned = rotation(np.asarray(other.vectors[-1]), np.asarray(other.vectors[0]))
    np.testing.assert_allclose(angles(other.vectors[-1], other.vectors[0]), turned, rtol=1e-10)


def test_the_turn_of_a_step_is_its_angle():
    rng = np.random.default_rng(0)
    before = rng.normal(size=(5, 3))
    after = before + 1e-6 * rng.normal(size=(5, 3))
    np.testing.assert_allclose(turn_of_step(before, after), rotation(after, before), rtol=1e-4)
    np.testing.assert_allclose(turn_of_step(before, 1.5 * before), 0, atol=1e-12)


def test_cases_rise_and_each_ratio_is_one():
    claim = NormalizedNetwork(scales=(0.3, 1.0, 0.1), norms=(0.3, 1.0, 1.0))
    np.testing.assert_allclose(np.divide(*claim.cases), [0.1, 1.0])


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"flow_norms": (1.0,)}, "go together"),
        ({"scales": (1.0, 0.3)}, "go together"),
        ({"dimension": 1}, "dimension must be from 2 to 10, got 1"),
    ],
)
def test_bad_fields(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        NormalizedNetwork(**fields)
