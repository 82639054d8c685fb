"""Unequal widths in relu-path-moments: the exact product against networks drawn in NumPy, and its near miss."""

import itertools

import numpy as np
import pytest

from steepest.claims.signals.relu_path_moments.claim import ReluPathMoments

CLAIM = ReluPathMoments()


def test_the_fourth_moment_of_unequal_widths_is_the_product_over_layers():
    expected = 12 / 16**2 * (1 + 5 / 8) * (1 + 5 / 32) * (1 + 5 / 8)
    assert CLAIM.unequal == (8, 32, 8)
    assert derivative_moment(CLAIM) == pytest.approx(expected, rel=1e-12)


def test_drawn_networks_have_it_and_not_that_of_their_mean_width():
    """Products of W_l and gates of the forward pass, for one input, by plain matrix products."""
    rng = np.random.default_rng(0)
    networks = 8_000
    widths = (16, *CLAIM.unequal, 16)
    signal = np.broadcast_to(rng.standard_normal(16), (networks, 16))
    jacobian = np.broadcast_to(np.eye(16), (networks, 16, 16))
    for layer, (before, after) in enumerate(itertools.pairwise(widths)):
        weights = rng.standard_normal((networks, after, before)) * np.sqrt(2 / before)
        signal = np.einsum("kij,kj->ki", weights, signal)
        jacobian = weights @ jacobian
        if layer < len(widths) - 2:
            jacobian = jacobian * (signal > 0)[:, :, None]
            signal = np.maximum(signal, 0)
    fourth = (jacobian**4).mean((1, 2))
    deviation = fourth.std() / networks**0.5
    assert abs(fourth.mean() - derivative_moment(CLAIM)) < 4 * deviation
    assert abs(fourth.mean() - CLAIM.of_the_mean_width()) > 4 * deviation


def derivative_moment(claim: ReluPathMoments) -> float:
    return float(claim.predict(None)["unequal"])
