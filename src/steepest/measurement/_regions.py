"""Linear regions of a network of ReLU along segments and in a plane (Hanin and Rolnick 2019)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.intervals import mean_interval
from steepest.geometry import Layer, planar_regions, trace
from steepest.measurement._chain import compose, kinked, require_chain, slopes_of
from steepest.measurement._context import Context
from steepest.measurement._examples import first_examples
from steepest.measurement._report import Reading
from steepest.measurement.adapters import Dense

PAIRS = 50
MOST = 20_000  # regions in a plane after which counting stops: some seconds
FLAT = 1e-6  # an example nearer to a line, in lengths of the pair, lies on it
AT_START = (("weights and biases are random, as at initialization", None),)


def measure_regions(context: Context) -> list[Reading]:
    """Count regions in which the network is linear: along segments between examples, and in a plane through three.

    A region is a set of inputs at which the same neurons are active. Segments join random pairs of different classes,
    or of different examples where there are no classes.

    Raises:
        UserError: no chain of dense layers whose hidden activations all have a corner at zero; fewer than two classes
            or examples.

    Source: Hanin and Rolnick 2019, Complexity of linear regions in deep networks; Deep ReLU networks have
    surprisingly few activation patterns.
    """
    layers = require_chain(context.subject, "regions")
    if len(layers) < 2 or not all(kinked(layer) for layer in layers[:-1]):
        raise UserError(
            "regions need hidden layers whose activation has a corner at zero, such as ReLU"
        )
    x, targets = first_examples(context)
    rows = np.asarray(x, float).reshape(len(x), -1)
    units = sum(len(layer.matrix) for layer in layers[:-1])
    pairs = _pairs(context, targets)
    counts = np.array([on_segment(layers, rows[[i, j]]) for i, j in pairs])
    lines = [_segments(counts, units)]
    corners = _parallelogram(rows, pairs[0])
    return lines if corners is None else [*lines, _plane(layers, corners, units)]


def _segments(counts: NDArray, units: int) -> Reading:
    value = float(counts.mean() / units)
    spread = mean_interval(counts / units)
    return Reading(
        "regions along a segment, per hidden unit",
        value,
        (float(spread.low), float(spread.high)),
        "probes",
        theory="of order 1 at most, not exponential in the depth (Hanin and Rolnick 2019)",
        assumes=AT_START,
        interpretation=f"{counts.mean():.3g} linear pieces between two examples, exactly counted, "
        f"mean over {len(counts)} pairs; there are {units} hidden units",
        parts={"most": float(counts.max()), "fewest": float(counts.min())},
    )


def _plane(layers: Sequence[Dense], corners: Float[ndarray, "4 d"], units: int) -> Reading:
    theory = f"of order (hidden units)²/2 = {units**2 / 2:.3g} at most"
    try:
        regions = planar_regions(piecewise(layers), corners, most=MOST)
    except UserError:
        return Reading(
            "regions in a plane",
            float(MOST),
            theory=theory,
            assumes=AT_START,
            interpretation=f"a lower bound: counting in the parallelogram of three examples stopped at {MOST}",
        )
    return Reading(
        "regions in a plane",
        float(regions.count),
        theory=theory,
        assumes=AT_START,
        interpretation="exactly counted in the parallelogram of three examples",
        parts={
            "length of borders": regions.boundary_length,
            "area": float(regions.areas.sum()),
            "median area of a region": float(np.median(regions.areas)),
        },
    )


def on_segment(layers: Sequence[Dense], ends: Float[ndarray, "2 d"]) -> int:
    """Count the regions that a segment crosses, exactly, for activations with one corner at zero.

    Regions are convex: none is met twice.

    >>> one = lambda matrix, bias, name: Dense("", np.array(matrix), np.array(bias), name)
    >>> tent = [one([[2.0], [4.0]], [0.0, -2.0], "relu"), one([[1.0, -1.0]], [0.0], "linear")]
    >>> on_segment(tent, np.array([[0.1], [0.9]]))
    2
    """
    places = np.unique(trace(piecewise(layers)[:-1], ends).places)
    middles = (places[1:] + places[:-1]) / 2
    points = ends[0] + middles[:, None] * (ends[1] - ends[0])
    patterns = pattern(layers, points)
    return 1 + int((patterns[1:] != patterns[:-1]).any(1).sum())


def pattern(layers: Sequence[Dense], points: Float[ndarray, "m d"]) -> Bool[ndarray, "m units"]:
    """Tell which hidden neurons are active."""
    return np.concatenate([z > 0 for z in compose(layers, points)[:-1]], axis=1)


def piecewise(layers: Sequence[Dense]) -> list[Layer]:
    """Return the chain as layers of ``steepest.geometry``, linear in the last one."""
    cut = []
    for place, layer in enumerate(layers):
        slopes = slopes_of(layer) if place + 1 < len(layers) else (1.0, 1.0)
        if slopes is None:
            raise UserError(f"{layer.activation} is not linear on both sides of zero")
        matrix = np.asarray(layer.matrix, float)
        bias = np.zeros(len(matrix)) if layer.bias is None else np.asarray(layer.bias, float)
        left, right = np.repeat(np.array(slopes)[:, None], len(matrix), axis=1)
        cut.append(Layer(matrix, bias, left, right))
    return cut


def _parallelogram(rows: Float[ndarray, "n d"], pair: tuple[int, int]) -> NDArray | None:
    """Return the corners ``(4, d)`` of the parallelogram of a pair and the first example off their line, if any."""
    first, second = rows[list(pair)]
    side = second - first
    length = side @ side
    if length == 0:
        return None
    away = rows - first
    height = np.linalg.norm(away - (away @ side / length)[:, None] * side, axis=1)
    off = np.flatnonzero(height > FLAT * np.sqrt(length))
    if not len(off):
        return None
    third = rows[off[0]]
    return np.stack([first, second, second + third - first, third])


def _pairs(context: Context, targets: NDArray) -> list[tuple[int, int]]:
    """Draw pairs of examples of different classes, where there are classes."""
    n = len(targets)
    labels = targets if _is_classifier(context) else np.arange(n)
    if len(np.unique(labels)) < 2:
        raise UserError("regions along segments need two examples of different classes")
    pairs: list[tuple[int, int]] = []
    for i in context.rng.integers(0, n, PAIRS).tolist():
        others = np.flatnonzero(labels != labels[i])
        pairs.append((i, int(context.rng.choice(others))))
    return pairs


def _is_classifier(context: Context) -> bool:
    try:
        return context.classes > 1
    except UserError:
        return False
