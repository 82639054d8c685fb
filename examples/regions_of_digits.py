"""The linear regions of a trained digits network in the plane of three of its images, exactly, as a picture.

``python examples/regions_of_digits.py regions.png`` trains a small ReLU network on scikit-learn's digits, cuts the
plane through a zero, a three and an eight into the regions where the network is affine, and draws them. Colours are
the predicted digits: a last layer of differences between outputs cuts every region where the prediction changes.
"""

import itertools
import sys

import jax
import numpy as np
import optax
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from steepest.dynamics import descend
from steepest.geometry import Layer, PlanarRegions, planar_regions, relu_layers
from steepest.nn.data import digits
from steepest.nn.networks import mlp

SHOWN = (0, 3, 8)


def main(path: str = "regions.png", steps: int = 300, width: int = 40) -> dict[str, float]:
    """Every cell in order; returns how many regions there are, before and after training."""
    # %% A ReLU network on all digits, square loss, Adam.
    data = digits()
    network = mlp((data.x.shape[1], width, width, 10), "relu", c_w=2.0, c_b=0.1)
    start = network.init(jax.random.key(0))
    risk = lambda params: ((network.apply(params, data.x) - data.y) ** 2).mean()
    trained = descend(risk, start, optax.adam(3e-3), steps, record=steps).params
    right = (network.apply(trained, data.x).argmax(1) == data.y.argmax(1)).mean()

    # %% The triangle of three images, twice as large as they need.
    labels = np.asarray(data.y).argmax(1)
    images = np.stack([np.asarray(data.x, float)[np.flatnonzero(labels == c)[0]] for c in SHOWN])
    corners = images.mean(0) + 2 * (images - images.mean(0))

    # %% All regions, exactly: first those of the network alone.
    before = planar_regions(layers_of(start), corners)
    after = planar_regions(layers_of(trained), corners)
    print(
        f"accuracy {float(right):.3f}; {before.count} regions at the start, {after.count} after {steps} steps, "
        f"borders {before.boundary_length:.0f} and {after.boundary_length:.0f} long"
    )

    # %% Then cut where the largest output changes, and draw.
    decided = planar_regions([*layers_of(trained), pairwise(10)], corners)
    title = f"{after.count} linear regions, {2 * width} neurons"
    draw(after, decided, images, title).savefig(path, dpi=100)
    return {"before": before.count, "after": after.count, "decided": decided.count}


def layers_of(params: tuple[dict, ...]) -> list[Layer]:
    """Read a network of :func:`mlp` as layers of ``steepest.geometry``; for ``c_w`` and standard parameters."""
    return relu_layers(
        [np.asarray(layer["w"], float) for layer in params],
        [np.asarray(layer["b"], float) for layer in params],
    )


def pairwise(classes: int) -> Layer:
    """Build a layer of all differences of two outputs, whose signs say which output is the largest."""
    rows = [
        np.eye(classes)[i] - np.eye(classes)[j]
        for i, j in itertools.combinations(range(classes), 2)
    ]
    units = len(rows)
    return Layer(np.array(rows), np.zeros(units), np.zeros(units), np.ones(units))


def draw(regions: PlanarRegions, decided: PlanarRegions, images: np.ndarray, title: str) -> Figure:
    """Draw regions in white lines, in the colour of the predicted digit, darker where the network is steeper."""
    # the last 45 signs are those of the differences: the winner is above all others
    signs = decided.patterns[:, -45:]
    wins = np.zeros((decided.count, 10))
    for column, (i, j) in enumerate(itertools.combinations(range(10), 2)):
        wins[:, i] += signs[:, column]
        wins[:, j] += ~signs[:, column]
    winner = wins.argmax(1)
    owner = regions_of(regions, decided)
    steepness = np.linalg.norm(regions.maps[:, :, :2], axis=(1, 2))[owner]
    rank = steepness.argsort().argsort() / max(1, decided.count - 1)
    colours = np.array(
        [
            [0.35, 0.55, 0.80], [0.95, 0.75, 0.35], [0.60, 0.60, 0.60], [0.85, 0.45, 0.40], [0.55, 0.75, 0.75],
            [0.75, 0.60, 0.80], [0.80, 0.75, 0.55], [0.60, 0.50, 0.40], [0.45, 0.70, 0.45], [0.90, 0.65, 0.75],
        ]
    )  # fmt: skip
    light = 0.55 * (1 - rank)[:, None]
    figure = Figure(figsize=(9, 7.2), layout="constrained")
    axes = figure.subplots()
    axes.add_collection(
        PolyCollection(
            list(decided.vertices),
            facecolors=colours[winner] * (1 - light) + light,
            edgecolors="face",
            linewidths=0.3,
        )
    )
    axes.add_collection(
        PolyCollection(
            list(regions.vertices), facecolors="none", edgecolors="white", linewidths=0.6
        )
    )
    places = (images - regions.origin) @ regions.frame.T
    for digit, (u, v) in zip(SHOWN, places, strict=True):
        axes.plot(u, v, "o", color="black", markersize=5)
        axes.annotate(f"a {digit}", (u, v), xytext=(7, 5), textcoords="offset points", fontsize=13)
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(f"{title}: colour is the predicted digit, dark is steep", fontsize=13)
    return figure


def regions_of(regions: PlanarRegions, decided: PlanarRegions) -> np.ndarray:
    """Return in which region of the network each piece lies: they share the signs of its neurons."""
    rows = {row.tobytes(): place for place, row in enumerate(regions.patterns)}
    own = np.ascontiguousarray(decided.patterns[:, : regions.patterns.shape[1]])
    return np.array([rows[row.tobytes()] for row in own])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "regions.png")
