"""Ideas of the chapters on margins and noise: a gap between two groups, a circle with two speeds."""

import numpy as np
from numpy.typing import NDArray

from ._idea import Idea
from ._sketch import WIDTH, Box, Ranges, Sheet

SITES = 30  # of the circle
EXAMPLES = 13  # of each group
MARGIN = 0.55
DIRECTION = np.array([np.cos(0.5), np.sin(0.5)])
SLOW_DOT = 7.0  # radius
FAST_DOT = SLOW_DOT / 2  # areas are shares of time: inverse to the square of a step


def margin() -> Idea:
    """Draw two groups of examples, the line between them with the largest margin, and one that is nearly as good."""
    sheet = Sheet(300.0)
    part = sheet.part(Box(8, 8, WIDTH - 16, 284), Ranges((-2.6, 2.6), (-1.76, 1.76)))
    x, y = examples()
    for label, role in ((1, "observed"), (-1, "predicted")):
        places = x[y == label]
        part.dots(places[:, 0], places[:, 1], role, 4, hollow=label < 0)
    u = DIRECTION
    along = np.array([-u[1], u[0]])
    for distance, role, dash in (
        (0, "ink", ""),
        (MARGIN, "soft", "dashed"),
        (-MARGIN, "soft", "dashed"),
    ):
        ends = distance * u + np.array([[-1.9], [1.9]]) * along
        part.line(ends[:, 0], ends[:, 1], role, 2 if not distance else 1.2, dash)
    band = np.array([MARGIN * u - 1.9 * along, MARGIN * u + 1.9 * along])
    below = np.array([-MARGIN * u + 1.9 * along, -MARGIN * u - 1.9 * along])
    corners = np.concatenate([band, below])
    part.area(corners[:, 0], corners[:, 1], "context", 0.1)
    foot = -1.35 * along
    part.arrow(tuple(foot), tuple(foot + MARGIN * u), "ink", 1.6)
    part.words("γ", tuple(foot + MARGIN / 2 * u), "ink", "middle", (-4, -8), bold=True)
    return Idea(
        "The margin γ is the room on each side of the line",
        "Two groups, and the line that leaves the most room. Only the examples on the dashed "
        "lines decide where it lies. Rotate it a little, and one of them comes nearer than γ.",
        sheet.svg(
            "Filled and hollow dots on two sides of a line, with an empty band around the line whose "
            "half-width is called "
            "gamma."
        ),
    )


def examples() -> tuple[NDArray, NDArray]:
    """Return two groups whose margin is ``MARGIN`` along ``DIRECTION``: points ``(n, 2)``, and ±1.

    The last two of each group lie on its side of the band, and overlap along it with those of the other.
    """
    along = np.array([-DIRECTION[1], DIRECTION[0]])
    rng = np.random.default_rng(4)
    away = MARGIN + np.append(rng.gamma(2.0, 0.3, EXAMPLES - 2), [0, 0])
    beside = np.append(rng.uniform(-1.2, 1.2, EXAMPLES - 2), [-0.55, 0.75])
    first = away[:, None] * DIRECTION + beside[:, None] * along
    turned = np.append(beside[EXAMPLES - 3 :: -1], [-0.68, 0.5])
    second = -away[:, None] * DIRECTION + turned[:, None] * along
    return np.concatenate([first, second]), np.repeat([1, -1], EXAMPLES)


def circle() -> Idea:
    """Draw a circle on one half of which steps are short, and the share of time on each site."""
    sheet = Sheet(290.0)
    part = sheet.part(Box(75, 10, 270, 270), Ranges((-1.45, 1.45), (-1.45, 1.45)))
    angle = (np.arange(SITES) + 0.5) / SITES * 2 * np.pi
    slow = np.cos(angle) < 0
    x = np.cos(angle)
    y = np.sin(angle)
    part.dots(x[slow], y[slow], "observed", SLOW_DOT)
    part.dots(x[~slow], y[~slow], "context", FAST_DOT)
    _arc_arrow(part, np.pi - 0.1, 1, 1.24, "observed")
    _arc_arrow(part, -0.1, 2, 1.24, "context")
    part.words(["short steps:", "four fifths", "of the time"], (-0.72, 0.14), "observed", "start")
    part.words(["long steps:", "one fifth"], (0.74, 0.06), "context", "end")
    return Idea(
        "A walker is where its steps are short",
        "Steps left and right are equally likely, and nothing pulls. Steps on the left half are "
        "half as long. Areas of dots are shares of time: inverse to the square of the step.",
        sheet.svg(
            "A ring of dots, large on the left half, where steps are short, and small on the right "
            "half, where steps are "
            "twice as long."
        ),
    )


def _arc_arrow(part, start: float, steps: int, radius: float, role: str) -> None:
    """Draw a step of some sites both ways along the circle."""
    for sign in (1, -1):
        reach = sign * steps * 2 * np.pi / SITES * 1.6
        turn = start + 0.1 + np.linspace(0, reach, 12)
        x = radius * np.cos(turn)
        y = radius * np.sin(turn)
        part.line(x[:-1], y[:-1], role, 1.8)
        part.arrow((x[-2], y[-2]), (x[-1], y[-1]), role, 1.8)
