"""How fast laws of the walk approach Gibbs's in Wasserstein distance."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq

from steepest import kit
from steepest.claims.noise._double_well import reach, well
from steepest.claims.noise._double_well_walk import SPACING
from steepest.noise import stationary, transfer_matrix

FINE = 4001  # places at which densities are compared
LATE = (6.0, 7.0)  # over the walk's own rate: when distances in the double well are read
AWAY = 1.0  # between the start on the parabola and Gibbs's law
SLOPE = 0.5  # m, curvature of the parabola


def _distances(
    slope: Callable[[kit.Values], kit.Values],
    potential: Callable[[kit.Values], kit.Values],
    beta: float,
    step: float,
    start: tuple[float, float],
    times: Sequence[float] | kit.Values,
    *,
    far: float,
    own: bool = False,
) -> kit.Values:
    """Return Wasserstein distances of the walk's law from exp(−βf), exactly but for a grid, shape ``(times,)``.

    The start is a normal law, given by its mean and variance. With ``own`` the distances are from the walk's own
    stationary law, which is exp(−βf) for small ε only.
    """
    variance = 2 * step / beta
    count = int(2 * far / (SPACING * variance**0.5)) + 2
    x = np.linspace(-far, far, count)
    moved = x - step * slope(x)
    transitions = transfer_matrix(x, moved - x, variance)
    fine = np.linspace(-far, far, FINE)
    spread = np.exp((fine[:, None] - moved) ** 2 / (-2 * variance))
    aim = spread @ stationary(transitions) if own else np.exp(-beta * potential(fine))
    law = np.exp((x - start[0]) ** 2 / (-2 * start[1]))
    law = law / law.sum()
    # densities between nodes are those one step later
    marks = np.round(np.array(times) / step).astype(int) - 1
    apart = np.empty(len(marks))
    for i, steps in enumerate(np.diff(marks, prepend=0)):
        law = law @ np.linalg.matrix_power(transitions, int(steps))
        apart[i] = wasserstein(spread @ law, aim, fine)
    return apart


def wasserstein(density: kit.Values, aim: kit.Values, x: kit.Values) -> float:
    """Return ``W₂`` of two densities on an even grid, which need not be normalized: ∫ (F⁻¹(G(x)) − x)² dG(x)."""
    # trapezoids, without the half spacing, which cancels in the quotient
    below = lambda p: np.concatenate([[0.0], np.cumsum(p[1:] + p[:-1])])
    first = below(density)
    second = below(aim)
    # F⁻¹(G(x)), the monotone map, is the optimal one in one dimension
    carried = np.interp(second / second[-1], first / first[-1], x)
    return float(np.sqrt(aim @ (carried - x) ** 2 / aim.sum()))


def parabola_distances(
    step: float, beta: float, times: Sequence[float], *, narrow: bool = False
) -> kit.Values:
    """Return distances on the parabola mx²/2 from a start of Gibbs's variance around one, ``(times,)``.

    A narrow start is around zero, and narrower, with the same relative entropy to exp(−βf).
    """
    force = beta * SLOPE
    start = (AWAY, 1 / force)
    if narrow:
        # twice the relative entropy: r − 1 − log r of a ratio r of variances, βm a² of a shift by a
        excess = lambda ratio: ratio - 1 - np.log(ratio) - force * AWAY**2
        start = (0.0, float(np.asarray(brentq(excess, 1e-9, 1.0))) / force)
    far = AWAY + 8 / force**0.5
    slope = lambda x: SLOPE * x
    potential = lambda x: SLOPE * x**2 / 2
    return _distances(slope, potential, beta, step, start, times, far=far)


def well_rate(step: float, beta: float, rate: float) -> float:
    """Return the rate at which a distance in the double well falls late, where ``rate`` only says when to look."""
    times = np.round(np.array(LATE) / (rate * step)) * step
    first, second = _distances(
        lambda x: x**3 - x,
        well,
        beta,
        step,
        (1.0, 1 / (2 * beta)),
        times,
        far=reach(beta),
        own=True,
    )
    return float(np.log(first / second) / (times[1] - times[0]))
