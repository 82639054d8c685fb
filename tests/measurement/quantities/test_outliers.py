"""Counting outliers by the widest gap, and overlaps of subspaces."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement.quantities import orthonormal, outlier_count, subspace_overlap


@pytest.mark.parametrize("count", [1, 2, 5])
def test_spiked_spectra(count):
    """As many as there are spikes, whatever their sizes, if the widest ratio is behind them."""
    rng = np.random.default_rng(count)
    values = np.r_[10 + 5 * rng.random(count), rng.random(20)]
    assert outlier_count(values, most=10) == count
    assert outlier_count(3 * rng.permutation(values), most=10) == count


def test_below_the_floor_there_are_no_gaps():
    assert outlier_count(np.array([1.0, 0.5, 1e-4, 1e-9, -2.0]), most=4) == 2
    assert outlier_count(np.array([1.0, 0.5, 1e-2, 1e-9, -2.0]), most=4, floor=1e-12) == 3


def test_too_few_eigenvalues():
    with pytest.raises(UserError, match="needs 5"):
        outlier_count(np.ones(4), most=4)


def test_overlaps():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3, 50))
    assert np.isclose(subspace_overlap(rows, rng.normal(size=(3, 3)) @ rows), 1.0)
    assert np.isclose(subspace_overlap(rows, np.vstack([rows, rng.normal(size=(5, 50))])), 1.0)
    basis = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    assert np.isclose(subspace_overlap(basis[:3], basis[3:9]), 0.0)
    random = np.mean(
        [subspace_overlap(rng.normal(size=(3, 60)), rng.normal(size=(5, 60))) for _ in range(400)]
    )
    assert abs(random - 5 / 60) < 0.01
    assert orthonormal(np.vstack([rows, rows])).shape == (3, 50)
