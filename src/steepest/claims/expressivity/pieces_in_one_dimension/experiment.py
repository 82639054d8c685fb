"""Random networks on a line and on segments, and their breakpoints, counted exactly."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.expressivity._random_networks import random_network
from steepest.geometry import Layer, Trace, crossings, homogeneous, trace
from steepest.nn.data import digits

LINE = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
"""All of R, from −∞ over 0 to ∞, in homogeneous coordinates (x, τ)."""
REDRAWS = 400
"""Neurons in place of those of a network's last layer."""

Networks = list[list[Layer]]


class Setting(NamedTuple):
    """All networks, and pairs of images of different digits."""

    wide: Networks
    narrow: list[Networks]  # of each width
    cauchy: list[Networks]  # of each width, with Cauchy weights
    shallow: Networks
    digits: Networks  # one a pair
    pairs: kit.Values  # (pairs, 2, 64)
    shifted: Networks  # wide, with weights of a mean: a control
    narrow_shifted: list[Networks]  # of each width, with weights of a mean: a control
    digits_shifted: Networks  # of pairs, with weights of a mean: a control
    unbiased: Networks  # shallow, without biases: a control


def on_segment(networks: Networks, ends: kit.Values) -> kit.Values:
    """Return breakpoints per neuron on a segment, of each network and hidden layer, ``(networks, depth)``."""
    return _each_neuron(networks, [crossings(layers, ends) for layers in networks])


def on_line(networks: Networks) -> kit.Values:
    """Return breakpoints per neuron on all of R, of each network and hidden layer, ``(networks, depth)``."""
    return _each_neuron(networks, [along_line(layers).crossings for layers in networks])


def _each_neuron(networks: Networks, counts: list[kit.Values]) -> kit.Values:
    widths = [len(layer.matrix) for layer in networks[0][:-1]]
    return np.array(counts)[:, :-1] / widths


def between_pairs(networks: Networks, pairs: kit.Values) -> kit.Values:
    """Return breakpoints per neuron of each network on a segment of its own, ``(pairs, depth)``."""
    counts = [on_segment([layers], ends) for layers, ends in zip(networks, pairs, strict=True)]
    return np.concatenate(counts)


def redrawn(
    networks: Networks,
    ends: kit.Values,
    c_w: float,
    c_b: float,
    rng: np.random.Generator,
    shift: float = 0.0,
) -> kit.Values:
    """Return breakpoints per neuron of last hidden layers that are drawn anew, ``(networks,)``."""
    width = len(networks[0][0].matrix)
    others = [random_network(rng, (width, REDRAWS), c_w, c_b, shift=shift) for _ in networks]
    anew = [[*layers[:-2], *other] for layers, other in zip(networks, others, strict=True)]
    return on_segment(anew, ends)[:, -1]


def along_line(layers: Sequence[Layer]) -> Trace:
    """Follow a network of one input along all of R."""
    return trace(homogeneous(layers), LINE)


def pieces(along: Trace) -> int:
    """Count the linear pieces of the output along the line: runs of equal slope and offset."""
    # places 0, 1, 2 are (−1, 0), (0, 1) and (1, 0), with straight ways between them
    tau = 1 - np.abs(along.places - 1)
    corners = np.stack([along.places - 1, tau], 1)
    pairs = np.stack([corners[:-1], corners[1:]], 1)
    apart = np.linalg.norm(corners[1:] - corners[:-1], axis=1) > 0
    heights = np.stack([along.outputs[:-1, 0], along.outputs[1:, 0]], 1)
    # on a piece the output is s x + c τ: its values at two corners give slope and offset
    affine = np.linalg.solve(pairs[apart], heights[apart, :, None])[..., 0]
    jumps = np.abs(np.diff(affine, axis=0)).max(1)
    return 1 + int((jumps > 1e-9 * np.abs(affine).max()).sum())


def pairs_of_digits(rng: np.random.Generator, number: int) -> kit.Values:
    """Draw pairs of images of different digits, shape ``(number, 2, 64)``."""
    images = digits()
    x = np.asarray(images.x)
    label = np.asarray(images.y).argmax(1)
    first = rng.integers(0, len(x), number)
    second = np.array([rng.choice(np.flatnonzero(label != label[i])) for i in first])
    return np.stack([x[first], x[second]], 1)
