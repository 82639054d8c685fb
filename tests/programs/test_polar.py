"""Polars: against a fine grid of directions and singular values by another way."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.programs import matrix_polar, polar

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [3, 12])
def test_the_polar_of_neurons_is_the_maximum_over_a_fine_grid(n):
    x = RNG.normal(size=(n, 2))
    residual = RNG.normal(size=n)
    best = polar(residual, x)
    angle = np.linspace(0, 2 * np.pi, 200_001)
    unit = np.stack([np.cos(angle), np.sin(angle)])
    on_grid = np.abs(residual @ np.maximum(x @ unit, 0)).max()
    assert on_grid <= best.value + 1e-12
    assert best.value == pytest.approx(on_grid, rel=1e-8)
    reached = residual @ np.maximum(x @ best.direction, 0)
    assert reached == pytest.approx(best.sign * best.value)


def test_the_polar_of_a_matrix_is_its_spectral_norm():
    matrix = RNG.normal(size=(5, 3))
    best = matrix_polar(matrix)
    left, right = best.direction
    assert best.value == pytest.approx(np.sqrt(np.linalg.eigvalsh(matrix.T @ matrix)[-1]))
    assert left @ matrix @ right == pytest.approx(best.value)


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match=r"shape \(n, 2\)"):
        polar(np.ones(2), np.ones((2, 3)))
    with pytest.raises(UserError, match="residual must be"):
        matrix_polar(np.ones(3))
