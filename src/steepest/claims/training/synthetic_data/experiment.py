"""Least squares that is fitted again and again to labels of its own."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.nn.data import digits

PIXELS = 64


class Sizes(NamedTuple):
    """How much is drawn: runs at once, inputs of a round, dimensions, rounds."""

    runs: int
    examples: int
    dimension: int
    rounds: int


Inputs = Callable[[Sizes], NDArray]
"""Draws the inputs of a round, ``(runs, T, d)``."""


def gaussian(rng: np.random.Generator) -> Inputs:
    """Return a source of Gaussian inputs."""
    return lambda sizes: rng.standard_normal((sizes.runs, sizes.examples, sizes.dimension))


def of_digits(rng: np.random.Generator, dimension: int) -> Inputs:
    """Return a source of digits, by their first principal components, each of variance one."""
    pixels = np.asarray(digits().x, float)
    centred = pixels - pixels.mean(0)
    components = np.linalg.svd(centred, full_matrices=False)[0][:, :dimension]
    # left singular vectors are orthonormal columns of mean zero: times √n of variance one
    images = components * len(components) ** 0.5
    return lambda sizes: images[rng.integers(len(images), size=(sizes.runs, sizes.examples))]


def fit(x: NDArray, y: NDArray) -> NDArray:
    """Return the weights of least squares, ``(runs, d)``."""
    across = x.swapaxes(1, 2)
    return np.linalg.solve(across @ x, across @ y[..., None])[..., 0]


def labels(rng: np.random.Generator, x: NDArray, weights: NDArray) -> NDArray:
    """Return a model's outputs with noise of variance one, ``(runs, T)``."""
    outputs = (x @ weights[..., None])[..., 0]
    return outputs + rng.standard_normal(outputs.shape)


def errors(weights: NDArray) -> NDArray:
    """Return ‖w − w*‖² of each run; the truth is zero, as errors do not depend on it."""
    return (weights**2).sum(1)


def replace(rng: np.random.Generator, inputs: Inputs, sizes: Sizes) -> NDArray:
    """Fit each round to labels of the last model alone; return errors ``(runs, rounds)``."""
    weights = np.zeros((sizes.runs, sizes.dimension))
    path = []
    for _ in range(sizes.rounds):
        x = inputs(sizes)
        weights = fit(x, labels(rng, x, weights))
        path.append(errors(weights))
    return np.stack(path, 1)


def keep(rng: np.random.Generator, inputs: Inputs, sizes: Sizes, *, refreshed: bool) -> NDArray:
    """Fit each round to all data so far; return errors ``(runs, rounds)``.

    Args:
        rng: of the noise.
        inputs: their source.
        sizes: how much.
        refreshed: whether all earlier inputs get new labels, of the last model; else they keep the labels they had.
    """
    weights = np.zeros((sizes.runs, sizes.dimension))
    x = np.zeros((sizes.runs, 0, sizes.dimension))
    y = np.zeros((sizes.runs, 0))
    path = []
    for _ in range(sizes.rounds):
        fresh = inputs(sizes)
        x = np.concatenate([x, fresh], 1)
        if refreshed:
            y = labels(rng, x, weights)
        else:
            y = np.concatenate([y, labels(rng, fresh, weights)], 1)
        weights = fit(x, y)
        path.append(errors(weights))
    return np.stack(path, 1)


def mix(
    rng: np.random.Generator, inputs: Inputs, sizes: Sizes, share: float, *, fresh: bool
) -> NDArray:
    """Weigh a fit to true labels with one to labels of the last model; return errors after the last round.

    Args:
        rng: of the noise.
        inputs: their source.
        sizes: how much.
        share: α, the weight of the fit to true labels.
        fresh: whether true labels are drawn anew in each round; else they are those of the first.
    """
    truth = np.zeros((sizes.runs, sizes.dimension))
    weights = truth
    true = truth
    for number in range(sizes.rounds):
        if fresh or number == 0:
            x = inputs(sizes)
            true = fit(x, labels(rng, x, truth))
        x = inputs(sizes)
        weights = share * true + (1 - share) * fit(x, labels(rng, x, weights))
    return errors(weights)
