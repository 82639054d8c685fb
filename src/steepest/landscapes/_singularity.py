"""How singular the zero of a deep linear network's risk is: the exact learning coefficient."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from steepest.core.errors import UserError
from steepest.core.given import whole


class Singularity(NamedTuple):
    """How the volume of weights with a risk below ε shrinks: as ``ε^λ (−log ε)^(m−1)``.

    Attributes:
        coefficient: λ, the learning coefficient.
        multiplicity: m.
    """

    coefficient: Fraction
    multiplicity: int


def linear_network_singularity(widths: Sequence[int], rank: int) -> Singularity:
    r"""Compute the learning coefficient of a deep linear network whose true matrix has a given rank.

    A regular model has half as many as weights; a deep linear network has less, as many products of matrices are the
    same. It belongs to the most singular weights that give the truth, at which all other singular values of every
    matrix are zero. With the excess widths ``M_s = H_s − r``, a subset 𝓜 of ℓ + 1 of them that the source defines,
    their sum Σ, ``M = ⌈Σ/ℓ⌉`` and ``a = Σ − (M − 1) ℓ``,

    .. math:: λ = \frac{r (H_1 + H_{L+1}) - r^2}{2} + \frac{a (ℓ - a)}{4 ℓ} - \frac{(ℓ - 1) Σ^2}{4 ℓ}
        + \frac12 \sum_{s < t \in 𝓜} M_s M_t, \qquad m = a (ℓ - a) + 1.

    Args:
        widths: ``(H_1, …, H_{L+1})`` from inputs to outputs, at least two.
        rank: r of the true matrix, at most the smallest width.

    Returns:
        ``Singularity``, λ as an exact fraction.

    Raises:
        UserError: fewer than two widths, one below 1, a rank that no such network has.

    Source: Aoyagi 2024, Consideration on the learning efficiency of multiple-layered neural networks with linear units.

    >>> linear_network_singularity((1, 1, 1), 0)  # two numbers whose product is zero: crossing lines
    Singularity(coefficient=Fraction(1, 2), multiplicity=2)
    """
    sizes = [whole("a width", width, 1) for width in widths]
    if len(sizes) < 2:
        raise UserError(
            f"a linear network has at least two widths, of inputs and outputs, got {sizes}"
        )
    rank = whole("rank", rank, 0)
    if rank > min(sizes):
        raise UserError(
            f"a network with widths {sizes} has rank {min(sizes)} at most, got rank={rank}; give a smaller rank"
        )
    excess = sorted(size - rank for size in sizes)
    narrow = _narrow(excess)
    steps = len(narrow) - 1
    total = sum(narrow)
    level = -(-total // steps)
    remainder = total - (level - 1) * steps
    regular = Fraction(rank * (sizes[0] + sizes[-1]) - rank**2, 2)
    pairs = Fraction(sum(s * t for s, t in combinations(narrow, 2)), 2)
    uneven = Fraction(remainder * (steps - remainder), 4 * steps)
    coefficient = regular + uneven - Fraction((steps - 1) * total**2, 4 * steps) + pairs
    return Singularity(coefficient, remainder * (steps - remainder) + 1)


def _narrow(excess: list[int]) -> list[int]:
    """Return the excess widths that decide, 𝓜: the ℓ + 1 smallest with ``ℓ max ≤ Σ``, and ``Σ < ℓ M_s`` outside."""
    for count in range(2, len(excess) + 1):
        inside = excess[:count]
        steps = count - 1
        total = sum(inside)
        if steps * inside[-1] <= total and all(total < steps * size for size in excess[count:]):
            return inside
    raise AssertionError(f"no subset of {excess} decides")
