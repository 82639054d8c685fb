"""Ascent of a symmetric tensor of order four with many random components."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from steepest.core.errors import UserError
from steepest.core.signatures import checked

MERGE = 0.5
"""Overlap of two components from which they share one maximum, half-way between them: an angle of 60°."""


class Ascent(NamedTuple):
    """Where an ascent ended.

    Attributes:
        points: on the unit sphere, shape ``(starts, d)``.
        value: f there, shape ``(starts,)``.
        moved: length of the last step, shape ``(starts,)``.
    """

    points: Float[Array, "starts d"]
    value: Float[Array, " starts"]
    moved: Float[Array, " starts"]


@checked
def tensor_ascent(
    components: Float[Array, "n d"], starts: Float[Array, "starts d"], steps: int
) -> Ascent:
    r"""Ascend f on the unit sphere by the power iteration, which never lowers it.

    .. math:: f(x) = \sum_i ⟨a_i, x⟩^4, \qquad x ← \sum_i ⟨a_i, x⟩^3 a_i \,/\, \|·\|

    f is convex, so that x ← ∇f/‖∇f‖ maximizes its linear part over the sphere and f rises at every step.

    Args:
        components: a_i, shape ``(n, d)``; rows of zeros count for nothing.
        starts: shape ``(starts, d)``, scaled to the sphere.
        steps: how many.

    Raises:
        UserError: shapes that do not fit, or no step.

    >>> ends = tensor_ascent(jnp.eye(3), jnp.array([[0.9, 0.3, 0.1]]), 20)
    >>> ends.points.round(6).tolist(), ends.value.round(6).tolist()
    ([[1.0, 0.0, 0.0]], [1.0])
    """
    if components.ndim != 2 or starts.ndim != 2 or components.shape[1] != starts.shape[1]:
        raise UserError(
            "tensor_ascent: expected components (n, d) and starts (starts, d) of one dimension d, got shapes "
            f"{components.shape} and {starts.shape}; give one row for each"
        )
    if steps < 1:
        raise UserError(f"tensor_ascent: expected at least one step, got {steps}")
    unit = lambda x: x / jnp.sqrt((x**2).sum(-1, keepdims=True))
    # ∇f/‖∇f‖, as ∇f = 4 Σ ⟨a_i, x⟩³ a_i
    step = lambda x: unit((x @ components.T) ** 3 @ components)
    before = jax.lax.fori_loop(0, steps - 1, lambda _, x: step(x), unit(starts))
    points = step(before)
    value = ((points @ components.T) ** 4).sum(-1)
    return Ascent(points, value, jnp.sqrt(((points - before) ** 2).sum(-1)))


@checked
def pair_angle(overlap: ArrayLike) -> Float[np.ndarray, "*shape"]:
    r"""Return the angle from a component to its maximum of f, where there is one other component, at this overlap.

    .. math:: \cos^3 θ \sin θ = \cos^3(ψ - θ) \sin(ψ - θ), \qquad \cos ψ = c

    It is c³ for small c. At c = ½ the two maxima merge half-way, and above it the angle is ψ/2.

    Args:
        overlap: c = |⟨a_1, a_2⟩|, from 0 to 1.

    Raises:
        UserError: overlaps outside of 0 to 1.

    >>> pair_angle([0.1, 0.5]).round(5).tolist()  # 0.1³ and more, 30°
    [0.00103, 0.5236]
    """
    values = np.asarray(overlap, float)
    if not ((values >= 0) & (values <= 1)).all():
        raise UserError(
            f"pair_angle: expected overlaps from 0 to 1, got {values.min():.3g} to {values.max():.3g}; "
            "take absolute values of inner products of unit vectors"
        )
    return np.interp(values, *_table())


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Return overlaps and angles, closer where the angle bends; interpolation errs by 1e-6."""
    # the angle ends in a square root at c = ½, where two maxima merge: nodes are dense there
    overlaps = np.concatenate([MERGE * (1 - np.linspace(1, 0, 400) ** 2), np.linspace(0.51, 1, 50)])
    angles = []
    for c in overlaps:
        psi = np.arccos(c)
        if c >= MERGE or c == 0:
            angles.append(psi / 2 if c else 0.0)  # one maximum, half-way
            continue
        pull = lambda t, psi=psi: (
            np.cos(t) ** 3 * np.sin(t) - np.cos(psi - t) ** 3 * np.sin(psi - t)
        )
        # the difference rises from below zero to one hump and falls to zero at ψ/2
        grid = np.linspace(0, psi / 2, 200)[:-1]
        hump = grid[np.argmax(pull(grid))]
        angles.append(brentq(pull, 0, hump))
    return overlaps, np.array(angles)
