"""The cost of a function of one variable in weights of a two-layer ReLU network, and functions of least cost."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs._inputs import check_inputs
from steepest.programs._solving import solve_tightly


@dataclass(frozen=True)
class LeastCost:
    """A function that minimizes ``(1/2n) Σ (f(x_i) - y_i)² + λ C(f)``, or C(f) among interpolants, with its proof.

    Attributes:
        knots: where its slope changes, increasing, shape ``(n,)``: at the inputs.
        slopes: its slopes left of, between and right of the knots, shape ``(n + 1,)``.
        values: ``f(x_i)`` at the sorted inputs, shape ``(n,)``.
        cost: ``C(f)``.
        objective: what is minimized; the cost itself for interpolants.
        dual: multipliers ``μ``, shape ``(n,)``, of sum zero, with ``|Σ μ_i [±(x_i - t)]₊| ≤ 1`` for every t: no neuron
            is worth more than it costs.
        gap: objective minus the lower bound that the dual proves.
    """

    knots: Float[np.ndarray, " n"]
    slopes: Float[np.ndarray, " n+1"]
    values: Float[np.ndarray, " n"]
    cost: float
    objective: float
    dual: Float[np.ndarray, " n"]
    gap: float


@checked
def relu_cost(knots: Float[Any, " _"], slopes: Float[Any, " _"]) -> float:
    """Return the least ``½ ‖weights‖²`` of two-layer ReLU networks that equal a piecewise linear function on all of R.

    ``C(f) = max(∫|f''|, |f'(-∞) + f'(+∞)|)`` over networks of any width, where input and output weights count and
    biases do not. For ``f(x) = x`` the first term is zero and the cost is 2: it takes ``[x]₊ - [-x]₊``.

    Args:
        knots: where the slope changes, increasing, shape ``(k,)``.
        slopes: left of, between and right of the knots, shape ``(k + 1,)``.

    Raises:
        UserError: if shapes do not match, an entry is not finite, or the knots do not increase.

    Source: Savarese, Evron, Soudry and Srebro 2019, theorem 3.1.

    >>> relu_cost([0.0], [0.0, 1.0]), relu_cost([], [1.0]), relu_cost([0.0], [-1.0, 1.0])
    (1.0, 2.0, 2.0)
    """
    knots = np.asarray(knots, dtype=float)
    slopes = np.asarray(slopes, dtype=float)
    if knots.ndim != 1 or slopes.shape != (len(knots) + 1,):
        raise UserError(
            f"cost of a function: expected k knots and k + 1 slopes, got shapes {knots.shape} and {slopes.shape}"
        )
    if not (np.isfinite(knots).all() and np.isfinite(slopes).all()) or (np.diff(knots) < 0).any():
        raise UserError(
            "cost of a function: expected finite slopes and knots in increasing order; sort the knots"
        )
    return float(max(np.abs(np.diff(slopes)).sum(), abs(slopes[0] + slopes[-1])))


@checked
def least_cost_function(
    x: Float[Any, " n"], y: Float[Any, " n"], penalty: float = 0.0
) -> LeastCost:
    r"""Find the function of least cost that fits: an interpolant, or the best compromise at a penalty λ > 0.

    .. math:: \min_f \frac{1}{2n}\sum_i (f(x_i) - y_i)^2 + \lambda C(f)

    is what a wide two-layer ReLU network with weight decay, ``½ λ ‖weights‖²``, minimizes. Knots at the inputs are
    enough: between two inputs f' passes through the chord's slope ``δ_i``, so that with ``V = Σ |δ_{i+1} - δ_i|`` the
    least cost of given values is ``max(V, (V + |δ_1 + δ_{n-1}|) / 2)``: where the second is larger, the slopes outside
    of the data bend towards zero. Many functions may cost the same; this one has straight chords.

    Args:
        x: distinct inputs, shape ``(n,)``, at least two.
        y: targets, shape ``(n,)``.
        penalty: ``λ ≥ 0``; zero asks for an interpolant.

    Raises:
        UserError: if shapes do not match, an entry is not finite, inputs repeat, or the penalty is negative.

    Source: Savarese, Evron, Soudry and Srebro 2019; the least cost of given values follows from their theorem 3.1.

    >>> least = least_cost_function([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])  # a line: one neuron, not two
    >>> least.cost, bool(abs(least.gap) < 1e-9)
    (1.0, True)
    """
    x, y = _checked(x, y, penalty)
    values = _compromise(x, y, penalty) if penalty > 0 else y
    chords = np.diff(values) / np.diff(x)
    bent = np.abs(np.diff(chords)).sum()  # V = Σ |δ_{i+1} - δ_i|
    both = chords[0] + chords[-1]  # δ_1 + δ_{n-1}
    # What the ends give way, so that the two terms of the cost become equal, first on the left.
    # giving way by e adds e to ∫|f''| and takes e from |f'(-∞) + f'(+∞)|
    spare = np.sign(both) * max(0.0, abs(both) - bent) / 2
    slopes = np.concatenate([[chords[0] - spare], chords, [chords[-1]]])
    cost = relu_cost(x, slopes)
    if penalty > 0:
        objective = float(((values - y) ** 2).mean() / 2 + penalty * cost)
        # stationarity in the values: (f - y)/n + λμ = 0
        dual = _admissible((y - values) / (len(x) * penalty), x)
        # Fenchel: |f - y|²/2n ≥ λ⟨μ, y - f⟩ - nλ²|μ|²/2, and C(f) ≥ ⟨μ, f⟩
        bound = penalty * float(dual @ y) - len(x) * penalty**2 * float(dual @ dual) / 2
    else:
        objective = cost
        dual = _multipliers(x, y)
        bound = float(dual @ y)  # C(f) ≥ ⟨μ, f⟩ = ⟨μ, y⟩ for every interpolant
    return LeastCost(x, slopes, values, cost, objective, dual, objective - bound)


def _checked(x: Any, y: Any, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    column = np.asarray(x, dtype=float)
    if column.ndim != 1 or len(column) < 2:
        raise UserError(
            f"least cost: expected at least two inputs of shape (n,), got shape {column.shape}"
        )
    y = check_inputs("least cost", column[:, None], y)[1]
    order = np.argsort(column)
    if (np.diff(column[order]) == 0).any():
        raise UserError(
            "least cost: expected distinct inputs, got one that repeats; average its targets"
        )
    if not (np.isfinite(penalty) and penalty >= 0):
        raise UserError(f"least cost: expected a penalty of at least 0, got {penalty}; try 1e-3")
    return column[order], y[order]


def _compromise(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    import cvxpy as cp

    values = cp.Variable(len(x))
    chords = cp.multiply(cp.diff(values), 1 / np.diff(x))
    bent = cp.norm1(cp.diff(chords)) if len(x) > 2 else cp.Constant(0.0)
    cost = cp.maximum(bent, (bent + cp.abs(chords[0] + chords[-1])) / 2)
    solve_tightly(
        cp.Problem(cp.Minimize(cp.sum_squares(values - y) / (2 * len(x)) + penalty * cost))
    )
    return np.asarray(values.value)


def _neurons(x: np.ndarray) -> np.ndarray:
    """Return ``[±(x_i - t)]₊`` for knots t at the inputs, shape ``(n, 2n)``.

    ``Σ μ_i [±(x_i - t)]₊`` is piecewise linear in t with corners at the inputs, and constant beyond them if
    ``Σ μ_i = 0``; so these are all that a bound must hold for.
    """
    apart = x[:, None] - x[None, :]
    return np.hstack([np.maximum(apart, 0), np.maximum(-apart, 0)])


def _multipliers(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Solve the dual's linear program, ``max ⟨μ, y⟩``, by HiGHS."""
    from scipy.optimize import linprog

    neurons = _neurons(x).T
    ones = np.ones((1, len(x)))
    rows = np.vstack([neurons, -neurons])
    limits = np.ones(2 * len(neurons))
    solution = linprog(
        -y, A_ub=rows, b_ub=limits, A_eq=ones, b_eq=[0.0], bounds=(None, None), method="highs-ds"
    )
    if solution.status != 0:
        raise UserError(
            f"least cost: expected a solution of the linear program, got {solution.message!r}"
        )
    return _admissible(solution.x, x)


def _admissible(mu: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the nearest multipliers of sum zero, scaled into the dual ball."""
    mu = mu - mu.mean()
    return mu / max(1.0, np.abs(mu @ _neurons(x)).max())
