"""Adam's first step in networks of several widths, and how far it moves their outputs.

Weights are three arrays: U ``(N, d)`` of the inputs, W ``(N, N)`` of the hidden layer, and v ``(N,)`` of the read-out.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EPSILON = 1e-8  # Adam's
PARTS = ("hidden", "readout", "inputs")


class Weights(NamedTuple):
    """Weights of a network, or anything that is of their shapes.

    Attributes:
        inputs: ``(N, d)``.
        hidden: ``(N, N)``.
        readout: ``(N,)``.
    """

    inputs: NDArray
    hidden: NDArray
    readout: NDArray


class Scales(NamedTuple):
    """What a parametrization multiplies.

    Attributes:
        readout: by which weights of the read-out are smaller than 1/√N at the start.
        steps: by which steps of hidden layer and read-out are smaller than η.
    """

    readout: float
    steps: float


STANDARD = Scales(1.0, 1.0)


def mup(width: int, base: int) -> Scales:
    """Return the scales of µP, which is as the standard parametrization at a base width."""
    # a read-out of size 1/N, and steps of order 1/N for weights that read N neurons
    return Scales((base / width) ** 0.5, base / width)


def draw(rng: np.random.Generator, d: int, width: int) -> Weights:
    """Draw a network in the standard parametrization."""
    return Weights(
        rng.standard_normal((width, d)) * (2 / d) ** 0.5,
        rng.standard_normal((width, width)) * (2 / width) ** 0.5,
        rng.standard_normal(width) / width**0.5,
    )


def outputs(weights: Weights, x: NDArray) -> NDArray:
    """Return the network's outputs, ``(batch,)``."""
    first = np.maximum(x @ weights.inputs.T, 0)
    return np.maximum(first @ weights.hidden.T, 0) @ weights.readout


def slopes(weights: Weights, x: NDArray, errors: NDArray) -> Weights:
    """Return the gradient of half the mean square of errors ``(batch,)`` of the outputs."""
    first = np.maximum(x @ weights.inputs.T, 0)
    second = np.maximum(first @ weights.hidden.T, 0)
    outer = errors / len(x)
    # what comes back to the second and the first hidden layer, (batch, N) each
    back_second = outer[:, None] * weights.readout * (second > 0)
    back_first = (back_second @ weights.hidden) * (first > 0)
    return Weights(back_first.T @ x, back_second.T @ first, second.T @ outer)


def first_update(slopes: Weights, scales: Scales) -> Weights:
    """Return what Adam's first step adds to the weights, over η: averages corrected for their start are g and g²."""
    inputs, hidden, readout = (slope / (np.abs(slope) + EPSILON) for slope in slopes)
    return Weights(-inputs, -scales.steps * hidden, -scales.steps * readout)


def move(
    weights: Weights, update: Weights, x: NDArray, y: NDArray, eta: float, names: Iterable[str]
) -> float:
    """Return how far a step of some parts moves outputs towards labels ±1, in the mean over the batch and over η."""
    moved = {name: getattr(weights, name) + eta * getattr(update, name) for name in names}
    change = outputs(weights._replace(**moved), x) - outputs(weights, x)
    return float((y * change).mean() / eta)


class Moves(NamedTuple):
    """How far first steps move outputs, over η.

    Attributes:
        parts: by the hidden layer, the read-out and the inputs alone, ``(3,)``.
        standard: by all at once.
        hidden_elsewhere: by the hidden layer alone, with each neuron's step at another one.
        elsewhere: by all at once, with that.
        mup: by all at once under µP.
        steps_only: with the steps of µP alone.
    """

    parts: NDArray
    standard: float
    hidden_elsewhere: float
    elsewhere: float
    mup: float
    steps_only: float


def moves(
    rng: np.random.Generator, network: Weights, x: NDArray, y: NDArray, part: float, base: int
) -> Moves:
    """Take first steps of one network on one batch.

    Args:
        rng: for the order of neurons.
        network: its weights, in the standard parametrization.
        x: ``(batch, d)``.
        y: labels ±1, which outputs lack at the start.
        part: η times N^{3/2}, which is small, and η times that of the base width under µP.
        base: width at which µP is as the standard parametrization.
    """
    width = len(network.readout)
    # the hidden layer moves outputs the most, by η a N^(3/2): this is as small at every width
    eta = part / width**1.5
    eta_mup = part / base**1.5
    update = first_update(slopes(network, x, -y), STANDARD)
    elsewhere = update._replace(hidden=update.hidden[rng.permutation(width)])
    scales = mup(width, base)
    smaller = network._replace(readout=network.readout * scales.readout)
    update_mup = first_update(slopes(smaller, x, -y), scales)
    steps_only = first_update(slopes(network, x, -y), scales)
    return Moves(
        np.array([move(network, update, x, y, eta, [name]) for name in PARTS]),
        move(network, update, x, y, eta, PARTS),
        move(network, elsewhere, x, y, eta, ["hidden"]),
        move(network, elsewhere, x, y, eta, PARTS),
        move(smaller, update_mup, x, y, eta_mup, PARTS),
        move(network, steps_only, x, y, eta_mup, PARTS),
    )
