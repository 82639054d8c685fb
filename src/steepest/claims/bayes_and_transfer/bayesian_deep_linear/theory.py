"""What theory says of the posterior: moments of the scale s, and evidences."""

from collections.abc import Sequence

import numpy as np

from steepest import kit
from steepest.bayes import limit_scale, log_evidence, scale_mixture

Widths = Sequence[float]


def scale_moments(
    widths: Widths, points: float, size: float, power: float | None = None
) -> tuple[float, float]:
    """Return E s and E s² under the prior of s times s^(−power/2) e^(−PA/2s); the posterior has the power P."""
    power = points if power is None else power
    # a moment E s^m takes 2m off the power of s in the weight
    logs = [scale_mixture(widths, power / 2 - moment, points * size / 2) for moment in (0, 1, 2)]
    return float(np.exp(logs[1] - logs[0])), float(np.exp(logs[2] - logs[0]))


def spread(first: kit.Values, second: kit.Values, off: int) -> kit.Values:
    """Return E‖θ_⊥‖⁴/(E‖θ_⊥‖²)² from the first two moments of s: (d + 2)/d E s²/(E s)² in d dimensions."""
    # given s, θ_⊥ is Gaussian in d dimensions: E‖θ_⊥‖⁴ = (d + 2)/d (E‖θ_⊥‖²)²
    return (off + 2) / off * np.asarray(second) / np.asarray(first) ** 2


def evidence_ratio(layers: int, points: int, size: float) -> float:
    """Return Z(L)/Z(0) of a network of width P."""
    deep = log_evidence((points,) * layers, points, size)
    return float(np.exp(deep - log_evidence((), points, size)))


def limit_evidence(layers: int, points: int, size: float) -> float:
    """Return exp P times the limit of (1/P) log Z(L)/Z(0): max over u of (A − u − Ae^(−u) − u²/2λ)/2."""
    u = np.log(limit_scale(layers, size))  # λ = L where n = P
    return float(np.exp(points / 2 * (size - u - size * np.exp(-u) - u**2 / (2 * layers))))
