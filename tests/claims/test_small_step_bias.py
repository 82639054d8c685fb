"""small-step-bias: its theory and its exact laws in the plane against other ways to them."""

import numpy as np
import pytest
from scipy import integrate

from steepest.claims.noise._double_well import well
from steepest.claims.noise._double_well_walk import PLACES, expansion, line_expansion, line_law
from steepest.claims.noise.small_step_bias.claim import SmallStepBias
from steepest.claims.noise.small_step_bias.experiment import (
    line_shift,
    plane_expansion,
    plane_moments,
)
from steepest.core.errors import UserError
from steepest.noise import gibbs, stationary, transfer_matrix


def test_the_expansion_on_a_parabola_is_the_known_variance():
    x = np.linspace(-8, 8, 401)
    masses = gibbs(lambda x: 3 * x**2 / 2, 2.0, x)
    theory = expansion(masses, 9 * x**2, 0 * x + 3, [x**2], 2.0)
    # variance 1/(βλ(1 − ελ/2)) = (1 + ελ/2 + …)/(βλ)
    assert theory.gibbs[0] == pytest.approx(1 / 6)
    assert theory.bias[0] == pytest.approx(1 / 4)
    # Δf is constant
    assert theory.slopes_only[0] == pytest.approx(theory.bias[0])


def test_the_expansion_in_the_well_by_adaptive_quadrature():
    beta = 4.0

    def mean(g):
        weighted = lambda x: g(x) * np.exp(-beta * well(x))
        return integrate.quad(weighted, -5, 5, epsabs=1e-13)[0]

    norm = mean(lambda x: 1.0)
    shift = lambda x: beta * (x**3 - x) ** 2 / 4 - (3 * x**2 - 1) / 2
    square = mean(lambda x: x**2) / norm
    covariance = mean(lambda x: x**2 * shift(x)) / norm - square * mean(shift) / norm
    theory = line_expansion(beta)
    assert theory.gibbs[0] == pytest.approx(square, rel=1e-9)
    assert theory.bias[0] == pytest.approx(covariance, rel=1e-8)


def test_gibbs_means_satisfy_integration_by_parts():
    # E x f' = 1/β on the line, in the plane for each coordinate
    beta = 4.0
    square, fourth = line_expansion(beta).gibbs
    assert fourth - square == pytest.approx(1 / beta, rel=1e-10)
    x2, y2, both = plane_expansion().gibbs
    assert both + y2 == pytest.approx(1, rel=1e-7)
    assert 0 < x2 < y2


def test_the_walk_in_the_plane_keeps_what_a_step_keeps():
    # E y'² = E y² with y' = y(1 − ε(1 + x²)) + noise: 2 E y²(1 + x²) − ε E y²(1 + x²)² = 2; to first order in ε
    small = plane_moments(0.08)
    assert small[1] + small[2] == pytest.approx(1, abs=0.15)
    # both are above Gibbs's
    assert (small[[0, 2]] > plane_expansion().gibbs[[0, 2]]).all()


def test_the_shift_of_the_log_density_has_the_bias_of_moments():
    # ∫ π g x² over all places is the bias; on the places between −1.8 and 1.8 by interpolation at β = 16, all mass
    beta = 16.0
    shift = line_shift(beta)
    density = np.exp(shift.gibbs)
    spacing = PLACES[1] - PLACES[0]
    assert density.sum() * spacing == pytest.approx(1, rel=1e-4)
    assert (density * shift.bias).sum() * spacing == pytest.approx(0, abs=0.02)
    bias = (density * shift.bias * PLACES**2).sum() * spacing
    assert bias == pytest.approx(line_expansion(beta).bias[0], rel=0.05)


def test_the_log_density_of_the_walk_is_off_by_the_shift():
    theory = line_shift(4.0)
    errors = []
    for step in (0.05, 0.025, 0.0125):
        shift = (line_law(step, 4.0).logs - theory.gibbs) / step
        errors.append(np.abs(shift - theory.bias).max())
    # halved with the step
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.05)
    assert np.abs(theory.bias - theory.slopes_only).max() > 1


def test_the_log_density_between_nodes_agrees_with_a_finer_grid():
    step = 0.1
    beta = 4.0
    x = np.linspace(-3.6, 3.6, 145)  # every place is a node
    law = stationary(transfer_matrix(x, -step * (x**3 - x), 2 * step / beta))
    at = np.abs(x[:, None] - PLACES).argmin(0)
    assert np.abs(x[at] - PLACES).max() < 1e-12
    assert line_law(step, beta).logs == pytest.approx(np.log(law[at] / (x[1] - x[0])), abs=1e-9)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"steps": (0.05,)}, "steps: expected at least 3 different"),
        ({"plane_steps": (0.04, 0.04, 0.08)}, "plane-steps: expected at least 3 different"),
    ],
)
def test_fields_that_cannot_be_run_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        SmallStepBias(**fields)
