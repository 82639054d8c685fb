"""Spectral gaps of several wells: by eigenvalues on a grid, and by theory for wells that are tied together."""

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from steepest import kit
from steepest.claims.noise._double_well import well
from steepest.noise import spectral_gap

NODES = 22  # of a grid for several wells, in each direction
TOLERANCE: Any = 1e-7  # relative, of eigenvalues
WARM = 2.0  # β of several wells


def wells_gap(dimension: int, spring: float, beta: float = WARM) -> float:
    """Return the spectral gap of ``Σ well(x_i) + ½k Σ(x_i − x̄)²`` with d wells and the spring k.

    This is the gap of −∇²/β + β|∇f|²/4 − Δf/2, whose lowest eigenvalue is zero, on a grid with the exact kinetic energy
    of what the grid resolves.
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

    class Energy(LinearOperator):
        """The sum of a kinetic energy along each axis and a potential one, on states as vectors."""

        def _matvec(self, state: kit.Values) -> kit.Values:
            state = state.reshape(height.shape)
            total = height * state
            for axis in range(dimension):
                total = total + np.moveaxis(np.tensordot(kinetic, state, (1, axis)), 0, axis)
            return total.ravel()

    energy = well(x).sum(0) + spring / 2 * ((x - mean) ** 2).sum(0)
    # the root of Gibbs's law is the ground state; an odd factor overlaps with the slowest mode
    start = np.exp(-beta * energy / 2) * (0.1 + np.tanh(3 * mean))
    lowest, _ = eigsh(
        Energy(float, (height.size, height.size)), k=2, which="SA", v0=start.ravel(), tol=TOLERANCE
    )
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
