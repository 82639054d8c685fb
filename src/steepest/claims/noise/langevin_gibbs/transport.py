"""How fast laws of the walk approach Gibbs's in Wasserstein distance, and gaps of several wells."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, eigsh

from steepest import kit
from steepest.claims.noise._double_well import reach, well
from steepest.noise import spectral_gap, stationary, transfer_matrix

FINE = 4001  # places at which densities are compared
LATE = (6.0, 7.0)  # over the walk's own rate: when distances in the double well are read
NODES = 22  # of a grid for several wells, in each direction
AWAY = 1.0  # between the start on the parabola and Gibbs's law
SLOPE = 0.5  # m, curvature of the parabola
SPACING = 0.6  # of nodes on the line, in standard deviations of a step
SPRING = 10.0  # k of ½k Σ(x_i − x̄)²
TOLERANCE: Any = 1e-7  # relative, of eigenvalues
WARM = 2.0  # β of several wells


def distances(
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

    Args:
        slope: f′.
        potential: f.
        beta: β.
        step: ε.
        start: mean and variance of the normal law that the walk starts from.
        times: increasing, multiples of ε.
        far: where the grid ends.
        own: whether distances are those from the walk's own stationary law, which is exp(−βf) for small ε only.
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

    Args:
        step: ε.
        beta: β.
        times: increasing, multiples of ε.
        narrow: whether the start is around zero, and narrower, with the same relative entropy to exp(−βf).
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
    return distances(slope, potential, beta, step, start, times, far=far)


def well_rate(step: float, beta: float, rate: float) -> float:
    """Return the rate at which a distance in the double well falls late, where ``rate`` only says when to look."""
    times = np.round(np.array(LATE) / (rate * step)) * step
    first, second = distances(
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


class Energy(LinearOperator):
    """The sum of a kinetic energy along each axis and a potential one, on states as vectors.

    Attributes:
        kinetic: of one axis, shape ``(nodes, nodes)``.
        height: the potential energy, with ``nodes`` nodes along each axis.
    """

    def __init__(self, kinetic: kit.Values, height: kit.Values) -> None:
        super().__init__(float, (height.size, height.size))
        self.kinetic = kinetic
        self.height = height

    def _matvec(self, state: kit.Values) -> kit.Values:
        state = state.reshape(self.height.shape)
        total = self.height * state
        for axis in range(state.ndim):
            total = total + np.moveaxis(np.tensordot(self.kinetic, state, (1, axis)), 0, axis)
        return total.ravel()


def wells_gap(dimension: int, spring: float, beta: float = WARM) -> float:
    """Return the spectral gap of ``Σ well(x_i) + ½k Σ(x_i − x̄)²``.

    That of −∇²/β + β|∇f|²/4 − Δf/2, whose lowest eigenvalue is zero, on a grid with the exact kinetic energy of what
    the grid resolves.

    Args:
        dimension: number of wells, d.
        spring: k.
        beta: β.
    """
    far = float(np.sqrt(1 + np.sqrt(80 / beta)))  # βf = 20
    line, spacing = np.linspace(-far, far, NODES, retstep=True)
    lag = np.subtract.outer(np.arange(NODES), np.arange(NODES))
    away = np.where(lag == 0, 1, lag)
    # −∂² between sinc functions at spacing h: π²/3h² on the diagonal, 2(−1)^k/(k²h²) at lag k
    kinetic = np.where(lag == 0, np.pi**2 / 3, 2 * (-1.0) ** lag / away**2) / (beta * spacing**2)
    x = np.stack(np.meshgrid(*[line] * dimension, indexing="ij"))
    mean = x.mean(0)
    slopes = x**3 - x + spring * (x - mean)
    # the springs' Hessian k(I − 11ᵀ/d) has the trace k(d − 1)
    laplacian = (3 * x**2 - 1).sum(0) + spring * (dimension - 1)
    height = beta / 4 * (slopes**2).sum(0) - laplacian / 2

    energy = well(x).sum(0) + spring / 2 * ((x - mean) ** 2).sum(0)
    # the root of Gibbs's law is the ground state; an odd factor overlaps with the slowest mode
    start = np.exp(-beta * energy / 2) * (0.1 + np.tanh(3 * mean))
    lowest, _ = eigsh(Energy(kinetic, height), k=2, which="SA", v0=start.ravel(), tol=TOLERANCE)
    return float(np.ptp(lowest))


def tied_gap(dimension: int, spring: float, beta: float = WARM) -> float:
    """Return what theory says of the gap of wells that are tied together, to first order in 1/k.

    The mean x̄ moves d times as slowly as one coordinate, in the sum of d wells and of −log/β of what the d − 1
    differences have room for, each with the curvature ``k + 3x̄² − 1``.
    """
    # x̄ has the potential F/d at the inverse temperature dβ,
    # and each of the d − 1 differences adds log(curvature)/2β to F
    room = (dimension - 1) / (2 * beta * dimension)
    felt = lambda x: well(x) + room * np.log(spring + 3 * x**2 - 1)
    return spectral_gap(felt, beta * dimension, np.linspace(-3.5, 3.5, 6001))
