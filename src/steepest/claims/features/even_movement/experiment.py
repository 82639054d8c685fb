"""Descents of two-layer ReLU networks in NumPy, and how far each of their neurons went."""

from typing import NamedTuple

import numpy as np

from steepest.linalg import sequential
from steepest.nn.types import Values

MOST = 4000  # steps after which a descent is given up
NEURONS = 32_768  # in all networks of a width and group that train both layers, as far as the numbers below allow
BOTH = (8, 32)  # such networks: the largest of many Gaussians scatters by a tenth
ALONE = (2, 16)  # networks that train the hidden layer, whose farthest neuron hardly scatters


class Moved(NamedTuple):
    """How far every neuron of a network went, and the risk that it came to."""

    hidden: Values  # (m,)
    output: Values  # (m,)
    risk: float


class Extremes(NamedTuple):
    """Means over networks of one width and group: the farthest neuron, also over the root mean square.

    Attributes:
        inner: farthest hidden neuron over the rms, hidden layer trained.
        movement: how far it went.
        outer: farthest output weight over the rms, both layers trained.
        both_hidden: farthest hidden neuron over the rms, both layers trained.
        mean_inner: farthest hidden neuron of a mean-field network over the rms, hidden layer trained.
        mean_movement: how far it went.
        mean_both: farthest neuron of a mean-field network over the rms, both layers trained.
        risk: the largest at the end of a descent.
    """

    inner: float
    movement: float
    outer: float
    both_hidden: float
    mean_inner: float
    mean_movement: float
    mean_both: float
    risk: float


@sequential
def extremes(
    x: Values, y: Values, width: int, step: float, target: float, rng: np.random.Generator
) -> Extremes:
    """Train networks of one width, the hidden layer alone and both layers; one of each as a mean-field network."""
    scale = width**-0.5
    first = lambda: start(width, x.shape[1], rng)
    alone_count = int(np.clip(NEURONS // (4 * width), *ALONE))
    both_count = int(np.clip(NEURONS // width, *BOTH))
    alone = [train(x, y, first(), scale, step, target, both=False) for _ in range(alone_count)]
    both = [train(x, y, first(), scale, step, target, both=True) for _ in range(both_count)]
    same = first()
    mean_alone = train(x, y, same, 1 / width, step, target, both=False)
    mean_both = train(x, y, same, 1 / width, step, target, both=True)
    return Extremes(
        inner=float(np.mean([over_rms(run.hidden) for run in alone])),
        movement=float(np.mean([run.hidden.max() for run in alone])),
        outer=float(np.mean([over_rms(run.output) for run in both])),
        both_hidden=float(np.mean([over_rms(run.hidden) for run in both])),
        mean_inner=over_rms(mean_alone.hidden),
        mean_movement=float(mean_alone.hidden.max()),
        mean_both=over_rms(np.hypot(mean_both.hidden, mean_both.output)),
        risk=max(run.risk for run in (*alone, *both, mean_alone, mean_both)),
    )


def start(width: int, dimension: int, rng: np.random.Generator) -> Values:
    """Draw input weights in equal pairs, whose output weights will be opposite, shape ``(m, d)``."""
    return np.repeat(rng.standard_normal(((width + 1) // 2, dimension)), 2, axis=0)


def train(
    x: Values, y: Values, first: Values, scale: float, step: float, target: float, *, both: bool
) -> Moved:
    """Descend on the logistic risk from output weights ±1 until it is below the target.

    Args:
        x: examples, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.
        first: input weights, shape ``(m, d)``.
        scale: the output is this times Σ a_j ⟨w_j, x⟩₊.
        step: step size over 4n/λ_max of the network's own kernel at the start.
        target: the risk.
        both: whether output weights train too.
    """
    n = len(x)
    w = first.copy()
    at_first = np.tile([1.0, -1.0], len(w) // 2)
    a = at_first.copy()
    lr = 0.0
    risk = np.log(2.0)
    for t in range(MOST):
        inputs = x @ w.T
        gates = (inputs > 0).astype(float)
        features = inputs * gates
        margins = y * (scale * features @ a)
        risk = float(np.logaddexp(0, -margins).mean())
        if not risk >= target:
            break
        if t == 0:
            # the tangent kernel: Σ_j a_j² g_ij g_kj ⟨x_i, x_k⟩ of the hidden layer,
            # and Σ_j ⟨w_j, x_i⟩₊⟨w_j, x_k⟩₊ of the output weights
            kernel = (gates * a**2) @ gates.T * (x @ x.T) + both * features @ features.T
            lr = step * 4 * n / np.linalg.eigvalsh(scale**2 * kernel)[-1]
        slope = lr * scale * y / (1 + np.exp(margins)) / n
        # of the output weights before the step, as both layers step at once
        change = a[:, None] * (gates.T @ (slope[:, None] * x))
        if both:
            a = a + slope @ features
        w = w + change
    return Moved(np.linalg.norm(w - first, axis=1), np.abs(a - at_first), risk)


def over_rms(moved: Values) -> float:
    """Return the largest over the root mean square."""
    return float(moved.max() / np.sqrt(np.mean(moved**2)))
