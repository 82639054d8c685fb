"""How far neurons move, from the descent of the limit kernel: to first order, and output weights to second."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steepest.kernels import arc_cosine
from steepest.nn.types import Values

POOL = 50_000  # neurons over which averages and extremes are taken
MOST = 4000  # steps after which kernel descent is given up


class Pull(NamedTuple):
    """What the examples pull while the limit kernel descends to the risk.

    Attributes:
        total: C_i, the sum over steps of η y_i times the logistic slope, ``(n,)``.
        delayed: D_ik, the sum over steps of the pull of i times all pulls of k before it, ``(n, n)``.
    """

    total: Values
    delayed: Values


def pull(kernel: Values, y: Values, step: float, target: float) -> Pull:
    """Descend on the logistic risk with a kernel.

    Args:
        kernel: of the examples, shape ``(n, n)``.
        y: labels ±1, shape ``(n,)``.
        step: step size over 4n/λ_max.
        target: risk at which descent stops.
    """
    n = len(y)
    # ℓ'' ≤ ¼: the mean logistic risk curves by λ_max/4n at most in the kernel's features
    lr = step * 4 * n / np.linalg.eigvalsh(kernel)[-1]
    total = np.zeros(n)
    delayed = np.zeros((n, n))
    for _ in range(MOST):
        margins = y * (kernel @ total)
        if np.logaddexp(0, -margins).mean() < target:
            break
        now = lr * y / (1 + np.exp(margins)) / n
        # total holds the pulls before this one, so that it grows after the line that reads it
        delayed += np.outer(now, total)
        total = total + now
    return Pull(total, delayed)


class Movements(NamedTuple):
    """What the theory says of each of many neurons, ``(POOL,)`` each, and √m times what a neuron moves.

    Attributes:
        hidden: √m ‖Δw‖ where the hidden layer trains alone, to first order.
        output: √m |Δa| where both train, to first order.
        grown: m times its second order: a neuron whose input weights have moved is more active.
    """

    hidden: Values
    output: Values
    grown: Values


def movements(x: Values, y: Values, step: float, target: float) -> Movements:
    """Return how far neurons drawn at random move.

    With gates g_i = 1[⟨w, x_i⟩ > 0] an output weight ±1 moves by Σ_i C_i ⟨w, x_i⟩₊/√m ± Σ_ik g_i D_ik ⟨x_i, x_k⟩ g_k/m.
    """
    rng = np.random.default_rng(0)
    cosines = x @ x.T
    kernels = arc_cosine(cosines)
    alone = pull(kernels.inner, y, step, target)
    both = pull(kernels.inner + kernels.outer, y, step, target)
    inputs = rng.standard_normal((POOL, x.shape[1])) @ x.T
    gates = (inputs > 0).astype(float)
    return Movements(
        # √m Δw_j = a_j Σ_i C_i g_i x_i
        hidden=np.linalg.norm(gates @ (alone.total[:, None] * x), axis=1),
        output=np.abs(np.maximum(inputs, 0) @ both.total),
        # Δw_j by the pulls before lifts ⟨w_j, x_i⟩ by a_j/√m Σ_k C_k g_k ⟨x_i, x_k⟩ at the next one
        grown=np.abs(((gates @ (both.delayed * cosines)) * gates).sum(1)),
    )


def far_outputs(moved: Movements, widths: Sequence[int], *, second: bool = True) -> Values:
    """Return the expected farthest output weight over the rms at each width, ``(widths,)``.

    Of two neurons with opposite output weights one moves farther by its second order, and the other less.
    """
    ratios = []
    for m in widths:
        more = second * moved.grown / np.sqrt(m)
        # a pair moves by o + s and |o − s|: its mean square is o² + s²
        rms = np.sqrt(np.mean(moved.output**2 + more**2))
        ratios.append(largest(moved.output + more, m) / rms)
    return np.array(ratios)


def far_hidden(moved: Movements, widths: Sequence[int]) -> Values:
    """Return √m times the expected movement of the farthest hidden neuron at each width, ``(widths,)``."""
    return np.array([largest(moved.hidden, m) for m in widths])


def gaussian_extremes(widths: Sequence[int]) -> Values:
    """Return the expected largest of m/2 absolute values of standard Gaussians, ``(widths,)``."""
    draws = np.abs(np.random.default_rng(0).standard_normal(POOL))
    return np.array([largest(draws, m) for m in widths])


def largest(size: Values, width: int) -> float:
    """Return the expected largest of the m/2 different neurons of a network, by their empirical law."""
    ordered = np.sort(size)
    # P(max ≤ x) = F(x)^(m/2), so that the i-th of n has the weight (i/n)^(m/2) − ((i − 1)/n)^(m/2)
    below = np.arange(len(ordered) + 1) / len(ordered)
    return float(ordered @ np.diff(below ** ((width + 1) // 2)))
