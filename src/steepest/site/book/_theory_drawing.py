"""The claims of a chapter as a drawing: a box each, and curves from what is rested on to what rests.

Columns go from left to right. Lengths are in pixels of the drawing at its full size.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ._layers import Bend, Edge, Layout, Stop, laid_out
from ._theory import Theory, Tie, Word

WIDTH = 140.0  # of a box
HEIGHT = 52.0
SMALL = 40.0  # height of the box of a claim of another chapter
GAP = 40.0  # between columns
ROW = 62.0  # from box to box in a column
MARGIN = 2.0  # around all, for the width of lines
HEAD = 7.0  # length of an arrow's head
PORT = 9.0  # between the ends of two arrows at one box
LETTERS = 17  # that fit into a box


class Node(NamedTuple):
    """The box of a claim.

    Attributes:
        name: of the claim.
        lines: its name as it stands in the box.
        inside: whether the claim is of the chapter.
        left: of the box; ``top`` and ``height`` likewise.
    """

    name: str
    lines: list[str]
    inside: bool
    left: float
    top: float
    height: float


class Curve(NamedTuple):
    """The line of a tie, from the basis to the claim.

    Attributes:
        tie: what it stands for.
        path: of the line, as SVG says it.
        head: of the arrow.
    """

    tie: Tie
    path: str
    head: str


@dataclass(frozen=True)
class Drawing:
    """The drawing of a chapter.

    Attributes:
        nodes: the boxes, column by column.
        curves: the lines between them.
        width: of all; ``height`` likewise.
        alone: the claims of the chapter that no line leads to or from; they are not drawn.
    """

    nodes: Sequence[Node]
    curves: Sequence[Curve]
    width: float
    height: float
    alone: Sequence[str]


def drawn(theory: Theory, chapter: Sequence[str]) -> Drawing:
    """Draw the claims of a chapter, with those of other chapters on which one of them rests.

    Args:
        theory: the map.
        chapter: the names of the chapter's claims.
    """
    ties = [tie for claim in chapter for tie in theory.ties[claim]]
    named = {name for tie in ties for name in (tie.claim, tie.basis)}
    names = [name for name in theory.ties if name in named]
    layout = laid_out(names, [Edge(tie.basis, tie.claim) for tie in ties])
    columns = len(layout.layers)
    nodes = list(_nodes(layout, set(chapter)))
    rows = max(layout.heights.values(), default=0.0)
    return Drawing(
        nodes,
        list(_curves(layout, ties)),
        columns * WIDTH + max(columns - 1, 0) * GAP + 2 * MARGIN,
        rows * ROW + HEIGHT + 2 * MARGIN,
        [name for name in chapter if name not in named],
    )


def wrapped(name: str) -> list[str]:
    """Return a name in lines that fit into a box, broken behind hyphens.

    >>> wrapped("linear-regression-rate")
    ['linear-', 'regression-rate']
    """
    lines = [""]
    parts = name.split("-")
    for number, part in enumerate(parts):
        piece = part if number == len(parts) - 1 else f"{part}-"
        if lines[-1] and len(lines[-1] + piece) > LETTERS:
            lines.append("")
        lines[-1] += piece
    return lines


def _nodes(layout: Layout, chapter: set[str]) -> Iterable[Node]:
    for number, stops in enumerate(layout.layers):
        for stop in stops:
            if isinstance(stop, str):
                inside = stop in chapter
                height = HEIGHT if inside else SMALL
                top = _middle(layout, stop) - height / 2
                yield Node(stop, wrapped(stop), inside, _left(number), top, height)


def _left(layer: int) -> float:
    return MARGIN + layer * (WIDTH + GAP)


def _middle(layout: Layout, stop: Stop) -> float:
    return MARGIN + HEIGHT / 2 + layout.heights[stop] * ROW


def _curves(layout: Layout, ties: Sequence[Tie]) -> Iterable[Curve]:
    routes = {tie: layout.route(Edge(tie.basis, tie.claim)) for tie in ties}
    for tie in ties:
        arrivals = [arriving for arriving in ties if arriving.claim == tie.claim]
        arrivals.sort(key=lambda arriving: layout.heights[routes[arriving][-2]])
        shift = (arrivals.index(tie) - (len(arrivals) - 1) / 2) * PORT
        yield _curve(layout, tie, routes[tie], shift)


def _curve(layout: Layout, tie: Tie, route: Sequence[Stop], shift: float) -> Curve:
    """Draw one line; it bends between columns only, and ends ``shift`` below the middle of its claim's box."""
    layer = layout.layer
    heights = [_middle(layout, stop) for stop in route]
    heights[-1] += shift
    path = [f"M{_left(layer[route[0]]) + WIDTH:.5g} {heights[0]:.5g}"]
    for (number, stop), (low, high) in zip(enumerate(route[1:]), pairwise(heights), strict=True):
        end = _left(layer[stop])
        last = number == len(route) - 2
        start = end - GAP
        tip = end - HEAD if last else end
        middle = (start + tip) / 2
        path.append(f"C{middle:.5g} {low:.5g} {middle:.5g} {high:.5g} {tip:.5g} {high:.5g}")
        if isinstance(stop, Bend):
            path.append(f"H{end + WIDTH:.5g}")
    tip = _left(layer[route[-1]])
    head = f"M{tip:.5g} {heights[-1]:.5g}l{-HEAD:g} {-HEAD / 2:g}v{HEAD:g}z"
    return Curve(tie, "".join(path), head)


@dataclass(frozen=True)
class Branch:
    """A claim in a nested list, and what rests on it.

    Attributes:
        name: of the claim.
        also: its ties to other claims than the one below which it stands.
        word: how it rests on that one; None at the top.
        branches: the claims below it.
    """

    name: str
    word: Word | None
    also: Sequence[Tie]
    branches: Sequence["Branch"]


def nested(theory: Theory, drawing: Drawing) -> list[Branch]:
    """Return the claims of a drawing as a nested list: each stands once, below the one that is nearest to it.

    Claims of other chapters are named beside those that rest on them, and have no place of their own.
    """
    inside = {node.name: node.left for node in drawing.nodes if node.inside}
    below: dict[str, list[Tie]] = {name: [] for name in inside}
    top: list[str] = []
    for name in inside:
        ties = [tie for tie in theory.ties[name] if tie.basis in inside]
        if ties:
            nearest = max(ties, key=lambda tie: inside[tie.basis])
            below[nearest.basis].append(nearest)
        else:
            top.append(name)

    def branch(name: str, tie: Tie | None) -> Branch:
        also = [further for further in theory.ties[name] if further != tie]
        branches = [branch(under.claim, under) for under in below[name]]
        return Branch(name, tie.word if tie else None, also, branches)

    return [branch(name, None) for name in top]
