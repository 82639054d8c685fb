"""Residual networks of one input and one neuron a block: increasing functions, and staircases of any levels."""

from collections.abc import Callable, Mapping

import numpy as np

from steepest import kit
from steepest.geometry import Layer, preactivations, residual_layers

FLAT = 1e-5
"""Slope of a staircase between its ramps, before levels are moved."""
RAMP = 1e-5
"""Length of a ramp between two levels, in units of that of a step. Smaller ones meet the rounding of what is lifted."""
STEP_NODES = 400
RAMP_NODES = 40
"""Points of a step and of a ramp at which a staircase is compared."""
TARGETS: Mapping[str, Callable[[kit.Values], kit.Values]] = {
    "x²": np.square,
    "sin 4πx": lambda x: np.sin(4 * np.pi * x),
    "log 1/x": lambda x: -np.log(x),
}
"""Functions on [0, 1], monotone between any two neighbours of 0, ⅛, …, 1."""


def line_network(
    thresholds: kit.Values, factors: kit.Values, readout: float, offset: float
) -> list[Layer]:
    """Return the network that adds v_k σ(x − t_k) block by block, and reads out w x + c."""
    shape = (len(thresholds), 1, 1)
    return residual_layers(
        np.ones(shape),
        -np.reshape(thresholds, shape[:2]),
        np.reshape(factors, shape),
        np.array([readout]),
        offset,
    )


def increasing_blocks(breaks: kit.Values, slopes: kit.Values) -> tuple[kit.Values, kit.Values]:
    """Return thresholds t_k and factors v_k of K blocks that make an increasing function of K breaks from x.

    Block k multiplies the slope beyond its break by s_k/s_{k−1} and leaves what is below. The slopes come out in units
    of the first; t_k is where the blocks below have taken the break to.

    Args:
        breaks: rising, shape ``(K,)``.
        slopes: positive, between them and beyond, shape ``(K + 1,)``.
    """
    # the identity has slope one, so that the part of slope s_k rises by s_k/s_0 of its length
    rises = slopes[1:-1] / slopes[0] * np.diff(breaks)
    thresholds = breaks[0] + np.append(0.0, np.cumsum(rises))
    return thresholds, slopes[1:] / slopes[:-1] - 1


def staircase(levels: kit.Values) -> list[Layer]:
    """Return a network of 3(M − 1) blocks that has M levels on [0, 1], one on each part of length 1/M.

    At first 2(M − 1) blocks make an increasing function, all but flat between steep ramps. Its lowest step has its
    level, and the others are above all levels. Then a block a step, the highest first, moves all that is above the
    next one down: what has its level is below, and stays.

    Args:
        levels: in any order, shape ``(M,)``.
    """
    steps = len(levels)
    spacing = 2 * np.ptp(levels) / steps
    lifted = np.append(levels[0], levels.max() + spacing * np.arange(1, steps))
    half = RAMP / steps / 2
    borders = np.arange(1, steps) / steps
    breaks = np.stack([borders - half, borders + half], 1).ravel()
    slopes = np.full(2 * steps - 1, FLAT)
    # from middle to middle f rises as the ramp does, and stays FLAT over the rest of 1/M
    slopes[1::2] = (np.diff(lifted) - FLAT * (1 / steps - 2 * half)) / (2 * half)
    thresholds, factors = increasing_blocks(breaks, slopes)
    # the first level is met in the middle of its step, at 1/2M
    offset = levels[0] - FLAT / steps / 2
    # half of the spacing below a step begins what moves it, in units of the first slope
    moves = (lifted[:0:-1] - spacing / 2 - offset) / FLAT
    # a level is spacing/2 above the threshold: this factor takes it all the way to its place
    falls = (levels - lifted)[:0:-1] / (spacing / 2)
    return line_network(np.append(thresholds, moves), np.append(factors, falls), FLAT, offset)


def staircase_errors(target: Callable[[kit.Values], kit.Values], steps: int) -> tuple[float, float]:
    """Return the mean and the largest error of a staircase with the target's values at the middles of its steps."""
    network = staircase(target((np.arange(steps) + 0.5) / steps))
    half = RAMP / steps / 2
    borders = np.arange(steps + 1) / steps
    edges = np.clip(np.stack([borders - half, borders + half], 1).ravel(), 0.0, 1.0)
    x, weights = _midpoints(edges, np.resize([RAMP_NODES, STEP_NODES], len(edges) - 1))
    errors = np.abs(preactivations(network, x[:, None])[-1][:, 0] - target(x))
    return float(errors @ weights), float(errors.max())


def broken_line_errors(blocks: int) -> tuple[float, float]:
    """Return mean errors of the best broken line for x² with so many blocks, and of its blocks in reverse order.

    On each of K + 1 equal pieces the best line in the mean meets x² a quarter of its length w from both ends, so that
    it is 3w²/16 below the chord; these lines are continuous.
    """
    knots = np.arange(blocks + 2) / (blocks + 1)
    # each line is parallel to its chord and 3w²/16 below it
    values = knots**2 - 3 / (16 * (blocks + 1) ** 2)
    x, weights = _midpoints(knots, np.full(blocks + 1, STEP_NODES))
    slopes = np.diff(values) / np.diff(knots)
    thresholds, factors = increasing_blocks(knots[1:-1], slopes)
    networks = [
        line_network(thresholds[order], factors[order], slopes[0], values[0])
        for order in (slice(None), slice(None, None, -1))
    ]
    errors = [
        np.abs(preactivations(net, x[:, None])[-1][:, 0] - x**2) @ weights for net in networks
    ]
    return float(errors[0]), float(errors[1])


def _midpoints(edges: kit.Values, numbers: kit.Values) -> tuple[kit.Values, kit.Values]:
    """Return middles of so many equal parts between neighbouring edges, and their lengths."""
    lengths = np.diff(edges) / numbers
    places = np.concatenate([(np.arange(number) + 0.5) for number in numbers])
    return np.repeat(edges[:-1], numbers) + places * np.repeat(lengths, numbers), np.repeat(
        lengths, numbers
    )
