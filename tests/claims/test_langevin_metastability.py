"""langevin-metastability: its exact times against each other and against closed forms."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from steepest.claims.noise._double_well import well
from steepest.claims.noise.langevin_metastability.claim import LangevinMetastability
from steepest.claims.noise.langevin_metastability.experiment import (
    absorption_times,
    chain_times,
    effective_time,
    leave_chance,
    leave_rate,
    line_time,
    plane_chain_mean,
    plane_formula,
    plane_time,
    plane_time_by_columns,
    stiffness,
)
from steepest.core.errors import UserError
from steepest.kit import compiled


def test_the_integral_by_adaptive_quadrature():
    beta = 4.0
    inner = lambda y: integrate.quad(lambda z: np.exp(-beta * well(z)), -6, y, epsabs=1e-12)[0]
    exact = (
        beta * integrate.quad(lambda y: np.exp(beta * well(y)) * inner(y), -1, 1, epsabs=1e-9)[0]
    )
    assert line_time(beta) == pytest.approx(exact, rel=1e-8)


def test_the_plane_is_the_line_where_the_stiffness_does_not_change():
    for beta in (4.0, 20.0, 120.0, 200.0):
        assert plane_time(beta, 1.0, 4.0) == pytest.approx(line_time(beta), rel=1e-4)
    chain = plane_chain_mean(0.05, 4.0, 1.0, 2.0)
    assert chain == pytest.approx(chain_times(0.05, 4.0).mean, rel=1e-5)


def test_elimination_without_subtraction_is_right_where_a_solver_has_no_digit_left():
    # up at 2⁻³⁰ and down at one: the mean time to the end by its double sum, in fractions
    count = 7
    up = Fraction(1, 2**30)
    jumps = np.zeros((count, 3))
    jumps[1:, 0] = 1.0
    jumps[:-1, 2] = float(up)
    out = np.zeros(count)
    out[-1] = float(up)
    steps = [sum(up ** (j - i) for j in range(i + 1)) / up for i in range(count)]
    exact = [float(sum(steps[i:])) for i in range(count)]
    np.testing.assert_allclose(absorption_times(jumps, out, 1), exact, rtol=1e-13)


def test_elimination_without_subtraction_is_a_linear_solve():
    rng = np.random.default_rng(0)
    count = 11
    band = 3
    generator = np.triu(np.tril(rng.uniform(size=(count, count)), band), -band)
    np.fill_diagonal(generator, 0)
    out = rng.uniform(size=count)
    jumps = np.zeros((count, 2 * band + 1))
    for i, j in zip(*np.nonzero(generator), strict=True):
        jumps[i, j - i + band] = generator[i, j]
    matrix = np.diag(generator.sum(1) + out) - generator
    times = absorption_times(jumps, out, band)
    np.testing.assert_allclose(times, np.linalg.solve(matrix, np.ones(count)), rtol=1e-12)


def test_elimination_by_columns_and_the_sparse_solver_agree():
    by_columns = compiled(plane_time_by_columns)
    for beta, ratio in ((4.0, 0.25), (40.0, 9.0)):
        columns = float(by_columns(beta, ratio, 4.0))
        assert columns == pytest.approx(plane_time(beta, ratio, 4.0), rel=3e-3)


def test_the_effective_potential_is_right_for_stiff_directions():
    errors = [plane_time(6.0, 0.25, k) / effective_time(6.0, 0.25, k) - 1 for k in (16.0, 64.0)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.2)


def test_the_formula_in_the_plane_has_the_curvatures_at_minimum_and_saddle():
    prefactor, barrier = plane_formula(4.0, 4.0)
    by_hand = np.sqrt(2) * np.pi * np.sqrt(8 / stiffness(-1.0, 4.0, 4.0))
    assert prefactor == pytest.approx(by_hand, rel=1e-10)
    assert barrier == pytest.approx(0.25)
    assert stiffness(0.0, 4.0, 4.0) == pytest.approx(8)
    assert stiffness(9.0, 4.0, 4.0) == pytest.approx(2)


def test_the_time_in_an_interval_by_its_eigenvalue():
    # one dimension: the even eigenfunction of (−1, 1) with rate 2 is Hermite's x² − 1
    assert 1 - leave_chance(1.0, 1, 5.0) == pytest.approx(
        (1 - leave_chance(1.0, 1, 3.0)) * np.exp(-4), rel=1e-3
    )
    # in d dimensions |x|² − d vanishes at √d, with the same rate
    for d in (2, 5):
        early, late = (1 - leave_chance(np.sqrt(d), d, t) for t in (3.0, 5.0))
        assert late / early == pytest.approx(np.exp(-4), rel=1e-3)


def test_the_rate_to_leave_a_large_ball():
    for d in (1, 2, 5):
        ratio = [leave_chance(a, d, 10.0) / (10 * leave_rate(a, d)) for a in (5.0, 7.0)]
        assert 0.7 < ratio[0] < ratio[1] < 1


def test_low_barriers_are_out_of_scope():
    assert not all(h.holds for h in LangevinMetastability(large_betas=(1.0, 2.0)).hypotheses(None))


def test_soft_second_directions_are_out_of_scope():
    claim = LangevinMetastability(stiffness=1.0)
    assert [h.value for h in claim.hypotheses(None) if not h.holds] == [8.0]


@pytest.mark.parametrize(
    ("betas", "settled"),
    [((30.0, 50.0, 80.0, 130.0, 200.0), True), ((16.0, 20.0, 26.0, 32.0), False)],
)
def test_a_limit_is_judged_where_its_last_two_orders_agree(betas, settled):
    claim = LangevinMetastability(large_betas=betas)
    times = [[plane_time(beta, ratio, 4.0) for beta in betas] for ratio in claim.ratios]
    chains = [[chain_times(step, beta).mean for step in claim.finer] for beta in claim.betas]
    seen = {
        "line_exact": np.array([line_time(4 * b) for b in betas]),
        "plane_exact": np.array(times),
        "chains": np.array(chains),
        "left": 1,
    }
    failed = [h.name for h in claim.run_conditions(seen) if not h.holds]
    assert ("last correction of the limit β → ∞ in the plane" in failed) != settled
    assert bool(failed) != settled


def test_the_time_to_the_saddle_tends_to_half_of_that_to_the_other_side():
    assert line_time(200.0, 0.0) / line_time(200.0) == pytest.approx(0.5, rel=0.01)


def test_steps_that_overshoot_are_out_of_scope():
    claim = LangevinMetastability(step=0.5, betas=(0.5, 1.0))
    assert [h.name for h in claim.hypotheses(None) if not h.holds] == ["largest ε of walkers"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"walkers": 50}, "walkers: expected a multiple of 16"),
        ({"plane_walkers": 50}, "plane-walkers: expected a multiple of 16"),
        ({"horizon": 0.05}, "expected a horizon above"),
        ({"betas": (4.0, 4.0)}, "betas: expected at least 2 different"),
        ({"large_betas": (20.0, 20.0, 32.0)}, "large-betas: expected at least 2 different"),
    ],
)
def test_fields_that_cannot_be_run_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        LangevinMetastability(**fields)
