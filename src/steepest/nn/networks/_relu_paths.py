"""Random ReLU networks of finite width at one input: exact moments of derivatives and of the tangent kernel.

The networks are those of ORF 543, lecture 11/30: no biases, ``z^(l+1) = W^(l+1) σ(z^(l))`` and
``W^(l+1) = √(2/n_l) Ŵ`` with independent Ŵ_ij of a symmetric law with variance one, widths n_0, …, n_{L+1}. There the
gates 1{z > 0} of one input may be replaced by fair coins that are independent of the weights, in law, which turns
moments into sums over paths. With rotations in place of paths these sums close on a few invariants of each layer, and
a small linear recursion gives the moments exactly at every width. The argument needs P(z = 0) = 0: weights without
atoms, or an input whose coordinates no whole-number combination makes vanish.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError, nearest
from steepest.core.signatures import checked

KURTOSIS = {"gaussian": 3.0, "rademacher": 1.0, "uniform": 9 / 5}
"""E ŵ⁴ of the symmetric laws of unit variance that weights may have, by name."""


class DerivativeMoments(NamedTuple):
    """E (∂z/∂x)² and E (∂z/∂x)⁴."""

    second: float
    fourth: float


class NtkMoments(NamedTuple):
    """E Θ and E Θ²."""

    mean: float
    square: float


@checked
def derivative_moments(widths: Sequence[int], law: str = "gaussian") -> DerivativeMoments:
    """Return ``E (∂z_q/∂x_p)²`` and ``E (∂z_q/∂x_p)⁴`` of a random ReLU network, exactly.

    The second moment is 2/n_0 for every law. For Gaussian weights the fourth is ``(12/n_0²) Π_l (1 + 5/n_l)``. For
    other laws, with the excess kurtosis e = E ŵ⁴ − 3 and ``Q = Σ u_i⁴`` carried beside ``S = ‖u‖⁴`` of the hidden
    column u^(l) = ∂σ(z^(l))/∂x_p, each layer maps (n = n_l, m = n_{l+1})::

        S' = (m/n²) [(m + 5) S + 2 e Q],    Q' = (2m/n²) (3 S + e Q),    S = Q = 1 at the input,

    and the fourth moment is ``(4/n_L²) (3 S + e Q)``. Source: ORF 543, lecture 11/30, for Gaussian weights.

    Args:
        widths: n_0, …, n_{L+1}; the output's width does not matter.
        law: ``"gaussian"``, ``"rademacher"`` or ``"uniform"``.

    Raises:
        UserError: for fewer than two widths, widths below one, an unknown law.

    >>> derivative_moments((2, 10, 1)) == (2 / 2, 12 / 2**2 * (1 + 5 / 10))
    True
    >>> round(derivative_moments((2, 10, 1), "rademacher").fourth, 2)
    2.9
    """
    widths = check_widths(widths)
    excess = check_law(law)
    # a unit vector for u, and no kernel: H = 0
    state = np.array([1.0, 0, 0, 0, 0, 1.0, 0, 0])
    for n, m in itertools.pairwise(widths[:-1]):
        state = _layer(state, n, m, excess)
    return DerivativeMoments(2 / widths[0], float(4 / widths[-2] ** 2 * _neuron(state, excess)[0]))


@checked
def ntk_moments(
    widths: Sequence[int], x: Float[Array, " n_0"], law: str = "gaussian"
) -> NtkMoments:
    """Return ``E Θ`` and ``E Θ²`` of the tangent kernel Θ(x, x) of a random ReLU network with one output, exactly.

    Θ sums the squared derivatives with respect to every Ŵ_ij (the NTK parameterization: W = √(2/n) Ŵ with Ŵ trained);
    then ``E Θ = 2 (L+1) ‖x‖²/n_0``, one term for each of the L + 1 weight matrices, at every width and for every law.
    The second moment follows ``H^(l) = Σ ∂a ∂aᵀ`` (over the weights up to layer l) beside the signal a = σ(z^(l)),
    ``a' = D W a`` and ``H' = D (W H Wᵀ + (2/n_l) ‖a‖² I) D``: the eight numbers E of ‖a‖⁴, ‖a‖² tr H, aᵀHa, (tr H)²,
    tr H², Σ a_i⁴, Σ a_i² H_ii, Σ H_ii² are mapped linearly from layer to layer (the last three only matter away from
    Gaussian weights). Source: our derivation; for the growth Hanin and Nica 2020, and ORF 543, lecture 11/30.

    >>> ntk_moments((4, 10, 1), jnp.ones(4)).mean
    4.0
    >>> mean, square = ntk_moments((4, *[1000] * 1000, 1), jnp.ones(4))
    >>> bool(abs(square / mean**2 / ntk_growth(1.0) - 1) < 0.02)
    True
    """
    widths = check_widths(widths)
    excess = check_law(law)
    if np.shape(x) != (widths[0],):
        raise UserError(f"the input needs shape ({widths[0]},), the first width, got {np.shape(x)}")
    square, fourth = (float(np.sum(np.asarray(x, float) ** power)) for power in (2, 4))
    # a = x and H = 0: ‖x‖⁴ and Σ x_i⁴ alone
    state = np.array([square**2, 0, 0, 0, 0, fourth, 0, 0])
    for n, m in itertools.pairwise(widths[:-1]):
        state = _layer(state, n, m, excess)
    mean = 2 * (len(widths) - 1) * square / widths[0]
    return NtkMoments(mean, float(4 / widths[-2] ** 2 * _neuron(state, excess)[2]))


def _neuron(state: np.ndarray, excess: float) -> tuple[float, float, float]:
    """Return E of z⁴, z² G and G² of one neuron before its gate, over (2/n)²: z = w·a and G = wᵀHw + (2/n) ‖a‖²."""
    # Wick for ŵ, and e where all four indices agree; G adds ‖a‖², the layer's own weights
    aa, at, aha, tt, hh, a4, a2h, h2 = state
    return (
        3 * aa + excess * a4,
        aa + at + 2 * aha + excess * a2h,
        aa + 2 * at + tt + 2 * hh + excess * h2,
    )


def _layer(state: np.ndarray, n: int, m: int, excess: float) -> np.ndarray:
    """Advance the eight invariants from n to m neurons: m of m² pairs coincide, half the gates are open."""
    aa, at, aha, tt, hh, *_ = state
    # (m/2) c² and (m(m−1)/4) c² with c = 2/n
    same = m * 2 / n**2
    other = m * (m - 1) / n**2
    zz, zg, gg = (same * moment for moment in _neuron(state, excess))
    # of two neurons p ≠ q: G_pq = w_pᵀ H w_q has no term of its own weights
    apart = other * np.array([aa, at + aa, aha, tt + 2 * at + aa, hh])
    return np.append(apart + np.array([zz, zg, zg, gg, gg]), [zz, zg, gg])


@checked
def ntk_growth(load: float) -> float:
    """Return ``E Θ²/(E Θ)²`` as depth and widths grow together with Σ 1/n_l → load, for Gaussian weights.

    ``exp(5 b) (1/3 + (4/3) (e^{−s} − 1 + s)/s²)`` with b = load, s = 6 b: the factor of exp(5 b) falls from 1 to 1/3.
    Two of the L + 1 terms of Θ that lie a fraction t of the depth apart contribute ``exp(5 b (1 − t))`` outside, and
    ``e^{5bt}/3 + 2 e^{−bt}/3`` between them: there the two pairs of paths can recombine in three ways, and the
    transfer matrix ``1 − 1/n + (2/n) J``, J the 3 × 3 matrix of ones, is sandwiched between one of the three.
    Source: our derivation from the recursion behind ``ntk_moments``.

    >>> ntk_growth(0.0)
    1.0
    """
    # the distance t of two depths has the density 2 (1 − t), and
    # ∫ (1 − t) e^{−st} dt = (e^{−s} − 1 + s)/s², at small s by its series
    s = 6 * load
    return math.exp(5 * load) * (
        1 / 3 + 4 / 3 * ((math.expm1(-s) + s) / s**2 if s > 1e-4 else 1 / 2 - s / 6)
    )


@checked
def log_column_moments(widths: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of ``log (n_0/n_l) ‖u^(l)‖²``, l = 1, …, L, Gaussian weights, where no layer is dead.

    The norm ``‖u^(l)‖²`` is in law ``(n_l/n_0) Π_k (2/n_k) χ²_{B_k}`` with the numbers B_k of open gates, binomial
    (n_k, 1/2) and independent, so the logarithm is a sum of independent terms. A layer is dead, B_k = 0, with
    probability 2^{−n_k}; then the logarithm is −∞, and the moments are those given that it is not.

    Returns:
        means and variances, shape ``(L,)`` each; −β/2 and β with β = 5 Σ 1/n_k up to relative corrections O(1/n).

    >>> mean, variance = log_column_moments((3, 1000, 1000, 1))
    >>> bool(abs(mean[1] / (-5 / 1000) - 1) < 0.01), bool(abs(variance[1] / (10 / 1000) - 1) < 0.01)
    (True, True)
    """
    from scipy.special import polygamma, psi
    from scipy.stats import binom

    means = []
    variances = []
    for n in check_widths(widths)[1:-1]:
        k = np.arange(1, n + 1)
        p = binom.pmf(k, n, 0.5) / (1 - 0.5**n)
        # E log χ²_k = ψ(k/2) + log 2, given k ≥ 1 open gates; log 2 and 2/n make log(4/n)
        mean = p @ psi(k / 2)
        means.append(mean + math.log(4 / n))
        # total variance over k: E ψ'(k/2) + Var ψ(k/2)
        variances.append(p @ polygamma(1, k / 2) + p @ psi(k / 2) ** 2 - mean**2)
    return np.cumsum(means), np.cumsum(variances)


@checked
def expected_ntk(inputs: Float[Array, "m n_0"], depth: int) -> Float[Array, "m m"]:
    """Return the expected tangent kernel of L = depth wide hidden ReLU layers, NTK parameterization, no biases.

    ``K_αβ = (2/n_0) ‖x_α‖ ‖x_β‖ Σ_{k=0}^{L} ρ_k Π_{j=k}^{L−1} (1 − arccos(ρ_j)/π)``, where ρ_0 is the cosine of the
    inputs and ``π ρ_{k+1} = √(1 − ρ_k²) + (π − arccos ρ_k) ρ_k``. Exact at every width on the diagonal, and for one
    hidden layer; otherwise up to O(1/n). Source: Jacot et al. 2018; Cho and Saul 2009 for ρ.

    >>> expected_ntk(jnp.eye(2), 1).round(3).tolist()
    [[2.0, 0.318], [0.318, 2.0]]
    """
    lengths = jnp.linalg.norm(inputs, axis=1)
    cosines = inputs @ inputs.T / jnp.outer(lengths, lengths)
    total = cosines = jnp.clip(cosines.at[jnp.diag_indices(len(lengths))].set(1.0), -1, 1)
    for _ in range(depth):
        angles = jnp.arccos(cosines)
        cosines = jnp.clip((jnp.sqrt(1 - cosines**2) + (jnp.pi - angles) * cosines) / jnp.pi, -1, 1)
        # Θ' = K' + E σ'σ' Θ at C_W = 2, over ‖x_α‖‖x_β‖: 2 E σ'σ' = 1 − θ/π
        total = cosines + total * (1 - angles / jnp.pi)
    return 2 / inputs.shape[1] * jnp.outer(lengths, lengths) * total


def check_widths(widths: Sequence[int], least: int = 2) -> tuple[int, ...]:
    """Return the widths as a tuple, or raise a sentence that says what they must be."""
    widths = tuple(widths)
    if len(widths) < least or any(int(n) != n or n < 1 for n in widths):
        raise UserError(
            f"widths n_0, …, n_(L+1) must be at least {least} positive whole numbers, got {widths}"
        )
    return widths


def check_law(law: str) -> float:
    """Return E ŵ⁴ − 3 of a law by name, or raise a sentence with the nearest name."""
    if law not in KURTOSIS:
        raise UserError(f"there is no law of weights {law!r}; {nearest(law, KURTOSIS)}")
    return KURTOSIS[law] - 3
