"""Balanced critical points of linear networks against automatic differentiation, differences and integration."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.core.errors import UserError
from steepest.landscapes import (
    balanced_weights,
    linear_network_point,
    linear_network_points,
    linear_network_risk,
    mode_time,
    strict_saddles,
)


@pytest.mark.parametrize(("depth", "hidden"), [(2, 4), (3, 3), (4, 2)])
def test_whole_spectra_are_those_of_automatic_differentiation(depth, hidden):
    """Zero and equal singular values included."""
    singular = np.array([3.0, 1.5, 1.5, 0.0])
    points = linear_network_points(singular, depth, hidden)
    layers = [balanced_weights(singular, point.chosen, depth, hidden) for point in points]
    stacked = tuple(np.stack(layer) for layer in zip(*layers, strict=True))
    risk = linear_network_risk(np.diag(singular))
    for point, certificate in zip(points, strict_saddles(risk, stacked), strict=True):
        assert certificate.gradient < 1e-13
        assert certificate.value == pytest.approx(point.value, abs=1e-13)
        assert np.allclose(certificate.eigenvalues, point.eigenvalues, atol=1e-12)
        assert certificate.index == point.index


def test_the_way_down_by_differences():
    """Three layers, S = {1}: f along Z_3[0, a] = Z_1[a, 0] falls as ½ s_u^{1/3} (s_u − s_v) says, no derivative."""
    singular = [2.0, 1.0]
    layers = [weight.copy() for weight in balanced_weights(singular, [1], 3, 2)]
    risk = linear_network_risk(np.diag(singular))
    value = float(risk(layers))
    step = 1e-4
    layers[0][0, 0] += step / 2**0.5
    layers[2][0, 0] += step / 2**0.5
    point = linear_network_point(singular, [1], 3, 2)
    assert point.lowest == pytest.approx(-1.0)
    assert 2 * (float(risk(layers)) - value) / step**2 == pytest.approx(point.lowest, abs=1e-6)


def test_flat_saddles_are_those_whose_order_is_right():
    """For three layers the Hessian sees a wrong order and no missing mode; for two it sees both."""
    deep = linear_network_points([3.0, 2.0, 1.0], 3, 3)
    assert {point.chosen for point in deep if point.index == 0} == {(), (0,), (0, 1), (0, 1, 2)}
    shallow = linear_network_points([3.0, 2.0, 1.0], 2, 3)
    assert [point.chosen for point in shallow if point.index == 0] == [(0, 1, 2)]
    assert [point.index for point in shallow] == [9, 4, 5, 6, 1, 2, 3, 0]


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_times_of_a_mode_against_an_integrator(depth):
    scale, level, share = 0.05, 2.0, 0.3
    learned = lambda _, u: u[0] ** depth - share * level
    learned.terminal = True
    path = solve_ivp(
        lambda _, u: u ** (depth - 1) * (level - u**depth),
        (0, 1e6),
        [scale],
        method="LSODA",
        events=learned,
        rtol=1e-10,
        atol=1e-14,
    )
    exact = mode_time(scale, level, depth, share)
    assert path.t_events[0][0] == pytest.approx(exact, rel=1e-6)


def test_two_layers_have_a_logarithm():
    """The closed form of u̇ = u(s − u²): T = log((s/α² − 1) q/(1 − q))/2s."""
    scale, level, share = 0.01, 1.7, 0.4
    closed = np.log((level / scale**2 - 1) * share / (1 - share)) / (2 * level)
    assert mode_time(scale, level, 2, share) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: linear_network_point([1.0, -1.0], [0], 2, 2), "none negative"),
        (lambda: linear_network_point([1.0, 0.5], [0, 1], 2, 1), "at most 1"),
        (lambda: balanced_weights([1.0], [0], 1, 1), "two layers"),
        (lambda: mode_time(0.1, 1.0, 1), "two layers"),
        (lambda: mode_time(0.9, 1.0, 2), "smaller scale"),
    ],
)
def test_bad_input_is_one_sentence(wrong, says):
    with pytest.raises(UserError, match=says):
        wrong()
