"""Students of several widths, trained on samples of a teacher, and their errors over the sphere."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend
from steepest.nn.types import Values

RATE = 0.06  # first step of Adam, times the root of the width
POINTS = 4000  # of the sphere, for the mean error
CLIMBERS = 20  # the worst of them, from which ascent starts
CLIMBS = 100  # steps of ascent


class Lessons(NamedTuple):
    """Samples and teachers.

    Attributes:
        x: points of the sphere, ``(seeds, n, d)``.
        teachers: hidden weights of length one, ``(seeds, largest, d)``.
        signs: of each neuron's output, zero of those that a teacher has not, ``(seeds, teachers, largest)``.
    """

    x: Values
    teachers: Values
    signs: Values


def sphere(rng: np.random.Generator, *shape: int) -> Values:
    """Draw points of the unit sphere."""
    points = rng.standard_normal(shape)
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def teach(x: Values, teacher: Values, signs: Values) -> Values:
    """Return what a teacher says of points."""
    return np.maximum(x @ teacher.T, 0) @ signs


def train(
    rng: np.random.Generator, lessons: Lessons, labels: Values, widths: tuple[int, ...], steps: int
) -> tuple[Values, Values]:
    """Train students of all widths in a bank of the largest, by Adam.

    Args:
        rng: draws starts, with hidden weights of length one.
        lessons: samples.
        labels: what they are taught, ``(seeds, teachers, n)``.
        widths: of the students.
        steps: of training.

    Returns:
        weights of the hidden and of the last layer, ``(seeds, teachers, widths, bank, d)`` and
        ``(seeds, teachers, widths, bank)``; neurons that a student has not are zero.
    """
    seeds, _, d = lessons.x.shape
    bank = max(widths)
    has = np.array([np.arange(bank) < width for width in widths], float)
    shape = (seeds, labels.shape[1], len(widths), bank // 2)
    # neurons start in pairs that cancel, so that a student starts at zero
    hidden = np.repeat(sphere(rng, *shape, d), 2, axis=-2) * has[..., None]
    last = np.repeat(rng.standard_normal(shape), 2, axis=-1) * (-1.0) ** np.arange(bank)
    last *= has / np.sqrt(np.array(widths, float))[:, None]
    rates = RATE / np.sqrt(np.array(widths, float))

    def student(x: jax.Array, y: jax.Array, start: tuple, rate: jax.Array) -> tuple:
        def risk(layers: tuple[jax.Array, jax.Array]) -> jax.Array:
            return ((jax.nn.relu(x @ layers[0].T) @ layers[1] - y) ** 2).mean()

        falling = lambda step: rate * (1 + jnp.cos(jnp.pi * step / steps)) / 2
        return descend(risk, start, optax.adam(falling), steps, record=max(steps, 1)).params

    by_width = jax.vmap(student, (None, None, 0, 0))
    by_teacher = jax.vmap(by_width, (None, 0, 0, None))
    run = kit.compiled(jax.vmap(by_teacher, (0, 0, 0, None)))
    trained = run(lessons.x, labels, (hidden, last), rates)
    return np.asarray(trained[0]), np.asarray(trained[1])


def errors(
    points: Values,
    student: tuple[Values, Values],
    teacher: tuple[Values, Values],
    climbs: int = CLIMBS,
) -> Values:
    """Return the worst and the root mean square error of one student over the sphere, ``(2,)``.

    Both networks are linear on each cell, so that the error there is ⟨b, x⟩. Ascent goes along b, by less and less.

    Args:
        points: of the sphere, ``(many, d)``.
        student: weights of both layers.
        teacher: weights of both layers.
        climbs: steps of ascent.
    """
    rows = np.concatenate([student[0], teacher[0]])
    last = np.concatenate([student[1], -teacher[1]])
    values = np.maximum(points @ rows.T, 0) @ last
    mean_square = (values**2).mean()
    x = points[np.argsort(-np.abs(values))[:CLIMBERS]]
    worst = np.abs(values).max()
    for i in range(climbs):
        # b = Σ_j a_j 1[⟨w_j, x⟩ > 0] w_j of student minus teacher, the slope on the cell of x
        b = ((x @ rows.T > 0) * last) @ rows
        value = (b * x).sum(1, keepdims=True)
        worst = max(worst, np.abs(value).max())
        lengths = np.linalg.norm(b, axis=1, keepdims=True) + 1e-30
        x = x + 0.2 * (1 - i / climbs) ** 2 * np.sign(value) * b / lengths
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.array([worst, np.sqrt(mean_square)])
