"""What theory says of small steps on the line and in the plane, and the exact law in the plane."""

import numpy as np

from steepest import kit
from steepest.claims.noise._double_well import well
from steepest.claims.noise._double_well_walk import PLACES, Expansion, expansion, gibbs_line
from steepest.noise import stationary, transfer_matrix

SPACING_PLANE = 0.95  # of nodes in the plane, in standard deviations of a step: 1e-9
DEPTH_PLANE = 20.0


def plane_well(x: kit.Values, y: kit.Values) -> kit.Values:
    """Return ``x²y²/2 + (x² + y²)/2 + x⁴/4``, which does not separate."""
    return x**2 * y**2 / 2 + (x**2 + y**2) / 2 + x**4 / 4


def line_shift(beta: float) -> Expansion:
    """Return what theory says of the log density at ``PLACES`` in the double well."""
    x, masses = gibbs_line(beta)
    norm = np.exp(-beta * well(x)).sum() * (x[1] - x[0])
    slopes = lambda x: beta * (x**3 - x) ** 2 / 4
    bend = lambda x: (3 * x**2 - 1) / 2
    return Expansion(
        -beta * well(PLACES) - np.log(norm),
        # less its mean, so that the law stays normalized
        slopes(PLACES) - bend(PLACES) - masses @ (slopes(x) - bend(x)),
        slopes(PLACES) - masses @ slopes(x),
    )


def plane_expansion() -> Expansion:
    """Return what theory says of x², y² and x²y² in the plane, at β = 1."""
    x, y = np.meshgrid(np.linspace(-4, 4, 161), np.linspace(-9, 9, 361), indexing="ij")
    masses = np.exp(-plane_well(x, y))
    square = (x * y**2 + x + x**3) ** 2 + (x**2 * y + y) ** 2
    laplacian = 4 * x**2 + y**2 + 2
    observables = [x**2, y**2, (x * y) ** 2]
    return expansion(masses / masses.sum(), square, laplacian, observables, 1.0)


def plane_moments(step: float) -> kit.Values:
    """Return E x², E y² and E x²y² of the walk in the plane at β = 1, ``(3,)``."""
    spacing = SPACING_PLANE * (2 * step) ** 0.5
    across = spacing * np.arange(-int(4 / spacing), int(4 / spacing) + 1)
    up = spacing * np.arange(-int(7 / spacing), int(7 / spacing) + 1)
    nodes = np.stack(np.meshgrid(across, up, indexing="ij"), -1).reshape(-1, 2)
    nodes = nodes[plane_well(*nodes.T) < DEPTH_PLANE]
    x, y = nodes.T
    slopes = np.stack([x * y**2 + x + x**3, x**2 * y + y], 1)
    weights = np.full(len(nodes), spacing**2)
    law = stationary(transfer_matrix(nodes, -step * slopes, 2 * step, weights))
    return np.array([law @ x**2, law @ y**2, law @ (x * y) ** 2])
