"""Noisy descents of vanishing-steps against the exact mean square, and the notes' own bound."""

import numpy as np
import pytest

from steepest.claims.descent.vanishing_steps.experiment import noisy_descents
from steepest.dynamics import mean_square

VALUES = np.array([1.0, 0.4, 0.05])


def test_noisy_descents_have_the_exact_mean_square():
    schedules = np.array([np.full(50, 0.3), 0.5 / np.arange(1, 51)])
    squares = noisy_descents(VALUES, schedules, 0.4, 20, 400, np.random.default_rng(0))
    for row, steps in zip(squares, schedules, strict=True):
        error = row.std(0, ddof=1) / 20**0.5
        z = (row.mean(0) - mean_square(VALUES, steps, 0.4))[1:] / error[1:]
        assert np.abs(z).max() < 5


def test_the_notes_bound_under_noise_has_a_floor():
    """Σ η_s‖ξ‖ exp(−λ Σ_{u>s} η_u) tends to ‖ξ‖/λ, whatever the steps, as they vanish."""
    for power in (0.5, 1.0):
        steps = np.arange(1, 200_001) ** -power
        later = np.cumsum(steps[::-1])[::-1] - steps
        assert (steps * np.exp(-0.5 * later)).sum() == pytest.approx(1 / 0.5, rel=0.01)
