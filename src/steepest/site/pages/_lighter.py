"""Figures of a page with fewer letters: the same picture, to a tenth of a unit."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_LINES = re.compile(rf"(?:[ML]{_NUMBER} {_NUMBER})+")
_POINT = re.compile(rf"([ML])({_NUMBER}) ({_NUMBER})")
_TICK = re.compile(rf"M0 0L(?:0 (?P<down>{_NUMBER})|(?P<right>{_NUMBER}) 0)")
_GRID = re.compile(r"fill:none;stroke:var\(--grid\);stroke-width:[\d.]+")


def lighten(root: ElementTree.Element) -> None:
    """Round coordinates to a tenth, write lines by their steps, and make one path of all grid lines and of all ticks.

    A tenth of a unit is a fifth of a pixel. Shapes with a name are reused as markers: they are small, and keep their
    digits.
    """
    parents = {child: parent for parent in root.iter() for child in parent}
    _join_ticks(root, parents)
    _join_grid(root, parents)
    for part in root.iter():
        if part.tag == "path" and "id" not in part.attrib:
            part.set("d", _stepped(part.get("d", "")))
        if part.tag in ("use", "text"):
            _round_place(part)


def _join_grid(root: ElementTree.Element, parents: dict) -> None:
    """Make one path of all grid lines: they lie below everything else, inside of the axes."""
    first: dict[str, ElementTree.Element] = {}
    for path in list(root.iter("path")):
        style = path.get("style", "")
        if not _GRID.fullmatch(style) or parents[path].tag == "defs":
            continue
        if style not in first:
            first[style] = path
            path.attrib.pop("clip-path", None)
            continue
        first[style].set("d", first[style].get("d", "") + path.get("d", ""))
        parents[path].remove(path)


def _join_ticks(root: ElementTree.Element, parents: dict) -> None:
    """Make one path of all ticks of an axis, where a tick is a shape that is reused."""
    for shapes in list(root.iter("defs")):
        for shape in list(shapes):
            tick = _TICK.fullmatch(shape.get("d", ""))
            uses = [use for use in root.iter("use") if use.get("href") == f"#{shape.get('id')}"]
            if not tick or not uses or any("style" in parents[use].attrib for use in uses):
                continue
            step = f"v{_short(tick['down'])}" if tick["down"] else f"h{_short(tick['right'])}"
            places = [f"M{_short(use.get('x', '0'))} {_short(use.get('y', '0'))}" for use in uses]
            path = ElementTree.Element("path", {"style": shape.get("style", "")})
            path.set("d", "".join(place + step for place in places))
            parents[path] = parents[uses[0]]
            parents[path].insert(list(parents[path]).index(uses[0]), path)
            for use in uses:
                parents[use].remove(use)
            shapes.remove(shape)
        if not len(shapes):
            parents[shapes].remove(shapes)


def _round_place(part: ElementTree.Element) -> None:
    for side in ("x", "y"):
        if side in part.attrib:
            part.set(side, _short(part.attrib[side]))
    if turn := part.get("transform"):
        part.set("transform", re.sub(_NUMBER, lambda number: _short(number[0]), turn))
    anchored = re.fullmatch(r"text-anchor:(\w+)", part.get("style", ""))
    if anchored and part.tag == "text":
        part.attrib.pop("style")
        part.set("text-anchor", anchored[1])


def _stepped(shape: str) -> str:
    """Return a path to a tenth of a unit; one of straight lines by its steps, whose errors do not add up.

    >>> _stepped("M10 20L10.52 19.96L11 30")
    'M10 20l.5 0 .5 10'
    >>> _stepped("M0.44 1C2 3.33 4 5 6 7")
    'M.4 1C2 3.3 4 5 6 7'
    """
    if not _LINES.fullmatch(shape):
        return re.sub(_NUMBER, lambda number: _short(number[0]), shape)
    return "".join(_commands(shape))


def _commands(shape: str) -> Iterator[str]:
    pen = (0, 0)  # in tenths
    before = ""
    for command, across, down in _POINT.findall(shape):
        place = (round(10 * float(across)), round(10 * float(down)))
        if command == "M":
            yield f"M{_tenths(place[0])} {_tenths(place[1])}"
        else:
            steps = [_tenths(after - start) for after, start in zip(place, pen, strict=True)]
            apart = "" if steps[1].startswith("-") else " "
            joined = "l" if before == "M" else "" if steps[0].startswith("-") else " "
            yield f"{joined}{steps[0]}{apart}{steps[1]}"
        pen = place
        before = command


def _short(number: str) -> str:
    """Return a number to a tenth, with no letter that can be left out."""
    return _tenths(round(10 * float(number)))


def _tenths(count: int) -> str:
    """Return a number of tenths.

    >>> _tenths(-5), _tenths(0), _tenths(120), _tenths(123)
    ('-.5', '0', '12', '12.3')
    """
    sign = "-" if count < 0 else ""
    whole, tenth = divmod(abs(count), 10)
    return f"{sign}{whole or ('' if tenth else 0)}{f'.{tenth}' if tenth else ''}"
