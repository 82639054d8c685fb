"""Random ReLU networks as layers, for the claims of this chapter."""

import itertools
from collections.abc import Sequence

import numpy as np

from steepest import kit
from steepest.geometry import Layer, relu_layers

SEED_OF_THEORY = 0x5EED  # of the samples over which theory averages


def random_network(
    rng: np.random.Generator,
    widths: tuple[int, ...],
    c_w: float,
    c_b: float,
    law: str = "normal",
    shift: float = 0.0,
) -> list[Layer]:
    """Draw a ReLU network: weights of variance C_w/fan-in, biases of variance C_b, one linear output.

    Args:
        rng: random numbers.
        widths: inputs, then the hidden layers.
        c_w: variance of the weights times their layer's inputs.
        c_b: variance of the biases.
        law: ``"normal"``, or ``"cauchy"``: Cauchy numbers, which have no variance, in place of normal ones.
        shift: mean of the weights, in their standard deviations.
    """
    draw = rng.standard_normal if law == "normal" else rng.standard_cauchy
    sizes = (*widths, 1)
    weights = []
    biases = []
    for inputs, outputs in itertools.pairwise(sizes):
        weights.append((c_w / inputs) ** 0.5 * (draw((outputs, inputs)) + shift))
        biases.append(c_b**0.5 * draw(outputs))
    return relu_layers(weights, biases)


def unbatched(
    weights: Sequence[kit.Values], biases: Sequence[kit.Values], readout: kit.Values | None = None
) -> list[list[Layer]]:
    """Return networks as layers each, from arrays of all.

    Args:
        weights: of the hidden layers, shapes ``(networks, outputs, inputs)``.
        biases: of the hidden layers, shapes ``(networks, outputs)``.
        readout: weights of the linear output, shape ``(networks, units)``; zeros without.
    """
    hidden = [np.asarray(w) for w in weights]
    offsets = [np.asarray(b) for b in biases]
    last = np.zeros(hidden[-1].shape[:2]) if readout is None else np.asarray(readout)
    return [
        relu_layers([*(w[i] for w in hidden), last[i][None]], [*(b[i] for b in offsets), None])
        for i in range(len(last))
    ]
