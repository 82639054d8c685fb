"""Pieces of deep networks on a line, counted on grids, and the best that fits of few pieces can do."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.geometry import Layer, best_pieces, preactivations, relu_layers, zigzag
from steepest.kit.points import bound
from steepest.linalg import sequential

POINTS = 8  # on each straight piece, where errors are compared
STEPS = 4  # of the grid on each straight piece, where pieces are counted
EXACT = 1e-9  # a root mean squared error below this is none

Depth = Annotated[int, kit.Within(2, 8)]
Neurons = Annotated[int, kit.Within(1, 1000)]


def printed_network(depth: int, height: float = 1.0) -> list[Layer]:
    """Return f∘…∘f with f(x) = hσ(2σ(x) − 4σ(x − ½)), h = 1 as printed: two layers and three neurons for each f."""
    # 2σ(x) − 4σ(x − ½) rises to one at ½ and falls to zero at one, beyond which σ cuts it off
    inner = np.ones((2, 1))
    outer = height * np.array([[2.0, -4.0]])
    weights = [inner, outer] * depth + [np.ones((1, 1))]
    biases = [np.array([0.0, -0.5]), np.zeros(1)] * depth + [np.zeros(1)]
    return relu_layers(weights, biases)


def on_grid(layers: list[Layer], low: float, high: float, steps: int) -> kit.Values:
    """Return the output of a network on equal steps, both ends included, shape ``(steps + 1,)``."""
    x = low + (high - low) * np.arange(steps + 1) / steps
    return preactivations(layers, x[:, None])[-1][:, 0]


def count_pieces(y: kit.Values) -> int:
    """Count the straight pieces of a function whose breakpoints are points of the grid, shape ``(steps + 1,)``."""
    # second differences vanish inside a straight piece
    bends = np.abs(np.diff(y, 2))
    return 1 + int((bends > EXACT * bends.max(initial=0.0)).sum())


def count_spikes(y: kit.Values) -> int:
    """Count the strict local maxima on a grid."""
    return int(((y[1:-1] > y[:-2]) & (y[1:-1] > y[2:])).sum())


def count_all(
    depths: Sequence[int], widths: Sequence[int], width_depths: Sequence[int]
) -> dict[str, tuple[str, list[int]]]:
    """Count pieces and spikes of sawtooths, of networks as printed, of the same with low tents, and of wider ones."""
    inside = [on_grid(zigzag(depth), 0.0, 1.0, STEPS * 2**depth) for depth in depths]
    line = [_on_the_line(printed_network(depth), depth) for depth in depths]
    low = [on_grid(printed_network(depth, 0.5), 0.0, 1.0, STEPS * 2**depth) for depth in depths]
    low_line = [_on_the_line(printed_network(depth, 0.5), depth) for depth in depths]
    wide = [
        on_grid(zigzag(depth, width), 0.0, 1.0, STEPS * width**depth)
        for width, depth in zip(widths, width_depths, strict=True)
    ]
    return {
        "pieces": ("depth", list(map(count_pieces, inside))),
        "spikes": ("depth", list(map(count_spikes, inside))),
        "line": ("depth", list(map(count_pieces, line))),
        "low_pieces": ("depth", list(map(count_pieces, low))),
        "low_spikes": ("depth", list(map(count_spikes, low))),
        "low_line": ("depth", list(map(count_pieces, low_line))),
        "zigzag": ("width", list(map(count_pieces, wide))),
    }


def _on_the_line(layers: list[Layer], depth: int) -> kit.Values:
    return on_grid(layers, -1.0, 2.0, 3 * STEPS * 2**depth)


def teeth(depth: int) -> kit.Values:
    """Return the zigzag of this depth at the middles of equal steps, eight on each piece, ``(8·2^L,)``.

    On these points every tooth has the mean and the variance of the whole, and its best straight fit is constant.
    """
    number = POINTS * 2**depth
    x = (np.arange(number) + 0.5) / number
    return preactivations(zigzag(depth), x[:, None])[-1][:, 0]


def shares(values: kit.Values, neurons: int) -> kit.Values:
    """Return the least error that 0, 1, …, n breakpoints leave, as a share of the variance, ``(n + 1,)``."""
    return best_pieces(values, neurons + 1) / values.var()


@cache
def all_shares(depth: int) -> kit.Values:
    """Return what every number of breakpoints up to that of the zigzag itself leaves, ``(2^L,)``."""
    return shares(teeth(depth), 2**depth - 1)


@sequential
def shallow_neurons(depth: int) -> int:
    """Return how many neurons of one hidden layer, with an output bias, make this zigzag on [0, 1] exactly.

    Each of its p − 1 breakpoints needs a neuron, so that p − 1 neurons can do only if each has its corner at one of
    them. All ways to turn these neurons, to the left or to the right, are tried. The pieces p are the fewest that
    leave no error.
    """
    values = teeth(depth)
    # shares are of squares, and so is their bound
    pieces = 1 + int(np.argmax(shares(values, 2 * 2**depth) < EXACT**2))
    number = len(values)
    x = (np.arange(number) + 0.5) / number
    corners = np.arange(1, pieces) / pieces
    right = np.maximum(x[:, None] - corners, 0)
    left = np.maximum(corners - x[:, None], 0)
    constant = np.ones((number, 1))
    for turned in itertools.product([False, True], repeat=pieces - 1):
        if _residual(np.hstack([constant, np.where(turned, left, right)]), values) < EXACT:
            return pieces - 1
    # one neuron more has no corner on [0, 1], and adds a slope there
    if _residual(np.hstack([constant, right, x[:, None]]), values) < EXACT:
        return pieces
    return pieces + 1


def _residual(columns: kit.Values, values: kit.Values) -> float:
    """Return the root mean squared error of the best combination."""
    fit = columns @ np.linalg.lstsq(columns, values, rcond=None)[0]
    return float(np.sqrt(np.mean((fit - values) ** 2)))


@dataclass(frozen=True)
class SawtoothPoint(kit.Point):
    """The least error of one hidden layer of n neurons on the zigzag of depth L."""

    error_depths: Depth
    neurons: Neurons

    batched = ("neurons",)
    diagram = {"error_depths": "2:9", "neurons": "log:1:128:8"}
    labels = {"share": "share of the variance that n breakpoints leave"}
    diagram_remarks = (
        "The optimum over all functions of n + 1 straight pieces, joined or not. Right of and below the line the "
        "theorem bounds it from below by 1 − n/2^(L−1); above the line it says nothing.",
    )

    def hypotheses(self, setting):
        yield few_neurons(self.neurons, self.error_depths)

    def predict(self, setting):
        return kit.Prediction(share=max(0.0, 1 - self.neurons / 2 ** (self.error_depths - 1)))

    def observe(self, setting, key):
        every = jnp.asarray(all_shares(self.error_depths))
        place = jnp.minimum(jnp.asarray(self.neurons, int), every.size - 1)
        return {"share": every[place]}

    def judge(self, predicted, observed):
        least = float(predicted["share"])
        yield bound("share", observed["share"], at_least=least, label="share of the variance")

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"error_depths", "neurons"}:
            return ()
        depths = np.linspace(1, 9, 30)
        neurons = 2.0 ** (depths - 1)
        ends = (depths, neurons) if x == "error_depths" else (neurons, depths)
        return (kit.predicted_curve(*ends, "n = 2^(L−1)"),)


def few_neurons(neurons: int, depth: int) -> kit.Hypothesis:
    """Assume that there are fewer neurons than teeth."""
    return kit.assume(
        "neurons over teeth, n/2^(L−1)",
        neurons / 2 ** (depth - 1),
        "<",
        1,
        "with as many neurons as teeth the bound is zero and says nothing",
    )
