"""Errors of least squares that is fitted to labels of its own, with Gaussian inputs: exact in each round.

With T inputs in d dimensions and labels of noise σ² one fit errs by σ² E tr (XᵀX)⁻¹ = σ²d/(T − d − 1), the mean of an
inverse Wishart matrix. Errors are in units of that.
"""

import numpy as np

from steepest.nn.types import Values

GOLDEN = (5**0.5 - 1) / 2


def replaced(rounds: int) -> Values:
    """Return the error after each round where only the last model's labels are kept: each fit adds its own, n.

    >>> replaced(3).tolist()
    [1.0, 2.0, 3.0]
    """
    return np.arange(1.0, rounds + 1)


def kept(rounds: int, dimension: int, examples: int) -> Values:
    """Return the error after each round where all labels are kept, as they were.

    With S_n the Gram matrix of all inputs so far, w_n = w_{n−1} + S_n⁻¹X_nᵀe_n, and as all k rounds' inputs are alike
    E tr S_k⁻¹X_kᵀX_kS_k⁻¹ = E tr S_k⁻¹/k = d/(k(kT − d − 1)).

    >>> kept(2, 3, 20).round(3).tolist()
    [1.0, 1.222]
    """
    k = np.arange(1, rounds + 1)
    # round k adds d/(k(kT − d − 1)), over the unit d/(T − d − 1)
    return np.cumsum((examples - dimension - 1) / (k * (k * examples - dimension - 1)))


def mixed(shares: Values, rounds: int) -> Values:
    """Return the error after some rounds where a fit to fresh labels has the weight α, and one to its own 1 − α.

    v_n = α² + (1 − α)²(v_{n−1} + 1) from v_0 = 0, which tends to (2α² − 2α + 1)/(2α − α²), least at the golden ratio.

    >>> mixed(np.array([1.0]), 5).tolist()
    [1.0]
    >>> bool(abs(mixed(np.array([GOLDEN]), 50)[0] - GOLDEN) < 1e-9)
    True
    """
    old = (1 - shares) ** 2
    error = np.zeros_like(shares)
    for _ in range(rounds):
        # both fits have independent noise of square one, that to its own labels also the last error
        error = shares**2 + old * (error + 1)
    return error


def best_share(shares: Values, errors: Values) -> float:
    """Return where a cubic through the logarithms of errors is least; NaN where it is so at no share in between.

    >>> shares = np.array([0.4, 0.5, 0.6, 0.7, 0.8])
    >>> round(best_share(shares, mixed(shares, 50)), 2)
    0.62
    """
    slope = np.polyder(np.polyfit(shares, np.log(errors), 3))
    roots = [root.real for root in np.roots(slope) if abs(root.imag) < 1e-12]
    least = [root for root in roots if np.polyval(np.polyder(slope), root) > 0]
    inside = least and shares.min() < least[0] < shares.max()
    return float(least[0]) if inside else float("nan")
