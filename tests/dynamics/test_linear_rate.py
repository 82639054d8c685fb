"""The bound on the rate of a product of two matrices: along integrated flows, on random pairs, for scalars."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.core.errors import UserError
from steepest.dynamics import linear_network_rate


def draw(rng, n, m, h, size=1.0):
    U, V = size * rng.normal(size=(n, h)), size * rng.normal(size=(m, h))
    return U * rng.uniform(0.1, 3), V, rng.normal(size=(n, m))


def test_least_singular_values_are_bounded_on_random_pairs():
    """With the product itself as the target the margin is its own σ_min: both inequalities, at any shapes."""
    rng = np.random.default_rng(0)
    tight = 0
    for _ in range(1500):
        n, m = rng.integers(1, 4, 2)
        U, V, _ = draw(rng, n, m, int(rng.integers(1, 8)))
        rate = linear_network_rate(U, V, U @ V.T)
        left = np.linalg.eigvalsh(U @ U.T)[0]
        right = np.linalg.eigvalsh(V @ V.T)[0]
        assert left >= rate.left - 1e-9
        assert right >= rate.right - 1e-9
        tight = max(tight, rate.bound / max(left + right, 1e-9))
    assert tight > 0.999


def test_the_risk_stays_below_the_bound_along_a_flow():
    rng = np.random.default_rng(1)
    for n, m in ((2, 2), (3, 2), (2, 3)):
        U, V, Y = draw(rng, n, m, 6, 0.5)
        rate = linear_network_rate(U, V, Y)
        assert rate.bound > 0

        def speed(_, flat, n=n, Y=Y):
            layers = flat.reshape(-1, 6)
            rest = Y - layers[:n] @ layers[n:].T
            return np.concatenate([rest @ layers[n:], rest.T @ layers[:n]]).ravel()

        times = np.linspace(0, 4, 30)
        start = np.concatenate([U, V]).ravel()
        path = solve_ivp(speed, (0, 4), start, t_eval=times, rtol=1e-10, atol=1e-12)
        layers = path.y.T.reshape(-1, n + m, 6)
        rest = Y - layers[:, :n] @ layers[:, n:].swapaxes(1, 2)
        risk = (rest**2).sum((1, 2))
        assert np.all(risk <= risk[0] * np.exp(-2 * rate.bound * times) * (1 + 1e-6))
        moved = layers[-1, :n].T @ layers[-1, :n] - layers[-1, n:].T @ layers[-1, n:]
        assert np.allclose(moved, rate.imbalance, atol=1e-7)


def test_scalars_are_exact():
    """√(δ² + 4σ²), and U² + V² where the product is the target."""
    for u, v in ((2.0, 0.5), (0.1, 3.0), (1.0, 1.0)):
        rate = linear_network_rate(np.array([[u]]), np.array([[v]]), np.array([[u * v]]))
        assert rate.bound == pytest.approx(u**2 + v**2)
        assert rate.bound == pytest.approx(np.hypot(u**2 - v**2, 2 * u * v))


def test_a_margin_by_hand():
    """A start at ¾ of an orthogonal target: margin 1 − ¼√2, balanced, so that a = b = margin."""
    frame = np.eye(2, 5) * 0.75**0.5
    rate = linear_network_rate(frame, frame, np.eye(2))
    assert rate.margin == pytest.approx(1 - 2**0.5 / 4)
    assert (rate.left, rate.right) == pytest.approx((rate.margin, rate.margin))
    assert linear_network_rate(frame, frame, np.eye(2), margin=1.0).bound == pytest.approx(2)


def test_too_few_neurons_have_no_rate_from_imbalance():
    """One neuron, two outputs: σ_2(U) = 0 however large U is, though D is positive on the rows of U and V."""
    rate = linear_network_rate(np.array([[2.0], [2.0]]), np.array([[0.1]]), np.zeros((2, 1)))
    assert rate.left == 0


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="V must be"):
        linear_network_rate(np.eye(2), np.eye(3), np.eye(2))
