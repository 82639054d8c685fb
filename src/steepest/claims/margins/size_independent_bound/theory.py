"""Rademacher averages of one neuron in the plane: exact on a sample, and in the limit of many Gaussian points."""

import numpy as np
from jaxtyping import Float

from steepest.kernels import arc_cosine

DIRECTIONS = 256  # of the Gaussian process; twice as many change its largest value by 0.2 %
PROCESSES = 20_000  # draws of it, which leave 0.3 %


def neuron_correlation(x: Float[np.ndarray, "n 2"], signs: Float[np.ndarray, " n"]) -> float:
    """Return max |Σ_i σ_i relu⟨u, x_i⟩|/n over unit vectors u of the plane, exactly.

    Between two neighbours of the 2n angles at which a ⟨u, x_i⟩ changes its sign the sum is ⟨u, g⟩, with g the sum of
    σ_i x_i over the active points. On such an arc |⟨u, g⟩| is largest at an end, or at ±g/‖g‖ if that is in it.

    >>> neuron_correlation(np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([1.0, 1.0]))  # ‖(3, 4)‖/2
    2.5
    >>> neuron_correlation(np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([1.0, -1.0]))  # the longer one alone
    2.0
    """
    angles = np.arctan2(x[:, 1], x[:, 0])
    ends = np.sort(np.concatenate([angles - np.pi / 2, angles + np.pi / 2]) % (2 * np.pi))
    widths = np.diff(ends, append=ends[0] + 2 * np.pi)
    middles = ends + widths / 2
    active = np.cos(middles[:, None] - angles) > 0  # (arcs, n)
    # Σ σ_i x_i over the active points of each arc, (arcs, 2)
    g = (active * signs) @ x
    lengths = np.linalg.norm(g, axis=1)
    directions = np.arctan2(g[:, 1], g[:, 0])
    best = np.abs(lengths * np.cos(ends - directions)).max()
    # angle from the middle of the arc to the line through g
    away = np.abs((directions - middles + np.pi / 2) % np.pi - np.pi / 2)
    inside = lengths[away <= widths / 2]
    return float(max(best, inside.max(initial=0.0))) / len(x)


def neuron_constant(aspect: float, rng: np.random.Generator) -> float:
    """Return lim √n Rad of a neuron for Gaussian points of mean square length one: a process' mean largest modulus.

    Σ σ_i relu⟨u, x_i⟩/√n tends to a Gaussian process on the circle with the arc-cosine kernel as its covariance,

        E relu⟨u, x⟩ relu⟨u', x⟩ = s s' (sin φ + (π − φ) cos φ)/2π,

    where s = √(uᵀΣu) and s s' cos φ = uᵀΣu'.

    Args:
        aspect: standard deviation of the second coordinate over that of the first.
        rng: for draws of the process.
    """
    angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    u = np.stack([np.cos(angles), np.sin(angles)], 1) * _deviations(aspect)
    s = np.linalg.norm(u, axis=1)
    sizes = np.outer(s, s)
    covariance = sizes * arc_cosine(u @ u.T / sizes).outer
    variances, modes = np.linalg.eigh(covariance)
    # Gaussian of covariance VΛVᵀ from white noise; rounding leaves eigenvalues below zero
    process = (
        rng.standard_normal((PROCESSES, DIRECTIONS)) @ (modes * np.sqrt(variances.clip(min=0))).T
    )
    return float(np.abs(process).max(1).mean())


def _deviations(aspect: float) -> Float[np.ndarray, "2"]:
    return np.array([1.0, aspect]) / np.sqrt(1 + aspect**2)
