"""Critical points of linear networks in random bases, and what automatic differentiation finds there."""

from collections.abc import Sequence

import numpy as np

from steepest.landscapes import (
    Critical,
    balanced_weights,
    linear_network_points,
    linear_network_risk,
    strict_saddles,
)
from steepest.nn.types import Values

STEPS = np.geomspace(0.01, 0.04, 6)  # lengths at which the fall from a saddle is measured
UNBALANCED = 1.5  # factor of the first layer, and inverse factor of the last


def orthogonal(rng: np.random.Generator, *shape: int) -> Values:
    """Draw orthogonal matrices, an array of this shape."""
    return np.linalg.qr(rng.normal(size=shape))[0]


def turned_points(
    singular: Sequence[float],
    depth: int,
    hidden: int,
    left: Values,
    right: Values,
    rng: np.random.Generator,
) -> tuple[tuple[Values, ...], list[Values]]:
    """Return the layers of all critical points, and of the saddle on the first pair with a direction, in random bases.

    Args:
        singular: values of Y, the largest first.
        depth: L.
        hidden: width of all hidden layers.
        left: singular vectors of Y at its output.
        right: singular vectors of Y at its input.
        rng: draws the bases of hidden layers.
    """
    turns = orthogonal(rng, depth - 1, hidden, hidden)
    after = [*turns, left]
    before = [right, *turns]
    turned = lambda layers: [
        a @ layer @ b.T for a, layer, b in zip(after, layers, before, strict=True)
    ]
    layers = [
        turned(balanced_weights(singular, point.chosen, depth, hidden))
        for point in linear_network_points(singular, depth, hidden)
    ]
    points = tuple(np.stack(layer) for layer in zip(*layers, strict=True))
    saddle = balanced_weights(singular, (0,), depth, hidden)
    # hidden neuron 1 carries the second pair: first from input 1, last to output 1
    direction = [np.zeros_like(layer) for layer in saddle]
    for move in direction:
        move[1, 1] = 1
    pairs = zip(turned(saddle), turned(direction), strict=True)
    return points, [np.stack(pair) for pair in pairs]


def certificates(
    target: Values, networks: Sequence[tuple[Values, ...]], middles: Values
) -> list[list[Critical]]:
    """Return what autodiff finds at critical points, at unbalanced points, and at points of a middle layer only.

    Args:
        target: Y.
        networks: layers of all critical points, for each depth.
        middles: W_2 of critical points of three layers with W_1 = W_3 = 0.
    """
    risk = linear_network_risk(target)
    points_of_kinds: list[list[Critical]] = [[], [], []]
    for points in networks:
        shifted = (UNBALANCED * points[0], *points[1:-1], points[-1] / UNBALANCED)
        groups = [points, shifted]
        if len(points) == 3:
            zeros = [np.zeros((len(middles), *points[at].shape[1:])) for at in (0, 2)]
            groups.append((zeros[0], middles, zeros[1]))
        together = tuple(np.concatenate(layer) for layer in zip(*groups, strict=True))
        of_network = iter(strict_saddles(risk, together))
        for place, group in enumerate(groups):
            points_of_kinds[place] += [next(of_network) for _ in group[0]]
    return points_of_kinds


def fall(target: Values, layers: list[Values]) -> Values:
    """Return f at a saddle minus f a length t further along a direction, for each t of STEPS."""

    def value(step: float) -> float:
        product = np.eye(len(target))
        for saddle, direction in layers:
            product = (saddle + step * direction) @ product
        return ((product - target) ** 2).sum() / 2

    return np.array([value(0.0) - value(step) for step in STEPS])
