"""Learners on cells with labels: nearest neighbours, a kernel and networks on images; a row of cells; a circle."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend
from steepest.linalg import sequential
from steepest.nn.types import Key, Values

RIDGE = 1e-8  # of the kernel's regression: labels that were seen are kept
RATE = 0.02  # of Adam
TESTED = 200  # points on the circle for each set of samples


def nearest(x: Values, labels: Values, seen_by: Values) -> Values:
    """Answer with the label of the nearest image that was seen; shape ``(functions, samples, N)``."""
    closeness = x @ x.T
    answers = np.empty(seen_by.shape)
    for function, place in np.ndindex(seen_by.shape[:2]):
        cells = np.flatnonzero(seen_by[function, place])
        best = closeness[:, cells].argmax(1)
        answers[function, place] = labels[function, cells[best]]
    return answers


@sequential
def kernel(x: Values, labels: Values, seen_by: Values) -> Values:
    """Answer with the sign of kernel regression, e^(⟨x, x'⟩/0.1) normalized; shape as above."""
    gram = np.exp((x @ x.T - 1) / 0.1)
    answers = np.empty(seen_by.shape)
    for function, place in np.ndindex(seen_by.shape[:2]):
        cells = np.flatnonzero(seen_by[function, place])
        inner = gram[np.ix_(cells, cells)] + RIDGE * np.eye(len(cells))
        weights = np.linalg.solve(inner, labels[function, cells])
        answers[function, place] = np.where(gram[:, cells] @ weights > 0, 1.0, -1.0)
    return answers


def network(x: Values, labels: Values, seen_by: Values, key: Key, width: int, steps: int) -> Values:
    """Answer with the sign of two-layer ReLU networks, trained on what was seen; shape as above."""
    functions, sizes, cells = seen_by.shape
    images = jnp.asarray(x)

    def one(seed: Key, y: jax.Array, weight: jax.Array, x: jax.Array) -> jax.Array:
        draw = jax.random.normal(seed, (width, x.shape[1] + 1))
        start = (draw[:, :-1], draw[:, -1])
        outputs = lambda p: jax.nn.relu(x @ p[0].T) @ p[1] / width**0.5
        risk = lambda p: (weight * (outputs(p) - y) ** 2).sum() / weight.sum()
        path = descend(risk, start, optax.adam(RATE), steps, record=steps)
        return outputs(path.params)

    def run(key: Key, y: jax.Array, weight: jax.Array, x: jax.Array) -> jax.Array:
        return jax.vmap(one, (0, 0, 0, None))(jax.random.split(key, len(y)), y, weight, x)

    y = np.repeat(labels[:, None], sizes, axis=1).reshape(-1, cells)
    weight = seen_by.reshape(-1, cells).astype(float)
    outputs = np.asarray(kit.compiled(run)(key, jnp.asarray(y), jnp.asarray(weight), images))
    return np.where(outputs > 0, 1.0, -1.0).reshape(functions, sizes, cells)


def on_the_line(
    rng: np.random.Generator, count: int, cells: int, samples: Sequence[int], changes: int
) -> Values:
    """Return the nearest neighbour's errors on cells in a row whose labels change sign a few times."""
    places = np.arange(cells)
    # s of the N − 1 borders, each set of them as likely as any other; the first label is 0, as the
    # errors do not change when all labels do
    changed = rng.permuted(np.tile(places[1:], (count, 1)), axis=1)[:, :changes]
    steps = np.zeros((count, cells), int)
    np.put_along_axis(steps, changed, 1, axis=1)
    labels = steps.cumsum(1) % 2
    drawn = rng.integers(0, cells, (count, max(samples)))
    held = np.zeros((count, cells), bool)
    errors = np.empty((count, len(samples)))
    done = 0
    for size, m in enumerate(samples):
        np.put_along_axis(held, drawn[:, done:m], True, axis=1)
        done = m
        # places beyond both ends stand for samples that a side has not: the other side is nearer
        before = np.maximum.accumulate(np.where(held, places, -2 * cells), axis=1)
        beyond = np.where(held, places, 3 * cells)[:, ::-1]
        after = np.minimum.accumulate(beyond, axis=1)[:, ::-1]
        # a tie goes to the sample before, which makes no difference in the mean
        nearest = np.where(after - places < places - before, after, before)
        answers = np.take_along_axis(labels, nearest, axis=1)
        errors[:, size] = (answers != labels).mean(1)
    return errors


def on_the_circle(
    rng: np.random.Generator, count: int, samples: Sequence[int], cycles: int, lean: float
) -> Values:
    """Return the nearest neighbour's errors on a circle whose labels +1 have the probability ½ + ½ a cos 2πkx.

    Returns:
        of new samples and ``TESTED`` new points each time, shape ``(count, samples)``.
    """
    toss = lambda places: (
        rng.random(places.shape) < (1 + lean * np.cos(2 * np.pi * cycles * places)) / 2
    )
    places = rng.random((count, max(samples)))
    labels = toss(places)
    new = rng.random((count, TESTED))
    truth = toss(new)
    errors = np.empty((count, len(samples)))
    for i, size in np.ndindex(errors.shape):
        m = samples[size]
        order = np.argsort(places[i, :m])
        # the last sample once more before zero, and the first beyond one, as the ends are joined
        around = np.concatenate(
            [places[i, order[-1:]] - 1, places[i, order], places[i, order[:1]] + 1]
        )
        after = np.searchsorted(around, new[i])
        nearer = new[i] - around[after - 1] < around[after] - new[i]
        answers = labels[i, order[(after - 1 - nearer) % m]]
        errors[i, size] = (answers != truth[i]).mean()
    return errors
