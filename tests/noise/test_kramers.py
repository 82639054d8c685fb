"""Kramers' formula against the exact integral, and the integral against chains."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.noise import exit_moments, kramers, passage_time, transfer_matrix


def well(x):
    return (x**2 - 1) ** 2 / 4


def tilted(x):
    """A double well without symmetry; its derivatives of odd order do not vanish."""
    return (x**2 - 1) ** 2 / 4 + 0.1 * x**3


def test_the_correction_is_the_first_of_the_exact_integral():
    # tilted: 3x³ − … its critical points are the roots of x³ + 0.3x² − x
    left, saddle, right = sorted(np.roots([1, 0.3, -1, 0]).real)
    for f, a, s, b in ((well, -1.0, 0.0, 1.0), (tilted, left, saddle, right)):
        theory = kramers(f, a, s, 1.0)
        betas = np.array([100.0, 200.0, 400.0])
        formula = theory.prefactor * np.exp(betas * theory.barrier)
        exact = [passage_time(f, beta, a, b, a - 3.0) for beta in betas]
        excess = (np.array(exact) / formula - 1) * betas
        # the rest is of order 1/β
        limit = 2 * excess[2] - excess[1]
        assert limit == pytest.approx(theory.correction, abs=2e-3 * abs(theory.correction) + 2e-3)


def test_many_dimensions_multiply_curvatures():
    def f(x):
        return well(x[0]) + (3 + jnp.exp(-(x[0] ** 2)) * 5) * (x[1:] ** 2).sum() / 2

    line = kramers(well, -1.0, 0.0, 2.0)
    plane = kramers(f, np.array([-1.0, 0, 0]), np.zeros(3), 2.0)
    stiff = 8 / (3 + 5 * np.exp(-1))
    assert plane.time == pytest.approx(line.time * stiff, rel=1e-9)  # two directions, each its root
    assert np.isnan(plane.correction)


def test_the_integral_is_the_limit_of_chains():
    # absorbed at 0.5, looked at after steps ε: the mean errs by order √ε
    beta = 6.0
    exact = passage_time(well, beta, -1.0, 0.5, -3.5)
    nodes, weights = np.polynomial.legendre.leggauss(220)
    errors = []
    for step in (0.02, 0.005):
        grid = np.append(-1.15 + 1.65 * nodes, -1.0)
        drift = -step * (grid**3 - grid)
        chain = transfer_matrix(
            grid, drift, 2 * step / beta, np.append(1.65 * weights, 0), killed=True
        )
        errors.append(step * exit_moments(chain).mean[-1] / exact - 1)
    assert 0 < errors[1] < 0.6 * errors[0] < 0.06


def test_the_mirror_image_takes_as_long():
    right = passage_time(tilted, 5.0, -1.2, 0.8, -4.0)
    left = passage_time(lambda x: tilted(-x), 5.0, 1.2, -0.8, 4.0)
    assert left == pytest.approx(right, rel=1e-12)


def test_bad_input_is_refused():
    with pytest.raises(UserError, match="β above zero"):
        kramers(well, -1.0, 0.0, -1.0)
    with pytest.raises(UserError, match="gradient vanishes"):
        kramers(well, -1.0, 0.3, 1.0)
    with pytest.raises(UserError, match="index 1"):
        kramers(well, -1.0, 1.0, 1.0)
    with pytest.raises(UserError, match="β above zero"):
        passage_time(well, 0.0, -1.0, 1.0, -4.0)
    with pytest.raises(UserError, match="between the far end"):
        passage_time(well, 1.0, -1.0, 1.0, 0.0)
    with pytest.raises(UserError, match="vanish at the far end"):
        passage_time(well, 1.0, -1.0, 1.0, -1.5)


@pytest.mark.parametrize("saddle", [[0.0, 0.0], [[0.0]], 0.0])
def test_a_saddle_of_another_shape_is_refused(saddle):
    minimum = [-1.0] if saddle != [[0.0]] else [[-1.0]]
    with pytest.raises(UserError, match=r"one shape \(d,\)"):
        kramers(lambda x: ((x**2 - 1) ** 2).sum() / 4, np.array(minimum), np.array(saddle), 8.0)
