"""One-pass SGD on least squares, many runs and several schedules side by side on the same examples."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steepest.claims.training.schedule_law.theory import Problem

Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray]
"""Draws inputs of mean zero and variance one."""


def normals(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray:
    """Draw normals."""
    return rng.standard_normal(shape, np.float32)


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray:
    """Draw signs, whose fourth moment is one and not three."""
    return (2 * rng.integers(0, 2, shape, np.int8) - 1).astype(np.float32)


def run(
    rng: np.random.Generator,
    problem: Problem,
    schedules: NDArray,
    runs: int,
    marks: tuple[int, ...],
    draw: Draw = normals,
) -> NDArray:
    """Return the mean over runs of the risk less that of the truth, ``(schedules, marks)``.

    Args:
        rng: of inputs and labels.
        problem: whose truth has weights of either sign.
        schedules: η of each step, ``(schedules, T)``.
        runs: how many.
        marks: numbers of steps after which the risk is read.
        draw: of the inputs.
    """
    dimension = len(problem.variances)
    deviations = np.sqrt(problem.variances).astype(np.float32)
    # errors of the weights; they start at minus the truth
    start = np.sqrt(problem.squares) * signs(rng, (runs, dimension))
    errors = np.repeat(start[None].astype(np.float32), len(schedules), 0)
    kept = []
    for step in range(max(marks) + 1):
        if step in marks:
            # excess risk Σ λ_i δ_i² over fresh inputs, exact for each run
            kept.append((errors.astype(float) ** 2 @ problem.variances).mean(1))
        if step == max(marks):
            break
        gradient = np.zeros_like(errors)
        for _ in range(problem.batch):
            x = deviations * draw(rng, (runs, dimension))
            wrong = np.einsum("rd,srd->sr", x, errors)
            wrong -= problem.noise**0.5 * normals(rng, (runs,))
            gradient += wrong[..., None] * x / problem.batch
        errors -= schedules[:, step].astype(np.float32)[:, None, None] * gradient
    return np.stack(kept, 1)
