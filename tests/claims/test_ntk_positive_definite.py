"""The constant with which the smallest eigenvalue falls as two inputs come together, from kernels in closed form."""

import jax
import numpy as np
import pytest

from steepest.claims.kernels.ntk_positive_definite.claim import NtkPositiveDefinite, _pair, _tangent


def relu(cosines):
    """Cho and Saul 2009, half of the arc-cosine kernel of degree one."""
    angles = np.arccos(np.clip(cosines, -1, 1))
    return (np.sin(angles) + (np.pi - angles) * np.cos(angles)) / (2 * np.pi)


def exponential(cosines):
    """E exp(w·x) exp(w·y) = exp(‖x + y‖²/2)."""
    return np.exp(1 + cosines)


@pytest.mark.parametrize(("name", "kernel"), [("relu", relu), ("exp", exponential)])
def test_the_smallest_eigenvalue_of_two_inputs_that_come_together(name, kernel):
    claim = NtkPositiveDefinite(activations=("relu", "exp"))
    points = np.asarray(jax.random.normal(jax.random.key(3), (12, 4)))
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    constant = claim.together(name, points)
    angle = 1e-3
    parted = _pair(points, angle)
    np.testing.assert_allclose(parted[0] @ parted[1], np.cos(angle), rtol=1e-12)
    least = np.linalg.eigvalsh(kernel(parted @ parted.T))[0]
    np.testing.assert_allclose(least / angle**2, constant, rtol=2e-3)
    alone = (kernel(1.0) - kernel(np.cos(angle))) / angle**2
    assert constant < 0.9 * alone  # what lies in the span of the others counts


def test_by_hand_for_two_inputs_and_a_third_in_their_plane():
    """With exp on a circle, k' = e² and s = ⟨v, x₃⟩ exp(1 + ⟨x₁, x₃⟩), and K is two by two."""
    claim = NtkPositiveDefinite(activations=("relu", "exp"))
    turn = 1.1
    points = np.array([[1.0, 0.0], [np.cos(turn), np.sin(turn)]])
    shared = np.sin(turn) * np.exp(1 + np.cos(turn))
    kernel = exponential(points @ points.T)
    expected = (np.exp(2) - shared**2 * np.linalg.inv(kernel)[1, 1]) / 2
    np.testing.assert_allclose(_tangent(points), [0, 1], atol=1e-12)
    np.testing.assert_allclose(claim.together("exp", points), expected, rtol=1e-9)
