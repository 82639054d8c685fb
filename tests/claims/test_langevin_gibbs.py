"""langevin-gibbs: its exact laws against closed forms, its theory against other ways to it."""

import jax
import numpy as np
import pytest
from scipy import integrate, sparse, special
from scipy.sparse.linalg import eigsh

from steepest.claims.noise._double_well import well
from steepest.claims.noise.langevin_gibbs.claim import LangevinGibbs
from steepest.claims.noise.langevin_gibbs.experiment import (
    PLACES,
    LangevinGibbsPoint,
    expansion,
    line_expansion,
    line_law,
    line_shift,
    plane_expansion,
    plane_moments,
    rugged_bound,
    rugged_excess,
    rugged_second,
)
from steepest.claims.noise.langevin_gibbs.transport import (
    AWAY,
    SLOPE,
    parabola_distances,
    tied_gap,
    wasserstein,
    well_rate,
    wells_gap,
)
from steepest.core.errors import UserError
from steepest.kit import compiled
from steepest.noise import gibbs, spectral_gap, stationary, transfer_matrix


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
    mean = lambda g: integrate.quad(lambda x: g(x) * np.exp(-beta * well(x)), -5, 5, epsabs=1e-13)[
        0
    ]
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


def test_the_walk_keeps_what_a_step_keeps():
    # in the stationary law E X'² = E X², so E (x − εf')² + 2ε/β = E x²
    step, beta = 0.1, 4.0
    x = np.linspace(-3.2, 3.2, 101)
    law = stationary(transfer_matrix(x, -step * (x**3 - x), 2 * step / beta))
    moved = law @ (x - step * (x**3 - x)) ** 2 + 2 * step / beta
    assert moved == pytest.approx(law @ x**2, rel=1e-10)
    assert line_law(step, beta).moments[0] == pytest.approx(law @ x**2, rel=1e-10)


def test_the_slowest_mode_is_the_second_eigenvalue():
    step, beta = 0.1, 4.0
    x = np.linspace(-3.2, 3.2, 101)
    sizes = np.linalg.eigvals(transfer_matrix(x, -step * (x**3 - x), 2 * step / beta))
    second = np.sort(np.abs(sizes))[-2]
    assert line_law(step, beta).rate == pytest.approx(-np.log(second) / step, rel=1e-9)


def test_the_walk_in_the_plane_keeps_what_a_step_keeps():
    # E y'² = E y² with y' = y(1 − ε(1 + x²)) + noise: 2 E y²(1 + x²) − ε E y²(1 + x²)² = 2; to first order in ε
    small = plane_moments(0.08)
    assert small[1] + small[2] == pytest.approx(1, abs=0.15)
    # both are above Gibbs's
    assert (small[[0, 2]] > plane_expansion().gibbs[[0, 2]]).all()


def test_variances_on_the_way_to_the_stationary_law():
    claim = LangevinGibbs(burn=2)
    fraction = np.array([[0.5]])
    by_hand = 1.0
    readings = []
    for step in range(1, 5):
        by_hand = by_hand * 0.5**2 + 2 * 0.5 / 1 * 1.0 / 1  # in units of 1/βλ: (1 − ελ)² v + 2ελ
        if step > 2:
            readings.append(by_hand)
    assert claim.over_time(fraction, 1 / (1 - fraction / 2))[0, 0] == pytest.approx(
        np.mean(readings)
    )


def test_a_step_beyond_the_stable_one_is_out_of_scope():
    claim = LangevinGibbs(multiples=(2.5,), walkers=32)
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))


def test_a_point_has_the_law_of_the_chain():
    point = LangevinGibbsPoint(0.05, 8.0)
    observed = compiled(lambda key: point.observe(None, key))(jax.random.key(0))
    assert float(observed["square"]) == pytest.approx(line_law(0.05, 8.0).moments[0], rel=1e-10)


def test_the_shift_of_the_log_density_has_the_bias_of_moments():
    # ∫ π g x² over all places is the bias; on the places between −1.8 and 1.8 by interpolation at β = 16, all mass
    beta = 16.0
    shift = line_shift(beta)
    density = np.exp(shift.logs)
    spacing = PLACES[1] - PLACES[0]
    assert density.sum() * spacing == pytest.approx(1, rel=1e-4)
    assert (density * shift.shift).sum() * spacing == pytest.approx(0, abs=0.02)
    bias = (density * shift.shift * PLACES**2).sum() * spacing
    assert bias == pytest.approx(line_expansion(beta).bias[0], rel=0.05)


def test_the_log_density_of_the_walk_is_off_by_the_shift():
    theory = line_shift(4.0)
    errors = []
    for step in (0.05, 0.025, 0.0125):
        shift = (line_law(step, 4.0).logs - theory.logs) / step
        errors.append(np.abs(shift - theory.shift).max())
    # halved with the step
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.05)
    assert np.abs(theory.shift - theory.slopes_only).max() > 1


def test_the_log_density_between_nodes_is_that_of_a_finer_grid():
    step, beta = 0.1, 4.0
    x = np.linspace(-3.6, 3.6, 145)  # every place is a node
    law = stationary(transfer_matrix(x, -step * (x**3 - x), 2 * step / beta))
    at = np.abs(x[:, None] - PLACES).argmin(0)
    assert np.abs(x[at] - PLACES).max() < 1e-12
    assert line_law(step, beta).logs == pytest.approx(np.log(law[at] / (x[1] - x[0])), abs=1e-9)


def test_the_excess_on_the_rugged_parabola_is_expanded_by_laplace():
    betas = np.array([100.0, 200.0, 400.0])
    seconds = [(rugged_excess(beta) - 1 / (2 * beta)) * beta**2 for beta in betas]
    # what is left of order 1/β is taken out by two of them
    assert 2 * seconds[2] - seconds[1] == pytest.approx(rugged_second(), rel=2e-3)
    assert rugged_excess(7.0, 0.0) == pytest.approx(1 / 14, rel=1e-9)
    assert (rugged_bound(betas) > 3 * np.array([rugged_excess(beta) for beta in betas])).all()


def test_the_distance_of_normal_laws_is_the_known_one():
    x = np.linspace(-12, 12, 8001)
    first = np.exp(-((x - 1) ** 2) / (2 * 0.5))
    second = 3 * np.exp(-((x + 0.5) ** 2) / (2 * 2.0))
    expected = np.hypot(1.5, 2**0.5 - 0.5**0.5)
    assert wasserstein(first, second, x) == pytest.approx(expected, rel=1e-5)


def test_distances_on_a_parabola_are_those_of_the_walks_normal_law():
    step = 0.05
    beta = 4.0
    steps = 20
    gibbs_variance = 1 / (beta * SLOPE)
    for narrow in (False, True):
        mean = AWAY
        variance = gibbs_variance
        if narrow:
            # r − 1 − log r = βm a² for the ratio of the variances
            ratio = -special.lambertw(-np.exp(-1 - beta * SLOPE * AWAY**2)).real
            mean = 0.0
            variance = ratio * gibbs_variance
        for _ in range(steps):
            mean *= 1 - step * SLOPE
            variance = variance * (1 - step * SLOPE) ** 2 + 2 * step / beta
        expected = np.hypot(mean, variance**0.5 - gibbs_variance**0.5)
        distance = parabola_distances(step, beta, [steps * step], narrow=narrow)[0]
        assert distance == pytest.approx(expected, rel=3e-5)


def test_the_bound_on_the_parabola_is_the_distance_of_the_flow():
    claim = LangevinGibbs()
    times = np.array([0.0, 1.0, 3.0])
    assert claim.distance_bound(times) == pytest.approx(AWAY * np.exp(-SLOPE * times))


def test_the_late_rate_of_distances_is_that_of_the_walk():
    x = np.linspace(-3.2, 3.2, 101)
    sizes = np.linalg.eigvals(transfer_matrix(x, -0.1 * (x**3 - x), 0.05))
    second = np.sort(np.abs(sizes))[-2]
    for about in (0.15, 0.2):
        assert well_rate(0.1, 4.0, about) == pytest.approx(-np.log(second) / 0.1, rel=1e-4)


def test_the_gap_of_several_wells_by_another_discretization():
    gap = spectral_gap(well, 2.0, np.linspace(-3.5, 3.5, 6001))
    assert [wells_gap(d, 0.0) for d in (1, 2)] == pytest.approx([gap, gap], rel=1e-6)
    # two wells by jumps between neighbours on a grid, whose error is of second order in the spacing
    gaps = []
    for count in (41, 81):
        x = np.linspace(-2.6, 2.6, count)
        first, second = np.meshgrid(x, x, indexing="ij")
        energy = well(first) + well(second) + 2.5 * (first - second) ** 2 / 4
        gaps.append(_gap_by_jumps(2.0 * energy, 1 / (2.0 * (x[1] - x[0]) ** 2)))
    limit = (4 * gaps[1] - gaps[0]) / 3
    assert wells_gap(2, 2.5) == pytest.approx(limit, rel=2e-3)


def _gap_by_jumps(exponents, pace):
    """Return the gap of jumps to neighbours at the rate ``pace exp(−ΔE/2)``, by the symmetric form."""
    places = np.arange(exponents.size).reshape(exponents.shape)
    below = np.concatenate([places[1:].ravel(), places[:, 1:].ravel()])
    above = np.concatenate([places[:-1].ravel(), places[:, :-1].ravel()])
    i = np.concatenate([below, above])
    j = np.concatenate([above, below])
    flat = exponents.ravel()
    leaving = np.bincount(i, pace * np.exp((flat[i] - flat[j]) / 2), flat.size)
    matrix = sparse.coo_matrix((np.full(len(i), -pace), (i, j))).tocsc() + sparse.diags(leaving)
    values = eigsh(matrix, k=2, sigma=-0.1, return_eigenvectors=False)
    return np.ptp(values)


def test_tied_wells_tend_to_one_well_at_a_lower_temperature_with_an_error_of_second_order():
    errors = [wells_gap(2, k) / tied_gap(2, k) - 1 for k in (5.0, 10.0)]
    assert errors[0] / errors[1] > 4
    rigid = spectral_gap(well, 4.0, np.linspace(-3.5, 3.5, 6001))
    assert tied_gap(2, 1e4) == pytest.approx(rigid, rel=1e-3)
    assert tied_gap(1, 7.0) == pytest.approx(spectral_gap(well, 2.0, np.linspace(-3.5, 3.5, 6001)))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"walkers": 100}, "walkers: expected a multiple of 32"),
        ({"crowd": 100}, "crowd: expected a multiple of 32"),
        ({"steps": (0.05,)}, "steps: expected at least 3 different"),
        ({"plane_steps": (0.04, 0.04, 0.08)}, "plane-steps: expected at least 3 different"),
    ],
)
def test_fields_that_cannot_be_run_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        LangevinGibbs(**fields)
