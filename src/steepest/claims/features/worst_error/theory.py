"""Errors of infinitely wide students over the sphere: regression with their tangent kernel, and a search."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from steepest.kernels import arc_cosine
from steepest.nn.types import Values

JITTER = 1e-9
CANDIDATES = 6000  # random points, which the mean error is taken over
CLIMBERS = 12  # worst of them, from which the search goes on
ROUNDS = 120


def tangent_kernel(
    x: Float[np.ndarray, "n d"], z: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, "n m"]:
    """Return the tangent kernel of Σ v_j relu⟨w_j, x⟩ on the sphere, both layers trained, at Gaussian w and v.

    With φ the angle of two points: κ₁ + κ₀ cos φ, κ₁ = (sin φ + (π − φ) cos φ)/2π and κ₀ = (π − φ)/2π.
    """
    kernels = arc_cosine(x @ z.T)
    return kernels.outer + kernels.inner


def kernel_errors(
    rng: np.random.Generator, x: Values, target: Callable[[Values], Values]
) -> tuple[float, float]:
    """Return the largest and the root mean square error over the sphere of the interpolant of least kernel norm.

    Args:
        rng: draws points of the sphere, and the steps of a random search from the worst of them.
        x: samples, ``(n, d)``.
        target: the function that they are samples of.
    """
    gram = tangent_kernel(x, x) + JITTER * np.eye(len(x))
    # the interpolant of least norm is Σ_i c_i K(x_i, ·) with K c = y
    weights = np.linalg.solve(gram, target(x))
    error = lambda z: np.abs(target(z) - tangent_kernel(z, x) @ weights)
    points = rng.standard_normal((CANDIDATES, x.shape[1]))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    errors = error(points)
    mean_square = (errors**2).mean()
    worst = np.argsort(-errors)[:CLIMBERS]
    points = points[worst]
    errors = errors[worst]
    for size in np.geomspace(0.1, 0.002, ROUNDS):
        moved = points + size * rng.standard_normal(points.shape)
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        values = error(moved)
        better = values > errors
        points[better] = moved[better]
        errors[better] = values[better]
    return float(errors.max()), float(np.sqrt(mean_square))
