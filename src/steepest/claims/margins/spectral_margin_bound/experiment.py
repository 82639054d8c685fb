"""Descents on digits of whose labels some are random: Lipschitz constants, margins and errors along the way."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend
from steepest.nn.losses import cross_entropy, mean_risk
from steepest.nn.networks import Mlp
from steepest.programs import (
    frobenius_norm,
    network_margins,
    spectral_complexity,
    spectral_norm,
    weight_matrices,
)

TEST = 1000
"""Images that are not trained on."""


class Labelled(NamedTuple):
    """Images and labels of every network, training images first."""

    x: kit.Values  # (seeds, images, pixels)
    y: kit.Values  # (seeds, images, classes)
    random: kit.Values  # labels drawn anew, the same shape
    turn: (
        kit.Values
    )  # the place of each image in the order in which labels become random, (seeds, images)


class Training(NamedTuple):
    """How every network is trained."""

    lr: float
    momentum: float
    marks: np.ndarray  # steps that are read, the last of them the end


def draw_labels(
    rng: np.random.Generator, x: np.ndarray, y: np.ndarray, seeds: int, n: int
) -> Labelled:
    """Draw for each network its images, other labels for them, and whose labels are random first.

    Among the training images, and among the others, every share of random labels is met to a label.
    """
    orders = [rng.permutation(len(x)) for _ in range(seeds)]
    others = [rng.permutation(order) for order in orders]
    ranks = [np.append(ranked(rng, n), ranked(rng, len(x) - n)) for _ in range(seeds)]
    return Labelled(x[np.stack(orders)], y[np.stack(orders)], y[np.stack(others)], np.stack(ranks))


def ranked(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return places (i + ½)/count in random order: below s are round(s count) of them."""
    return (rng.permutation(count) + 0.5) / count


def train_all(
    net: Mlp, labelled: Labelled, n: int, noise: tuple[float, ...], training: Training, key: kit.Key
) -> dict[str, np.ndarray]:
    """Train a network for each share of random labels and each seed, ``(noise, seeds, records)``.

    A seed's networks start at the same weights, and see the same images in every share.
    """

    def train(task: tuple) -> dict[str, jax.Array]:
        share, x, y, random, turn, key = task
        return follow(net, x, jnp.where(turn[:, None] < share, random, y), n, training, key)

    starts = kit.keys(key, len(labelled.x))
    tasks = [
        (
            jnp.float32(share),
            *(jnp.asarray(values[seed], jnp.float32) for values in labelled),
            starts[seed],
        )
        for share in noise
        for seed in range(len(labelled.x))
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *tasks)
    measured = kit.compiled(lambda tasks: jax.lax.map(train, tasks))(stacked)
    shape = (len(noise), len(labelled.x), -1)
    return {name: np.asarray(values, float).reshape(shape) for name, values in measured.items()}


def follow(
    net: Mlp, x: jax.Array, y: jax.Array, n: int, training: Training, key: kit.Key
) -> dict[str, jax.Array]:
    """Return errors, median margin, Lipschitz constant and complexity along one descent, each ``(records,)``."""
    start = net.init(key)
    reference = weight_matrices(start)
    error = lambda p, part: (network_margins(net.apply(p, x[part]), y[part]) <= 0).mean()
    look = {
        "train": lambda p: error(p, slice(None, n)),
        "test": lambda p: error(p, slice(n, None)),
        "margin": lambda p: jnp.median(network_margins(net.apply(p, x[:n]), y[:n])),
        # the product of spectral norms is a Lipschitz constant, as a ReLU's is one
        "lipschitz": lambda p: jnp.prod(jnp.stack([spectral_norm(w) for w in weight_matrices(p)])),
        "complexity": lambda p: spectral_complexity(weight_matrices(p), reference),
        "scale": lambda p: frobenius_norm(x[:n]) / n,
    }
    risk = mean_risk(cross_entropy, net.apply, x[:n], y[:n])
    rule = optax.sgd(training.lr, training.momentum)
    marks = training.marks
    return descend(risk, start, rule, int(marks[-1]), record=marks, observe=look).observed
