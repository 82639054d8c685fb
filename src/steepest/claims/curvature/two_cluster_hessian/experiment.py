"""Softmax classifiers of two clusters, trained by gradient flow, and their Hessians along the way."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.stats import qmc

from steepest import kit
from steepest.dynamics import flow
from steepest.nn.losses import cross_entropy, logistic

START = 1e-4  # standard deviation of the weights before training


class World(NamedTuple):
    """What is drawn: where centres are, and how far points spread along their line and across it.

    Attributes:
        centre: distance of a centre from zero, over √2.
        stretch: spread along the line between the centres, over that across it.
    """

    centre: float = 1.0
    stretch: float = 1.0


class Trained(NamedTuple):
    """Classifiers of one world, of every seed and spread.

    Attributes:
        weights: half of the difference of both outputs' weights, along the class direction, shape
            ``(seeds, spreads, times)``.
        hessian: shape ``(seeds, spreads, times, 2d, 2d)``.
        separate: at the start, with a logistic loss for each output by itself, ``(seeds, spreads, 2d, 2d)``.
        slope: length of the gradient at the end, ``(seeds, spreads)``.
    """

    weights: np.ndarray
    hessian: np.ndarray
    separate: np.ndarray
    slope: np.ndarray


def train(
    key: kit.Key,
    worlds: Sequence[World],
    spreads: Sequence[float],
    times: Sequence[float],
    *,
    dimension: int,
    examples: int,
    seeds: int,
) -> list[Trained]:
    """Follow the gradient flow of softmax regression on two Gaussian clusters, in every world."""
    direction = class_direction(dimension)
    labels = jnp.repeat(jnp.arange(2), examples // 2)
    signs = 2.0 * labels - 1
    lanes = list(itertools.product(worlds, range(seeds), spreads))
    rng = kit.numpy_generator(key)
    points = np.stack([draw(rng, world, spread, examples, direction) for world, _, spread in lanes])
    starts = START * rng.standard_normal((len(lanes), 2 * dimension))

    def follow(x: jax.Array, start: jax.Array) -> tuple[jax.Array, ...]:
        risk = lambda w: cross_entropy(x @ w.reshape(2, dimension).T, labels).mean()
        apart = lambda w: logistic(signs[:, None] * (x @ w.reshape(2, dimension).T)).sum(1).mean()
        path = flow(
            risk,
            start,
            jnp.asarray(times),
            observe={"weights": lambda w: w, "hessian": jax.hessian(risk)},
            rtol=1e-4,
            atol=1e-6,
        )
        slope = jnp.linalg.norm(jax.grad(risk)(path.params))
        along = path.observed
        return along["weights"], along["hessian"], jax.hessian(apart)(start), slope

    run = kit.compiled(jax.vmap(follow))
    arrays = [np.asarray(array) for array in run(points, starts)]
    shape = (len(worlds), seeds, len(spreads))
    weights, *curvatures = (array.reshape(*shape, *array.shape[1:]) for array in arrays)
    return [
        Trained(half_difference(of_world[0], direction), *of_world[1:])
        for of_world in zip(weights, *curvatures, strict=True)
    ]


def draw(
    rng: np.random.Generator, world: World, spread: float, examples: int, direction: np.ndarray
) -> np.ndarray:
    """Draw both clusters, one after the other, each by scrambled points of Sobol' that fill it evenly."""
    clusters = []
    for sign in (-1, 1):
        normal = qmc.MultivariateNormalQMC(np.zeros(len(direction)), rng=rng)
        noise = normal.random(examples // 2)
        # stretched along e alone
        noise += (world.stretch - 1) * np.outer(noise @ direction, direction)
        clusters.append(sign * world.centre * np.sqrt(2) * direction + spread * noise)
    return np.concatenate(clusters)


def half_difference(weights: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return half of the difference of both outputs' weights along a direction."""
    along = weights.reshape(*weights.shape[:-1], 2, len(direction)) @ direction
    return (along[..., 1] - along[..., 0]) / 2


def class_direction(dimension: int) -> np.ndarray:
    """Return e, the unit vector from one cluster towards the other."""
    return np.where(np.arange(dimension) < 2, 2**-0.5, 0.0)


def along_and_across(hessian: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return second derivatives along the class direction and, on average, across it, outputs moving apart."""
    blocks = hessian.reshape(*hessian.shape[:-2], 2, dimension, 2, dimension)
    # the unit direction (−1, 1)/√2 of both outputs
    apart = np.array([-1, 1]) / np.sqrt(2)
    moving_apart = np.einsum("a,...aibj,b->...ij", apart, blocks, apart)
    direction = class_direction(dimension)
    along = np.einsum("i,...ij,j->...", direction, moving_apart, direction)
    # the trace is that along e and d − 1 across it
    return along, (np.trace(moving_apart, axis1=-2, axis2=-1) - along) / (dimension - 1)


def place_of_class(hessian: np.ndarray, dimension: int) -> np.ndarray:
    """Return which eigenvector is nearest to the class direction, 1 for that of the largest eigenvalue."""
    vectors = np.linalg.eigh(hessian)[1][..., ::-1]
    direction = np.kron([-1, 1], class_direction(dimension)) / np.sqrt(2)
    return 1.0 + np.abs(np.einsum("i,...ij->...j", direction, vectors)).argmax(-1)


def outliers(hessian: np.ndarray, dimension: int) -> np.ndarray:
    """Return how many eigenvalues are above the geometric mean of the curvatures along and across."""
    along, across = along_and_across(hessian, dimension)
    values = np.linalg.eigvalsh(hessian)
    return 1.0 * (values > np.sqrt(along * across)[..., None]).sum(-1)


def crossings(weights: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Return the weight at which a ratio that falls along the last axis, a path, is one; NaN where it never is."""
    crossed = np.empty(weights.shape[:-1])
    for at in np.ndindex(crossed.shape):
        order = np.argsort(ratio[at])
        # log ratio is zero where the ratio is one
        weight_at = PchipInterpolator(
            np.log(ratio[at])[order], weights[at][order], extrapolate=False
        )
        crossed[at] = weight_at(0.0)
    return crossed
