"""Constants of extension by their dual, and of maps that are known to extend."""

import numpy as np
import pytest

from steepest.claims.expressivity.lipschitz_extension.experiment import (
    constant_of,
    cube_constant,
    needed_constant,
)


def test_the_constant_of_one_point_more_by_its_dual():
    """The least t² is the largest ½Σλ_iλ_j‖f_i − f_j‖²/Σλ_i r_i² over weights λ; Kirszbraun's theorem follows."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        images = rng.standard_normal((3, 2))
        distances = 0.5 + rng.random(3)
        weights = rng.dirichlet(np.ones(3), 200_000)
        apart = ((images[:, None] - images) ** 2).sum(-1)
        dual = np.einsum("ni,ij,nj->n", weights, apart, weights) / 2 / (weights @ distances**2)
        assert needed_constant(images, distances) == pytest.approx(np.sqrt(dual.max()), rel=2e-3)


def test_isometries_and_numbers_extend_with_the_same_constant():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((4, 3))
    x -= rng.dirichlet(np.ones(4)) @ x  # 0 is among them
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    assert constant_of(x, 2 * x @ turn, 2) == pytest.approx(1, abs=1e-6)
    assert cube_constant(1, np.inf, rng) == pytest.approx(1, abs=1e-9)
    # the triangle of edge 2, by hand: three corners of a square of the plane
    corners = np.array([[-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    triangle = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 3**0.5]])
    assert constant_of(corners, triangle, np.inf) == pytest.approx(2 / 3**0.5, rel=1e-6)
