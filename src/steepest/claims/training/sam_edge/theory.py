"""Where sharpness-aware minimization comes to on a parabola, and how it moves along a valley.

A step is w ← w − η∇L(w + ρ∇L/‖∇L‖). With the gradient along the direction of largest curvature λ the point that it
looks at has the gradient (1 + ρλ/‖g‖)g. The gradient changes its sign and keeps its size where ηλ(1 + ρλ/‖g‖) = 2. That
is at ‖g‖ = ηρλ²/(2 − ηλ), a size that steps come to from both sides, as its error is multiplied by ηλ − 1 < 1.

Where λ itself falls, gradients follow it with a lag: a step multiplies an error of their size by ηλ − 1, with its sign,
so that they are behind by what the law falls by in 1/(2 − ηλ) steps. The law holds as far as that is small
(:func:`lag`).

The points that are looked at then lie 2ρ/(2 − ηλ) to both sides of the middle. The mean of their gradients is that of
the middle and half the square of that distance times ∇λ.
"""

import numpy as np

from steepest.nn.types import Values

LAG = 0.03
"""Relative lag of gradients behind the curvature up to which the law is claimed, of a margin of 0.05."""


def steps_to_fall(before: float, after: Values, eta: Values, rho: Values) -> Values:
    """Return steps until curvature has fallen in the valley ½eʸx², where ∇λ has the size λ.

    Curvature follows dλ/dt = −2ρ²λ²/(2 − ηλ)², in the time t of η a step.

    >>> bool(steps_to_fall(8.0, 4.0, 0.01, 0.1) > steps_to_fall(8.0, 4.0, 0.2, 0.1))
    True
    """
    # ∫(2 − ηλ)²/λ² dλ = ∫(4/λ² − 4η/λ + η²) dλ; the time is that over 2ρ², η of it a step
    time = 4 * (1 / after - 1 / before) - 4 * eta * np.log(before / after)
    time = time + eta**2 * (before - after)
    return np.asarray(time / (2 * rho**2 * eta))


def lag(curvature: Values, eta: Values, rho: Values) -> Values:
    """Return how far gradients lag behind a curvature that falls by the law, relative to their size.

    A step changes log λ by 2ηρ²λ/(2 − ηλ)², and log ‖g‖ by 2 + ηλ/(2 − ηλ) times as much. From ηλ = 2 on it has no end.

    >>> bool(lag(3.6, 0.2, 0.06) < 0.02 < lag(6.0, 0.2, 0.06))
    True
    """
    product = eta * curvature
    to_edge = np.maximum(2 - product, np.finfo(float).tiny ** 0.25)
    # of log λ in a step, and ‖g‖ ∝ λ²/(2 − ηλ) by 2 + ηλ/(2 − ηλ) as much
    fall = 2 * eta * rho**2 * curvature / to_edge**2
    return np.asarray(fall * (2 + product / to_edge) / to_edge)


def steps_of_small_ones(before: float, after: Values, eta: Values, rho: Values) -> Values:
    """Return these steps for the force ½ρ²∇λ, the limit of small step sizes.

    >>> float(steps_of_small_ones(8.0, 4.0, 0.25, 1.0))
    1.0
    """
    return np.asarray(2 * (1 / after - 1 / before) / (rho**2 * eta))
