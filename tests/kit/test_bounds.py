"""Bounds as curves: the line is where it was said to be, and strokes lie on the forbidden side alone."""

import numpy as np
import pytest

from steepest import kit
from steepest.core.panels import panels_from_json, panels_to_json


def parted(curve):
    """Return the line, and the feet and tips of the strokes, each as points ``(points, 2)``."""
    points = np.stack([np.asarray(curve.x), np.asarray(curve.y)], axis=1)
    line, strokes = points[:16], points[16:].reshape(-1, 3, 2)
    assert np.isnan(strokes[:, 0]).all()
    return line, strokes[:, 1], strokes[:, 2]


@pytest.mark.parametrize("forbidden", ["above", "below"])
def test_a_straight_bound(forbidden):
    x = np.linspace(0, 4, 30)
    line, feet, tips = parted(kit.bound_curve(x, 3 - x / 2, "b", forbidden=forbidden, tall=0.2))
    for points in (line, feet):
        np.testing.assert_allclose(points[:, 1], 3 - points[:, 0] / 2, atol=1e-12)
    sign = 1 if forbidden == "above" else -1
    np.testing.assert_allclose(tips[:, 1] - feet[:, 1], sign * 0.2, atol=1e-12)
    assert np.all(sign * (tips[:, 1] - (3 - tips[:, 0] / 2)) > 0.15)


def test_a_power_law_is_straight_on_logarithmic_axes():
    x = np.geomspace(1, 1e4, 9)
    curve = kit.bound_curve(x, 5 * x**-0.5, "b", forbidden="above", tall=0.1, log="xy")
    line, feet, tips = parted(curve)
    np.testing.assert_allclose(line[:, 1], 5 * line[:, 0] ** -0.5, rtol=1e-12)
    np.testing.assert_allclose(tips[:, 1] / feet[:, 1], 10**0.1, rtol=1e-12)


def test_a_bound_is_stored_like_any_curve():
    bound = kit.bound_curve([0.0, 1.0], [2.0, 2.0], "b", forbidden="above", tall=0.1)
    (stored,) = panels_from_json(panels_to_json([kit.panel("t", "x", "y", bound)]))
    np.testing.assert_array_equal(stored.curves[0].y, bound.y)
