"""Chains: stationary laws, exit times and gaps, each in two ways."""

import numpy as np
import pytest
from scipy import sparse

from steepest.core.errors import UserError
from steepest.noise import exit_moments, gibbs, spectral_gap, stationary, transfer_matrix


def ring(sites, fast):
    """A walk on a ring that takes steps ±1 on one half and ±fast on the other."""
    rows = np.arange(sites)
    step = np.where(rows < sites // 2, 1, fast)
    matrix = np.zeros((sites, sites))
    matrix[rows, (rows + step) % sites] += 0.5
    matrix[rows, (rows - step) % sites] += 0.5
    return matrix


def test_dense_sparse_and_powers_agree():
    matrix = np.random.default_rng(0).dirichlet(np.ones(7), 7)
    law = stationary(matrix)
    assert np.allclose(law, np.linalg.matrix_power(matrix, 200)[0], rtol=0, atol=1e-13)
    assert np.allclose(law, stationary(sparse.csr_array(matrix)), rtol=0, atol=1e-13)
    assert np.allclose(law, stationary(sparse.coo_matrix(matrix)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("fast", [2, 3])
def test_a_ring_with_states_that_are_left_for_ever(fast):
    matrix = ring(100, fast)
    law = stationary(sparse.csr_array(matrix))
    assert np.abs(law @ matrix - law).max() < 1e-15
    assert np.allclose(law, stationary(matrix), rtol=0, atol=1e-13)


def test_the_walk_with_two_speeds_has_its_rational_share():
    # steps ±1 and ±2 on N sites, 4 | N: the slow half has 4N/(5N + 4)
    law = stationary(sparse.csr_array(ring(400, 2)))
    assert law[:200].sum() == pytest.approx(1600 / 2004, abs=1e-12)


def test_a_chain_that_hardly_moves():
    # detailed balance: π_1/π_2 = 1e-9/3e-9, whatever the slowness
    slow = np.array([[1 - 1e-9, 1e-9], [3e-9, 1 - 3e-9]])
    for matrix in (slow, sparse.csr_array(slow)):
        assert stationary(matrix) == pytest.approx([0.75, 0.25], abs=1e-7)


def test_bad_chains_are_refused():
    with pytest.raises(UserError, match="reducible one with 2 sets"):
        stationary(np.eye(2))
    with pytest.raises(UserError, match="rows of sum one"):
        stationary(np.array([[0.5, 0.4], [0.5, 0.5]]))
    with pytest.raises(UserError, match="square"):
        stationary(np.ones((2, 3)) / 3)
    with pytest.raises(UserError, match="not negative"):
        stationary(np.array([[1.5, -0.5], [0.5, 0.5]]))


def test_a_linear_walk_is_gaussian_and_forgets_by_its_factor():
    nodes = np.linspace(-10, 10, 81)
    matrix = transfer_matrix(nodes, -0.4 * nodes, 1.0)
    law = stationary(matrix)
    variance = 1 / (1 - 0.6**2)
    density = np.exp(-(nodes**2) / (2 * variance))
    assert np.allclose(law, density / density.sum(), rtol=0, atol=1e-9)
    sizes = np.sort(np.abs(np.linalg.eigvals(matrix)))[::-1]
    assert sizes[:4] == pytest.approx(0.6 ** np.arange(4), abs=1e-7)


def test_a_walk_in_the_plane_is_a_product():
    line = np.linspace(-5, 5, 21)
    plane = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)
    weights = np.full(len(plane), (line[1] - line[0]) ** 2)
    law = stationary(transfer_matrix(plane, plane * np.array([-0.5, -0.8]), 0.5, weights))
    one = stationary(transfer_matrix(line, -0.5 * line, 0.5))
    other = stationary(transfer_matrix(line, -0.8 * line, 0.5))
    assert np.allclose(law, np.outer(one, other).ravel(), rtol=0, atol=1e-12)


def test_exit_moments_by_sums_over_powers():
    matrix = np.random.default_rng(1).dirichlet(np.ones(5), 4)[:, :4]
    moments = exit_moments(matrix)
    alive = np.ones((400, 4))  # P(τ > t)
    for t in range(1, 400):
        alive[t] = matrix @ alive[t - 1]
    mean = alive.sum(0)
    second = (2 * np.arange(400) + 1) @ alive
    assert moments.mean == pytest.approx(mean, rel=1e-10)
    assert moments.variation == pytest.approx(np.sqrt(second - mean**2) / mean, rel=1e-9)
    assert moments.rate == pytest.approx(
        -np.log(np.abs(np.linalg.eigvals(matrix)).max()), rel=1e-10
    )
    assert moments.residual < 1e-12


def test_a_node_of_weight_zero_is_a_place_to_start_from():
    nodes, weights = np.polynomial.legendre.leggauss(40)
    both = np.append(nodes, nodes[7])
    moments = exit_moments(
        transfer_matrix(both, -0.1 * both, 0.1, np.append(weights, 0), killed=True)
    )
    assert moments.mean[-1] == pytest.approx(moments.mean[7], rel=1e-12)


def test_the_gap_of_a_double_well_is_that_of_small_steps():
    def well(x):
        return (x**2 - 1) ** 2 / 4

    gap = spectral_gap(well, 4.0, np.linspace(-3.5, 3.5, 4001))
    rates = []
    for step in (0.02, 0.04):
        nodes = np.linspace(-3.2, 3.2, int(6.4 / (0.7 * np.sqrt(step / 2))))
        matrix = transfer_matrix(nodes, -step * (nodes**3 - nodes), step / 2)
        rates.append(-np.log(np.sort(np.abs(np.linalg.eigvals(matrix)))[-2]) / step)
    assert 2 * rates[0] - rates[1] == pytest.approx(gap, rel=1e-3)
    # Hermite polynomials on a parabola
    second = spectral_gap(lambda x: x**2, 1.0, np.linspace(-7, 7, 3001), modes=2)
    assert second == pytest.approx(4, rel=1e-4)


def test_gibbs_gives_moments_of_a_quartic():
    from scipy.special import gamma

    nodes = np.linspace(-6, 6, 121)
    second = gibbs(lambda x: x**4 / 4, 1.0, nodes) @ nodes**2
    assert second == pytest.approx(2 * gamma(3 / 4) / gamma(1 / 4), rel=1e-10)


def test_bad_grids_temperatures_and_potentials_are_refused():
    nodes = np.linspace(-6, 6, 61)
    parabola = lambda x: x**2 / 2
    with pytest.raises(UserError, match="vanishes at both ends"):
        gibbs(lambda x: -(x**2), 1.0, nodes)
    with pytest.raises(UserError, match="vanishes at both ends"):
        spectral_gap(parabola, 1.0, np.linspace(-2, 2, 61))
    with pytest.raises(UserError, match="β above zero"):
        gibbs(parabola, 0.0, nodes)
    with pytest.raises(UserError, match="even grid"):
        gibbs(parabola, 1.0, nodes**3)
    with pytest.raises(UserError, match="too far apart"):
        transfer_matrix(nodes, -0.1 * nodes, 1e-3)
    with pytest.raises(UserError, match="variance above zero"):
        transfer_matrix(nodes, -0.1 * nodes, 0.0)
    with pytest.raises(UserError, match="drift must be"):
        transfer_matrix(nodes, nodes[1:], 1.0)
    with pytest.raises(UserError, match="finite"):
        gibbs(lambda x: np.where(x > 0, np.nan, x**2), 1.0, nodes)
    with pytest.raises(UserError, match="modes"):
        spectral_gap(parabola, 1.0, np.linspace(-9, 9, 61), modes=0)


def test_refusals_have_the_name_of_what_was_called():
    nodes = np.linspace(-6, 6, 61)
    parabola = lambda x: x**2 / 2
    with pytest.raises(UserError, match="gibbs: expected β above zero"):
        gibbs(parabola, 0.0, nodes)
    with pytest.raises(UserError, match="spectral_gap: expected β above zero"):
        spectral_gap(parabola, 0.0, nodes)
    with pytest.raises(UserError, match="gibbs: expected a potential that takes all nodes"):
        gibbs(lambda x: 1.0, 1.0, nodes)
    with pytest.raises(UserError, match="stationary: expected a square"):
        stationary(np.ones((2, 3)) / 3)
    with pytest.raises(UserError, match="take more nodes"):
        spectral_gap(lambda x: x**4, 1.0, np.linspace(-40, 40, 21))


def test_chains_that_are_never_killed_are_refused():
    with pytest.raises(UserError, match="never killed"):
        exit_moments(np.array([[1.0, 0.0], [0.5, 0.4]]))
    with pytest.raises(UserError, match="at most one"):
        exit_moments(np.array([[1.2]]))


def test_a_chain_that_ends_at_its_first_step_does_so_at_an_infinite_rate():
    moments = exit_moments(np.zeros((2, 2)))
    np.testing.assert_allclose(moments.mean, 1.0)
    assert moments.rate == np.inf
