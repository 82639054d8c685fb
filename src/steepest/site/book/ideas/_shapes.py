"""Ideas of the chapters on expressivity, features and kernels: tents, a neuron that turns, windows of a convolution."""

import numpy as np
from numpy.typing import NDArray

from ._idea import Idea
from ._sketch import WIDTH, Box, Part, Ranges, Sheet

TURN = 0.01  # time of a step of a neuron's path
SMALL = 0.01  # its length at the start
IMAGE = 7  # pixels on a side
OFFSET = (2, 1)  # of the second window from the first, right and down


def tents() -> Idea:
    """Draw a tent, and what it makes of itself two and three times."""
    sheet = Sheet(208.0)
    x = np.linspace(0, 1, 257)
    y = x
    gap = 14.0
    size = (WIDTH - 2 * gap) / 3
    for layer in (1, 2, 3):
        y = 1 - np.abs(2 * y - 1)
        box = Box((layer - 1) * (size + gap) + 1, 28, size - 2, size - 2)
        part = sheet.part(box, Ranges((0, 1), (0, 1)))
        part.frame()
        part.area([*x, 1, 0], [*y, 0, 0], "observed")
        part.line(x, y, "observed", 2)
        layers = "1 layer" if layer == 1 else f"{layer} layers"
        part.words(layers, (0, 1), shift=(0, -8), bold=True)
        part.words(f"{2**layer} pieces", (0.5, 0), "ink", "middle", (0, 18))
        part.words(f"{2 * layer} neurons", (0.5, 0), "soft", "middle", (0, 34))
    return Idea(
        "Each layer folds the line once more",
        "The tent goes up on the left half and down on the right. Fed to itself, it goes up and "
        "down on each half. Pieces double with every layer of two neurons.",
        sheet.svg(
            "One tent, two tents and four tents on an interval, made by one, two and three layers."
        ),
    )


def neuron() -> Idea:
    """Draw neurons that turn towards the examples that they see, and grow."""
    sheet = Sheet(330.0)
    part = sheet.part(Box(45, 0, 330, 330), Ranges((-1.5, 1.5), (-1.5, 1.5)))
    angle = np.linspace(0, 2 * np.pi, 181)
    part.line(1.2 * np.cos(angle), 1.2 * np.sin(angle), "rule", 1.2)
    examples = np.array([35.0, 75.0, 110.0, 265.0]) * np.pi / 180
    labels = np.array([1.0, 1.0, 1.0, -1.0])
    for place, label in zip(examples, labels, strict=True):
        role = "observed" if label > 0 else "predicted"
        x = 1.2 * np.cos(place)
        y = 1.2 * np.sin(place)
        part.dots([x], [y], role, 6)
        part.words(
            "+" if label > 0 else "−", (1.11 * x, 1.11 * y), role, "middle", (0, 5), bold=True
        )
    for start in (-25.0, 160.0):
        angles, lengths = turning(start * np.pi / 180, examples, labels)
        radii = 0.3 + 0.75 * np.log(lengths / lengths[0]) / np.log(lengths[-1] / lengths[0])
        x = radii * np.cos(angles)
        y = radii * np.sin(angles)
        part.line(x, y, "context", 1.6, "dashed")
        part.arrow((0, 0), (x[0], y[0]), "soft", 1.6)
        part.arrow((0, 0), (x[-1], y[-1]), "context", 2.2)
    part.words("at the start", (0.42, -0.22), "soft", shift=(2, 10))
    return Idea(
        "A small neuron first turns, then grows",
        "Two neurons with a positive output weight. Each turns towards the sum of the labelled "
        "examples on its own side, and grows as the sum pulls along it. Both end in one "
        "direction: "
        "that of the sum of the three examples marked +. Lengths are drawn by their logarithms.",
        sheet.svg(
            "Four examples on a circle, three marked plus and one minus. Two short arrows that start "
            "in different directions "
            "turn along dashed paths into one direction among the pluses, and grow."
        ),
    )


def turning(
    start: float, examples: NDArray, labels: NDArray, longest: float = 1.05
) -> tuple[NDArray, NDArray]:
    """Follow the direction and the length of a small neuron: ẇ = ‖w‖ Σ yᵢxᵢ over the examples that it sees.

    Args:
        start: angle at the start.
        examples: angles, ``(n,)``.
        labels: ±1, ``(n,)``.
        longest: length at which it ends.

    Returns:
        angles and lengths along the path.
    """
    w = SMALL * np.array([np.cos(start), np.sin(start)])
    x = np.stack([np.cos(examples), np.sin(examples)], 1)
    path = [w]
    while np.linalg.norm(w) < longest:
        active = x @ w > 0
        pull = (labels * active) @ x
        w = w + TURN * np.linalg.norm(w) * pull
        path.append(w)
    places = np.array(path)
    return np.arctan2(places[:, 1], places[:, 0]), np.linalg.norm(places, axis=1)


def displacement() -> Idea:
    """Draw two windows of a convolution, the one at an offset from the other."""
    sheet = Sheet(262.0)
    size = 168.0
    left = sheet.part(Box(12, 34, size, size), Ranges((0, IMAGE), (IMAGE, 0)))
    right = sheet.part(Box(WIDTH - size - 12, 34, size, size), Ranges((0, IMAGE), (IMAGE, 0)))
    corner = (1, 1)
    second_corner = (corner[0] + OFFSET[0], corner[1] + OFFSET[1])
    _grid(left, corner, "observed")
    _grid(right, second_corner, "predicted")
    left.words("one image", (0, 0), shift=(0, -10), bold=True)
    right.words("another", (0, 0), shift=(0, -10), bold=True)
    for row in range(3):
        for column in range(3):
            left.dots([corner[0] + column + 0.5], [corner[1] + row + 0.5], "observed", 3)
            right.dots(
                [second_corner[0] + column + 0.5], [second_corner[1] + row + 0.5], "predicted", 3
            )
    whole = sheet.part(Box(0, 0, WIDTH, 262), Ranges((0, WIDTH), (262, 0)))
    for row in (0, 1, 2):
        start = left.place(corner[0] + 2.5, corner[1] + row + 0.5)[0]
        end = right.place(second_corner[0] + 0.5, second_corner[1] + row + 0.5)[0]
        whole.line([start[0] + 6, end[0] - 6], [start[1], end[1]], "soft", 1, "dotted")
    right.arrow(
        (corner[0] + 1.5, corner[1] + 1.5),
        (second_corner[0] + 1.5, second_corner[1] + 1.5),
        "ink",
        1.8,
    )
    right.dots([corner[0] + 1.5], [corner[1] + 1.5], "observed", 4, hollow=True)
    whole.words("the displacement: 2 right, 1 down", (WIDTH - 12, 34 + size), "ink", "end", (0, 20))
    whole.words(
        "nine pairs of pixels meet at this displacement",
        (12, 34 + size),
        "soft",
        "start",
        (0, 42),
    )
    return Idea(
        "Pairs of pixels keep their displacement through every layer",
        "The kernel of two pixels after a convolution needs the nine pairs of pixels under the "
        "two windows. Each pair lies as far apart as the windows do. So displacements never mix, "
        "and each can be followed alone.",
        sheet.svg(
            "Two images as grids of pixels, each with a window of three by three. The second window "
            "lies two pixels further "
            "right and one further down; corresponding pixels of the windows are joined."
        ),
    )


def _grid(part: Part, corner: tuple[int, int], role: str) -> None:
    """Draw the pixels of an image, and a window of three by three."""
    for line in range(IMAGE + 1):
        part.line([line, line], [0, IMAGE], "rule", 1)
        part.line([0, IMAGE], [line, line], "rule", 1)
    x, y = corner
    around_x = [x, x + 3, x + 3, x, x]
    around_y = [y, y, y + 3, y + 3, y]
    part.area(around_x, around_y, role)
    part.line(around_x, around_y, role, 2)
