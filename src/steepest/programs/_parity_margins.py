"""The margins of parities over all ReLU neurons, and over the tangent features of the first layer."""

from math import comb, sqrt
from typing import NamedTuple

import numpy as np

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.kernels import arc_cosine, walsh_eigenvalues


class ParityMargins(NamedTuple):
    """Margins of a parity on the whole cube {±1}^d / √d.

    Attributes:
        first: γ₁, the largest ``min y Σ_j a_j relu(⟨u_j, x⟩)`` over unit neurons u_j with ``Σ|a_j| = 1``.
        tangent: γ₂, the largest ``min y E_w ⟨u(w), x⟩ 1[⟨w, x⟩ ≥ 0]`` with ``E‖u(w)‖² = 1``, w ~ N(0, I).
    """

    first: float
    tangent: float


@checked
def parity_margins(d: int, k: int) -> ParityMargins:
    r"""Compute the margins of the parity of k of d bits over all ReLU neurons and over frozen tangent features.

    Uniform weights on the cube solve both dual problems, by symmetry. For even k the edge of a unit neuron u is

    .. math:: \Big|E\,y\,\mathrm{relu}⟨u,x⟩\Big| = \frac{1}{π\sqrt d}\Big|\int_0^∞
              \prod_{i≤k}\sin(t u_i)\prod_{i>k}\cos(t u_i)\,\frac{dt}{t^2}\Big|
              ≤ \frac{1}{π\sqrt d}\prod_{i≤k}|u_i|^{1/k}\int_0^∞\frac{\sin^k t}{t^2}\,dt

    by Hölder, with equality only at the 2^k neurons (±1, …, ±1)/√k on the bits. These, with equal weights, have this
    margin at every point, so that ``γ₁ = C(k−2, k/2−1) / (2^(k−1) √(k d))``. And ``γ₂² = λ_k``, the eigenvalue
    (:func:`steepest.kernels.walsh_eigenvalues`) of the kernel ``κ(t) = t (π − arccos t)/2π``; ``λ_k d^k`` falls to
    ``k! [t^k] κ`` as d grows. For odd k ≥ 3 both are zero: ReLU networks without
    biases are a linear function plus an even one.

    Args:
        d: bits of the inputs.
        k: bits of the parity, from 1 to d.

    Raises:
        UserError: k outside of 1, …, d.

    Source: Telgarsky's talk of 2024 (the definitions, and the orders k²d = 1/γ₁², d^k = 1/γ₂²).

    >>> [parity_margins(d, 2).first for d in (2, 8)], parity_margins(6, 3)
    ([0.25, 0.125], ParityMargins(first=0.0, tangent=0.0))
    """
    if not 1 <= k <= d:
        raise UserError(f"parity margins: expected from 1 to d = {d} bits of the parity, got {k}")
    if k % 2 and k > 1:
        return ParityMargins(0.0, 0.0)
    # for k = 1 the neuron on that bit: E y relu(x_1) = ½/√d
    first = 0.5 / sqrt(d) if k == 1 else comb(k - 2, k // 2 - 1) / (2 ** (k - 1) * sqrt(k * d))
    # inner products t = 1 − 2h/d at Hamming distance h
    tangent = sqrt(walsh_eigenvalues(arc_cosine(np.linspace(1, -1, d + 1)).inner, [k])[0])
    return ParityMargins(first, tangent)
