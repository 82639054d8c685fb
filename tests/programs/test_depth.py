"""Where diagonal networks of any depth end: Newton's method against cone programs, an integrated flow, and limits."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.core.errors import UserError
from steepest.programs import depth_interpolation, hypentropy_interpolation, min_norm_interpolation
from steepest.programs._depth import _conjugate, _curvature, _slope
from steepest.programs._solving import solve_tightly


def regression(seed=0, n=4, d=9):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n), np.exp(0.4 * rng.normal(size=d))


@pytest.mark.parametrize("depth", [3, 4, 6])
def test_the_slope_is_its_formula_and_the_others_its_integral_and_derivative(depth):
    """h_L as it is printed; q_L*' = h_L and h_L' by central differences."""
    z = np.linspace(-0.9, 0.9, 13)
    power = depth / (depth - 2)
    step = 1e-5
    assert np.allclose(
        _slope(z, depth), (1 - z) ** -power - (1 + z) ** -power, rtol=1e-10, atol=1e-12
    )
    difference = lambda f: (f(z + step, depth) - f(z - step, depth)) / (2 * step)
    assert np.allclose(difference(_conjugate), _slope(z, depth), rtol=1e-5, atol=1e-8)
    assert np.allclose(difference(_slope), _curvature(z, depth), rtol=1e-5)
    assert _conjugate(np.array([1e-9]), depth)[0] == pytest.approx(
        depth / (depth - 2) * 1e-18, rel=1e-6
    )


@pytest.mark.parametrize("alpha", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("depth", [3, 4])
def test_newton_agrees_with_a_cone_program(depth, alpha):
    """The dual with its conjugate written out: (1-z)⁻¹ + (1+z)⁻¹ - 2 for L = 4, ½((1-z)⁻² + (1+z)⁻² - 2) for L = 3."""
    x, y, shape = regression()
    a = alpha * shape
    nu = cp.Variable(len(y))
    z = cp.multiply(a ** (depth - 2), x.T @ nu) * alpha ** (
        2 - depth
    )  # ν α^{2-L}, for a well-scaled program
    both = (
        cp.inv_pos(1 - z) + cp.inv_pos(1 + z)
        if depth == 4
        else (cp.power(1 - z, -2) + cp.power(1 + z, -2)) / 2
    )
    rest = 2 if depth == 4 else 1
    dual = alpha ** (2 - depth) * (nu @ y) - a**2 @ (both - rest)
    solve_tightly(cp.Problem(cp.Maximize(dual)))
    found = depth_interpolation(x, y, depth, a)
    assert found.converged and found.residual < 1e-10
    assert abs(found.gap) < 1e-8 * abs(found.value)
    assert found.value == pytest.approx(float(dual.value), rel=1e-6)
    assert np.allclose(found.beta, a**depth * _slope(z.value, depth), atol=1e-4)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_gradient_flow_ends_there(depth):
    """θ±' = ∓L θ±^{L-1} Xᵀr, integrated by scipy: it shares nothing with the derivation."""
    x, y, shape = regression(1, n=2, d=5)
    a = 0.4 * shape

    def field(_, theta):
        plus, minus = np.split(theta, 2)
        slope = x.T @ (x @ (plus**depth - minus**depth) - y)
        return depth * np.append(-(plus ** (depth - 1)) * slope, minus ** (depth - 1) * slope)

    end = solve_ivp(field, (0, 400), np.append(a, a), method="LSODA", rtol=1e-10, atol=1e-12).y[
        :, -1
    ]
    plus, minus = np.split(end, 2)
    assert np.allclose(
        plus**depth - minus**depth, depth_interpolation(x, y, depth, a).beta, atol=1e-6
    )


@pytest.mark.parametrize("depth", [2, 3, 4, 6])
def test_a_large_start_gives_weighted_least_squares(depth):
    """Weights θ_0^{2-2L}."""
    x, y, shape = regression()
    found = depth_interpolation(x, y, depth, 1e4 * shape)
    assert found.converged
    assert np.allclose(
        found.beta, min_norm_interpolation(x, y, shape ** (2.0 - 2 * depth)).beta, atol=1e-6
    )


@pytest.mark.parametrize("depth", [3, 4])
def test_a_small_start_gives_l1_with_the_weights_of_its_shape(depth):
    """argmin Σ θ_0^{2-L} |β_i|: by a linear program in θ_0^{2-L} β; the distance falls like α^L."""
    x, y, shape = regression(2)
    weights = shape ** (2.0 - depth)
    limit = min_norm_interpolation(x / weights, y, "l1").beta / weights
    alphas = (0.002, 0.001) if depth == 3 else (0.02, 0.01)
    distance = [
        np.linalg.norm(depth_interpolation(x, y, depth, a * shape).beta - limit) for a in alphas
    ]
    assert distance[1] < 1e-3
    assert np.log2(distance[0] / distance[1]) == pytest.approx(depth, abs=0.3)
    plain = min_norm_interpolation(x, y, "l1").beta
    assert np.linalg.norm(depth_interpolation(x, y, depth, 0.01).beta - plain) < 1e-2


def test_two_layers_are_the_hypentropy():
    x, y, shape = regression()
    found = depth_interpolation(x, y, 2, 0.1 * shape)
    assert np.allclose(
        found.beta, hypentropy_interpolation(x, y, (0.1 * shape) ** 2).beta, atol=1e-9
    )


def test_no_interpolant_is_an_outcome_and_starts_too_small_for_floats_say_so():
    x, y, _ = regression(n=9, d=4)
    assert not depth_interpolation(x, y, 3, 1.0).interpolable
    x, y, _ = regression()
    assert not depth_interpolation(x, y, 6, 1e-3).converged


def test_bad_inputs_are_refused():
    x, y, _ = regression()
    with pytest.raises(UserError, match="depth ≥ 2, got 1"):
        depth_interpolation(x, y, 1, 1.0)
    with pytest.raises(UserError, match="scale"):
        depth_interpolation(x, y, 3, 0.0)
    with pytest.raises(UserError, match="y must be"):
        depth_interpolation(x, y[:2], 3, 1.0)


def test_a_feature_that_is_zero_in_all_examples_is_left_at_zero():
    whole = depth_interpolation(np.array([[2.0, 1.0, 0.0]]), np.array([2.0]), 3, 0.1)
    without = depth_interpolation(np.array([[2.0, 1.0]]), np.array([2.0]), 3, 0.1)
    np.testing.assert_allclose(whole.beta, [*without.beta, 0.0], rtol=1e-9)
