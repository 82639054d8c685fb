"""tied-wells: its gaps by another discretization, and theory's limits."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import eigsh

from steepest.claims.noise._double_well import well
from steepest.claims.noise.tied_wells.wells import tied_gap, wells_gap
from steepest.noise import spectral_gap


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
