"""Stochastic subgradient descent of small ReLU networks, and how far from stationary it is in Clarke's sense."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from steepest.nn.types import Values

NEURONS = 4
INPUTS = 2
EXAMPLES = 12
DECAY = 0.01
"""λ of λ/2 ‖θ‖²: without it iterates need not stay bounded."""
NOISE = 0.1
"""Standard deviation of the noise on each entry of a gradient."""
FIRST = 0.2
"""η_0 of steps η_0 (1 + t/DELAY)^(−POWER)."""
POWER = 0.7
DELAY = 100.0
AROUND = (0.85, 0.88, 0.91, 0.94, 0.97, 1.0)
"""Of each number of steps, those after which is looked: distances are means of these."""
NEAR = 3.0
"""Distance from a kink, in units of η, up to which its slope is free. It tends to zero with η."""


class Problems(NamedTuple):
    """Examples and first weights of each run.

    Attributes:
        x: inputs, shape ``(runs, EXAMPLES, INPUTS)``.
        y: labels, ``(runs, EXAMPLES)``.
        inner: weights w of the neurons, ``(runs, NEURONS, INPUTS)``.
        outer: weights a of the output, ``(runs, NEURONS)``.
    """

    x: Values
    y: Values
    inner: Values
    outer: Values


def draw_problems(rng: np.random.Generator, runs: int) -> Problems:
    """Draw examples on a circle with normal labels, and normal weights."""
    x = rng.standard_normal((runs, EXAMPLES, INPUTS))
    return Problems(
        np.sqrt(INPUTS) * x / np.linalg.norm(x, axis=-1, keepdims=True),
        rng.standard_normal((runs, EXAMPLES)),
        rng.standard_normal((runs, NEURONS, INPUTS)),
        rng.choice([-1.0, 1.0], (runs, NEURONS)),
    )


def step_sizes(times: Values) -> Values:
    """Return η after so many steps: their sum diverges, and that of their squares does not."""
    return FIRST * (1 + np.asarray(times) / DELAY) ** -POWER


def gradients(problems: Problems) -> tuple[Values, Values]:
    """Return gradients of ½ mean (f − y)² + λ/2 ‖θ‖² of all runs, with the slope zero at ties."""
    x, y, inner, outer = problems
    before = x @ np.swapaxes(inner, 1, 2)
    after = np.maximum(before, 0)
    residual = ((after @ outer[..., None])[..., 0] - y) / x.shape[1]
    # derivative with respect to w_j·x_i: r_i 1[w_j·x_i > 0] a_j, (runs, examples, neurons)
    back = residual[..., None] * (before > 0) * outer[:, None]
    of_outer = (residual[:, None] @ after)[:, 0] + DECAY * outer
    return np.swapaxes(back, 1, 2) @ x + DECAY * inner, of_outer


def descend_noisily(
    problems: Problems, times: Sequence[int], rng: np.random.Generator, constant: bool
) -> tuple[Values, Values]:
    """Descend with noise on each gradient; return how far from stationary runs are, in two ways.

    Args:
        problems: examples and first weights.
        times: rising numbers of steps after which is looked.
        rng: draws the noise.
        constant: whether all steps are as large as the first.

    Returns:
        distances between zero and Clarke's set near by, shape ``(runs, times)``, and sizes of the gradients themselves,
        both in the mean of a few looks up to each time.
    """
    sizes = step_sizes(np.arange(times[-1]))
    if constant:
        sizes = np.full(len(sizes), FIRST)
    looks = np.rint(np.outer(times, AROUND)).astype(int)
    near = []
    cells = []
    for step, size in enumerate(sizes, 1):
        of_inner, of_outer = gradients(problems)
        inner = of_inner + NOISE * rng.standard_normal(of_inner.shape)
        outer = of_outer + NOISE * rng.standard_normal(of_outer.shape)
        problems = problems._replace(
            inner=problems.inner - size * inner, outer=problems.outer - size * outer
        )
        if step in looks:
            near.append(clarke_distances(problems, NEAR * size))
            cells.append(clarke_distances(problems, 0.0))
    means = lambda rows: np.stack(rows, -1).reshape(-1, *looks.shape).mean(-1)
    return means(near), means(cells)


def clarke_distances(problems: Problems, radius: float) -> Values:
    """Return the size of the smallest subgradient at kinks within a radius, of each run.

    Where a neuron's weights w are at most ``radius`` from the kink ⟨w, x⟩ = 0 of an example, its slope there may be any
    number in [0, 1]; the gradient is linear in these slopes. Where kinks are independent, that is Clarke's set.
    """
    return np.array([_smallest(*run, radius) for run in zip(*problems, strict=True)])


def _smallest(x: Values, y: Values, inner: Values, outer: Values, radius: float) -> float:
    before = x @ inner.T
    after = np.maximum(before, 0)
    residual = (after @ outer - y) / len(x)
    back = residual[:, None] * outer  # what one slope adds to the gradient of w, over x
    # the kink is the plane w·x = 0 in the space of w, at a distance of |w·x|/‖x‖
    free = (abs(before) <= radius * np.linalg.norm(x, axis=1)[:, None]) & (radius > 0)
    fixed = (back * (before > 0) * ~free).T @ x + DECAY * inner
    example, neuron = np.nonzero(free)
    pieces = np.zeros((*inner.shape, len(example)))
    # one column for each free slope: what it adds to the gradient of its neuron's w
    pieces[neuron, :, np.arange(len(example))] = back[example, neuron][:, None] * x[example]
    smallest = fixed.ravel()
    if len(example):
        matrix = pieces.reshape(inner.size, -1)
        # least ‖Ms + g‖ over s in [0, 1]
        smallest = matrix @ lsq_linear(matrix, -smallest, (0, 1)).x + smallest
    return float(
        np.hypot(np.linalg.norm(smallest), np.linalg.norm(residual @ after + DECAY * outer))
    )
