"""What kernel training says of a shifted signal: the learned function of a pooled convolution, by closed forms.

One convolution of ReLU over windows, without biases, and a mean over N positions. With k = 2 ⟨window, window'⟩/(taps ×
channels), the covariance of two signals before ReLU, and κ₁, κ₀ the arc-cosine kernels,

    Θ(x, x') = (2/N²) Σ_pq [κ₁(k_pq) + κ₀(k_pq) k_pq],    K(x, x') the same without κ₀.

Descent of step η on the mean of ½(f − y)² over m signals, from f = 0, comes in t steps to
f_t(x) = Θ(x, X) (1/m) Σ_{s<t} η (1 − ηΘ/m)^s y. Windows of a circle only change places when the signal shifts, and the
sum over p stays. At a border of zeros other windows are cut after the shift: the difference of the two sums is left.
"""

from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values


class Kernels(NamedTuple):
    """Kernels between two sets of signals, ``(a, b)``."""

    nngp: Values
    ntk: Values


def windows(signals: Values, taps: int, *, circular: bool) -> Values:
    """Return what a filter reads at each position, ``(…, N, taps × C)``.

    >>> windows(np.array([[[1.0], [2.0], [3.0]]]), 3, circular=False)[0].tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 0.0]]
    """
    half = taps // 2
    edges = [(0, 0)] * (signals.ndim - 2) + [(half, half), (0, 0)]
    padded = np.pad(signals, edges, mode="wrap" if circular else "constant")
    count = signals.shape[-2]
    return np.concatenate([padded[..., tap : tap + count, :] for tap in range(taps)], axis=-1)


def kernels(a: Values, b: Values) -> Kernels:
    """Return the kernels of pooled networks between signals whose windows are given.

    Args:
        a: windows of signals, ``(a, N, D)``.
        b: windows of others, ``(b, N, D)``.
    """
    positions, width = a.shape[-2:]
    flat_a = a.reshape(-1, width)
    flat_b = b.reshape(-1, width)
    covariance = 2 * flat_a @ flat_b.T / width  # k_pq = 2⟨window, window'⟩/D, C_W = 2
    sizes = 2 * np.outer((flat_a**2).sum(1), (flat_b**2).sum(1)) ** 0.5 / width
    cosine = np.divide(covariance, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    cosine = np.clip(cosine, -1, 1)
    angle = np.pi - np.arccos(cosine)  # in which both neurons are active
    # κ₁ = E σσ', arc-cosine of degree 1
    read = sizes * (np.sqrt(1 - cosine**2) + cosine * angle) / (2 * np.pi)
    gated = covariance * angle / (2 * np.pi)  # κ₀ k, with κ₀ = E gg'
    # (2/N²) Σ_pq: the last layer has C_W = 2 too, and a mean over positions on either side
    pooled = lambda pairs: 2 * pairs.reshape(len(a), positions, len(b), positions).mean((1, 3))
    nngp = pooled(read)
    return Kernels(nngp, nngp + pooled(gated))


def coefficients(kernel: Values, y: Values, rate: float, steps: tuple[int, ...]) -> Values:
    """Return c_t of f_t(x) = Θ(x, X) c_t after some numbers of steps of descent from f = 0, ``(steps, m)``.

    Args:
        kernel: Θ of the training signals, ``(m, m)``.
        y: targets, ``(m,)``.
        rate: η.
        steps: t.
    """
    m = len(y)
    values, vectors = np.linalg.eigh(kernel / m)
    # geometric sum: Σ_{s<t} η (1 − ηλ)^s = (1 − (1 − ηλ)^t)/λ; where λ is zero, Θ c is too
    power = (1 - rate * values) ** np.array(steps)[:, None]
    gained = np.divide(
        1 - power, values, out=np.zeros_like(power), where=values > 1e-12 * values[-1]
    )
    return gained * (vectors.T @ y) @ vectors.T / m


def root_mean_square(values: Values) -> Values:
    """Return √ of the mean square over the last axis."""
    return np.sqrt((values**2).mean(-1))


def deviation(outputs: Values) -> Values:
    """Return by how much outputs of shifted signals deviate in the root mean square over signals, ``(times, shifts)``.

    Args:
        outputs: of unshifted signals and of shifted ones, ``(times, shifts + 1, tests)``.
    """
    return root_mean_square(outputs[:, 1:] - outputs[:, :1])


def largest_move(outputs: Values) -> Values:
    """Return the largest change under a shift, over the root mean square of outputs, ``(times,)``."""
    moves = np.abs(outputs[:, 1:] - outputs[:, :1]).max((1, 2))
    return moves / root_mean_square(outputs[:, 0])
