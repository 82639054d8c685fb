"""The Hessian of two Gaussian clusters by integrals over one coordinate, that of the class direction."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from steepest.nn.types import Values

CENTRE = np.sqrt(2)
"""Length of (1, 1): a cluster's centre is so far from zero."""
NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(180)  # of the weight exp(−v²/2)
MASSES = _WEIGHTS / _WEIGHTS.sum()


def curvatures(a: float, spread: float) -> tuple[float, float]:
    """Return second derivatives of the risk along the class direction and across it, for outputs ±a⟨x, e⟩.

    The difference of the outputs is 2a⟨x, e⟩, and cross-entropy has the curvature σ'(2au) in it, where u = y⟨x, e⟩ is
    normal around √2. Both outputs move along the direction, one up and one down, which doubles it.
    """
    u = CENTRE + spread * NODES
    undecided = MASSES / np.cosh(a * u) ** 2 / 4  # σ'(2au) = 1/(4 cosh²(au))
    # E σ' u² along e; across it the coordinates are independent of u, of variance s²
    return 2 * float(undecided @ u**2), 2 * spread**2 * float(undecided.sum())


def ratio(a: float, spread: float) -> float:
    """Return the curvature along the class direction over that across it."""
    along, across = curvatures(a, spread)
    return along / across


def ratio_at_optimum(spread: float) -> float:
    """Return E v²/cosh(bv) over E 1/cosh(bv), v ~ N(0, 1), b = √2/s.

    At a = √2/s² outputs are the true chances of the classes. The density of both clusters at distance sv from the plane
    between them is then as cosh(bv) exp(−v²/2), and σ' as 1/cosh(bv)².
    """
    weight = MASSES / np.cosh(CENTRE / spread * NODES)
    return float(weight @ NODES**2 / weight.sum())


def crossing(spread: float) -> float:
    """Return the a at which both curvatures are equal."""
    optimum = CENTRE / spread**2
    # the ratio falls from (2 + s²)/s² at a = 0 to below one, as 1/cosh weighs large v less
    root: Any = brentq(lambda a: ratio(a, spread) - 1, 1e-9, optimum, xtol=1e-14)
    return root


def weights_of_flow(times: Sequence[float], spread: float) -> Values:
    """Return a along the gradient flow from zero, a' = E σ(−2au) u, ``(times,)``."""
    u = CENTRE + spread * NODES
    slope = lambda t, a: MASSES @ (u / (1 + np.exp(2 * a * u)))  # σ(−2au) = 1/(1 + e^(2au))
    ends = (0.0, float(times[-1]))
    solution = solve_ivp(slope, ends, [0.0], "LSODA", t_eval=times, rtol=1e-9, atol=1e-11)
    return solution.y[0]
