"""Ideas of the chapters on descent and on what it finds: a valley, an edge that moves, the nearest solution."""

import numpy as np

from ._idea import Idea
from ._sketch import WIDTH, Box, Ranges, Sheet

STEEP = 1.0  # curvature across the valley
FLAT = 1 / 16  # along its floor
STEPS = 12
START = (-8.0, 1.0)
NOISE = 0.01  # that swings have at least


def valley() -> Idea:
    """Draw descent in a long valley with three step sizes."""
    sheet = Sheet(352.0)
    kinds = (
        (0.5, "η = 0.5/λ: soon at the floor, then it creeps"),
        (1.9, "η = 1.9/λ: from wall to wall, and faster along"),
        (2.05, "η = 2.05/λ: each bounce is higher than the last"),
    )
    for row, (lr, title) in enumerate(kinds):
        part = sheet.part(Box(0, 118 * row + 20, WIDTH, 92), Ranges((-9.3, 2.2), (-1.9, 1.9)))
        _contours(part)
        x, y = _descend(lr)
        part.line(x, y, "observed", 1.4)
        part.dots(x, y, "observed", 2.8)
        part.dots([0], [0], "predicted", 4, hollow=True)
        part.words(title, (-9.3, 1.9), shift=(2, -5), bold=True)
    return Idea(
        "A valley is steep across and flat along",
        "Lines join points of equal risk, and the ring is the minimum. λ is the curvature across."
        " The step that the walls bear decides how "
        "fast descent moves along the floor, where the curvature is a sixteenth.",
        sheet.svg(
            "Three paths of descent in a narrow valley: small steps creep along the floor, larger "
            "ones bounce from wall "
            "to wall, and beyond two over the curvature each bounce is higher."
        ),
    )


def _contours(part) -> None:
    """Draw points of equal risk."""
    angle = np.linspace(0, 2 * np.pi, 90)
    for level in (0.1, 0.5, 1.2, 2.2):
        x = np.sqrt(2 * level / FLAT) * np.cos(angle)
        y = np.sqrt(2 * level / STEEP) * np.sin(angle)
        inside = (x > -9.3) & (x < 2.2) & (np.abs(y) < 1.9)
        turned = np.roll(np.arange(90), -int(np.argmin(inside)))
        kept = turned[inside[turned]]
        for piece in np.split(kept, np.nonzero(np.diff(kept) % 90 != 1)[0] + 1):
            part.line(x[piece], y[piece], "rule", 1.2)


def _descend(lr: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of a descent, ``(STEPS + 1,)`` each."""
    times = np.arange(STEPS + 1)
    return START[0] * (1 - lr * FLAT) ** times, START[1] * (1 - lr * STEEP) ** times


def edge() -> Idea:
    """Draw the sharpness of a recursion that rises by itself and is pushed back by steps to and fro."""
    sheet = Sheet(250.0)
    part = sheet.part(Box(8, 24, WIDTH - 16, 200), Ranges((0, 460), (0.0, 2.65)))
    part.axes("step", "sharpness")
    for lr, role, name in ((2.0, "observed", "η"), (1.0, "context", "η/2")):
        wall = 2 / lr
        sharpness = at_the_edge(wall)
        part.line([0, 330], [wall, wall], "predicted", 1.4, "dashed")
        part.line(np.arange(len(sharpness)), sharpness, role)
        part.words(
            f"its edge, 2/{name}" if lr == 2 else "its edge, 4/η",
            (336, wall),
            "predicted",
            shift=(0, 5),
        )
        part.words(f"step {name}", (336, wall), role, shift=(0, 24), bold=True)
    return Idea(
        "The edge is a wall that moves with the step",
        "Computed with the smallest model of it. Each step multiplies x, the distance across the "
        "valley, by −(1 + s − 2/η), with s in units of its own; it is never less than a little noise. "
        "The sharpness s rises a little in every step, and x² pushes it down. Halve the step, and the "
        "wall stands twice as high.",
        sheet.svg(
            "Two curves of sharpness over time rise from the same start. Each stops at a dashed line "
            "of its own, at two over "
            "its step size, and swings about it."
        ),
    )


def at_the_edge(wall: float, steps: int = 330) -> np.ndarray:
    """Return the sharpness step by step: x ← −(1 + s − wall) x, s ← s + a − b x²."""
    x = 0.05
    s = 0.25
    path = []
    for _ in range(steps):
        path.append(s)
        x = -(1 + s - wall) * x
        x = np.copysign(max(abs(x), NOISE), x)
        s = s + 0.012 - 0.12 * x**2
    return np.array(path)


def nearest() -> Idea:
    """Draw the solutions of one equation with two unknowns, and where descent from three starts ends."""
    sheet = Sheet(290.0)
    part = sheet.part(Box(10, 14, WIDTH - 20, 262), Ranges((-2.2, 4.0), (-1.1, 2.87)))
    x = np.array([2.0, 1.0]) / 5**0.5
    level = 1.6
    along = np.array([-x[1], x[0]])
    ends = np.array([level * x - 2.5 * along, level * x + 2.5 * along])
    part.line(ends[:, 0], ends[:, 1], "predicted", 2)
    part.words("all solutions of ⟨x, w⟩ = y", tuple(ends[1]), "predicted", "start", (10, 14))
    part.arrow((-1.9, -0.75), (-1.9 + 0.8 * x[0], -0.75 + 0.8 * x[1]), "soft")
    part.words("x", (-1.9 + 0.8 * x[0], -0.75 + 0.8 * x[1]), "soft", shift=(4, 2))
    for start in ((0.0, 0.0), (-1.4, 1.4), (3.7, 0.5)):
        first = np.array(start)
        path = [first]
        for _ in range(12):
            path.append(path[-1] - 0.42 * (path[-1] @ x - level) * x)
        places = np.array(path)
        part.line(places[:, 0], places[:, 1], "observed", 1.2)
        part.dots(places[:-1, 0], places[:-1, 1], "observed", 2.6)
        part.dots(places[-1:, 0], places[-1:, 1], "observed", 4.5)
    corner = level * x
    side = 0.16
    square = np.array([corner - side * x, corner - side * x + side * along, corner + side * along])
    part.line(square[:, 0], square[:, 1], "soft", 1)
    part.words("0", (0, 0), "ink", "end", (-7, 5))
    part.words(["the shortest", "solution"], tuple(corner), "ink", "start", (10, 4))
    return Idea(
        "Every step is along x, so descent goes straight across",
        "One equation, two weights. Whatever the start, the path meets the line of solutions at a"
        " right angle: at the solution nearest to it. From zero that is the shortest one.",
        sheet.svg(
            "A line of solutions in the plane of two weights, and three paths of descent from "
            "different starts that meet "
            "it at right angles."
        ),
    )
