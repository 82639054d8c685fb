"""The least weights that fit labels, in the mean over networks."""

import numpy as np

from steepest import kit


def least_weights_law(
    kernel: kit.Values, y: kit.Values, neurons: kit.Values, excess: float = 0.0
) -> kit.Values:
    r"""Return the mean of ‖u‖² = yᵀK_n^{-1}y over networks of n neurons, by n.

    For Gaussian features K_n is Wishart's matrix, and the mean is yᵀK^{-1}y n/(n − m − 1) exactly. Where features of
    the m inputs are independent it is that of n/q, q the squared distance of a row of n features of variance one from
    the span of the m − 1 others. Its mean is r = n − m + 1, and its variance is larger by r²/n times the excess
    kurtosis, to leading order, which adds the excess over nr to the mean of 1/q.

    Args:
        kernel: K, shape ``(m, m)``.
        y: labels, shape ``(m,)``.
        neurons: every n.
        excess: μ₄/μ₂² − 3 of independent features, zero for Gaussian ones.
    """
    m = len(y)
    limit = y @ np.linalg.solve(kernel, y)
    return limit * (neurons / (neurons - m - 1) + excess / (neurons - m + 1))
