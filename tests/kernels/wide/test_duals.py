"""Expectations of one activation between positions, and the bounds of their errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.kernels import covariance_map
from steepest.kernels.wide.duals import dual_of
from steepest.nn.activations import activation, arc_cosines

NAMES = [
    "relu",
    "leaky_relu(0.3)",
    "abs",
    "linear",
    "erf",
    "gelu",
    "sin",
    "quadratic",
    "tanh",
    "silu",
    "softplus",
]


def pairs(count=40, seed=0):
    rng = np.random.default_rng(seed)
    variances = rng.uniform(0.3, 2.5, (2, count))
    rho = np.concatenate([rng.uniform(-1, 1, count - 4), [1, -1, 0, 0.999]])
    return variances, rho * np.sqrt(variances[0] * variances[1])


@pytest.mark.parametrize("name", NAMES)
def test_pairs_against_the_certified_map(name):
    sigma = activation(name)
    variances, k = pairs()
    dual = dual_of(sigma, variances, 1e-11)
    with jax.enable_x64(True):
        sides = [[jnp.asarray(side) for side in dual.sides(v)] for v in variances]
        value, slope = dual.pairing.pair(jnp.asarray(k), *sides)
    exact = covariance_map(sigma, np.stack([*variances, k], axis=-1))
    one, two = (dual.singles(v) for v in variances)
    errors = dual.tolerances(np.finfo(float).eps)
    assert (
        np.abs(value - exact.value.value) <= errors.value * np.sqrt(one.value * two.value) + 1e-14
    ).all()
    near = errors.corner * np.sqrt(16 * np.finfo(float).eps)
    allowed = errors.slope * np.sqrt(one.slope * two.slope) + near + 1e-13
    assert (np.abs(slope - exact.first.value) <= allowed).all()


@pytest.mark.parametrize("name", ["relu", "erf", "tanh", "gelu"])
def test_singles_are_pairs_of_equals(name):
    sigma = activation(name)
    variances = np.linspace(0.2, 3.0, 7)
    dual = dual_of(sigma, variances, 1e-11)
    singles = dual.singles(variances)
    exact = covariance_map(sigma, np.stack([variances] * 3, axis=-1))
    np.testing.assert_allclose(singles.value, exact.value.value, rtol=1e-10)
    np.testing.assert_allclose(singles.slope, exact.first.value, rtol=1e-7)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(7, 400_000)) * np.sqrt(variances)[:, None]
    with jax.enable_x64(True):
        mean = np.asarray(sigma(jnp.asarray(z))).mean(1)
    np.testing.assert_allclose(singles.mean, mean, atol=8e-3)
    if name != "relu":
        np.testing.assert_allclose(singles.curvature, exact.second.value, rtol=1e-6)


@pytest.mark.parametrize("double", [False, True])
def test_arc_cosines(double):
    with jax.enable_x64(double):
        rho = jnp.asarray(np.cos(np.linspace(0, np.pi, 2001)), float)
        value, angle = arc_cosines(rho)
        theta = np.arccos(np.asarray(rho, float))
        eps = float(jnp.finfo(rho.dtype).eps)
    np.testing.assert_allclose(
        value, np.sin(theta) + (np.pi - theta) * np.cos(theta), atol=16 * eps
    )
    np.testing.assert_allclose(angle, np.pi - theta, atol=16 * eps)


@pytest.mark.parametrize(("name", "steps"), [("tanh", 2), ("erf", 1), ("silu", 1), ("softplus", 1)])
def test_odd_series_skip_every_other_term(name, steps):
    dual = dual_of(activation(name), np.array([0.5, 1.5]), 1e-6)
    assert getattr(dual, "step", 1) == steps
