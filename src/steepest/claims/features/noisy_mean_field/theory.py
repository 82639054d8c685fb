"""A network of squares of infinite width, with decay and noise: its second moments, by equations in their own right.

With f(x) = xᵀ M x, a target xᵀ A x and Gaussian inputs the regularized risk of M = E θθᵀ, Δ = M − A, is

    G(M) = ½ (2 tr Δ² + tr² Δ) + ½ λ tr M,      θ' = −B θ + √(2τ) noise,      B = 4Δ + 2 tr Δ + λ.

All matrices here are diagonal, in the basis of A's eigenvectors, but for the starts of :func:`path`.
"""

import numpy as np
from scipy.optimize import brentq

from steepest.nn.types import Values

ROUNDS = 30  # of the fixed point of the step's heat: each gains a factor of 50 and more


def regularized(M: Values, A: Values, decay: float) -> Values:
    """Return G(M) for matrices ``(..., D, D)``."""
    delta = M - A
    trace = np.trace(delta, axis1=-2, axis2=-1)
    # ½E(xᵀΔx)² = tr Δ² + ½ tr² Δ for Gaussian x: Wick's three pairings, two of them equal
    squares = (delta**2).sum((-2, -1))
    return squares + trace**2 / 2 + decay / 2 * np.trace(M, axis1=-2, axis2=-1)


def moments(target: Values, decay: float, temperature: float, step: float = 0.0) -> Values:
    """Return the eigenvalues of M that noise ends at, from those of A, ``(D,)``.

    b_i m_i = τ, b_i = 4(m_i − a_i) + 2t + λ, t = Σ(m_j − a_j). For a given t each m_i is the positive root of a
    quadratic and falls with t, so that there is one t. Steps of length h heat a direction by 1/(1 − hb_i/2).
    """
    heat = np.full(len(target), temperature)
    for _ in range(ROUNDS):
        trace = _root(target, decay, heat)
        sizes = _sizes(trace, target, decay, heat)
        # Euler's steps keep (1 − hb)² of the variance and add 2τh: it ends at τ/(b(1 − hb/2))
        pull = 4 * (sizes - target) + 2 * trace + decay
        heat = temperature / (1 - step * pull / 2)
    return sizes


def best(target: Values, decay: float, directions: int | None = None) -> Values:
    """Return the eigenvalues of the M of least G among those of a rank, all ranks by default, ``(D,)``.

    The largest a_i are filled: of those that are, m_i = a_i − (2t + λ)/4, with t = Σ(m_j − a_j).
    """
    order = np.argsort(-target)
    allowed = len(target) if directions is None else directions
    for filled in range(allowed, -1, -1):
        empty = target[order[filled:]].sum()
        # sum of m_i − a_i: t = −k(2t + λ)/4 over k filled, less the a_i of the empty ones
        trace = -(empty + filled * decay / 4) / (1 + filled / 2)
        sizes = np.zeros(len(target))
        sizes[order[:filled]] = target[order[:filled]] - (2 * trace + decay) / 4
        if (sizes[order[:filled]] > 0).all():
            return sizes
    raise AssertionError("nothing filled is always possible")


def slack(target: Values, decay: float) -> Values:
    """Return b_i at the best M: zero where it is filled, and how steeply the risk rises where it is empty."""
    sizes = best(target, decay)
    return 4 * (sizes - target) + 2 * (sizes - target).sum() + decay


def path(
    start: Values, A: Values, decay: float, temperature: float, step: float, steps: int
) -> Values:
    """Return M after 0, 1, …, steps − 1 steps of noisy descent at infinite width, ``(steps, D, D)``."""
    eye = np.eye(len(A))
    M = start
    along = [M]
    for _ in range(steps - 1):
        delta = M - A
        # second moments close: θ ← (1 − hB)θ + √(2τh) ξ with B the same for all neurons
        keep = eye - step * (4 * delta + (2 * np.trace(delta) + decay) * eye)
        M = keep @ M @ keep + 2 * step * temperature * eye
        along.append(M)
    return np.stack(along)


def time_below(over: Values, bound: float, step: float) -> float:
    """Return when a path that falls is first below a bound; between steps its logarithm is linear."""
    first = int(np.argmax(over < bound))
    if over[first] >= bound:
        return step * len(over)
    ends = np.log(over[[first, first - 1]])
    return step * (first - float(np.interp(np.log(bound), ends, [0.0, 1.0])))


def _root(target: Values, decay: float, heat: Values) -> float:
    reach = 1 + np.abs(target).sum() + decay + heat.sum()
    # each m_i falls with t, so that Σ(m_i − a_i) − t has one root
    over = lambda trace: float((_sizes(trace, target, decay, heat) - target).sum() - trace)
    root: float = brentq(over, -4 * reach, 4 * reach, xtol=1e-14)  # pyright: ignore
    return root


def _sizes(trace: float, target: Values, decay: float, heat: Values) -> Values:
    """Return the positive roots m of m (4(m − a) + 2 trace + λ) = τ."""
    lean = decay + 2 * trace - 4 * target
    # the stable form of (−p + √(p² + 16τ))/8 for p > 0
    size = np.sqrt(lean**2 + 16 * heat)
    return np.where(lean > 0, 2 * heat / (lean + size), (size - lean) / 8)
