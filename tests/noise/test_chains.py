"""Chains: stationary laws, exit times and gaps, each in two ways."""

import numpy as np
import pytest
from scipy import sparse

from steepest.core.errors import UserError
from steepest.noise import stationary


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
