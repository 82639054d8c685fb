"""Two calculations that a reader turns by a slider: drawn here once, and again by ``toys.js`` as it is turned."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._sketch import WIDTH, Box, Ranges, Sheet

STEPS = 12  # on the parabola
START = 1.0
FARTHEST = 1.6  # place at which a path leaves the picture
LONG = 60  # steps of the catapult
NEURONS = 400.0
HIGHEST = 4.0  # of the logarithm of the risk, in the picture
LOWEST = -6.0


class Toy(NamedTuple):
    """A calculation with one number to turn.

    Attributes:
        title: what to look at.
        text: what is calculated.
        name: of the number.
        least: its smallest value.
        most: its largest.
        step: between two values.
        first: the one that it opens with.
        svg: the drawing at that value.
    """

    title: str
    text: str
    name: str
    least: float
    most: float
    step: float
    first: float
    svg: str


def parabola() -> Toy:
    """Draw descent on a parabola."""
    first = 1.9
    sheet = Sheet(230.0)
    part = sheet.part(Box(8, 6, WIDTH - 16, 218), Ranges((-1.75, 1.75), (-0.08, 1.4)))
    x = np.linspace(-1.67, 1.67, 101)
    part.line(x, x**2 / 2, "rule", 2)
    path = steps_on_parabola(first)
    part.line(path, path**2 / 2, "observed", 1.6, moves="path")
    part.dots([START], [START**2 / 2], "observed", 4)
    part.words("start", (START, START**2 / 2), "soft", shift=(10, 10))
    part.words("θ", (1.7, -0.02), "soft", "end")
    return Toy(
        "How long may a step be?",
        "Each step multiplies the weight by 1 − ηλ. With ηλ below one it slides down, between one"
        " and two it swings and settles, at two it swings for ever, and beyond it climbs.",
        "ηλ",
        0.1,
        2.3,
        0.05,
        first,
        sheet.svg(
            "A parabola with the points that descent visits, for a step size that a slider sets."
        ),
    )


def steps_on_parabola(product: float) -> NDArray:
    """Return the weights that descent visits until they leave the picture, at most ``(STEPS + 1,)``."""
    path = [START]
    while len(path) <= STEPS and abs(path[-1]) < FARTHEST:
        path.append((1 - product) * path[-1])
    return np.clip(path, -FARTHEST, FARTHEST)


def catapult() -> Toy:
    """Draw the risk and the curvature of the catapult's recursion."""
    first = 2.6
    sheet = Sheet(330.0)
    risk, curvature = steps_of_catapult(first)
    times = np.arange(len(risk))
    upper = sheet.part(Box(8, 24, WIDTH - 70, 130), Ranges((0, LONG), (LOWEST, HIGHEST)))
    upper.axes("", "log₁₀ of the risk")
    upper.line([0, LONG], [0, 0], "rule", 1.2, "dashed")
    upper.words("start", (LONG, 0), "soft", shift=(5, 4))
    upper.line(times, risk, "observed", 2, moves="risk")
    lower = sheet.part(Box(8, 190, WIDTH - 70, 116), Ranges((0, LONG), (0, 4.6)))
    lower.axes("step", "ηλ")
    for wall in (2, 4):
        lower.line([0, LONG], [wall, wall], "predicted", 1.4, "dashed")
        lower.words(str(wall), (LONG, wall), "predicted", shift=(5, 4))
    lower.line(times, curvature, "context", 2, moves="curvature")
    return Toy(
        "How large a step repairs itself?",
        "One example, target zero, a hidden layer of 400 linear neurons, an error of 1/η at the start: "
        "the recursion of the text with all its terms. Watch the curvature fall while the risk is"
        " high.",
        "ηλ at the start",
        0.5,
        4.3,
        0.05,
        first,
        sheet.svg(
            "Two curves over sixty steps for a step size that a slider sets: the logarithm of the "
            "risk, and the curvature "
            "times the step size with dashed lines at two and four."
        ),
    )


def steps_of_catapult(product: float) -> tuple[NDArray, NDArray]:
    """Return log₁₀ of the risk over the first, and ηλ, step by step until they leave the picture.

    With k = ηλ and r in units of 1/η: r ← (1 − k + r²/m) r and k ← k + (r²/m)(k − 4).
    """
    error = 1.0
    risks = []
    curvatures = []
    for _ in range(LONG + 1):
        height = 2 * np.log10(max(abs(error), 1e-12))
        risks.append(float(np.clip(height, LOWEST, HIGHEST)))
        curvatures.append(float(np.clip(product, 0.0, 4.6)))
        if height > HIGHEST or product > 4.6:
            break
        share = error**2 / NEURONS
        error = (1 - product + share) * error
        product = product + share * (product - 4)
    return np.array(risks), np.array(curvatures)


TOYS: dict[str, Callable[[], Toy]] = {"parabola": parabola, "catapult": catapult}
"""The toys by the names under which chapters ask for them."""
