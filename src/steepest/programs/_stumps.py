"""The largest ℓ1 margin over all decision stumps, by column generation: what boosting could reach at best."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.losses import check_labels
from steepest.programs._decision_stumps import Stumps

_ROUNDS = 200
# A margin below this is not told apart from zero by the solver.
_RESOLUTION = 1e-9


@dataclass(frozen=True)
class StumpMargin:
    """The largest margin of a combination of stumps, with a certificate that holds over all of them.

    Attributes:
        margin: ``γ̄ = max_{‖w‖₁ ≤ 1} min_i y_i Σ_h w_h h(x_i)``; 0 if no combination separates the data.
        chosen: numbers of the stumps with weight, shape ``(k,)``.
        weights: their weights, negative for ``-h``, of ℓ1 norm 1; none if the data are not separable.
        dual: weights ``q`` of the examples, on the simplex, under which no stump has an edge above margin + gap.
        gap: ``max_h |Σ_i q_i y_i h(x_i)| - γ̄ ≥ 0``: the true maximum lies between the margin and the margin plus this.
        separable: whether some combination of stumps separates the data.
        rounds: programs solved.
    """

    margin: float
    chosen: Int[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]
    dual: Float[np.ndarray, " n"]
    gap: float
    separable: bool
    rounds: int


@checked
def stump_margin(stumps: Stumps, y: Float[Any, " n"], tolerance: float = 1e-8) -> StumpMargin:
    """Find the largest ℓ1 margin over all decision stumps and their negatives: a linear program with a column for each.

    Solved by column generation: the program over a few stumps (HiGHS) gives weights q of the examples, and under these
    the best stump of every feature joins, until none has an edge above the margin. The last q proves the margin for
    the whole dictionary.

    Args:
        stumps: all stumps of the inputs, from ``decision_stumps(x)``.
        y: labels ±1, shape ``(n,)``.
        tolerance: wanted gap.

    Raises:
        UserError: if shapes do not match or a label is not ±1, or the gap cannot be reached.

    Source: Demiriz, Bennett and Shawe-Taylor 2002 (column generation); Schapire, Freund, Bartlett and Lee 1998.

    >>> from steepest.programs import decision_stumps
    >>> corners = decision_stumps([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> best = stump_margin(corners, [-1, -1, 1, 1])  # the first feature tells
    >>> best.margin, best.separable, stump_margin(corners, [-1, 1, 1, -1]).separable
    (1.0, True, False)
    """
    y = np.asarray(check_labels(y), dtype=float)
    if y.shape[0] != stumps.rank.shape[1]:
        raise UserError(
            f"stump margin: expected {stumps.rank.shape[1]} labels, got {y.shape[0]}; one for each example"
        )
    active = np.zeros(0, int)
    q = np.full(len(y), 1 / len(y))
    rounds = 0
    gap = np.inf
    margin = 0.0
    w = np.zeros(0)
    while gap > tolerance:
        if rounds == _ROUNDS:
            raise UserError(
                f"stump margin: expected a gap of {tolerance:g}, got {gap:.1e} after {rounds} programs"
            )
        active = np.union1d(active, _best(_edges(stumps, q * y), np.asarray(stumps.feature)))
        rounds = rounds + 1
        margin, w, q = _program(y[:, None] * stumps.matrix(active))
        gap = float(np.abs(_edges(stumps, q * y)).max()) - margin  # weak duality over all stumps
    if margin <= _RESOLUTION:
        return StumpMargin(0.0, active[:0], w[:0], q, max(gap + margin, 0.0), False, rounds)
    used = np.flatnonzero(w)
    return StumpMargin(margin, active[used], w[used], q, max(gap, 0.0), True, rounds)


def _program(signed: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return a few columns' largest margin, its weights, and the examples' multipliers, exactly on the simplex."""
    from scipy.optimize import linprog

    n, k = signed.shape
    # Variables w₊, w₋ ≥ 0 and γ: γ - signed (w₊ - w₋) ≤ 0, Σ w₊ + w₋ = 1.
    above = np.hstack([-signed, signed, np.ones((n, 1))])
    ones = np.append(np.ones(2 * k), 0.0)[None]
    cost = np.append(np.zeros(2 * k), -1.0)
    bounds = [(0, None)] * (2 * k) + [(None, None)]
    solution = linprog(
        cost, A_ub=above, b_ub=np.zeros(n), A_eq=ones, b_eq=[1.0], bounds=bounds, method="highs-ds"
    )
    if solution.status != 0:
        raise UserError(
            f"stump margin: expected a solution of the linear program, got {solution.message!r}"
        )
    w = solution.x[:k] - solution.x[k : 2 * k]
    size = np.abs(w).sum()
    # where the margin is zero the two signs of one column may cancel, and what rounding leaves has no direction
    w = w / size if size > _RESOLUTION else np.zeros(k)
    # multipliers of γ ≤ margin_i; they add up to one, as γ is free
    q = np.maximum(-solution.ineqlin.marginals, 0.0)
    return float((signed @ w).min()), w, q / q.sum()


def _edges(stumps: Stumps, signed: np.ndarray) -> np.ndarray:
    """Return ``Σ_i s_i h(x_i)`` of every stump: ``Stumps.edges`` in NumPy, which compiles nothing for a new size."""
    below = np.cumsum(signed[np.asarray(stumps.order)], axis=1)
    # above minus below: all minus twice what is below
    return signed.sum() - 2 * below[np.asarray(stumps.feature), np.asarray(stumps.cut)]


def _best(edges: np.ndarray, feature: np.ndarray) -> np.ndarray:
    """Return the numbers of the stumps of largest edge, one for every feature."""
    first = np.flatnonzero(np.diff(feature, prepend=-1))
    pieces = np.split(np.abs(edges), first[1:])
    return first + np.array([piece.argmax() for piece in pieces])
