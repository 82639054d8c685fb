"""Maximum margins by convex programs: the oracle that descent is judged by.

Everything here is NumPy on the host, solved by the interior-point code Clarabel; nothing is shared with the descent.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.losses import check_labels
from steepest.programs._inputs import check_inputs, check_positive
from steepest.programs._solving import solve_tightly

Norm = Literal["l1", "l2", "linf"]

_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}

# A margin below this fraction of the largest example is not told apart from zero by the solver.
_RESOLUTION = 1e-9
# Multipliers (of total 1) below this are zeros of the interior-point method.
_ACTIVE = 1e-7


class Geometry(NamedTuple):
    """A norm of w, as the solver and NumPy need it.

    Attributes:
        expression: the norm of a cvxpy expression.
        norm: the norm of an array.
        dual: its dual norm.
        euclidean: whether it is the ℓ2 norm, whose support can be solved exactly.
    """

    expression: Callable[[Any], Any]
    norm: Callable[[np.ndarray], float]
    dual: Callable[[np.ndarray], float]
    euclidean: bool = False


@dataclass(frozen=True)
class MarginProgram:
    """The largest margin of a data set with its separator, its multipliers and their certificate.

    Attributes:
        margin: ``γ̂ = max_{‖w‖ ≤ 1} min_i y_i (⟨w, x_i⟩ + b)``; 0 if the data are not separable.
        direction: the best ``w``, of norm 1, shape ``(d,)``; zeros if the data are not separable.
        bias: its ``b``; 0 without a bias.
        dual: multipliers ``q ≥ 0`` with sum 1, shape ``(n,)``: ``‖Σ q_i y_i x_i‖_* = γ̂`` in the dual norm. The
            multipliers a_i of the lecture's problem ``min ½‖w‖²`` are ``q_i / γ̂²``.
        support: numbers of the support vectors, the examples with ``q_i > 0``.
        gap: ``‖Σ q_i y_i x_i‖_* - γ̂ ≥ 0``: the true maximum lies between the margin and the margin plus this.
        separable: whether a separator was found: where it is false, none has a margin above ``gap``.
        reason: why not, if it does not: the multipliers are then the certificate.
    """

    margin: float
    direction: Float[np.ndarray, " d"]
    bias: float
    dual: Float[np.ndarray, " n"]
    support: Int[np.ndarray, " k"]
    gap: float
    separable: bool
    reason: str = ""


@checked
def hard_margin(
    x: Float[Any, "n d"],
    y: Float[Any, " n"],
    norm: Norm | float | Float[Any, " d"] = "l2",
    bias: bool = False,
) -> MarginProgram:
    """Find the maximum-margin separator ``γ̂ = max_{‖w‖ ≤ 1} min_i y_i (⟨w, x_i⟩ + b)``, with its support vectors.

    The dual problem is ``min ‖Σ q_i y_i x_i‖_*`` over the simplex (with ``Σ q_i y_i = 0`` if there is a bias).
    Without a separator this minimum is zero (Gordan), which is an outcome, ``separable = False`` with a reason, and not
    an error. A margin below 1e-9 of the largest entry is not told from none: ``gap`` bounds what may have been missed.

    Args:
        x: inputs, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.
        norm: the norm of w: ``"l2"`` (support vector machine), ``"l1"`` (boosting), ``"linf"``, an order p ≥ 1, or
            positive weights ω of shape ``(d,)`` for ``√(Σ ω_i w_i²)``. For sums of ℓ2 norms of groups, the ℓ1 norm of
            the Fourier transform and kernels: ``group_margin``, ``fourier_margin``, ``kernel_margin``.
        bias: whether an unpenalized constant b is allowed.

    Raises:
        UserError: if shapes do not match, an entry is not finite, a label is not ±1, the norm is unknown, or a
            bias is asked for with one label only.

    Source: ORF 543, lecture 11/14, with support vectors where a_i > 0 (the notes print a_i = 0).

    >>> program = hard_margin([[1.0, 1.0], [-1.0, 1.0], [5.0, 2.0]], [1, 1, 1])
    >>> round(program.margin, 6), program.support.tolist()
    (1.0, [0, 1])
    >>> hard_margin([[1.0], [2.0]], [1, -1]).separable
    False
    """
    x, y = check_inputs("hard margin", x, y)
    if isinstance(norm, int | float):
        if not norm >= 1:
            raise UserError(f"hard margin: expected an order p ≥ 1, got {norm!r}")
        return margin_in(_ordered(norm), x, y, bias)
    if not isinstance(norm, str):
        root = np.sqrt(check_positive("hard margin", "weights", norm, x.shape[1]))
        # in coordinates √ω w, where the norm is ℓ2
        program = margin_in(_ordered(2), x / root, y, bias)
        return replace(program, direction=program.direction / root)
    if norm not in _ORDERS:
        raise UserError(f"hard margin: expected a norm among {', '.join(_ORDERS)}, got {norm!r}")
    return margin_in(_ordered(_ORDERS[norm]), x, y, bias)


@checked
def separable(x: Float[Any, "n d"], y: Float[Any, " n"], bias: bool = False) -> bool:
    """Tell whether some ``w`` (and ``b``) has ``y_i (⟨w, x_i⟩ + b) > 0`` for every example, by one linear program.

    Raises:
        UserError: as ``hard_margin``.

    >>> separable([[1.0], [2.0]], [1, -1]), separable([[1.0], [2.0]], [1, -1], bias=True)
    (False, True)
    """
    return hard_margin(x, y, norm="linf", bias=bias).separable


def margin_in(
    geometry: Geometry, x: Float[np.ndarray, "n d"], y: Any, bias: bool = False
) -> MarginProgram:
    """Find the maximum-margin separator in any geometry; arguments and result as in ``hard_margin``, inputs checked.

    Raises:
        UserError: if a label is not ±1, or a bias is asked for with one label only.
    """
    y = np.asarray(check_labels(y), dtype=float)
    if bias and abs(y.sum()) == len(y):
        raise UserError(
            "hard margin: with a bias, expected examples of both labels, got one label; drop the bias"
        )
    largest = np.abs(x).max()
    unit = largest if largest > 0 else 1.0
    signed = y[:, None] * x / unit
    signs = y if bias else None
    w, b, q = _widest(signed, signs, geometry)
    margin = (signed @ w + b * y).min()
    if margin > _RESOLUTION:
        # Solved again in the units of its own margin, where the solver's tolerance is a relative one.
        # Rows over a thin margin may be too much for it: then the first solution stays, and `gap` says how good it is.
        with suppress(UserError):
            # rows over the margin: constraints signed w ≥ margin
            w, b, q = _shortest(signed / margin, y / margin if bias else None, geometry)
        w, b, q = _polish(signed, signs, w, b, q) if geometry.euclidean else (w, b, q)
        size = geometry.norm(w)
        w = w / size  # margins are homogeneous of degree one in (w, b)
        b = b / size
        margin = (signed @ w + b * y).min()
    q = _simplex(q, signs)
    # weak duality: min_i margin_i ≤ ⟨Σ q_i y_i x_i, w⟩ ≤ ‖Σ q_i y_i x_i‖_* for ‖w‖ ≤ 1
    bound = float(geometry.dual(q @ signed))
    support = np.flatnonzero(q > _ACTIVE)
    if margin <= _RESOLUTION:
        reason = _reason(len(support), bound)
        return MarginProgram(
            0.0, np.zeros_like(w), 0.0, q, support, float(unit * bound), False, reason
        )
    gap = max(float(unit * (bound - margin)), 0.0)
    return MarginProgram(float(unit * margin), w, float(unit * b), q, support, gap, True)


def _ordered(order: float) -> Geometry:
    """Return the ℓp norm of an order from 1 to ∞."""
    import cvxpy as cp

    dual = {1: np.inf, np.inf: 1}.get(order) or order / (order - 1)  # 1/p + 1/q = 1
    # 1, 2 and ∞ are linear or second-order cones, other orders take power cones
    spelled = {1: 1, 2: 2, np.inf: "inf"}.get(order)
    power: Any = order  # cvxpy takes fractions, whatever its annotation says
    expression = lambda w: cp.pnorm(w, power) if spelled is None else cp.norm(w, spelled)
    norm = lambda w: float(np.linalg.norm(w, ord=order))
    return Geometry(expression, norm, lambda z: float(np.linalg.norm(z, ord=dual)), order == 2)


def _widest(
    signed: np.ndarray, signs: np.ndarray | None, geometry: Geometry
) -> tuple[np.ndarray, float, np.ndarray]:
    """Maximize γ subject to ``signed w + b signs ≥ γ``, ``‖w‖ ≤ 1``: feasible whatever the data."""
    import cvxpy as cp

    n, d = signed.shape
    w = cp.Variable(d)
    b = cp.Variable()
    margin = cp.Variable()
    offset = 0 if signs is None else b * signs
    apart = signed @ w + offset >= margin * np.ones(n)
    solve_tightly(cp.Problem(cp.Maximize(margin), [apart, geometry.expression(w) <= 1]))
    return (
        np.asarray(w.value),
        0.0 if signs is None else float(np.asarray(b.value)),
        np.asarray(apart.dual_value),
    )


def _shortest(
    signed: np.ndarray, signs: np.ndarray | None, geometry: Geometry
) -> tuple[np.ndarray, float, np.ndarray]:
    """Minimize ``‖w‖`` subject to ``signed w + b signs ≥ 1``."""
    import cvxpy as cp

    w = cp.Variable(signed.shape[1])
    b = cp.Variable()
    offset = 0 if signs is None else b * signs
    apart = signed @ w + offset >= 1
    cost = 0.5 * cp.sum_squares(w) if geometry.euclidean else geometry.expression(w)
    solve_tightly(cp.Problem(cp.Minimize(cost), [apart]))
    return (
        np.asarray(w.value),
        0.0 if signs is None else float(np.asarray(b.value)),
        np.asarray(apart.dual_value),
    )


def _polish(
    signed: np.ndarray, signs: np.ndarray | None, w: np.ndarray, b: float, q: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """Solve the optimality conditions on the support exactly; kept only if they hold for every example.

    On the support all constraints are tight: ``G a + b s = 1``, ``s·a = 0``, ``G`` the Gram matrix of the signed
    support vectors.
    """
    support = np.flatnonzero(q > _ACTIVE * q.sum())
    rows = signed[support]
    system = rows @ rows.T
    right = np.ones(len(support))
    if signs is not None:
        edge = signs[support]
        # bordered by s·a = 0, the stationarity in b
        system = np.block([[system, edge[:, None]], [edge[None, :], np.zeros((1, 1))]])
        right = np.append(right, 0.0)
    solution = np.linalg.lstsq(system, right)[0]
    a = solution[: len(support)]
    offset = 0.0 if signs is None else float(solution[-1])
    candidate = a @ rows
    values = signed @ candidate + (0.0 if signs is None else offset * signs)
    if (a < 0).any() or values.min() < 1 - 1e-9:  # multipliers not negative, margins at least one
        return w, b, q
    exact = np.zeros(len(signed))
    exact[support] = a
    return candidate, offset, exact


def _simplex(q: np.ndarray, signs: np.ndarray | None) -> np.ndarray:
    """Return the nearest multipliers that are exactly feasible, so that their bound is a proof."""
    q = np.maximum(q, 0.0)
    if signs is None:
        return q / q.sum()
    halves = np.where(
        signs > 0, q * (signs > 0) / q[signs > 0].sum(), q * (signs < 0) / q[signs < 0].sum()
    )
    return 0.5 * halves  # halves on either label: Σ q_i y_i = 0


def _reason(members: int, bound: float) -> str:
    return (
        f"no separator has a margin above {bound:.1e} of the largest entry: so short is a weighted mean of {members} "
        "signed examples (the weights are in `dual`)"
    )
