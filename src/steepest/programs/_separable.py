"""The maximal separable part of a data set, and the ray and offset along which logistic regression leaves it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.losses import check_labels
from steepest.programs._inputs import check_inputs
from steepest.programs._programs import hard_margin

# Singular values below this fraction of the largest are zeros: the span of the inseparable examples ends there.
_RANK = 1e-10
# Wanted ‖gradient‖ of the finite optimum, relative to the largest example.
_TOLERANCE = 1e-13


@dataclass(frozen=True)
class LogisticSplit:
    """The limit of logistic regression on any data: a finite optimum in S, and one ray off S.

    S is the span of the examples outside the maximal separable part. Gradient flow has ``Π_S w_t → offset`` and
    ``w_t / log t → direction / margin``.

    Attributes:
        part: whether each example belongs to the maximal separable part, shape ``(n,)``.
        separator: a ``u`` with ``y_i ⟨u, x_i⟩ ≥ 1`` on the part and 0 elsewhere, shape ``(d,)``.
        multipliers: ``λ ≥ 0`` with ``Σ λ_i y_i x_i = 0`` and ``λ_i ≥ 1`` outside the part, shape ``(n,)``: the proof
            that nothing outside can be separated without error elsewhere (Stiemke).
        basis: orthonormal columns that span the examples outside the part, S, shape ``(d, k)``.
        direction: the max-margin direction ``ū`` of the part projected off S, of norm 1; zeros if the part is empty.
        margin: its margin ``γ``; 0 if the part is empty.
        offset: the minimizer ``v̄`` in S of the logistic risk of the examples outside, shape ``(d,)``.
        risk: the infimum of the mean logistic risk of all examples.
    """

    part: Bool[np.ndarray, " n"]
    separator: Float[np.ndarray, " d"]
    multipliers: Float[np.ndarray, " n"]
    basis: Float[np.ndarray, "d k"]
    direction: Float[np.ndarray, " d"]
    margin: float
    offset: Float[np.ndarray, " d"]
    risk: float

    @property
    def turn(self) -> Float[np.ndarray, "d d"]:
        """Return an orthonormal basis of all space whose first k columns are ``basis``."""
        k = self.basis.shape[1]
        # Gram–Schmidt: the columns after the k-th complete the basis
        whole = np.linalg.qr(np.hstack([self.basis, np.eye(len(self.basis))]))[0]
        return np.hstack([self.basis, whole[:, k:]])


@checked
def split_coordinates(split: LogisticSplit, x: Float[Any, "n d"]) -> Float[np.ndarray, "n d"]:
    """Return the inputs in orthonormal coordinates; the first k span S, and off S all others are exactly zero.

    Gradient flow is the same in them, but the rest's gradient no longer cancels to rounding off S, which would drown
    that of the part where it is small.

    Args:
        split: of these inputs.
        x: inputs, shape ``(n, d)``.

    Returns:
        Coordinates, shape ``(n, d)``; those of a weight are ``split.turn.T @ w``.
    """
    turned = np.asarray(x, dtype=float) @ split.turn
    off = np.arange(turned.shape[1]) >= split.basis.shape[1]
    return np.where(~split.part[:, None] & off, 0.0, turned)


@checked
def logistic_split(x: Float[Any, "n d"], y: Float[Any, " n"]) -> LogisticSplit:
    """Split any data into its maximal separable part, with its ray, and the rest, with its finite optimum.

    An example belongs to the part if some u classifies it with positive margin and no example with a negative one. Sums
    of such u are such u, so that one linear program, ``max Σ t_i`` subject to ``y_i ⟨u, x_i⟩ ≥ t_i``, ``0 ≤ t_i ≤ 1``,
    finds all of these examples; its multipliers prove that there are no more.

    Args:
        x: inputs, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.

    Raises:
        UserError: if shapes do not match, an entry is not finite, or a label is not ±1.

    Source: Ji and Telgarsky 2018 (risk and parameter convergence of logistic regression).

    >>> split = logistic_split([[1.0, 0.0], [1.0, 0.0], [0.5, 1.0]], [1, -1, 1])  # the first two contradict each other
    >>> split.part.tolist(), split.direction.tolist(), split.margin, round(split.risk * 3 / 2, 6)
    ([False, False, True], [0.0, 1.0], 1.0, 0.693147)
    """
    x, y = check_inputs("logistic split", x, y)
    signed = np.asarray(check_labels(y), dtype=float)[:, None] * x
    unit = np.abs(signed).max() or 1.0
    part, separator, multipliers = _part(signed / unit)
    overlapping = signed[~part]
    basis = _span(overlapping, x.shape[1])
    offset = basis @ _minimize(overlapping @ basis)
    # along the ray the part's losses tend to zero, and those outside do not change
    risk = float(np.logaddexp(0, -overlapping @ offset).sum() / len(y))
    direction = np.zeros(x.shape[1])
    margin = 0.0
    if part.any():
        away = signed[part] - signed[part] @ basis @ basis.T  # projected off S, (part, d)
        program = hard_margin(away, np.ones(len(away)))
        direction = program.direction
        margin = program.margin
    return LogisticSplit(
        part, separator / unit, multipliers, basis, direction, margin, offset, risk
    )


def _part(signed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from scipy.optimize import linprog

    n, d = signed.shape
    # Variables u (free) and t in [0, 1]: t - signed u ≤ 0.
    rows = np.hstack([-signed, np.eye(n)])
    bounds = [(None, None)] * d + [(0, 1)] * n
    solution = linprog(
        np.append(np.zeros(d), -np.ones(n)),
        A_ub=rows,
        b_ub=np.zeros(n),
        bounds=bounds,
        method="highs-ds",
    )
    if solution.status != 0:
        raise UserError(
            f"logistic split: expected a solution of the linear program, got {solution.message!r}"
        )
    # u may be scaled until every positive t is 1: at the optimum t is 0 or 1
    return solution.x[d:] > 0.5, solution.x[:d], np.maximum(-solution.ineqlin.marginals, 0.0)


def _span(rows: np.ndarray, d: int) -> np.ndarray:
    if not len(rows):
        return np.zeros((d, 0))
    _, values, right = np.linalg.svd(rows, full_matrices=False)
    # right singular vectors: the row space, (d, k)
    return right[values > _RANK * max(values.max(), np.finfo(float).tiny)].T


def _minimize(rows: np.ndarray, budget: int = 200) -> np.ndarray:
    """Minimize ``Σ log(1 + e^{-rows v})`` by Newton's method with halved steps; the minimum exists and is unique."""
    v = np.zeros(rows.shape[1])
    scale = np.abs(rows).max(initial=0.0)
    for _ in range(budget if rows.size else 0):
        # σ(-m), minus the slope of log(1 + e^{-m})
        wrong = 1 / (1 + np.exp(np.clip(rows @ v, -700, 700)))
        slope = -wrong @ rows
        if np.linalg.norm(slope) <= _TOLERANCE * scale * len(rows):
            break
        # Hessian Σ σ(-m) σ(m) row rowᵀ
        step = -np.linalg.lstsq((wrong * (1 - wrong) * rows.T) @ rows, slope)[0]
        value = np.logaddexp(0, -rows @ v).sum()
        length = 1.0
        while (
            np.logaddexp(0, -rows @ (v + length * step)).sum() > value + 1e-14 * value
            and length > 1e-10
        ):
            length /= 2
        v = v + length * step
    return v
