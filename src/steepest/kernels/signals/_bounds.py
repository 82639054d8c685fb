"""Bounds for wide networks with one hidden layer: how their kernels concentrate, and how long they stay put."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_count, as_floats, as_number


def bernstein_tail(
    t: ArrayLike, inputs: int, variance: ArrayLike, largest: ArrayLike
) -> np.ndarray:
    """Bound ``P(‖Z‖ > t) ≤ 2m exp(−(t²/2)/(U + Lt/3))`` for a sum Z of independent centred matrices.

    Above one it says nothing. Source: Tropp 2015, theorem 6.1.1 for symmetric matrices, both signs; ORF 543, lecture
    10/10 prints it without the dimension 2m and the ½.

    Args:
        t: deviation of the operator norm.
        inputs: m, the size of the matrices.
        variance: U, the norm of ``Σ E S_j²``.
        largest: L, a bound on every ``‖S_j‖``.

    >>> float(bernstein_tail(3.0, 1, 1.0, 0.0).round(4))  # 2 exp(−9/2): a Gaussian tail
    0.0222
    """
    t = np.asarray(t, float)
    return 2 * inputs * np.exp(-(t**2) / 2 / (np.asarray(variance) + np.asarray(largest) * t / 3))


def bernstein_radius(
    probability: float, inputs: int, variance: ArrayLike, largest: ArrayLike
) -> np.ndarray:
    """Return the deviation of tail δ: ``t = Lℓ/3 + √((Lℓ/3)² + 2Uℓ)`` with ``ℓ = log(2m/δ)``.

    The inverse of :func:`bernstein_tail`.

    Raises:
        UserError: for a probability outside (0, 2m].

    >>> float(bernstein_tail(bernstein_radius(0.05, 8, 0.3, 0.1), 8, 0.3, 0.1).round(12))
    0.05
    """
    inputs = as_count("inputs", inputs, 1)
    variance, largest = as_floats("variance", variance), as_floats("largest", largest)
    if not ((variance >= 0).all() and (largest >= 0).all()):
        raise UserError("variance and largest are bounds of norms, at least 0 and finite")
    if not 0 < as_number("a failure probability", probability) <= 2 * inputs:
        raise UserError(f"a failure probability lies between 0 and 1, got {probability}")
    log = math.log(2 * inputs / probability)
    # t²/2 = ℓ (U + Lt/3) is t² − (2Lℓ/3) t − 2Uℓ = 0; its positive root
    linear = np.asarray(largest) * log / 3
    return linear + np.sqrt(linear**2 + 2 * np.asarray(variance) * log)


class StayPut(NamedTuple):
    """The lengths that keep the first layer's kernel above λ₀/2 along gradient flow.

    Attributes:
        movement: Δ*, how far a neuron moves at most while the kernel is above λ₀/2.
        allowed: Δ, how far all of them may move without leaving that range.
        width: the width above which Δ* < Δ.
    """

    movement: np.ndarray
    allowed: np.ndarray
    width: np.ndarray


def stay_put(inputs: int, smallest: ArrayLike, risk: ArrayLike, width: ArrayLike) -> StayPut:
    """Return the constants of the two lemmas for the flow of the first layer on ``L = (1/2m) Σ r²``.

    For ``|a|, |σ'|, |σ''| ≤ 1`` and unit inputs: every entry of K moves by at most 2Δ, so ``‖K − K(0)‖ ≤ 2mΔ ≤ λ₀/2``
    for ``Δ = λ₀/4m``. While ``K ≥ λ₀/2``, ``dL/dt = −rᵀKr/m² ≤ −(λ₀/m) L`` and ``‖ẇ_k‖ ≤ Σ|r|/(m√n) ≤ √(2L/n)``; the
    integral is ``Δ* = 2√2 m √L(0) / (λ₀ √n)``. So ``Δ* < Δ`` for ``n > 128 m⁴ L(0)/λ₀⁴``. Source: ORF 543, lecture
    10/12, with the constants derived anew.

    Args:
        inputs: m.
        smallest: λ₀, the smallest eigenvalue of the first layer's kernel at the start.
        risk: L(0).
        width: n.

    >>> at_threshold = stay_put(2, 0.5, 0.1, stay_put(2, 0.5, 0.1, 1).width)
    >>> bool(abs(at_threshold.movement - at_threshold.allowed) < 1e-12)
    True
    """
    smallest = np.asarray(smallest, float)
    risk = np.asarray(risk, float)
    # ∫ √(2L/n) dt with √L ≤ √L(0) e^{−λ₀t/2m}
    movement = 2 * math.sqrt(2) * inputs * np.sqrt(risk / np.asarray(width)) / smallest
    # 2mΔ = λ₀/2 gives Δ; Δ* = Δ is √n = 8√2 m² √L(0)/λ₀²
    return StayPut(movement, smallest / (4 * inputs), 128 * inputs**4 * risk / smallest**4)
