"""The parity spectrum: against explicit parities, and Parseval."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.linalg import parity_spectrum
from steepest.nn.data import hypercube


@pytest.mark.parametrize("n", [1, 3, 5])
def test_every_row_is_a_mean_with_its_parity(n):
    x = hypercube(n)
    values = np.random.default_rng(n).normal(size=(2**n, 2))
    spectrum = parity_spectrum(values)
    for i in range(2**n):
        chosen = [j for j in range(n) if i >> j & 1]
        parity = x[:, chosen].prod(1)
        assert np.allclose(spectrum[i], parity @ values / 2**n, atol=1e-14)
    assert np.allclose((spectrum**2).sum(0), (values**2).mean(0))


def test_all_points_are_different():
    x = hypercube(6)
    assert len({tuple(row) for row in x}) == 64
    assert np.allclose(x.T @ x / 64, np.eye(6))


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="2\\^n values, got 3"):
        parity_spectrum(np.ones(3))
    with pytest.raises(UserError, match="draw a sample"):
        hypercube(30)
