"""Dichotomies of points by halfspaces, counted as cells of hyperplanes."""

import numpy as np

from steepest.geometry import cells
from steepest.nn.data import digits
from steepest.nn.types import Values


def halfspace_patterns(points: Values) -> Values:
    """Return all dichotomies of points, ``(m, d)``, by halfspaces: the cells that w·x_i + b = 0 makes of all (w, b)."""
    # each point is a hyperplane through the origin of the space of all (w, b)
    bordered = np.column_stack([points, np.ones(len(points))])
    return cells(bordered, np.zeros(len(points))).signs


def halfspace_dichotomies(points: Values) -> int:
    """Count the dichotomies of points, ``(m, d)``, by halfspaces."""
    return len(halfspace_patterns(points))


def digit_scores() -> Values:
    """Return all digits in their principal components, the longest first."""
    images = np.asarray(digits().x)
    centred = images - images.mean(0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2].T
