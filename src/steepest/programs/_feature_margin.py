"""The margin of initial ReLU features, in the norm that limits every neuron by itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.losses import check_labels
from steepest.programs._inputs import check_inputs
from steepest.programs._solving import solve_tightly

_NEWTON = 60  # steps for each barrier
_SHRINK = 0.1  # one barrier over the one before


@dataclass(frozen=True)
class FeatureMargin:
    """The margin with its certificate: the maximum lies between ``value`` and ``value + gap``.

    Attributes:
        value: ``min_i y_i (1/m) Σ_j ⟨v_j, x_i⟩ 1[w_j·x_i > 0]`` of the v_j found, of length at most one each.
        dual: weights q of the examples, on the simplex, shape ``(n,)``.
        gap: ``(1/m) Σ_j ‖Σ_i q_i y_i x_i 1[w_j·x_i > 0]‖ - value ≥ 0``.
    """

    value: float
    dual: Float[np.ndarray, " n"]
    gap: float


@checked
def feature_margin(
    x: Float[Any, "n d"], y: Float[Any, " n"], weights: Float[Any, "m d"], tolerance: float = 1e-6
) -> FeatureMargin:
    r"""Find the largest margin of a ReLU network's features at its start, ``x 1[w_j·x > 0]``, neurons of length one.

    .. math:: γ = \max_{‖v_j‖ ≤ 1} \min_i \frac{y_i}{m} Σ_j ⟨v_j, x_i⟩ 1[w_j·x_i > 0]
              = \min_{q ∈ Δ} \frac1m Σ_j \big‖ Σ_i q_i y_i x_i 1[w_j·x_i > 0] \big‖

    is the margin in which width, samples and steps are counted where the network stays near its start. It is at most
    that in the Frobenius norm, ``Σ_j ‖v_j‖² ≤ m``, which :func:`kernel_margin` finds from the kernel of these
    features. Solved by Newton steps on the second form with a logarithmic barrier, in n unknowns whatever the width;
    where these do not reach the gap, by a cone program in all neurons.

    Args:
        x: inputs.
        y: labels ±1.
        weights: w_j, one neuron a row.
        tolerance: wanted gap, relative to the longest input.

    Raises:
        UserError: shapes that do not match, entries that are not finite, labels other than ±1, or a gap that is not
            reached.

    Source: Ji and Telgarsky 2020, assumption 2.1; Telgarsky's talk of 2024.

    >>> best = feature_margin([[1.0, 0.0], [0.0, 1.0]], [1, 1], [[1.0, 1.0]])  # one neuron, active on both
    >>> round(best.value, 5), best.dual.round(3).tolist()
    (0.70711, [0.5, 0.5])
    """
    x, y = check_inputs("feature margin", x, y)
    y = np.asarray(check_labels(y), dtype=float)
    weights = np.asarray(weights, dtype=float)
    if weights.ndim != 2 or weights.shape[1] != x.shape[1] or not np.isfinite(weights).all():
        raise UserError(
            f"feature margin: expected finite neurons of shape (m, {x.shape[1]}), got shape {weights.shape}"
        )
    active = (weights @ x.T > 0).astype(float)  # (m, n)
    inner = y[:, None] * (x @ x.T) * y  # y_i y_k ⟨x_i, x_k⟩
    unit = float(np.linalg.norm(x, axis=1).max()) or 1.0
    for solve in (_by_newton, _by_cones):
        value, q = solve(x, y, active, inner, tolerance * unit)
        gap = float(_neurons(q, active, inner)[1].mean()) - value  # dual value minus primal value
        if gap <= tolerance * unit:
            return FeatureMargin(value, q, max(gap, 0.0))
    raise UserError(
        f"feature margin: expected a gap of {tolerance * unit:.1e}, got {gap:.1e}; allow a larger tolerance"
    )


def _by_newton(
    x: np.ndarray, y: np.ndarray, active: np.ndarray, inner: np.ndarray, wanted: float
) -> tuple[float, np.ndarray]:
    """Follow the barrier's minima; return a lower bound of the margin and the weights of the examples.

    Fails, with a large gap, where most neurons' sums vanish at the optimum, as with few neurons in few dimensions.
    """
    n = len(x)
    q = np.full(n, 1 / n)
    barrier = float(np.linalg.norm(x, axis=1).max()) / n
    value = -np.inf
    while barrier > 1e-2 * wanted / n:
        try:
            q = _centre(q, active, inner, barrier)
        except np.linalg.LinAlgError:
            break
        pulls, sizes = _neurons(q, active, inner)
        # neurons shorter than one are allowed, so that what they reach is a lower bound
        value = float((pulls / np.hypot(sizes, barrier)[:, None]).mean(0).min())
        if sizes.mean() - value <= wanted:
            break
        barrier *= _SHRINK
    return value, q


def _by_cones(
    x: np.ndarray, y: np.ndarray, active: np.ndarray, inner: np.ndarray, wanted: float
) -> tuple[float, np.ndarray]:
    """Solve the first form, in all neurons, by a general solver of cone programs."""
    import cvxpy as cp

    neurons = cp.Variable((len(active), x.shape[1]))
    outputs = cp.sum(cp.multiply(active.T, x @ neurons.T), axis=1) / len(active)
    margin = cp.Variable()
    fits = cp.multiply(y, outputs) >= margin
    solve_tightly(cp.Problem(cp.Maximize(margin), [fits, cp.norm(neurons, axis=1) <= 1]))
    best = np.asarray(neurons.value)
    best = best / np.maximum(1.0, np.linalg.norm(best, axis=1))[:, None]
    q = np.maximum(np.asarray(fits.dual_value), 0)
    reached = y * (active.T * (x @ best.T)).mean(1)
    return float(reached.min()), q / q.sum()


def _neurons(q: np.ndarray, active: np.ndarray, inner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what each neuron's sum gives each example, ``(m, n)``, and the lengths of the sums, ``(m,)``."""
    pulls = active * ((active * q) @ inner)  # y_i ⟨x_i, Σ_k q_k y_k x_k 1_jk⟩ 1_ji
    return pulls, np.sqrt(np.maximum(pulls @ q, 0))  # ‖sum_j‖² = Σ_i q_i pulls_ji


def _centre(q: np.ndarray, active: np.ndarray, inner: np.ndarray, barrier: float) -> np.ndarray:
    """Minimize the mean of √(length² + barrier²) minus barrier·Σ log q over the simplex, by damped Newton steps.

    Rounding off lengths as much as the barrier keeps off the walls makes neurons whose sum vanishes smooth.
    """
    count = len(active)
    for _ in range(_NEWTON):
        pulls, lengths = _neurons(q, active, inner)
        sizes = np.hypot(lengths, barrier)
        slope = (pulls / sizes[:, None]).mean(0) - barrier / q  # ∂ length²/∂q_i = 2 pulls_ji
        # second derivatives of length²/2 over the size, less
        bend = inner * ((active / sizes[:, None]).T @ active) / count
        # derivatives of the root: pulls pullsᵀ/size³
        bend -= (pulls / sizes[:, None] ** 3).T @ pulls / count
        # in the unknowns log q the system is well conditioned
        system = q[:, None] * bend * q + barrier * np.eye(len(q))
        both = np.linalg.solve(system, np.stack([q * slope, q], axis=1))
        multiplier = (q @ both[:, 0]) / (q @ both[:, 1])
        step = -q * (both[:, 0] - multiplier * both[:, 1])  # Σ step = 0 keeps q on the simplex
        gain = -float(slope @ step)
        if gain <= 1e-3 * barrier:
            break
        now = sizes.mean() - barrier * np.log(q).sum()
        # no weight loses more than nine tenths
        share = min(1.0, 0.9 / max(float(-(step / q).min()), 0.1))
        while share > 1e-9:
            after = q + share * step
            reached = np.hypot(_neurons(after, active, inner)[1], barrier).mean()
            if reached - barrier * np.log(after).sum() <= now - 1e-4 * share * gain:
                break
            share /= 2
        else:
            break  # nothing is gained but rounding
        q = after / after.sum()
    return q
