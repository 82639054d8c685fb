"""Exact regions of random ReLU networks in a square, against patterns seen at the points of a grid.

CPU-seconds, the least of three runs; the ratio is that of both ways in one process. The grid has 400 × 400 points and
misses what is smaller than its squares.
"""

import time

import numpy as np

from steepest.geometry import planar_regions, preactivations, relu_layers

SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
WIDTHS = ((24,), (12, 12), (40, 40), (64, 64), (128, 128), (128, 128, 128))
SIDE = 400


def network(widths):
    rng = np.random.default_rng(0)
    sizes = list(zip((2, *widths), (*widths, 1), strict=True))
    weights = [rng.standard_normal((n, m)) * (2 / m) ** 0.5 for m, n in sizes]
    return relu_layers(weights, [rng.standard_normal(n) for _, n in sizes])


def seen_on_grid(layers):
    axis = np.linspace(-1, 1, SIDE)
    points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    signs = np.concatenate([z > 0 for z in preactivations(layers, points)[:-1]], axis=1)
    return len(np.unique(np.packbits(signs, axis=1), axis=0))


def timed(run):
    seconds = []
    for _ in range(3):
        start = time.process_time()
        answer = run()
        seconds.append(time.process_time() - start)
    return answer, min(seconds)


print(
    "| hidden widths | regions | seen on the grid | exact, CPU-seconds | over the grid's | a region |"
)
print("|---|---|---|---|---|---|")
for widths in WIDTHS:
    layers = network(widths)
    exact, cost = timed(lambda layers=layers: planar_regions(layers, SQUARE).count)
    on_grid, other = timed(lambda layers=layers: seen_on_grid(layers))
    row = (
        " ".join(map(str, widths)),
        exact,
        on_grid,
        f"{cost:.2g}",
        f"{cost / other:.2g}",
        f"{1e6 * cost / exact:.0f} µs",
    )
    print("| " + " | ".join(map(str, row)) + " |")
