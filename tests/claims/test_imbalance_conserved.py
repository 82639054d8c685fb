"""What imbalance-conserved rests on: its starts, the reduction of digits, its descents."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.descent._two_layers import imbalances, whitened
from steepest.claims.descent.imbalance_conserved.claim import descend_with
from steepest.nn.data import digits


@pytest.fixture(scope="module")
def setting():
    return load("imbalance-conserved")(seeds=3).setting(jax.random.key(0)).linear


def test_starts_are_as_described(setting):
    """What is added changes D and not the product, and starts near the target have a margin."""
    product = lambda lanes: lanes.U @ lanes.V.swapaxes(-1, -2)
    difference = lambda lanes: imbalances(lanes.U, lanes.V)
    assert np.allclose(product(setting.small), product(setting.small)[:, :1])
    tops = np.linalg.eigvalsh(difference(setting.small))[..., -1]
    assert np.all(np.diff(tops) > 0)
    assert np.abs(product(setting.near) - 0.75 * setting.near.Y).max() < 0.2
    assert np.abs(product(setting.against) + 0.3 * setting.against.Y).max() < 0.2


def test_the_risk_onwhitened_digits_is_a_constant_more():
    classes = (0, 1, 2)
    target = whitened(classes)
    data = digits(classes)
    x = np.asarray(data.x) - np.asarray(data.x).mean(0)
    left = np.linalg.svd(x, full_matrices=False)[0][:, :2] * np.sqrt(len(x))
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(3):
        matrix = rng.normal(size=(3, 2))
        risk = ((np.asarray(data.y) - left @ matrix.T) ** 2).sum(1).mean() / 2
        gaps.append(risk - ((target - matrix) ** 2).sum() / 2)
    assert np.ptp(gaps) < 1e-12


def test_descents_are_those_of_automatic_differentiation():
    rng = np.random.default_rng(0)
    U, V, Y = rng.normal(size=(1, 2, 4)), rng.normal(size=(1, 2, 4)), rng.normal(size=(1, 2, 2))
    moved, summed = descend_with(U, V, Y, 0.01, 0.02)
    params = (jnp.asarray(U[0]), jnp.asarray(V[0]))
    slope = jax.grad(lambda p: jnp.sum((Y[0] - p[0] @ p[1].T) ** 2) / 2)
    for _ in range(2):
        params = jax.tree.map(lambda p, g: p - 0.01 * g, params, slope(params))
    wanted = imbalances(*map(np.asarray, params)) - imbalances(U[0], V[0])
    assert np.allclose(moved[0], wanted, atol=1e-6)
    assert np.allclose(moved, summed, atol=1e-13)
