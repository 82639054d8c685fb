"""Eigenvalues of dot-product kernels on the cube of signs: one a number of bits."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError

LARGEST = 4096  # bits for which integers of so many digits are still quick


def walsh_eigenvalues(
    values: Sequence[Any] | Float[np.ndarray, " points"], degrees: Sequence[int] | None = None
) -> Float[np.ndarray, " degrees"]:
    r"""Compute the eigenvalues of a dot-product kernel κ(⟨x, x'⟩) on the cube {±1}^d / √d of unit vectors.

    Every parity χ_S is an eigenfunction of f ↦ E κ(⟨x, ·⟩) f(x), x uniform, and its eigenvalue depends on k = |S| only:

    .. math:: λ_k = \sum_{j=0}^{d} 2^{-d} \binom{d}{j} \frac{K_k(j)}{\binom{d}{k}} κ(1 - 2j/d),

    with Krawtchouk's polynomials K_k. All of the sum is done in whole numbers and fractions, so that the only error is
    that of the values: about ε/√C(d, k) for values known to ε, beside λ_k itself of order d^(-k).

    Args:
        values: κ at 1 − 2j/d for j = 0, …, d: numbers or fractions; their number gives d.
        degrees: the k wanted; all of 0, …, d by default.

    Returns:
        λ_k for each degree. The multiplicity is C(d, k), and Σ_k C(d, k) λ_k = κ(1).

    Raises:
        UserError: fewer than two values, too many of them, values that are not finite, or a degree outside 0, …, d.

    Source: the Funk–Hecke formula of the cube; Yang and Salman 2019, section 3.

    >>> t = np.linspace(1, -1, 5)  # four bits
    >>> walsh_eigenvalues(t**2).tolist()  # E χ_k (Σ s_i/4)²: 1/4 for k = 0, 2/16 for k = 2
    [0.25, 0.0, 0.125, 0.0, 0.0]
    """
    d = len(values) - 1
    if not 1 <= d <= LARGEST:
        raise UserError(
            f"Walsh eigenvalues: expected values at 1 − 2j/d for j = 0 to d, with d from 1 to {LARGEST}, got "
            f"{d + 1} values"
        )
    if not np.isfinite(np.asarray(values, dtype=float)).all():
        raise UserError(
            "Walsh eigenvalues: expected finite values of the kernel, got some that are not; "
            "check it at −1 and 1"
        )
    wanted = range(d + 1) if degrees is None else degrees
    outside = [k for k in wanted if not 0 <= k <= d]
    if outside:
        raise UserError(
            f"Walsh eigenvalues: expected degrees from 0 to d = {d}, got {outside[0]}; give more values of the kernel"
        )
    # κ under the law of j, the number of bits that differ from x, but for 2^{−d}
    weighted = [comb(d, j) * Fraction(value) for j, value in enumerate(map(_plain, values))]
    eigenvalues = {}
    for k, numbers in zip(range(max(wanted, default=0) + 1), krawtchouk(d), strict=False):
        if k in wanted:
            # χ_S averaged over the C(d, k) sets of k bits, which all have this eigenvalue
            total = sum(weight * number for weight, number in zip(weighted, numbers, strict=True))
            eigenvalues[k] = float(total / (2**d * comb(d, k)))
    return np.array([eigenvalues[k] for k in wanted])


def krawtchouk(d: int) -> Iterator[list[int]]:
    """Yield Krawtchouk's polynomials K_k(j), j = 0, …, d, for k = 0, …, d, in whole numbers.

    ``(k + 1) K_{k+1}(j) = (d − 2j) K_k(j) − (d − k + 1) K_{k−1}(j)``; K_k(j) is the sum of the parities of k bits at a
    point with j bits set.

    >>> list(krawtchouk(2))
    [[1, 1, 1], [2, 0, -2], [1, -1, 1]]
    """
    before = [0] * (d + 1)
    now = [1] * (d + 1)
    for k in range(d + 1):
        yield now
        # three-term recurrence; K_{k+1}(j) is a whole number, so that nothing is lost by //
        after = [((d - 2 * j) * now[j] - (d - k + 1) * before[j]) // (k + 1) for j in range(d + 1)]
        before = now
        now = after


def _plain(value: Any) -> Any:
    """Return a number that ``Fraction`` takes, exactly: NumPy's scalars as Python's."""
    return value.item() if isinstance(value, np.generic) else value
