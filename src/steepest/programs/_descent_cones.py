"""Descent cones of the ℓ1 norm: their intrinsic volumes, and how many measurements recover a sparse signal."""

from functools import cache
from math import lgamma, pi

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.signatures import checked

_LAST = 10.0  # the largest τ, and the number of standard deviations that count
_MOST = 1000  # coordinates, for which arrays take 0.2 GB


@checked
def statistical_dimension_l1(sparsity: float, nonnegative: bool = False) -> float:
    """Return the statistical dimension of the descent cone of ‖·‖₁ at a sparse vector, per coordinate.

    ``ψ(ρ) = inf_{τ≥0} ρ(1 + τ²) + (1 − ρ) E(|g| − τ)²₊`` with g normal: the limit as n → ∞ at the share ρ = s/n of
    coordinates that are not zero. Basis pursuit from m normal measurements succeeds with high probability for
    m > nψ and fails for m < nψ, up to some √n. For nonnegative vectors and programs g stands in place of |g|. The
    curve is Donoho and Tanner's weak threshold.

    Args:
        sparsity: ρ, in [0, 1].
        nonnegative: whether the program knows that no coordinate is negative.

    Raises:
        UserError: if ρ is no share.

    Source: Amelunxen, Lotz, McCoy and Tropp 2014, propositions 4.5 and 4.7; Donoho and Tanner 2009.

    >>> [round(statistical_dimension_l1(rho), 4) for rho in (0.0, 0.1, 0.5, 1.0)]
    [0.0, 0.3288, 0.8313, 1.0]
    >>> statistical_dimension_l1(0.1, nonnegative=True) < statistical_dimension_l1(0.1)
    True
    """
    from scipy.optimize import root_scalar
    from scipy.special import ndtr

    if not 0 <= sparsity <= 1:
        raise UserError(f"sparsity is the share of coordinates that are not zero, got {sparsity}")
    if sparsity in (0.0, 1.0):
        return float(sparsity)
    sides = 1.0 if nonnegative else 2.0
    density = lambda tau: np.exp(-(tau**2) / 2) / np.sqrt(2 * pi)
    # half the derivative: ρτ = (1 − ρ) E(|g| − τ)₊
    # E(g − τ)₊ = φ(τ) − τ Φ(−τ), on one side or two
    over = lambda tau: sides * (density(tau) - tau * ndtr(-tau))
    slope = lambda tau: sparsity * tau - (1 - sparsity) * over(tau)
    # at 1/ρ the slope is positive, since over ≤ E|g| < 1
    tau = float(root_scalar(slope, bracket=(0.0, 1 / sparsity), xtol=1e-14).root)
    # E(g − τ)²₊ = (1 + τ²) Φ(−τ) − τ φ(τ)
    beyond = sides * ((1 + tau**2) * ndtr(-tau) - tau * density(tau))
    return float(sparsity * (1 + tau**2) + (1 - sparsity) * beyond)


@checked
def l1_intrinsic_volumes(
    n: int, nonzero: int, nonnegative: bool = False
) -> Float[np.ndarray, " n_1"]:
    """Return the intrinsic volumes v_0, …, v_n of the descent cone of ‖·‖₁ at a vector with s nonzero coordinates.

    v_k is the probability that the projection of a normal vector g onto the cone lies in the interior of a face of
    dimension k. The projection onto the polar cone, spanned by the subdifferential, is a problem of one unknown: τ is
    the root of ``G − sτ + Σ_i (|g_i| − τ)₊``, with G the sum of g over the support with the signs there, and i over
    the n − s other coordinates. With j of these above τ, k = s − 1 + j; if there is no positive root, k = n. So

        v_(s−1+j) = C(n − s, j) ∫ (s + j) q_j(τ) P(|g| < τ)^(n−s−j) dτ,

    where q_j is the density at sτ of G plus j excesses |g| − τ, from its characteristic function. Nonnegative
    programs, whose directions keep zeros nonnegative, have g_i in place of |g_i|; without a positive root k is then s
    plus the number of positive g_i. The volumes add to one to about 1e-12.

    Args:
        n: coordinates, at most 1000.
        nonzero: s, from 1 to n.
        nonnegative: whether the program knows that no coordinate is negative.

    Returns:
        shape ``(n + 1,)``.

    Raises:
        UserError: numbers out of these limits.

    Source: Amelunxen, Lotz, McCoy and Tropp 2014; Donoho and Tanner 2010 count faces by the same integrals.

    >>> half_line = l1_intrinsic_volumes(1, 1)  # in one dimension |x| falls on one side
    >>> half_line.round(6).tolist()
    [0.5, 0.5]
    """
    from scipy.special import ndtr, wofz

    if not (1 <= nonzero <= n <= _MOST):
        raise UserError(
            f"intrinsic volumes need 1 ≤ nonzero ≤ n ≤ {_MOST} coordinates, got {nonzero} of {n}"
        )
    others = n - nonzero
    tau, weights = _quadrature(_LAST, n)
    omega = _frequencies(nonzero, others)
    sides = 1.0 if nonnegative else 2.0
    excess = sides * ndtr(-tau)  # P(|g| > τ), or P(g > τ)
    below = 1 - excess
    # of |g| − τ where that is positive, as a share of all: (nodes, frequencies)
    faddeeva = wofz((omega + 1j * tau[:, None]) / np.sqrt(2))
    # ∫_τ^∞ e^{iω(x − τ)} φ(x) dx = ½ e^{−τ²/2} w((ω + iτ)/√2), w the Faddeeva function
    turn = sides / 2 * np.exp(-(tau[:, None] ** 2) / 2) * faddeeva / excess[:, None]
    step = omega[1] - omega[0]
    # density at sτ by Fourier inversion, (1/π) Re ∫_0^∞ e^{−iωsτ} e^{−sω²/2} …, as G ~ N(0, s)
    wave = np.exp(-1j * omega * nonzero * tau[:, None] - nonzero * omega**2 / 2) * step / pi
    wave[:, 0] /= 2
    volumes = np.zeros(n + 1)
    for j in range(others + 1):
        # binomial: j of the n − s others are above τ
        share = np.exp(_log_choose(others, j) + j * np.log(excess) + (others - j) * np.log(below))
        volumes[nonzero - 1 + j] += ((nonzero + j) * share * wave.real.sum(1)) @ weights
        wave = wave * turn  # one more excess: the characteristic functions multiply
    return volumes + _without_root(n, nonzero, nonnegative, omega)


@checked
def recovery_probability(volumes: Float[np.ndarray, " n_1"]) -> Float[np.ndarray, " n_1"]:
    """Return the probability that m = 0, …, n normal measurements recover the signal, from intrinsic volumes.

    A uniformly random subspace of dimension n − m meets a cone that is no subspace with probability
    ``2 (v_(m+1) + v_(m+3) + …)`` (the conic Gauss–Bonnet and kinematic formulas), and recovery is that it does not. If
    measurements are taken one after the other, the first number that suffices has the mean δ + ½ and the variance
    Var(v) − ¼, where δ and Var(v) are mean and variance of the law v.

    Args:
        volumes: v, shape ``(n + 1,)``.

    Returns:
        probabilities, shape ``(n + 1,)``.

    Source: Amelunxen, Lotz, McCoy and Tropp 2014, theorem I and fact 2.1.

    >>> recovery_probability(l1_intrinsic_volumes(2, 1)).round(4).tolist()  # one measurement of two coordinates
    [0.0, 0.5, 1.0]
    """
    v = np.asarray(volumes, float)
    if v.ndim != 1 or len(v) < 2 or not abs(v.sum() - 1) < 1e-6:
        raise UserError(
            f"intrinsic volumes are at least two probabilities that add to one, got shape {v.shape} and sum {v.sum():g}"
        )
    reversed_sums = np.zeros(len(v) + 2)
    for k in range(len(v) - 1, -1, -1):
        reversed_sums[k] = v[k] + reversed_sums[k + 2]
    # 1 − 2 (v_(m+1) + v_(m+3) + …) for m = 0, …, n
    return np.clip(1 - 2 * reversed_sums[1 : len(v) + 1], 0.0, 1.0)


def _frequencies(nonzero: int, others: int) -> NDArray:
    """Return frequencies at which sums decide: as far as G does not vanish, so fine that nothing wraps around."""
    reach = 2 * _LAST * np.sqrt(nonzero) + 2 * others + _LAST * nonzero + 40
    last = _LAST / np.sqrt(nonzero)
    return np.arange(0, last, 2 * pi / reach)


def _without_root(n: int, nonzero: int, nonnegative: bool, omega: NDArray) -> NDArray:
    """Return the share of normal vectors whose τ is zero, by face of the cone, shape ``(n + 1,)``."""
    from scipy.special import wofz

    others = n - nonzero
    heights, weights = _quadrature(-_LAST * np.sqrt(nonzero), n)
    step = omega[1] - omega[0]
    # density of G and j sums of |g|, or of g where it is positive, below zero
    start = np.exp(-nonzero * omega**2 / 2) * step / pi
    start[0] /= 2
    turn = wofz(omega / np.sqrt(2))
    # nodes run down from zero, so that the weights are negative
    integral = -weights @ np.exp(-1j * omega * heights[:, None])
    volumes = np.zeros(n + 1)
    if not nonnegative:
        volumes[n] = (integral @ (start * turn**others)).real  # P(G + Σ|g_i| < 0)
        return volumes
    orders = np.arange(others + 1)
    # C(n − s, j)/2^(n − s): j of the g_i are positive
    shares = np.exp([_log_choose(others, j) - others * np.log(2) for j in range(others + 1)])
    # row j: G with j positive g_i
    powers = np.cumprod(np.vstack([start, np.broadcast_to(turn, (others, len(omega)))]), axis=0)
    volumes[nonzero + orders] = shares * (powers @ integral).real
    return volumes


def _quadrature(end: float, n: int) -> tuple[NDArray, NDArray]:
    """Return nodes and weights of Gauss's rule between zero and an end, on either side, for n coordinates."""
    # integrands narrow like 1/√n
    nodes, weights = _rule(int(60 + 16 * n**0.5))
    return end * (nodes + 1) / 2, end * weights / 2


@cache
def _rule(nodes: int) -> tuple[NDArray, NDArray]:
    return np.polynomial.legendre.leggauss(nodes)


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
