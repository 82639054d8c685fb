"""How many steps and examples SGD needs to a risk, if each step is a small share φ of the best one.

On a quadratic with curvatures λ_i and noise of covariance Σ in the gradient of an example the best step is
η = ‖g‖²/(gᵀHg + tr HΣ/b). So 1/η is linear in 1/b at every point. As φ → 0 all batches follow the path of gradient
flow, where squares of errors are D_i e^{−2λ_iτ}, and a step goes on by φη in its time τ:

S = (1/φ) ∫ (gᵀHg + tr HΣ/b)/‖g‖² dτ = S_min + E_min/b,

with S_min and E_min the two parts. Their ratio is the mean of the noise scale tr HΣ/gᵀHg, each time τ having as much
weight as there are steps without noise.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from steepest.nn.types import Values

POINTS = 4001  # of the integrals over time; they are right to 10⁻⁵


class Needs(NamedTuple):
    """What gradient flow says of steps and examples.

    Attributes:
        steps: S_min, with batches of any size.
        examples: E_min, in batches as small as can be.
        early: the noise scale at the start.
        simple: the mean of tr Σ/‖g‖², the noise scale where all curvatures are alike, over steps without noise.
    """

    steps: float
    examples: float
    early: float
    simple: float


def needs(curvatures: Values, squares: Values, noise: float, target: float, share: float) -> Needs:
    """Return what it takes to come to a share of the first risk.

    Args:
        curvatures: λ, ``(d,)``.
        squares: of the errors at the start, ``(d,)``.
        noise: σ² of the covariance Σ = σ²H.
        target: the risk over that of the start.
        share: φ.
    """
    weights = curvatures * squares
    weights = weights / weights.sum()
    remaining = lambda time: float(weights @ np.exp(-2 * curvatures * time)) - target
    end = root_scalar(remaining, bracket=(0.0, 10 / curvatures.min()), xtol=1e-10).root
    # early times matter as much as late ones: steps are even in log(1 + τ)
    place = np.linspace(0, np.log1p(end), POINTS)
    time = np.expm1(place)
    # (times, d): ‖g‖² = Σ λ²D, gᵀHg = Σ λ³D and tr HΣ = σ² Σ λ²
    errors = squares * np.exp(-2 * curvatures * time[:, None])
    gradient = errors @ curvatures**2
    along = errors @ curvatures**3
    of_noise = noise * float((curvatures**2).sum())
    density = along / gradient
    # dτ = (1 + τ) d log(1 + τ)
    over_time = lambda values: float(np.trapezoid(values * (1 + time), place))
    simple = noise * float(curvatures.sum()) / gradient
    clean = over_time(density)
    return Needs(
        steps=clean / share,
        examples=over_time(of_noise / gradient) / share,
        early=of_noise / float(along[0]),
        simple=over_time(simple * density) / clean,
    )
