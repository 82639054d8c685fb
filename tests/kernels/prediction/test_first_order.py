"""The first-order flow of quadratic models: an ordinary differential equation, finite ε, dense formulas."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.core.errors import UserError
from steepest.kernels import first_order_flow

P = 7
M = 3


def model(seed=0):
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(P, M))
    forms = rng.normal(size=(M, P, P))
    forms = forms + forms.swapaxes(1, 2)
    return phi, forms, rng.normal(size=M), rng.normal(size=P)


def slope(phi, forms, y, epsilon):
    """Return θ ↦ dθ/dt of the whole model, without any expansion."""

    def right_hand_side(_, theta):
        bent = forms @ theta
        outputs = phi.T @ theta + epsilon / 2 * bent @ theta
        return -(phi.T + epsilon * bent).T @ (outputs - y)

    return right_hand_side


@pytest.mark.parametrize("time", [0.0, 0.3, 1.0, 5.0])
def test_at_every_time_it_is_the_derivative_of_the_flow_in_epsilon(time):
    """Central differences in ε: the error of the flow at ±ε is even, so that what is left is of order ε²."""
    phi, forms, y, start = model()
    theory = first_order_flow(phi, lambda v: forms @ v, y, start, time)
    ends = {}
    for epsilon in (-1e-4, 0.0, 1e-4):
        run = solve_ivp(
            slope(phi, forms, y, epsilon), (0, time), start, rtol=1e-12, atol=1e-13, method="DOP853"
        )
        ends[epsilon] = run.y[:, -1]
    derivative = (ends[1e-4] - ends[-1e-4]) / 2e-4
    np.testing.assert_allclose(theory.linear, ends[0.0], atol=1e-10)
    np.testing.assert_allclose(theory.inside + theory.outside, derivative, atol=1e-5)


def test_the_limit_is_the_printed_closed_form():
    """The formulas of the docstring, in loops."""
    phi, forms, y, start = model(1)
    theory = first_order_flow(phi, lambda v: forms @ v, y, start)
    u, s, vt = np.linalg.svd(phi, full_matrices=False)
    residual = phi.T @ start - y
    linear = start - u @ (vt @ residual / s)
    np.testing.assert_allclose(theory.linear, linear, atol=1e-12)
    assert np.allclose(phi.T @ theory.linear, y)
    deformed = -0.5 * np.array([linear @ form @ linear for form in forms])
    np.testing.assert_allclose(
        theory.inside, np.linalg.pinv(phi @ phi.T) @ phi @ deformed, atol=1e-10
    )
    weights = np.linalg.solve(phi.T @ phi, residual)
    outside = np.zeros(P)
    for a in range(M):
        inner = linear * weights[a]
        for j in range(M):
            for k in range(M):
                share = vt[k, a] * (vt @ residual)[k] / (s[j] ** 2 + s[k] ** 2)
                inner = inner + u[:, j] * (vt @ residual)[j] / s[j] * share
        outside -= forms[a] @ inner
    outside -= u @ (u.T @ outside)
    np.testing.assert_allclose(theory.outside, outside, atol=1e-10)
    np.testing.assert_allclose(theory.drift, forms @ (linear - start), atol=1e-10)


def test_late_times_tend_to_the_limit_and_equal_rates_do_not_divide_by_zero():
    phi, forms, y, start = model(2)
    phi = np.linalg.qr(phi)[
        0
    ]  # all rates are one: driven at 2, and at 1 by modes that meet their own
    late = first_order_flow(phi, lambda v: forms @ v, y, start, 60.0)
    limit = first_order_flow(phi, lambda v: forms @ v, y, start)
    for one, other in zip(late, limit, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_nothing_bends_nothing_moves():
    phi, _, y, start = model()
    theory = first_order_flow(phi, lambda v: np.zeros((M, P)), y, start, 2.0)
    assert not theory.inside.any()
    assert not theory.outside.any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda phi, y, start: (phi.T, y, start, 1.0), "features are columns"),
        (lambda phi, y, start: (phi[:, [0, 0, 1]], y, start, 1.0), "rank 3"),
        # two parameters, three examples: both singular values are positive, and nothing interpolates
        (lambda phi, y, start: (phi[:2], y, start[:2], 1.0), "rank 3"),
        (lambda phi, y, start: (phi, y * np.nan, start, 1.0), "finite"),
        (lambda phi, y, start: (phi, y, start, -1.0), "time of at least 0"),
    ],
)
def test_bad_input_is_one_sentence(change, words):
    phi, forms, y, start = model()
    phi, y, start, time = change(phi, y, start)
    with pytest.raises(UserError, match=words):
        first_order_flow(phi, lambda v: forms @ v, y, start, time)


def test_a_bend_of_another_shape_is_one_sentence():
    phi, forms, y, start = model()
    with pytest.raises(UserError, match="expected bend to return shape"):
        first_order_flow(phi, lambda v: (forms @ v).T, y, start)


@pytest.mark.parametrize("time", [0.7, np.inf])
def test_outputs_with_parameters_of_their_own_are_each_of_them(time):
    """Two models side by side, as one with two outputs: every part is the run of its column."""
    first = model(4)
    second = model(5)
    phi = np.zeros((2 * P, M, 2))
    phi[:P, :, 0] = first[0]
    phi[P:, :, 1] = second[0]

    def bend(v):
        bent = np.zeros((M, 2, 2 * P))
        bent[:, 0, :P] = first[1] @ v[:P]
        bent[:, 1, P:] = second[1] @ v[P:]
        return bent

    y = np.stack([first[2], second[2]], 1)
    start = np.concatenate([first[3], second[3]])
    both = first_order_flow(phi, bend, y, start, time)
    for column, (features, forms, targets, begun) in enumerate((first, second)):
        part = slice(column * P, (column + 1) * P)
        single = first_order_flow(features, lambda v, forms=forms: forms @ v, targets, begun, time)
        for whole, alone in zip(both[:3], single[:3], strict=True):
            np.testing.assert_allclose(whole[part], alone, atol=1e-11)
        np.testing.assert_allclose(both.drift[:, column, part], single.drift, atol=1e-11)


def test_complex_features_no_function_and_no_time_are_refused():
    phi, forms, y, start = model()
    bend = lambda v: forms @ v
    for wrong in (
        (phi * 1j, bend, y, start),
        (phi, forms, y, start),
        (phi, bend, y, start, "late"),
        (phi, bend, y, start, [1.0]),
    ):
        with pytest.raises(UserError):
            first_order_flow(*wrong)
