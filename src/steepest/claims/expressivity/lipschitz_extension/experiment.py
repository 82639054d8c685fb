"""Lipschitz maps of a few points, and the constant with which they extend to one point more."""

import numpy as np
from scipy.optimize import minimize

CUBE = 5  # dimensions of the cube whose corners are mapped
SIZES = (0.5, 0.2, 0.1, 0.05)  # of the moves of a search, one after the other
TRIES = 12  # moves of each size


def needed_constant(images: np.ndarray, distances: np.ndarray) -> float:
    """Return the least Lipschitz constant at one point more: ``min_z max_i ‖z − f_i‖/‖x − x_i‖``, a convex program.

    Args:
        images: f_i, shape ``(points, d)``.
        distances: ‖x − x_i‖, in the norm of where the points are, shape ``(points,)``.
    """
    constant, converged = _program(images, distances, np.average(images, 0, distances**-2))
    if converged or constant <= 1:
        return constant
    # an exception to Kirszbraun's theorem must not be one of the solver's, so that it starts near every image too
    starts = images + 1e-3 * (images.mean(0) - images)
    return min(constant, *(_program(images, distances, start)[0] for start in starts))


def _program(images: np.ndarray, distances: np.ndarray, start: np.ndarray) -> tuple[float, bool]:
    """Return the constant that is found from a start, which is never below the least, and whether it converged."""
    reached = lambda z: float((np.linalg.norm(images - z, axis=1) / distances).max())
    weights = distances**-2
    # unknowns (z, c²): c² − ‖z − f_i‖²/‖x − x_i‖² ≥ 0 at all i, which is convex
    room = lambda u: u[-1] - ((u[:-1] - images) ** 2).sum(1) * weights
    slopes = lambda u: np.column_stack([-2 * (u[:-1] - images) * weights[:, None], ones])
    ones = np.ones(len(images))
    last = np.append(np.zeros(images.shape[1]), 1.0)
    solution = minimize(
        lambda u: u[-1],
        np.append(start, reached(start) ** 2),
        jac=lambda u: last,
        constraints=[{"type": "ineq", "fun": room, "jac": slopes}],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 100},
    )
    # measured at z itself, as what the solver holds for c² may be too small
    return min(reached(start), reached(solution.x[:-1])), bool(solution.success)


def constant_of(x: np.ndarray, images: np.ndarray, order: float) -> float:
    """Return the constant that the point 0 needs over that of the map ``x_i → f_i`` itself.

    Args:
        x: points, shape ``(points, n)``.
        images: their images, in Euclidean space, shape ``(points, d)``.
        order: of the norm of where the points are, 2 or infinity.
    """
    first, second = np.triu_indices(len(x), 1)
    before = np.linalg.norm(x[first] - x[second], ord=order, axis=1)
    after = np.linalg.norm(images[first] - images[second], axis=1)
    return needed_constant(images, np.linalg.norm(x, ord=order, axis=1)) / (after / before).max()


def climb(across: int, order: float, rng: np.random.Generator) -> float:
    """Return the largest constant that a search finds: d + 1 points and their images move where it grows.

    Args:
        across: d, of the points and of where they are mapped.
        order: of the norm of where the points are.
        rng: draws the moves.
    """
    place = rng.standard_normal((2, across + 1, across))
    best = constant_of(place[0], place[1], order)
    for size in SIZES:
        for _ in range(TRIES):
            moved = place + size * rng.standard_normal(place.shape)
            constant = constant_of(moved[0], moved[1], order)
            if constant > best:
                best = constant
                place = moved
    return best


def cube_constant(dimension: int, order: float, rng: np.random.Generator) -> float:
    """Return the constant that the cube's centre needs for a map of d + 1 corners that keeps all their distances.

    Args:
        dimension: d, of where they are mapped.
        order: of the norm in which they are kept, 2 or infinity.
        rng: draws the corners.
    """
    numbers = rng.permutation(2**CUBE)[: dimension + 1]
    corners = 2.0 * ((numbers[:, None] >> np.arange(CUBE)) & 1) - 1
    apart = np.linalg.norm(corners[:, None] - corners, ord=order, axis=-1)
    # multidimensional scaling, which is exact for both norms
    centre = np.eye(dimension + 1) - 1 / (dimension + 1)
    values, vectors = np.linalg.eigh(centre @ apart**2 @ centre / -2)
    # −½ J D² J of a Euclidean set is its Gram matrix; the least eigenvalue, zero, has the vector 1
    images = vectors[:, 1:] * np.sqrt(np.maximum(values[1:], 0))
    return constant_of(corners, images, order)
