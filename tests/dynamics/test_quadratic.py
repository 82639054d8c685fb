"""Rates on quadratics against companion matrices, grids of steps, and drawn noise."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import mean_square, momentum_factor, quadratic_rates

EIGENVALUES = np.geomspace(0.02, 1.7, 6)


def companion_radius(value, step, momentum, nesterov):
    """The spectral radius of the step from (θ_t, θ_{t−1}) to (θ_{t+1}, θ_t)."""
    kept = 1 - step * value
    top = [(1 + momentum) * kept, -momentum * kept] if nesterov else [kept + momentum, -momentum]
    return np.abs(np.linalg.eigvals(np.array([top, [1.0, 0.0]]))).max()


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize(("step", "momentum"), [(0.3, 0.2), (1.0, 0.9), (1.5, 0.0), (2.5, 0.3)])
def test_factor_is_that_of_the_companion_matrix(step, momentum, nesterov):
    dense = max(companion_radius(value, step, momentum, nesterov) for value in EIGENVALUES)
    assert momentum_factor(EIGENVALUES, step, momentum, nesterov) == pytest.approx(dense)


def test_best_steps_are_best_on_a_grid():
    rates = quadratic_rates(EIGENVALUES)
    steps = np.linspace(0.01, 4, 400)
    plain = min(momentum_factor(EIGENVALUES, step, 0.0) for step in steps)
    assert rates.descent.factor <= plain <= rates.descent.factor + 0.01
    assert momentum_factor(EIGENVALUES, *rates.descent[:2]) == pytest.approx(rates.descent.factor)
    ball = min(momentum_factor(EIGENVALUES, s, b) for s in steps for b in np.linspace(0, 0.99, 50))
    assert rates.heavy_ball.factor <= ball + 1e-9
    assert ball < rates.heavy_ball.factor + 0.05


def test_momenta_have_their_factors():
    """Double roots cost half of the digits."""
    rates = quadratic_rates(EIGENVALUES)
    ball = momentum_factor(EIGENVALUES, *rates.heavy_ball[:2])
    nesterov = momentum_factor(EIGENVALUES, *rates.nesterov[:2], nesterov=True)
    assert ball == pytest.approx(rates.heavy_ball.factor, abs=1e-6)
    assert nesterov == pytest.approx(rates.nesterov.factor, abs=1e-6)
    assert rates.condition == pytest.approx(85)


@pytest.mark.parametrize("momentum", [0.0, 0.4, 0.8])
def test_heavy_ball_is_stable_in_its_triangle(momentum):
    edge = 2 * (1 + momentum) / EIGENVALUES.max()
    assert momentum_factor(EIGENVALUES, 0.999 * edge, momentum) < 1
    assert momentum_factor(EIGENVALUES, 1.001 * edge, momentum) > 1


def test_mean_square_is_that_of_drawn_noise():
    rng = np.random.default_rng(0)
    steps = 0.5 / np.arange(1, 41) ** 0.5
    theta = np.ones((40_000, 2)) * [1.0, -2.0]
    for step in steps:
        theta = theta - step * (theta * [1.0, 0.3] + [0.2, 0.5] * rng.standard_normal(theta.shape))
    squares = (theta**2).sum(1)
    exact = mean_square([1.0, 0.3], steps, [0.2, 0.5], [1.0, -2.0])
    assert exact[0] == 5
    assert abs(squares.mean() - exact[-1]) < 4 * squares.std() / len(squares) ** 0.5


def test_without_noise_it_is_a_product():
    steps = np.array([0.1, 0.7, 1.3])
    exact = mean_square([2.0, 0.5], steps, 0.0)
    assert exact[-1] == pytest.approx(sum(np.prod((1 - steps * v) ** 2) for v in (2.0, 0.5)))


def test_steps_that_are_no_vector_are_one_sentence():
    with pytest.raises(UserError, match="one step size for each step"):
        mean_square([1.0], 0.1, 0.1)


@pytest.mark.parametrize("bad", [[], [0.0, 1.0], [[1.0]]])
def test_bad_eigenvalues_are_one_sentence(bad):
    for call in (
        quadratic_rates,
        lambda e: momentum_factor(e, 1.0, 0.0),
        lambda e: mean_square(e, [0.1], 0.1),
    ):
        with pytest.raises(UserError, match="positive eigenvalues"):
            call(bad)
