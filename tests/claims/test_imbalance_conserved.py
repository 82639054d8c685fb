"""What imbalance-conserved rests on: its starts, its descents, the reduction of digits, the bound for n = m."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.descent.imbalance_conserved.claim import (
    _imbalance,
    _least,
    _square_bound,
    _whitened,
)
from steepest.claims.descent.imbalance_conserved.experiment import (
    descend_adaptively,
    descend_with,
    scalar_start,
)
from steepest.nn.data import digits


@pytest.fixture(scope="module")
def setting():
    return load("imbalance-conserved")(seeds=3).setting(jax.random.key(0))


def test_starts_are_as_described(setting):
    """What is added changes D and not the product; starts near the target have a margin; scalars their δ."""
    products = setting.U @ setting.V.swapaxes(1, 2)
    first = np.flatnonzero(setting.group == 0)[:4]
    assert np.allclose(products[first], products[first[0]])
    tops = np.linalg.eigvalsh(_imbalance(setting.U, setting.V))[first, -1]
    assert np.all(np.diff(tops) > 0)
    near = setting.group == 1
    assert np.abs(products[near] - 0.75 * setting.Y[near]).max() < 0.2
    against = setting.group == 2
    assert np.abs(products[against] + 0.3 * setting.Y[against]).max() < 0.2
    scalar = setting.group == 4
    assert np.allclose(products[scalar][:, 0, 0], 0.1)
    assert np.allclose(_imbalance(setting.U, setting.V)[scalar][:, 0, 0], [0, 1, 3, 10])
    with jax.enable_x64(True):
        u, v = scalar_start(3.0, 0.1)
    assert float(u * v) == pytest.approx(0.1)
    assert float(u**2 - v**2) == pytest.approx(3)


def test_the_risk_on_whitened_digits_is_a_constant_more():
    classes = (0, 1, 2)
    target = _whitened(classes)
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
    wanted = _imbalance(*map(np.asarray, params)) - _imbalance(U[0], V[0])
    assert np.allclose(moved[0], wanted, atol=1e-6)
    assert np.allclose(moved, summed, atol=1e-13)


def test_adaptive_steps_stop_at_the_floor():
    rng = np.random.default_rng(0)
    U, V, Y = rng.normal(size=(3, 2, 6)), rng.normal(size=(3, 2, 6)), rng.normal(size=(3, 2, 2))
    least, taken = descend_adaptively(U, V, Y, 2000, 1e-12)
    assert np.all(taken < 2000)
    assert least.min() >= 1
    shorter = descend_adaptively(U, V, Y, int(taken.min()), 1e-12)[1]
    assert np.all(shorter == taken.min())


def test_the_bound_for_squares_on_random_pairs():
    """No proof, but no counterexample either; and with σ = 0 for n ≠ m it is none."""
    rng = np.random.default_rng(0)
    for _ in range(1500):
        n = int(rng.integers(1, 4))
        U = rng.normal(size=(n, int(rng.integers(n, 8)))) * rng.uniform(0.1, 3)
        V = rng.normal(size=U.shape)
        sigma = np.linalg.svd(U @ V.T, compute_uv=False)[-1]
        bound = _square_bound(_imbalance(U, V), n, sigma)
        assert bound <= _least(U) + _least(V) + 1e-9
