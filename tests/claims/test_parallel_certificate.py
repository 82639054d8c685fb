"""The closed forms of parallel-certificate against a convex solver, and its factorizations by their gradients."""

import cvxpy as cp
import numpy as np
import pytest

from steepest.claims.descent.parallel_certificate.claim import _excess, _minimum, _second_pair
from steepest.claims.descent.parallel_certificate.experiment import grow_factors, planted
from steepest.programs._solving import solve_tightly

Y = planted(np.random.default_rng(0), 4, 3, 1, 3.0, 1.0)
PENALTY = 0.8
S = np.linalg.svd(Y, compute_uv=False)


def test_the_minimum_is_that_of_a_convex_solver():
    z = cp.Variable(Y.shape)
    program = cp.Problem(cp.Minimize(cp.sum_squares(Y - z) / 2 + PENALTY * cp.normNuc(z)))
    solve_tightly(program)
    assert PENALTY**2 * _minimum(S / PENALTY) == pytest.approx(program.value, rel=1e-8)


def test_growth_stops_at_the_certificate_and_passes_the_predicted_excesses():
    growth = grow_factors(Y, PENALTY)
    assert growth.certified
    assert growth.sizes[-1] == (S > PENALTY).sum()
    excess = growth.values - PENALTY**2 * _minimum(S / PENALTY)
    assert excess == pytest.approx(PENALTY**2 * _excess(S / PENALTY)[: len(excess)], abs=1e-10)


def test_the_second_pair_is_stationary():
    left, values, right = np.linalg.svd(Y)
    size = np.sqrt(values[1] - PENALTY)
    u = size * left[:, 1:2]
    v = size * right[1:2].T
    rest = Y - u @ v.T
    assert np.allclose(rest @ v, PENALTY * u)
    assert np.allclose(rest.T @ u, PENALTY * v)
    value = ((rest**2).sum() + PENALTY * ((u**2).sum() + (v**2).sum())) / 2
    assert _second_pair(Y, PENALTY) == pytest.approx(value)
