"""Penalized least squares over ReLU neurons in the plane: the convex program over all of them, or over a few arcs."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Values
from steepest.programs._inputs import check_inputs
from steepest.programs._solving import solve_tightly

NEAR = 1e-9  # radians; a direction this near to the end of an arc lies on both sides
SMALL = 1e-7  # neurons with less than this share of the total weight are rounding


class SquaredNeurons(NamedTuple):
    """The minimum of ½‖f − y‖² + λΣ‖w_j‖ over combinations f = Σ ±relu(⟨w_j, ·⟩).

    Attributes:
        value: of the minimum.
        outputs: f at the inputs, shape ``(n,)``.
        weights: w_j, the weight of a neuron times its unit vector, shape ``(k, 2)``.
        signs: ±1, shape ``(k,)``.
    """

    value: float
    outputs: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, "k 2"]
    signs: Float[np.ndarray, " k"]


@checked
def squared_neurons(
    x: Float[Values, "n 2"],
    y: Float[Values, " n"],
    penalty: float,
    directions: Float[Values, "_ 2"] | None = None,
) -> SquaredNeurons:
    """Minimize ``½‖Σ_j v_j relu(Xw_j) − y‖² + (λ/2) Σ_j (v_j² + ‖w_j‖²)`` over networks of any width, in the plane.

    On each arc of directions where the same inputs are active the neurons of one sign add up to one vector in the
    arc's cone; the sum over arcs is a second-order cone program, in which no neuron is named.

    Args:
        x: inputs in the plane, shape ``(n, 2)``.
        y: targets, shape ``(n,)``.
        penalty: λ > 0.
        directions: neurons may lie on the arcs of these only, ``(k, 2)``: the minimum over networks of these neurons,
            whose weights move as far as no neuron changes the inputs it sees. Over all arcs without it.

    Raises:
        UserError: inputs that are not in the plane, shapes that do not match, a penalty that is not positive.

    Source: Pilanci and Ergen 2020.

    >>> minimum = squared_neurons([[1.0, 0.0]], [2.0], 0.5)  # ½(c − 2)² + ½c, least at c = 1.5
    >>> round(minimum.value, 6), minimum.weights.round(4).tolist(), minimum.signs.tolist()
    (0.875, [[1.5, 0.0]], [1.0])
    """
    import cvxpy as cp

    x, y = check_inputs("squared neurons", x, y)
    if x.shape[1] != 2:
        raise UserError(f"squared neurons: expected inputs of shape (n, 2), got {x.shape}")
    if not penalty > 0:
        raise UserError(f"squared neurons: expected a positive penalty λ, got {penalty}")
    angles = np.arctan2(x[:, 1], x[:, 0])
    # directions at which some ⟨u, x_i⟩ changes sign
    ends = np.unique(np.mod(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]), 2 * np.pi))
    # arcs between neighbouring ends, around the circle
    width = np.append(ends[1:], ends[0] + 2 * np.pi) - ends
    if directions is not None:
        given = np.asarray(directions, float).reshape(-1, 2)
        if not len(given):
            return SquaredNeurons(float(y @ y / 2), np.zeros(len(y)), np.zeros((0, 2)), np.zeros(0))
        # angle from the start of each arc, (k, arcs)
        beyond = np.mod(np.arctan2(given[:, 1], given[:, 0])[:, None] - ends + NEAR, 2 * np.pi)
        allowed = (beyond <= width + 2 * NEAR).any(0)
        ends = ends[allowed]
        width = width[allowed]
    middle = ends + width / 2
    patterns = np.stack([np.cos(middle), np.sin(middle)], 1) @ x.T > 0  # (arcs, n)
    up = cp.Variable((len(patterns), 2))
    down = cp.Variable((len(patterns), 2))
    constraints: list[Any] = []
    outputs: Any = 0
    for i, active in enumerate(patterns):
        # the arc's cone: ⟨w, x_i⟩ ≥ 0 if active, ≤ 0 if not
        side = np.where(active, 1.0, -1.0)[:, None] * x
        constraints += [side @ up[i] >= 0, side @ down[i] >= 0]
        outputs = outputs + (active[:, None] * x) @ (up[i] - down[i])  # relu is linear on the arc
    # ½(v² + ‖w‖²) ≥ |v|‖w‖, with equality at the balanced layer
    size = cp.sum(cp.norm(up, axis=1)) + cp.sum(cp.norm(down, axis=1))
    problem: Any = cp.Problem(
        cp.Minimize(cp.sum_squares(outputs - y) / 2 + penalty * size), constraints
    )
    solve_tightly(problem)
    weights = np.vstack([np.asarray(up.value), np.asarray(down.value)])
    signs = np.repeat([1.0, -1.0], len(patterns))
    lengths = np.linalg.norm(weights, axis=1)
    kept = lengths > SMALL * max(lengths.sum(), 1e-300)
    return SquaredNeurons(
        float(problem.value), np.asarray(outputs.value), weights[kept], signs[kept]
    )
