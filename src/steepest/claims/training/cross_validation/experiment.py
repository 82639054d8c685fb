"""Kernel regression on digits and on Gaussian inputs of the same covariance, and its errors on new examples."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.nn.data import digits

SIDE = 8  # pixels


class World(NamedTuple):
    """Examples by their kernel.

    Attributes:
        gram: of all pairs, ``(examples, examples)``.
        labels: ``(examples, outputs)``.
    """

    gram: NDArray
    labels: NDArray


def images(rng: np.random.Generator, count: int) -> tuple[NDArray, NDArray, NDArray]:
    """Draw digits: as they are, a pixel further to the right, each ``(images, pixels)``, and labels of mean zero."""
    data = digits()
    pixels = np.asarray(data.x)
    labels = np.asarray(data.y)
    mean_image = pixels.mean(0)
    chosen = rng.permutation(len(pixels))[:count]
    originals = pixels[chosen]
    moved = np.roll(originals.reshape(-1, SIDE, SIDE), 1, axis=2).reshape(count, -1)
    return (
        of_length_one(originals - mean_image),
        of_length_one(moved - mean_image),
        labels[chosen] - 1 / labels.shape[1],
    )


def of_length_one(x: NDArray) -> NDArray:
    """Return rows over their lengths."""
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def tangent(x: NDArray, other: NDArray, depth: int) -> NDArray:
    """Return the tangent kernel of a wide ReLU network, one at equal inputs; all inputs have length one.

    Each hidden layer takes the cosine ρ to κ₁(ρ) and the kernel Θ to κ₁(ρ) + Θκ₀(ρ).
    """
    cosine = x @ other.T
    kernel = cosine
    for _ in range(depth):
        cosine = np.clip(cosine, -1, 1)
        turned = np.pi - np.arccos(cosine)
        # κ₁(ρ) = (√(1 − ρ²) + ρ(π − arccos ρ))/π, one at ρ = 1, and κ₀(ρ) = (π − arccos ρ)/π
        next_cosine = (np.sqrt(1 - cosine**2) + cosine * turned) / np.pi
        kernel = next_cosine + kernel * turned / np.pi
        cosine = next_cosine
    return kernel / (depth + 1)


def gaussian(rng: np.random.Generator, world: World) -> World:
    """Draw as many Gaussian feature vectors and labels, with the covariances of those of a world."""
    count = len(world.gram)
    values, vectors = np.linalg.eigh(world.gram)
    normal = rng.standard_normal((count, count))
    # coordinates along the kernel's eigenvectors: their variances are its eigenvalues over n
    features = normal * np.sqrt(np.maximum(values, 0) / count)
    return World(features @ features.T, normal @ (vectors.T @ world.labels) / count**0.5)


def errors(
    world: World,
    train: NDArray,
    new: NDArray,
    ridges: tuple[float, ...],
    elsewhere: NDArray | None = None,
) -> NDArray:
    """Fit to some examples with each ridge, and return errors on new ones, ``(ridges, 2)``.

    The first is the mean square error e², the second the mean of (e/v)² over the squared mean of 1/v, with v the
    variance that the kernel leaves at a new example, with that of noise.

    Args:
        world: whose examples these are.
        train: places of those that are fitted, ``(n,)``.
        new: places of new ones.
        ridges: δ of the penalties nδ.
        elsewhere: the kernel between changed inputs and the world's; new examples are then changed ones. A changed
            input has the same kernel with itself.
    """
    values, vectors = np.linalg.eigh(world.gram[np.ix_(train, train)])
    across = (world.gram if elsewhere is None else elsewhere)[np.ix_(new, train)] @ vectors
    labels = vectors.T @ world.labels[train]
    prior = np.diag(world.gram)[new]
    pairs = np.empty((len(ridges), 2))
    for pair, ridge in zip(pairs, ridges, strict=True):
        penalty = ridge * len(train)
        inverse = 1 / (values + penalty)
        missed = across @ (inverse[:, None] * labels) - world.labels[new]
        squares = (missed**2).sum(1)
        # posterior variance k(x, x) − kᵀ(K + nδI)⁻¹k, and the variance of noise, nδ
        left = prior + penalty - across**2 @ inverse
        pair[:] = squares.mean(), (squares / left**2).mean() / (1 / left).mean() ** 2
    return pairs


def risks(world: World, train: NDArray, new: NDArray, ridges: tuple[float, ...]) -> NDArray:
    """Fit to some examples with each ridge, and return mean square errors on new ones alone, ``(ridges,)``."""
    gram = world.gram[np.ix_(train, train)]
    across = world.gram[np.ix_(new, train)]
    means = np.empty(len(ridges))
    for place, ridge in enumerate(ridges):
        dual = np.linalg.solve(gram + ridge * len(train) * np.eye(len(train)), world.labels[train])
        means[place] = ((across @ dual - world.labels[new]) ** 2).sum(1).mean()
    return means
