"""Networks of squares, trained by descent on labels of a narrower one."""

from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend

LEARNED = 0.3  # relative error of the network's matrix from which on the teacher counts as learned
DIVERGED = 10.0  # relative error of a run that has no finite one
MOMENTUM = 0.9
POINTS = 7  # numbers of examples


class Data(NamedTuple):
    """Inputs, in the order in which they are shown, and teachers."""

    inputs: np.ndarray
    """``(seeds, N, d)``"""
    teachers: np.ndarray
    """A of labels xᵀAx for each number of neurons, ``(seeds, neurons, d, d)``"""


def draw(
    rng: np.random.Generator, seeds: int, largest: int, d: int, neurons: tuple[int, ...]
) -> Data:
    """Draw Gaussian inputs, and teachers of orthonormal neurons."""
    inputs = rng.standard_normal((seeds, largest, d))
    frames = np.linalg.qr(rng.standard_normal((seeds, d, d)))[0]
    # projections on k orthonormal neurons, the A of Σ_k (u_kᵀx)²
    teachers = [frames[..., :k] @ np.swapaxes(frames[..., :k], 1, 2) for k in neurons]
    return Data(inputs, np.stack(teachers, 1))


def counts(data: Data, neurons: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of examples for each number of neurons, from (k + 1)d/3 to all, ``(neurons, POINTS)``."""
    largest, d = data.inputs.shape[1:]
    return np.rint([np.geomspace((k + 1) * d / 3, largest, POINTS) for k in neurons]).astype(int)


def first_weights(
    rng: np.random.Generator, shape: tuple[int, int, int], width: int, size: float
) -> np.ndarray:
    """Draw weights ``(lanes, d, widest)``; those of neurons beyond the width are zero and stay so."""
    weights = size * rng.standard_normal(shape)
    weights[..., width:] = 0
    return weights


def matrix(inputs: Any, labels: Any, used: Any, weights: Any, lr: Any, steps: int) -> Any:
    """Return WWᵀ after descent with momentum on the weighted squares of f(x) = ‖Wᵀx‖² less the label.

    Args:
        inputs: ``(N, d)``.
        labels: ``(N,)``.
        used: weight of each example in the risk, ``(N,)``.
        weights: W at the start, ``(d, m)``.
        lr: step size.
        steps: how many.
    """
    # f(x) = xᵀWWᵀx = ⟨xxᵀ, WWᵀ⟩, with xxᵀ as rows, (N, d²)
    products = (inputs[:, :, None] * inputs[:, None]).reshape(len(inputs), -1)

    def risk(weights: Any) -> Any:
        outputs = products @ (weights @ weights.T).ravel()
        return (used * (outputs - labels) ** 2).sum() / 4

    path = descend(risk, weights, optax.sgd(lr, MOMENTUM), steps, record=steps)
    return path.params @ path.params.T


@cache
def trainer(steps: int) -> Any:
    """Return the compiled descent of many networks, over lanes."""
    return kit.compiled(jax.vmap(partial(matrix, steps=steps), (0, 0, 0, 0, None)))


def errors(
    rng: np.random.Generator,
    data: Data,
    shown: np.ndarray,
    widths: tuple[int, int],
    size: float,
    lr: float,
    steps: int,
) -> np.ndarray:
    """Return how far trained networks are from the teachers, relative, ``(seeds, neurons, POINTS)``.

    Args:
        rng: draws first weights.
        data: inputs and teachers.
        shown: numbers of examples, ``(neurons, POINTS)``.
        widths: neurons of the network, and of the widest one, which sets shapes.
        size: standard deviation of first weights.
        lr: step size.
        steps: how many.
    """
    seeds, neurons, d, _ = data.teachers.shape
    largest = data.inputs.shape[1]
    lanes = seeds * neurons * POINTS
    # xᵀAx, (seeds, neurons, N)
    labels = np.einsum("snd,skde,sne->skn", data.inputs, data.teachers, data.inputs)
    by_lane = lambda values: np.repeat(values, POINTS, 0).astype(np.float32)
    # 1/n for each of the first n examples: the risk is their mean, (neurons, POINTS, N)
    used = (np.arange(largest) < shown[..., None]) / shown[..., None]
    used = np.broadcast_to(used, (seeds, *used.shape)).reshape(lanes, largest)
    matrices = trainer(steps)(
        by_lane(np.repeat(data.inputs, neurons, 0)),
        by_lane(labels.reshape(-1, largest)),
        used.astype(np.float32),
        first_weights(rng, (lanes, d, widths[1]), widths[0], size).astype(np.float32),
        jnp.float32(lr),
    )
    matrices = np.asarray(matrices, float).reshape(seeds, neurons, POINTS, d, d)
    distance = np.linalg.norm(matrices - data.teachers[:, :, None], axis=(-2, -1))
    relative = distance / np.linalg.norm(data.teachers, axis=(-2, -1))[..., None]
    return np.nan_to_num(relative, nan=DIVERGED, posinf=DIVERGED)


def first_learned(shown: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return from how many examples on errors are small, on a line of their logarithms, ``(seeds, neurons)``.

    A run that has learned from the fewest examples counts with these, one that never has with all of them.
    """
    result = np.empty(errors.shape[:2])
    for seed, neurons in np.ndindex(result.shape):
        row = errors[seed, neurons]
        number = shown[neurons]
        wrong = np.flatnonzero(~(row < LEARNED))
        if not len(wrong):
            result[seed, neurons] = number[0]
        elif wrong[-1] == POINTS - 1:
            result[seed, neurons] = number[-1]
        else:
            last = wrong[-1]
            ends = np.log(row[last + 1 : last - 1 if last else None : -1])
            result[seed, neurons] = np.interp(np.log(LEARNED), ends, number[[last + 1, last]])
    return result
