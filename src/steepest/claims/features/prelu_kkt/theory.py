"""What theory says of p-ReLU networks on orthogonal centres: margins of KKT points, and residuals of others."""

from collections.abc import Sequence

import numpy as np
import xarray


def margins(powers: Sequence[float], clusters: Sequence[int]) -> dict[str, np.ndarray]:
    """Return the margins of exact networks over that of centres: k/2 over the sum of strengths of a class."""
    power = np.array(powers)[:, None]
    half = np.array(clusters) / 2
    shared = (half - 1) ** (-1 / power)  # weight of the shared centre over that of the other
    # a unit vector over m orthonormal centres has the p-th power m^(−p/2) at each of them:
    # margins of one take a strength of m^(p/2)
    strengths = {
        "centres": half * np.ones_like(power),
        "uneven": 1 + (half - 1) ** (power / 2),
        "averages": half ** (power / 2),
        "overlapping": (half - 1) * (1 + shared**2) ** (power / 2),
    }
    return {name: half / strength for name, strength in strengths.items()}


def residuals_of_two_to_one(powers: Sequence[float], clusters: Sequence[int]) -> np.ndarray:
    """Return the KKT residual of neurons that weigh each centre in turn twice, ``(powers, problems)``."""
    power = np.array(powers)[:, None]
    others = np.array(clusters) / 2 - 1
    size = np.sqrt(4 + others)
    first = (2**power + others) / size**power  # q
    second = (2 ** (2 * power - 2) + others) / size ** (2 * power - 2)  # Q
    # for unit v and w: ⟨θ, ∇⟩ = 2q, ‖∇‖² = p²Q + (2 − p²)q², ‖θ‖² = 2; the residual is the sine
    excess = np.maximum(second - first**2, 0.0)
    return power * np.sqrt(excess / (power**2 * second + (2 - power**2) * first**2))


def disagreement(
    w: xarray.DataArray, v: xarray.DataArray, power: xarray.DataArray
) -> xarray.DataArray:
    """Return how far neurons are from weighing each centre of their class alike: D ≥ 0, zero where they do.

    D² = min over λ ≥ 0 of Σ_j s_j ‖g_j − û_j‖² / Σ_j s_j for neurons in directions û_j, of strength s_j = |v_j|‖w_j‖
    and sign σ_j, where g_j has the entry σ_j y_i λ_i û_ji^(p−1) at the centres that the neuron sees, zero elsewhere.

    Args:
        w: input weights, with dimensions ``neuron`` and ``centre``; the classes of centres alternate, + first.
        v: output weights, with the dimension ``neuron``.
        power: p.
    """
    y = xarray.DataArray(1.0 - 2 * (np.arange(w.sizes["centre"]) % 2), dims="centre")
    size = (w**2).sum("centre") ** 0.5
    strength = abs(v) * size
    unit = w / size.where(size > 0, 1.0)  # absent neurons are zero
    # at p = 1 zero to the power zero would be one
    slope = np.sign(v) * y * (unit.clip(min=0) ** (power - 1)).where(unit > 0, 0.0)
    # centres do not mix: least squares over neurons for each λ_i, and zero where it is negative
    square = (strength * slope**2).sum("neuron")
    best = (strength * slope * unit).sum("neuron") / square.where(square > 0, 1.0)
    apart = ((best.clip(min=0) * slope - unit) ** 2).sum("centre")
    return ((strength * apart).sum("neuron") / strength.sum("neuron")) ** 0.5
