"""Kernels of flattened convolutions of ReLU, and how much they vary, where filters are shared and where they are not.

Behind flatten the mean kernel is a mean over positions p of dense kernels of windows, whether a filter is shared or
not: only windows at one position meet. With one hidden convolution Θ(x, x) is a mean over channels; with filters of
their own it is one over positions too, of terms σ_p² + a_p² g_p K_pp whose variance is 3 K_pp², so that

    n Var Θ/(E Θ)² = 3 Σ_p K_pp²/(Σ_p K_pp)²,

which is 3/P where all windows have one size.
"""

import numpy as np

from steepest.claims.kernels._convolution_covariances import AT_ONE_POSITION
from steepest.nn.types import Values


def means_of_relu(size: float, cosine: float) -> tuple[float, float]:
    """Return E σσ' and E gg' of ReLU at two signals of variance ``size`` with this correlation.

    Source: the arc-cosine kernels of degree 1 and 0 (Cho and Saul 2009).

    >>> means_of_relu(2.0, 1.0)
    (1.0, 0.5)
    """
    angle = np.pi - np.arccos(cosine)
    sine = np.sqrt(1 - cosine**2)
    return float(size * (sine + cosine * angle) / (2 * np.pi)), float(angle / (2 * np.pi))


def kernel(layers: int, size: float, cosine: float) -> float:
    """Return Θ(x, x') where windows at each position have this correlation, and all have one size.

    Args:
        layers: hidden convolutions.
        size: variance of a signal before the first ReLU.
        cosine: of the windows of x and x' at one position.

    >>> kernel(1, 2.0, 1.0), kernel(2, 2.0, 1.0)
    (2.0, 1.5)
    """
    read = size * cosine
    tangent = read
    for _ in range(layers):
        outputs, gates = means_of_relu(size, read / size)
        # Θ' = E σσ' + Θ E gg': what the next layer adds, and what passes its gates
        tangent = outputs + tangent * gates
        read = outputs
        size = size / 2  # of a signal whose weights have variance one over their number
    return tangent


def of_their_own(variances: Values) -> float:
    """Return n Var Θ/(E Θ)² of a network whose positions have filters of their own: 3/P_o.

    Args:
        variances: of the signals at each position, ``(P,)``.

    >>> of_their_own(np.ones(6)), of_their_own(np.array([1.0, 0.0]))
    (0.5, 3.0)
    """
    return float(AT_ONE_POSITION * (variances**2).sum() / variances.sum() ** 2)
