"""What imbalance-conserved rests on: its starts, its descents, the reduction of digits, what descent loses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.catalogue import load
from steepest.claims.descent.imbalance_conserved.claim import (
    _each,
    _imbalance,
    _share_lost,
    _whitened,
)
from steepest.claims.descent.imbalance_conserved.experiment import (
    descend_adaptively,
    descend_scalars,
    descend_with,
    scalar_start,
)
from steepest.nn.data import digits


@pytest.fixture(scope="module")
def setting():
    return load("imbalance-conserved")(seeds=3).setting(jax.random.key(0))


def test_starts_are_as_described(setting):
    """What is added changes D and not the product; starts near the target have a margin; scalars their δ."""
    product = lambda lanes: lanes.U @ lanes.V.swapaxes(-1, -2)
    difference = lambda lanes: _imbalance(lanes.U, lanes.V)
    assert np.allclose(product(setting.small), product(setting.small)[:, :1])
    tops = np.linalg.eigvalsh(difference(setting.small))[..., -1]
    assert np.all(np.diff(tops) > 0)
    assert np.abs(product(setting.near) - 0.75 * setting.near.Y).max() < 0.2
    assert np.abs(product(setting.against) + 0.3 * setting.against.Y).max() < 0.2
    assert np.allclose(product(setting.numbers)[:, 0, 0], 0.1)
    assert np.allclose(difference(setting.numbers)[:, 0, 0], [0, 1, 3, 10])
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


def test_bounds_are_of_each_start_without_its_rows_of_zeros(setting):
    outputs = _each(lambda U, V, Y: len(Y), setting.small)
    assert np.array_equal(outputs, np.repeat([3, 2], 3)[:, None] + np.zeros((1, 4)))


@pytest.mark.parametrize(("delta", "target", "product"), [(1.0, 1.0, 0.1), (5.0, 0.5, 0.2)])
def test_what_descent_loses_is_what_the_flow_would_in_first_order(delta, target, product):
    """The integral over errors against one over time, along SciPy's flow of u and v."""
    u = np.sqrt((np.hypot(delta, 2 * product) + delta) / 2)
    speed = lambda _, x: [x[1] * (target - x[0] * x[1]), x[0] * (target - x[0] * x[1])]
    path = solve_ivp(speed, (0, 40), [u, product / u], rtol=1e-9, atol=1e-12, dense_output=True)
    time = np.linspace(0, 40, 40_001)
    a, b = path.sol(time)
    wanted = np.trapezoid((target - a * b) ** 2, time)
    share = _share_lost(delta, target, target - product)
    assert share == pytest.approx(wanted, rel=1e-4)
    lost = descend_scalars(np.array([delta]), product, target, np.array([1e-4, 5e-5]), 200_000)
    assert np.allclose(lost / [1e-4, 5e-5], share, rtol=1e-3)
