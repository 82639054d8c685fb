"""What theory says of the posterior: moments of the scale s, evidences, and networks near the limit."""

from collections.abc import Sequence

import numpy as np

from steepest import kit
from steepest.bayes import (
    best_variance,
    limit_scale,
    log_evidence,
    posterior_scale,
    scale_mixture,
)

LIMIT_LAYERS = 64
"""Layers of the networks that are compared with the limit of many layers."""
RATIO = 4
"""Ratio of the two widths that these networks have in turn."""
Widths = Sequence[float]


def scale_moments(
    widths: Widths, points: float, size: float, power: float | None = None
) -> tuple[float, float]:
    """Return E s and E s² under the prior of s times s^(−power/2) e^(−PA/2s); the posterior has the power P."""
    power = points if power is None else power
    logs = [scale_mixture(widths, power / 2 - moment, points * size / 2) for moment in (0, 1, 2)]
    return float(np.exp(logs[1] - logs[0])), float(np.exp(logs[2] - logs[0]))


def spread(first: kit.Values, second: kit.Values, off: int) -> kit.Values:
    """Return E‖θ_⊥‖⁴/(E‖θ_⊥‖²)² from the first two moments of s: (d + 2)/d E s²/(E s)² in d dimensions."""
    return (off + 2) / off * np.asarray(second) / np.asarray(first) ** 2


def evidence_ratio(layers: int, points: int, size: float) -> float:
    """Return Z(L)/Z(0) of a network of width P."""
    deep = log_evidence((points,) * layers, points, size)
    return float(np.exp(deep - log_evidence((), points, size)))


def limit_evidence(layers: int, points: int, size: float) -> float:
    """Return exp P times the limit of (1/P) log Z(L)/Z(0): max over u of (A − u − Ae^(−u) − u²/2λ)/2."""
    u = np.log(limit_scale(layers, size))  # λ = L where n = P
    return float(np.exp(points / 2 * (size - u - size * np.exp(-u) - u**2 / (2 * layers))))


def limit_scales(depths: Sequence[float], sizes: Sequence[float]) -> kit.Values:
    """Return s of the limit at every size and effective depth, ``(sizes, depths)``."""
    return np.array([[limit_scale(depth, size) for depth in depths] for size in sizes])


# ------------------------------------------------------------------------------ finite networks near the limit


def finite_scales(points: float, depths: Sequence[float], sizes: Sequence[float]) -> kit.Values:
    """Return the exact E s of networks with PΣ1/n_l = λ, of equal widths and of two in turn, ``(2, sizes, depths)``."""
    return np.array(
        [
            [
                [posterior_scale(widths(points, depth), points, size) for depth in depths]
                for size in sizes
            ]
            for widths in (equal_widths, two_widths_in_turn)
        ]
    )


def equal_widths(points: float, depth: float) -> tuple[float, ...]:
    """Return equal widths with PΣ1/n_l = λ."""
    return (LIMIT_LAYERS * points / depth,) * LIMIT_LAYERS


def two_widths_in_turn(points: float, depth: float) -> tuple[float, ...]:
    """Return two widths in turn with PΣ1/n_l = λ; their mean is (1 + r)²/4r times the harmonic one."""
    narrow = LIMIT_LAYERS * points / depth * (1 + 1 / RATIO) / 2
    return (narrow, RATIO * narrow) * (LIMIT_LAYERS // 2)


def gaps_to_limit(points: Sequence[float], depth: float, size: float) -> kit.Values:
    """Return |E s/s − 1|, s of the limit, of networks with so many layers that only P is left to be finite."""
    limit = limit_scale(depth, size)
    exact = [posterior_scale((32 * p**2 / depth,) * int(32 * p), p, size) for p in points]
    return np.abs(np.array(exact) / limit - 1)


def excess_of_best_variance(
    points: Sequence[float], layers: Sequence[int], size: float
) -> kit.Values:
    """Return log(σ̃²/A) of networks of width P, σ̃² the prior variance of largest evidence, ``(layers, points)``."""
    return np.array(
        [[np.log(best_variance((p,) * n, p, size) / size) for p in points] for n in layers]
    )
