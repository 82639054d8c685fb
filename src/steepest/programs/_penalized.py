"""Weak regularization: minima of an exponential or logistic risk plus a small penalty, by their convex programs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from scipy.special import entr, xlog1py

from steepest.core.errors import UserError
from steepest.core.fields import Positive
from steepest.core.signatures import checked
from steepest.linalg import sequential
from steepest.nn.losses import check_labels
from steepest.programs._inputs import check_inputs
from steepest.programs._neurons import neuron_edges

Penalty = Literal["l1", "l2"]
LossName = Literal["exponential", "logistic"]
_LOSSES = ("exponential", "logistic")
_ROUNDS = 100
# Barriers, each a fifth of the one before; Newton steps for each; where a multiplier counts as zero.
_BARRIERS = 14
_NEWTON = 100
_SMALL = 1e-10


@dataclass(frozen=True)
class PenalizedMinimum:
    """The minimum of ``(1/n) Σ ℓ(y_i ⟨β, x_i⟩) + λ P(β)``, with its certificate.

    Attributes:
        margins: ``y_i ⟨β, x_i⟩`` at the minimum, shape ``(n,)``.
        size: the penalty ``P(β)`` there.
        dual: ``q_i = -ℓ'(margin_i) / (λ n)``, shape ``(n,)``.
        value: the minimum over λ.
        gap: relative duality gap: the true minimum lies at most this fraction below.
    """

    margins: Float[np.ndarray, " n"]
    size: float
    dual: Float[np.ndarray, " n"]
    value: float
    gap: float


@checked
def penalized_minimum(
    x: Float[Any, "n d"],
    y: Float[Any, " n"],
    log_strength: float,
    penalty: Penalty = "l1",
    loss: LossName = "exponential",
) -> PenalizedMinimum:
    r"""Find the linear classifier that minimizes ``(1/n) Σ ℓ(y_i ⟨β, x_i⟩) + λ P(β)``, however small λ.

    Solved by its dual, which stays well scaled for any λ: with ``p_i = λ n q_i``,

    .. math:: \max_{q ≥ 0} \frac{1}{λ n} \sum_i H(p_i) - P^*(\sum_i q_i y_i x_i), \qquad
              H(p) = p - p \log p \text{ or } -p \log p - (1 - p) \log(1 - p)

    for the exponential and the logistic loss, where P* is zero while no entry exceeds one for ``P = ‖β‖₁``, and
    ``‖·‖²/4`` for ``P = ‖β‖₂²``. For ℓ1 a barrier method reaches relative gaps of about 1e-5, at which rounding takes
    over.

    Args:
        x: inputs, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.
        log_strength: log λ.
        penalty: ``"l1"`` for ``P = ‖β‖₁`` or ``"l2"`` for ``P = ‖β‖₂²``.
        loss: ``"exponential"``, ``ℓ(m) = exp(-m)``, or ``"logistic"``, ``ℓ(m) = log(1 + exp(-m))``.

    Raises:
        UserError: shapes that do not match, entries that are not finite, labels other than ±1, an unknown penalty or
            loss.

    Source: Rosset, Zhu and Hastie 2004; the dual is Fenchel's.

    >>> minimum = penalized_minimum([[1.0]], [1.0], np.log(1e-3))  # exp(-β) + 0.001 β is least at β = log 1000
    >>> round(minimum.size, 4), round(float(np.log(1e3)), 4)
    (6.9078, 6.9078)
    """
    x, y = check_inputs("penalized minimum", x, y)
    y = np.asarray(check_labels(y), dtype=float)
    if penalty not in ("l1", "l2"):
        raise UserError(f"penalized minimum: expected the penalty l1 or l2, got {penalty!r}")
    return _solve(y[:, None] * x, log_strength, penalty, _known(loss))


@checked
def penalized_neurons(
    x: Float[Any, "n 2"],
    y: Float[Any, " n"],
    log_strength: float,
    loss: LossName = "exponential",
) -> PenalizedMinimum:
    """Find the two-layer ReLU network of any width in the plane that minimizes its risk plus ``λ ‖θ‖²``.

    ``Σ_j v_j relu(⟨w_j, x⟩)`` with ``‖θ‖² = Σ v_j² + ‖w_j‖²`` is, at its minima, ``Σ_j a_j relu(⟨u_j, x⟩)`` with unit
    vectors and ``‖θ‖² = 2 ‖a‖₁``: a convex program over all neurons, solved by column generation to a relative gap of
    1e-5 over the whole circle, and 1e-7 where λ is not small. ``size`` is ``‖θ‖²``.

    Args:
        x: inputs in the plane, shape ``(n, 2)``.
        y: labels ±1, shape ``(n,)``.
        log_strength: log λ.
        loss: as in :func:`penalized_minimum`.

    Raises:
        UserError: as :func:`penalized_minimum`; inputs that are not in the plane; the gap cannot be reached.

    Source: Wei, Lee, Liu and Ma 2019; Bengio et al. 2006 (convex neural networks).

    >>> minimum = penalized_neurons([[1.0, 0.0]], [1.0], np.log(1e-3))  # exp(-a) + 0.002 a
    >>> round(minimum.size, 4), round(float(2 * np.log(500)), 4)
    (12.4292, 12.4292)
    """
    x, y = check_inputs("penalized neurons", x, y)
    y = np.asarray(check_labels(y), dtype=float)
    loss = _known(loss)
    directions = neuron_edges(x, y)[1]
    excess = np.inf
    for _ in range(_ROUNDS):
        # λ‖θ‖² = 2λ‖a‖₁, since v² + |w|² ≥ 2 |v| |w| with equality at the minimum
        restricted = _solve(
            y[:, None] * np.maximum(x @ directions.T, 0), log_strength + np.log(2), "l1", loss
        )
        edges, more = neuron_edges(x, restricted.dual * y)
        excess = float(np.abs(edges).max()) - 1
        # The margins are good to the root of the gap only: go on as far as the program over these neurons is exact.
        if excess <= np.clip(abs(restricted.gap), 1e-7, 1e-5):
            # Twice the strength halves q; over λ itself both are doubled.
            gap = restricted.gap + max(excess, 0.0)
            return PenalizedMinimum(
                restricted.margins,
                2 * restricted.size,
                2 * restricted.dual,
                2 * restricted.value,
                gap,
            )
        directions = np.vstack([directions, more[np.abs(edges) > 1 + 0.1 * excess]])
    raise UserError(
        f"penalized neurons: expected edges of at most 1, got 1 + {excess:.1e} after {_ROUNDS} programs"
    )


@checked
def certified_excess(
    margins: Float[Any, " n"],
    size: float,
    log_strength: float,
    force: Callable[[np.ndarray], float],
    penalty: Penalty = "l1",
    loss: LossName = "exponential",
) -> float:
    """Bound the relative excess of ``(1/n) Σ ℓ(m_i) + λ P`` over its minimum, from the margins alone.

    ``q_i = -ℓ'(m_i) / (λ n)``, shrunk until it is feasible, bounds the minimum from below. The answer is infinite
    where it bounds nothing.

    Args:
        margins: ``m_i`` of any candidate, shape ``(n,)``.
        size: its penalty P.
        log_strength: log λ.
        force: the dual norm of ``Σ q_i y_i φ(x_i)``, as a function of q: the largest entry for ``P = ‖·‖₁``, the
            Euclidean norm for ``P = ‖·‖₂²``.
        penalty: which P.
        loss: which ℓ, as in :func:`penalized_minimum`.

    >>> best = np.log(1e3)  # of exp(-β) + 0.001 |β|
    >>> round(certified_excess([best], best, np.log(1e-3), lambda q: q[0]), 9)
    0.0
    >>> certified_excess([best + 1], best + 1, np.log(1e-3), lambda q: q[0]) > 0.04
    True
    """
    margins = np.asarray(margins, dtype=float)
    log_scale = -log_strength - np.log(margins.size)
    with np.errstate(over="ignore"):
        q = np.exp(log_scale + _log_slopes(margins, loss))
        # over λ: (1/λn) Σ ℓ + P
        value = np.exp(log_scale + _log_losses(margins, loss)).sum() + size
    if not np.isfinite(value):
        return float("inf")
    if penalty == "l1":
        q = q / max(force(q), 1.0)  # scaled into the dual ball of the largest force
    spent = force(q) ** 2 / 4 if penalty == "l2" else 0.0  # P*(z) = ‖z‖²/4 for P = ‖β‖²
    # (1/λn) Σ H(λn q_i) = Σ entr(q_i) + q_i log(1/λn) + rest
    lowest = entr(q).sum() + log_scale * q.sum() + _rest(q, np.exp(log_scale), loss) - spent
    return float(value / lowest - 1) if lowest > 0 else float("inf")


@checked
def weak_guarantee(
    log_strength: float, n: int, margin: Positive, degree: Positive, loss: LossName = "exponential"
) -> float:
    r"""Bound the normalized margin of a regularized minimum from below, relative to the largest margin γ*.

    Let θ_λ minimize ``(1/n) Σ ℓ(m_i(θ)) + λ‖θ‖²``, the margins homogeneous of degree L in θ. Compared with ``‖θ_λ‖``
    times the best unit vector, its risk is at most ``ℓ(γ* ‖θ_λ‖^L)``, and at least ``ℓ(γ_λ ‖θ_λ‖^L)/n``. For the
    exponential loss

    .. math:: γ_λ / γ^* ≥ 1 - \frac{\log n}{γ^* ‖θ_λ‖^L}, \qquad γ^* ‖θ_λ‖^L ≥ -\log (n B), \qquad
              B = \min_R \left( ℓ(γ^* R^L) + λ R^2 \right).

    B is about ``λ (log(1/λ)/γ*)^{2/L}``, so the bound tends to one like ``log n / log(1/λ)``; it is −∞ where
    ``nB ≥ 1``. For the logistic loss ``nt`` and ``nB`` become ``(1 + t)^n - 1`` at ``t = exp(-γ* ‖θ_λ‖^L)``, and
    ``exp(nB) - 1``, which is nearly the same where λ is small.

    Args:
        log_strength: log λ.
        n: number of examples.
        margin: γ*, the largest normalized margin.
        degree: L.
        loss: ℓ, as in :func:`penalized_minimum`.

    Source: after Wei, Lee, Liu and Ma 2019, theorem 4.1, with explicit constants.

    >>> [round(weak_guarantee(-k * float(np.log(10)), 20, 0.5, 2), 3) for k in (8, 16, 32)]
    [0.746, 0.899, 0.954]
    """

    def log_value(log_scale: float) -> float:
        return float(
            np.logaddexp(
                # log ℓ(γ* R^L) and log λR², R = exp(log_scale)
                _log_losses(margin * np.exp(degree * log_scale), loss),
                log_strength + 2 * log_scale,
            )
        )

    # the best R has γ* R^L of the order of log(1/λ): search from there over a few e-foldings either way
    centre = np.log(max(-log_strength, 1.0) / margin) / degree
    best: Any = minimize_scalar(
        log_value, bounds=(centre - 5, centre + 5), method="bounded", options={"xatol": 1e-12}
    )
    log_total = float(np.log(n)) + log_value(best.x)
    if loss == "exponential":
        length = -log_total  # −log(nB), below γ*‖θ_λ‖^L
        lost = float(np.log(n))
    else:
        length = -_log_expm1(np.exp(log_total))
        # (1 + t)^n - 1 over t, at t = exp(-length)
        lost = _log_expm1(n * np.log1p(np.exp(-length))) + length
    return 1 - lost / length if length > 0 else -float("inf")


@sequential
def _solve(
    signed: np.ndarray, log_strength: float, penalty: Penalty, loss: LossName
) -> PenalizedMinimum:
    """Solve the dual by a barrier method, in the units of some feasible q: numbers of order one, however small λ."""
    log_scale = -log_strength - np.log(len(signed))
    total = 1 / np.abs(signed.mean(0)).max()  # q = total/n on every example has largest force one
    # log of 1/(λ n total): q = total p turns the dual's log(1/λn) into it
    log_unit = log_scale - np.log(total)
    climb = partial(_climb, log_unit=log_unit, loss=loss)
    forced = total * signed
    # forces of at most one half, and room for either loss
    p = np.full(len(signed), min(0.5 / len(signed), np.exp(log_unit) / 2))
    if penalty == "l1":
        barrier = max(1 + log_unit, 1.0)
        for weight in barrier * 0.2 ** np.arange(_BARRIERS):
            p = climb(p, weight=weight, barrier=partial(_walls, forced=forced, weight=weight))
        forces = p @ forced
        weight = barrier * 0.2 ** (_BARRIERS - 1)
        # stationarity: margins = signed β, β the difference of the walls' multipliers, times total
        beta = total * weight * (1 / (1 - forces) - 1 / (1 + forces))
        size = float(np.abs(beta).sum())
    else:
        # P*(Σ q y x)/total at q = total p: total ‖Σ p y x‖²/4 = ½ pᵀ gram p
        gram = total / 2 * signed @ signed.T
        p = climb(p, weight=1.0, barrier=lambda p: (-p @ gram @ p / 2, -gram @ p, gram))
        beta = total / 2 * p @ signed  # β = ∇P* = ½ Σ q_i y_i x_i
        size = float(beta @ beta)
    margins = signed @ beta
    dual = np.exp(log_scale + _log_slopes(margins, loss))
    value = float(np.exp(log_scale + _log_losses(margins, loss)).sum()) + size
    norm = {"l1": lambda p: np.abs(p @ signed).max(), "l2": lambda p: np.linalg.norm(p @ signed)}[
        penalty
    ]
    gap = certified_excess(margins, size, log_strength, norm, penalty, loss)
    return PenalizedMinimum(margins, size, dual, value, gap)


def _known(loss: LossName) -> LossName:
    if loss not in _LOSSES:
        raise UserError(
            f"penalized minimum: expected the loss exponential or logistic, got {loss!r}"
        )
    return loss


def _log_losses(margins: Any, loss: LossName) -> Any:
    """Return ``log ℓ(m)``."""
    if loss == "exponential":
        return -margins
    # beyond 30 log(1 + e^-m) is e^-m (1 - e^-m / 2) to float64, and below it does not underflow
    near = np.log(np.logaddexp(0, -np.minimum(margins, 30.0)))
    return np.where(margins > 30, -margins - np.exp(-np.maximum(margins, 30.0)) / 2, near)


def _log_slopes(margins: np.ndarray, loss: LossName) -> np.ndarray:
    """Return ``log(-ℓ'(m))``."""
    return -margins if loss == "exponential" else -np.logaddexp(0, margins)  # -ℓ' = 1/(1 + e^m)


def _log_expm1(x: float) -> float:
    """Return ``log(exp(x) - 1)``, for x > 0."""
    return float(x + np.log(-np.expm1(-x)))  # e^x - 1 = e^x (1 - e^{-x})


def _rest(p: np.ndarray, unit: float, loss: LossName) -> float:
    """Return what the dual has beside ``Σ entr(p) + p log(unit)``: ``Σ p``, or ``Σ unit entr(1 - p/unit)``."""
    if loss == "exponential":
        return float(p.sum())
    part = np.minimum(p / unit, 1.0)  # the logistic dual ends at p = unit
    return float(-unit * xlog1py(1 - part, -part).sum())


def _walls(
    p: np.ndarray, forced: np.ndarray, weight: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return value, gradient and minus the Hessian of the logarithmic barrier of ``|forces| < 1``."""
    forces = p @ forced
    if np.abs(forces).max() >= 1:
        return -np.inf, p, forced
    above = 1 / (1 - forces)
    below = 1 / (1 + forces)
    # forced diag(1/(1 - f)² + 1/(1 + f)²) forcedᵀ
    curved = (forced * (above**2 + below**2)) @ forced.T
    return (
        -weight * float(np.log(above * below).sum()),
        -weight * forced @ (above - below),
        weight * curved,
    )


def _climb(
    p: np.ndarray,
    log_unit: float,
    loss: LossName,
    weight: float,
    barrier: Callable[[np.ndarray], tuple],
) -> np.ndarray:
    """Maximize ``Σ entr(p) + p log(unit) + rest(p) + barrier(p)`` by Newton's method, ``barrier`` as :func:`_walls`.

    It backtracks until it gains less than a part of the weight of the barrier: from there on full steps converge
    quadratically, and the values could not be told apart in float64. Below ``_SMALL`` the entropy goes on as its
    parabola: the p of examples far from the margin is zero to any accuracy.
    """
    unit = float(np.exp(log_unit))
    logistic = loss == "logistic"

    def value(p: np.ndarray) -> float:
        if logistic and p.max() >= unit:
            return -np.inf
        inner = np.maximum(p, _SMALL)
        past = np.minimum(p - _SMALL, 0.0)
        # Taylor to second order at _SMALL: entr' = -1 - log p, entr'' = -1/p
        curved = entr(inner) - (1 + np.log(_SMALL)) * past - past**2 / (2 * _SMALL)
        return float(curved.sum() + log_unit * p.sum()) + _rest(p, unit, loss) + barrier(p)[0]

    for _ in range(_NEWTON):
        inner = np.maximum(p, _SMALL)
        past = np.minimum(p - _SMALL, 0.0)
        _, gradient, bent = barrier(p)
        # the derivative of the rest is 1 + log(1 - p/unit), without the logarithm for the exponential loss
        uphill = log_unit - np.log(inner) - past / _SMALL + gradient
        if logistic:
            uphill = uphill + np.log1p(-p / unit)
        # the diagonal is 1/p, or 1/p + 1/(unit - p): in units of its root the system is well conditioned
        root = np.sqrt(inner * (1 - inner / unit) if logistic else inner)
        step = root * np.linalg.solve(np.eye(len(p)) + root[:, None] * bent * root, root * uphill)
        gain = float(step @ uphill)
        now = value(p)
        length = 1.0
        # the logarithms of the logistic dual end at the unit, whatever is gained
        while logistic and (p + length * step).max() >= unit:
            length /= 2
        while gain > 0.05 * weight and not value(p + length * step) >= now + 0.1 * length * gain:
            length /= 2
        p = p + length * step
        if gain <= 1e-10 * weight:
            break
    return p
