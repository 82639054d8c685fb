"""When neurons have selected: the bound, and exact arcs between gates."""

import numpy as np

from steepest.claims.features.alignment_time.sets import Sets, head_start, separability, shortest
from steepest.nn.types import Values


def worst(sets: Sets) -> np.ndarray:
    """Return (arcosh(1/μ) − artanh p₀)/min‖x‖ of every neuron, ``(sets, neurons)``."""
    wait = np.arccosh(1 / separability(sets))[:, None] - head_start(sets)
    # none is left for neurons so near to an example that they have selected
    return np.maximum(wait, 1e-6) / shortest(sets)


def selection_time(sets: Sets, *, others: bool = True) -> np.ndarray:
    """Return when neurons have selected, by exact arcs, ``(sets, neurons)``; infinite for those that die.

    With dτ = ‖w‖dt a neuron follows w' = G, so that ⟨w, s_i⟩ is linear until the next of them is zero, and
    t = ∫dτ/‖w + τG‖. Where ``others`` is false examples of the other class do not pull.
    """
    x, y, u, sign = sets
    z = y[:, None, :] * sign[..., None]
    s = z[..., None] * x[:, None]  # (sets, neurons, n, d)
    # s_i = σ y_i x_i: ⟨w, s_i⟩ = ⟨w, x_i⟩ for the own class, −⟨w, x_i⟩ for the other
    of_class = z > 0
    products = np.einsum("sjnd,sjd->sjn", s, u)
    w = u
    time = np.zeros(sign.shape)
    for _ in range(x.shape[1]):
        wrong = products < 0
        # gates are open at ⟨w, x⟩ > 0: an example of the other class pulls while ⟨w, s_i⟩ < 0
        active = np.where(of_class, ~wrong, wrong & others)
        pull = np.einsum("sjn,sjnd->sjd", active, s)
        rate = np.einsum("sjnd,sjd->sjn", s, pull)
        with np.errstate(invalid="ignore", divide="ignore"):
            until = np.where(wrong, -products / rate, np.inf)
        index = until.argmin(-1)[..., None]
        step = np.take_along_axis(until, index, -1)
        moves = np.isfinite(step)
        time = np.where(wrong.any(-1) & ~moves[..., 0], np.inf, time)
        step = np.where(moves, step, 0.0)
        time = time + _duration(w, pull, step[..., 0])
        products = products + step * rate
        # the product that was crossed is zero exactly: rounding must not leave it wrong once more
        np.put_along_axis(
            products, index, np.where(moves, 0.0, np.take_along_axis(products, index, -1)), -1
        )
        w = w + step * pull
        # the path of directions does not depend on ‖w‖, as τ and the products scale with it
        size = np.linalg.norm(w, axis=-1, keepdims=True)
        w = w / size
        products = products / size
    return time


def _duration(w: Values, pull: Values, step: Values) -> np.ndarray:
    """Return ∫dτ/‖w + τG‖ over 0 ≤ τ ≤ step."""
    # ∫dτ/√(a + 2bτ + cτ²) = arsinh((b + cτ)/√(ac − b²))/√c, a = ‖w‖², b = ⟨w, G⟩, c = ‖G‖²
    square = (pull**2).sum(-1)
    along = (w * pull).sum(-1)
    across = np.sqrt(np.maximum((w**2).sum(-1) * square - along**2, 1e-300))
    turned = np.arcsinh((along + step * square) / across) - np.arcsinh(along / across)
    return turned / np.sqrt(np.maximum(square, 1e-300))


def lengths(sets: Sets, *, count: bool = False, least: bool = False) -> np.ndarray:
    """Return ‖x₊‖ of every neuron's class, ``(sets, neurons)``.

    With ``count`` the sum of its examples' lengths instead; with ``least`` what is left of it at cosines μ.
    """
    of_class = (sets.sign[..., None] * sets.y[:, None] > 0).astype(float)
    length = np.linalg.norm(sets.x, axis=-1)
    total = of_class @ length[..., None]
    if count:
        return total[..., 0]
    if least:
        # ‖Σ x_i‖² ≥ Σ‖x_i‖² + μ Σ_{i≠j} ‖x_i‖‖x_j‖ = (1 − μ) Σ‖x_i‖² + μ (Σ‖x_i‖)²
        squares = of_class @ (length**2)[..., None]
        mu = separability(sets)[:, None, None]
        return np.sqrt((1 - mu) * squares + mu * total**2)[..., 0]
    return np.linalg.norm(of_class @ sets.x, axis=-1)
