"""Kernel machines and boosted stumps at one risk: their margins and their norms."""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.programs import decision_stumps

MACHINES = ("RBF kernel", "quadratic kernel", "stumps")
_CLOSE = 1e-2
"""Relative difference of a kernel machine's risk from its goal that is small enough."""
_NEWTON = 100
_HALVINGS = 60


class Machine(NamedTuple):
    """A classifier of two classes at its goal: margins ``y f(x)``, its norm, and its summed loss."""

    margins: kit.Values  # (n,)
    norm: float
    risk: float


def fit_machines(x: kit.Values, y: kit.Values, total: float, most: int) -> list[Machine]:
    """Fit each of ``MACHINES`` until its summed loss is at a goal.

    Args:
        x: inputs, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.
        total: summed loss: logistic of kernel machines, exponential of stumps.
        most: rounds of boosting after which it is given up.
    """
    kernels = [least_norm(gram, y, total) for gram in gram_matrices(x)]
    return [*kernels, boosted(decision_stumps(x).matrix(), y, total, most)]


def gram_matrices(x: kit.Values) -> list[kit.Values]:
    """Return an RBF kernel's matrix, whose width is the median distance, and one of ``(1 + ⟨x, x'⟩/E‖x‖²)²``."""
    inner = x @ x.T
    squares = np.diag(inner)
    # ‖x − x'‖² = ‖x‖² + ‖x'‖² − 2⟨x, x'⟩
    apart = squares[:, None] + squares - 2 * inner
    middle = np.median(apart[~np.eye(len(x), dtype=bool)])
    return [np.exp(-apart / middle), (1 + inner / squares.mean()) ** 2]


def least_norm(gram: kit.Values, y: kit.Values, total: float) -> Machine:
    """Find the function of least norm whose summed logistic loss is at a goal, by bisection in its penalty."""
    weights = np.zeros(len(y))
    low = np.log(1e-9)
    high = np.log(1e3)
    for _ in range(_HALVINGS):
        penalty = (low + high) / 2
        weights = _penalized(gram, y, np.exp(penalty), weights)
        margins = y * (gram @ weights)
        risk = float(np.logaddexp(0, -margins).sum())
        if abs(risk / total - 1) < _CLOSE:
            break
        # the risk rises with the penalty
        low, high = (low, penalty) if risk > total else (penalty, high)
    # ‖f‖² = αᵀKα for f = Kα
    return Machine(margins, float(np.sqrt(weights @ gram @ weights)), risk)


def _penalized(gram: kit.Values, y: kit.Values, penalty: float, weights: kit.Values) -> kit.Values:
    """Minimize the logistic loss of ``f = gram @ weights`` plus half a penalty times ‖f‖², by damped Newton steps."""

    def objective(weights: kit.Values) -> float:
        values = gram @ weights
        return np.logaddexp(0, -y * values).sum() + penalty / 2 * weights @ values

    for _ in range(_NEWTON):
        wrong = 1 / (1 + np.exp(y * (gram @ weights)))
        # Newton's equation K(DK + λI)s = K(λα − yσ(−yf)), from which K is cancelled
        curvature = (wrong * (1 - wrong))[:, None] * gram + penalty * np.eye(len(y))
        step = np.linalg.solve(curvature, penalty * weights - y * wrong)
        if abs(step).max() <= 1e-9 * abs(weights).max():
            break
        size = 1.0
        while objective(weights - size * step) > objective(weights) + 1e-12 and size > 1e-4:
            size = size / 2
        weights = weights - size * step
    return weights


def boosted(votes: kit.Values, y: kit.Values, total: float, most: int) -> Machine:
    """Boost until the summed exponential loss is at a goal: AdaBoost, with the best of all votes in each round.

    Args:
        votes: of every stump on every example, ±1, shape ``(n, stumps)``.
        y: labels ±1, shape ``(n,)``.
        total: summed exponential loss at which it stops.
        most: rounds after which it is given up.
    """
    signed = votes * y[:, None]
    weights = np.zeros(signed.shape[1])
    margins = np.zeros(len(y))
    for _ in range(most):
        losses = np.exp(-margins)
        if losses.sum() <= total:
            break
        edges = losses @ signed / losses.sum()
        best = int(abs(edges).argmax())
        # AdaBoost's step ½ log((1 + γ)/(1 − γ)) at the edge γ
        step = np.arctanh(edges[best].clip(-1 + 1e-9, 1 - 1e-9))
        weights[best] += step
        margins = margins + step * signed[:, best]
    return Machine(margins, float(abs(weights).sum()), float(np.exp(-margins).sum()))
