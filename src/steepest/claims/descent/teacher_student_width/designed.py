"""Objectives by moments of a teacher's labels with Hermite polynomials of one direction, and where ascents of them end.

Moments are means over drawn inputs; nothing here knows the teacher but the last function, which reads off the ends.
"""

from collections.abc import Callable, Sequence

import numpy as np

from steepest import kit

DEGREES = {4: "", 3: "third_", 2: "second_"}  # with the names of what is measured begin
TRIES = (5, 15, 45, 90)  # ascents after which neurons are counted
SETS = 8  # of so many ascents, for each teacher
PLACES = ("starts", "ends")
NEAR = 0.9  # overlap from which an end counts as one of the teacher's neurons
DAMPING = 0.2  # of an ascent; f is one at a neuron
ASCENT = 40  # steps
Slope = Callable[[kit.Values], kit.Values]


def draw_examples(
    rng: np.random.Generator, neurons: int, count: int
) -> tuple[kit.Values, kit.Values, kit.Values]:
    """Draw a teacher of orthonormal neurons, one a row, Gaussian inputs, and the sum of its neurons as their labels."""
    teacher = np.linalg.qr(rng.standard_normal((neurons, neurons)))[0]
    x = rng.standard_normal((count, neurons), np.float32)
    return teacher, x, np.maximum(x @ teacher.T.astype(np.float32), 0).sum(1)


def hermite_slopes(x: kit.Values, y: kit.Values) -> dict[int, Slope]:
    r"""Return b ↦ √(2π) E r⟨b, x⟩^(k−1) x for k = 2, 3, 4, with a minus for k = 4, r the label less what is fitted.

    For |b| = 1 it is the slope of ``√(2π) E y He_k(⟨b, x⟩)`` over k, along the sphere: He_k(⟨b, x⟩) is ⟨b, x⟩^k less
    lower powers, and r has no mean product with these. It is what no polynomial of degree two fits of the labels, or
    of degree one for k = 2.

    Args:
        x: inputs, shape ``(count, d)``.
        y: labels, shape ``(count,)``.

    Returns:
        Functions of directions, ``(starts, d)``, by k.
    """
    count, d = x.shape
    upper = np.triu_indices(d)
    place = np.empty((d, d), int)
    place[upper] = np.arange(len(upper[0]))
    place.T[upper] = np.arange(len(upper[0]))
    times = np.where(upper[0] == upper[1], 1.0, 2.0)
    squares = x[:, upper[0]] * x[:, upper[1]]
    linear = np.concatenate([np.ones((count, 1), x.dtype), x], 1)
    first = _remainder(linear, y)[:, None]
    beyond = _remainder(np.concatenate([linear, squares], 1), y)[:, None]
    scale = np.sqrt(2 * np.pi) / count
    second = scale * (x.T @ (first * x)).astype(float)
    third = scale * (squares.T @ (beyond * x)).astype(float)  # (pairs, d)
    fourth = -scale * (squares.T @ (beyond * squares)).astype(float)  # (pairs, pairs)

    def squared(b: kit.Values) -> kit.Values:
        """Return the products of two entries, those of different ones twice, ``(starts, pairs)``."""
        return times * b[:, upper[0]] * b[:, upper[1]]

    def of_four(b: kit.Values) -> kit.Values:
        entries = np.asarray(squared(b) @ fourth)
        return (entries[:, place] @ b[:, :, None])[..., 0]  # −√(2π) E r⟨b, x⟩² xxᵀ b

    return {2: lambda b: b @ second, 3: lambda b: squared(b) @ third, 4: of_four}


def _remainder(basis: kit.Values, y: kit.Values) -> kit.Values:
    """Return what least squares leave of the labels."""
    return y - basis @ np.linalg.solve(basis.T @ basis, basis.T @ y)


def ascend(slope: Slope, starts: kit.Values) -> kit.Values:
    """Follow a slope on the unit sphere, ``(starts, d)``."""
    points = starts
    for _ in range(ASCENT):
        moved = slope(points) + DAMPING * points
        points = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return points


def measure_ends(
    points: kit.Values, teacher: kit.Values, tries: Sequence[int]
) -> tuple[kit.Values, kit.Values]:
    """Return which ends are at a neuron up to sign, and how many neurons the first of them come to.

    Args:
        points: where ascents ended, ``(starts, d)``; the most tries are taken of them as often as there are so many.
        teacher: neurons, one a row.
        tries: numbers of ascents.

    Returns:
        Shapes ``(starts,)`` and ``(tries,)``, the numbers of neurons averaged over those sets of ascents.
    """
    overlap = np.abs(points @ teacher.T)
    near = overlap > NEAR  # at most one, as 2 · 0.9² > 1
    sets = near.reshape(-1, max(tries), len(teacher))
    reached = [sets[:, :number].any(1).sum(1).mean() for number in tries]
    return near.any(1), np.array(reached)


def measure_designed(
    rng: np.random.Generator, neurons: int, teachers: int, inputs: int
) -> dict[str, tuple[str, kit.Values]]:
    """Ascend the objectives of all degrees from random starts, for teachers and inputs that are drawn anew.

    Returns:
        For each degree which ascents arrived at a neuron, how many neurons so many of them came to, and the mean of
        the objective at starts and ends.
    """
    arrays: dict[str, list[kit.Values]] = {}
    for _ in range(teachers):
        teacher, x, y = draw_examples(rng, neurons, inputs)
        starts = rng.standard_normal((SETS * max(TRIES), neurons))
        starts /= np.linalg.norm(starts, axis=1, keepdims=True)
        slopes = hermite_slopes(x, y)
        for degree, prefix in DEGREES.items():
            slope = slopes[degree]
            ends = ascend(slope, starts)
            arrived, reached = measure_ends(ends, teacher, TRIES)
            height = [(points * slope(points)).sum(1).mean() for points in (starts, ends)]
            arrays.setdefault(f"{prefix}arrived", []).append(arrived)
            arrays.setdefault(f"{prefix}reached", []).append(reached)
            arrays.setdefault(f"{prefix}height", []).append(np.array(height))
    axes = {"arrived": "draw start", "reached": "draw tries", "height": "draw place"}
    return {name: (axes[name.split("_")[-1]], np.stack(of)) for name, of in arrays.items()}
