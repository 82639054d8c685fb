"""Random ReLU networks as layers, for the claims of this chapter."""

import itertools

import numpy as np

from steepest.geometry import Layer, relu_layers


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
