"""Kac–Rice for random forms on the sphere: how many critical points of each index, and how high."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.draws import numpy_generator
from steepest.nn.types import Key

SAMPLES = 100_000
"""Random matrices of the estimate: its relative error is near a thousandth."""


class Count(NamedTuple):
    """Expected numbers of critical points of a form, by index k = 0 (minima) … N − 1 (maxima).

    Attributes:
        total: E #crit.
        by_index: E #crit_k, shape ``(N,)``.
        height: mean of H over the critical points of index k, shape ``(N,)``.
        spread: standard deviation of H over them, shape ``(N,)``.
        error: standard errors of ``total``, and of ``by_index`` in the last N, shape ``(N + 1,)``.
    """

    total: float
    by_index: Float[np.ndarray, " N"]
    height: Float[np.ndarray, " N"]
    spread: Float[np.ndarray, " N"]
    error: Float[np.ndarray, " more"]


@checked
def kac_rice(p: int, N: int, key: Key, samples: int = SAMPLES) -> Count:
    r"""Evaluate Kac–Rice for the isotropic Gaussian form of degree p on the unit sphere of R^N.

    .. math::
        E \#_k = \frac{\mathrm{Vol}(S^{N-1})}{(2πp)^{(N-1)/2}} E\, |\det A|\, 1[\text{index} A = k], \quad
        A = \sqrt{p(p-1)}\, G - p h I

    G is symmetric Gaussian with variances one off and two on the diagonal, h ~ N(0, 1) the height. |det A| is what
    makes h an eigenvalue of a matrix of one dimension more, so that the same is an expectation over the k-th lowest
    eigenvalue λ_k of an N × N matrix M with variances (1 + δ_ij)/(2N), which has little noise:

    .. math:: E \#_k = 2\sqrt{2/p}\,(p-1)^{N/2} E\, e^{-N\frac{p-2}{2p} λ_k^2}, \quad h = λ_k \sqrt{2N(p-1)/p}

    Args:
        p: degree, at least two.
        N: dimension of the space, at least two.
        key: random key of the matrices.
        samples: how many matrices.

    Raises:
        UserError: p or N below two, or fewer than two samples.

    Source: Auffinger, Ben Arous and Černý 2013, theorem 2.1, for the second form.

    >>> import jax
    >>> count = kac_rice(3, 2, jax.random.key(0))
    >>> bool(abs(count.total - 28**0.5) < 4 * count.error[0])  # 2√(3p − 2) on the circle
    True
    >>> round(kac_rice(2, 5, jax.random.key(0)).total, 6)  # the eigenvectors ±v of a matrix
    10.0
    """
    if p < 2 or N < 2 or samples < 2:
        raise UserError(
            f"kac_rice: expected p, N and samples of at least two, got p = {p}, N = {N} and samples = {samples}; "
            "try p = 3 and N = 3"
        )
    rng = numpy_generator(key)
    normal = rng.standard_normal((samples, N, N)) / np.sqrt(4 * N)
    # sum of two entries of variance 1/4N each: 1/2N off the diagonal, and 1/N on it
    drawn = np.linalg.eigvalsh(normal + normal.transpose(0, 2, 1))
    # −M has the law of M: there are as many of index k as of N − 1 − k, at opposite heights
    eigenvalues = np.stack([drawn, -drawn[:, ::-1]])
    scale = 2 * np.sqrt(2 / p) * (p - 1) ** (N / 2)
    weights = scale * np.exp(-N * (p - 2) / (2 * p) * eigenvalues**2)
    heights = eigenvalues * np.sqrt(2 * N * (p - 1) / p)
    both = (0, 1)
    by_index = weights.mean(both)
    # mean of the height under the density of critical points
    height = (weights * heights).mean(both) / by_index
    spread = np.sqrt((weights * heights**2).mean(both) / by_index - height**2)
    pairs = weights.mean(0)  # of M and −M, which are not independent
    total = pairs.sum(1)  # Σ_k for each pair
    errors = np.append(total.std(), pairs.std(0)) / np.sqrt(samples)
    return Count(float(total.mean()), by_index, height, spread, errors)
