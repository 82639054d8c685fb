"""Eigenvalues of kernels on the cube: dense matrices, Mercer's sum, a power series, and big d."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import walsh_eigenvalues
from steepest.linalg import parity_spectrum
from steepest.nn.data import hypercube


def grid(d):
    return np.linspace(1, -1, d + 1)


@pytest.mark.parametrize("kernel", [np.exp, lambda t: np.arccos(-t) * t, lambda t: 1 / (2 - t)])
def test_they_are_those_of_the_dense_matrix(kernel):
    d = 6
    x = hypercube(d) / np.sqrt(d)
    dense = np.linalg.eigvalsh(kernel(np.clip(x @ x.T, -1, 1))) / 2**d
    ours = np.repeat(walsh_eigenvalues(kernel(grid(d))), [comb(d, k) for k in range(d + 1)])
    np.testing.assert_allclose(np.sort(ours), dense, atol=1e-14)


def test_they_are_the_transform_of_one_row():
    d = 9
    row = np.exp((hypercube(d) @ np.ones(d)) / d)
    spectrum = parity_spectrum(row)
    bits = [int(i).bit_count() for i in range(2**d)]
    np.testing.assert_allclose(spectrum, walsh_eigenvalues(np.exp(grid(d)))[bits], atol=1e-15)


def test_they_sum_to_the_trace():
    d = 20
    eigenvalues = walsh_eigenvalues(np.exp(grid(d)))
    counts = [comb(d, k) for k in range(d + 1)]
    assert counts @ eigenvalues == pytest.approx(np.e, rel=1e-10)


def test_large_cubes_reach_the_power_series():
    d = 1000
    exact = walsh_eigenvalues([Fraction(d - 2 * j, d) ** 4 for j in range(d + 1)], [4, 3])
    assert exact[0] == pytest.approx(24 / d**4, rel=1e-14)
    assert exact[1] == 0


@pytest.mark.parametrize(
    "values, degrees", [([1.0], None), ([1.0, np.nan], None), ([1.0, 0.0, 1.0], [3])]
)
def test_bad_input_is_a_sentence(values, degrees):
    with pytest.raises(UserError, match="expected"):
        walsh_eigenvalues(values, degrees)
