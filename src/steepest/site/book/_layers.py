"""A drawing of what rests on what, in layers: where each thing stands, and where each line passes.

Layers are by the longest path. Their order is found by sweeps, which put each thing at the mean place of its
neighbours and keep the order with the fewest crossings; so it depends on nothing but the graph and the order of names.
Parts that no line joins lie one below the other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

SWEEPS = 24
SETTLING = 40
BEND = 0.45
"""Room for a line that passes through a layer, over that for a thing."""


class Edge(NamedTuple):
    """A line from a thing to one in a later layer."""

    start: str
    end: str


class Bend(NamedTuple):
    """The place at which a line passes through a layer between its ends."""

    edge: Edge
    layer: int


Stop = str | Bend
"""What has a place in a layer."""


@dataclass(frozen=True)
class Layout:
    """Where things stand.

    Attributes:
        layers: the stops of each layer, in order.
        heights: of each stop the place across its layer, from zero, in units of a thing's room.
        edges: what is joined.
    """

    layers: Sequence[Sequence[Stop]]
    heights: Mapping[Stop, float]
    edges: Sequence[Edge]

    @property
    def layer(self) -> dict[Stop, int]:
        """The layer of each stop."""
        return {stop: place for place, stops in enumerate(self.layers) for stop in stops}

    def route(self, edge: Edge) -> list[Stop]:
        """Return the stops of a line, both ends among them."""
        layer = self.layer
        between = range(layer[edge.start] + 1, layer[edge.end])
        return [edge.start, *(Bend(edge, place) for place in between), edge.end]


def laid_out(names: Sequence[str], edges: Sequence[Edge]) -> Layout:
    """Return a place for each name and each line; there must be no cycle.

    Args:
        names: what is drawn; where nothing else decides, their order does.
        edges: what is joined, each from what stands first.
    """
    layers: list[list[Stop]] = []
    heights: dict[Stop, float] = {}
    top = 0.0
    for part in parts(names, edges):
        inside = [edge for edge in edges if edge.start in part]
        stops, places = _laid_out_part(part, inside)
        layers.extend([] for _ in range(len(stops) - len(layers)))
        for layer, more in zip(layers, stops, strict=False):
            layer.extend(more)
        heights |= {stop: top + place for stop, place in places.items()}
        top += max(places.values()) + 1
    return Layout(layers, heights, edges)


def parts(names: Sequence[str], edges: Sequence[Edge]) -> list[list[str]]:
    """Return the names in groups that no line joins, the largest first."""
    group = {name: name for name in names}
    for start, end in edges:
        joined = group[end]
        group |= {name: group[start] for name in names if group[name] == joined}
    together: dict[str, list[str]] = {}
    for name in names:
        together.setdefault(group[name], []).append(name)
    return sorted(together.values(), key=lambda part: -len(part))


def _laid_out_part(
    names: Sequence[str], edges: Sequence[Edge]
) -> tuple[list[list[Stop]], dict[Stop, float]]:
    """Return the layers of names that lines join, and the heights of all stops."""
    layer = ranks(names, edges)
    links: list[tuple[Stop, Stop]] = []
    layers: list[list[Stop]] = [[] for _ in range(max(layer.values()) + 1)]
    for name in names:
        layers[layer[name]].append(name)
    for edge in edges:
        bends = [Bend(edge, place) for place in range(layer[edge.start] + 1, layer[edge.end])]
        for bend in bends:
            layers[bend.layer].append(bend)
        links.extend(pairwise([edge.start, *bends, edge.end]))
    best = _untangled(layers, links)
    return best, _settled(best, links)


def ranks(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Return the layer of each name, by the longest path to it.

    What nothing comes before stands next to the nearest that comes after it.
    """
    rank = dict.fromkeys(names, 0)
    for _ in names:
        for start, end in edges:
            rank[end] = max(rank[end], rank[start] + 1)
    ends = {edge.end for edge in edges}
    for name in names:
        after = [rank[edge.end] for edge in edges if edge.start == name]
        if name not in ends and after:
            rank[name] = min(after) - 1
    return rank


def crossings(layers: Sequence[Sequence[Stop]], links: Iterable[tuple[Stop, Stop]]) -> int:
    """Return how often lines cross, each from one layer to the next."""
    place = {stop: number for stops in layers for number, stop in enumerate(stops)}
    layer = {stop: number for number, stops in enumerate(layers) for stop in stops}
    crossed = 0
    gaps: dict[int, list[tuple[int, int]]] = {}
    for start, end in links:
        gaps.setdefault(layer[start], []).append((place[start], place[end]))
    for lines in gaps.values():
        for number, (start, end) in enumerate(lines):
            crossed += sum((start - low) * (end - high) < 0 for low, high in lines[:number])
    return crossed


def _untangled(
    layers: Sequence[Sequence[Stop]], links: Sequence[tuple[Stop, Stop]]
) -> list[list[Stop]]:
    """Return the layers in the order of fewest crossings that the sweeps come to."""
    before = _neighbours((end, start) for start, end in links)
    after = _neighbours(links)
    current = [list(stops) for stops in layers]
    best = [list(stops) for stops in layers]
    fewest = crossings(best, links)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        order = range(len(current)) if forward else reversed(range(len(current)))
        for number in order:
            _sort(current, number, before if forward else after)
        crossed = crossings(current, links)
        if crossed < fewest:
            fewest = crossed
            best = [list(stops) for stops in current]
    return best


def _neighbours(links: Iterable[tuple[Stop, Stop]]) -> dict[Stop, list[Stop]]:
    neighbours: dict[Stop, list[Stop]] = {}
    for start, end in links:
        neighbours.setdefault(start, []).append(end)
    return neighbours


def _sort(layers: list[list[Stop]], number: int, neighbours: Mapping[Stop, Sequence[Stop]]) -> None:
    """Sort a layer by the mean place of neighbours; what has none keeps its place."""
    place = {
        stop: (position + 0.5) / len(stops)
        for stops in layers
        for position, stop in enumerate(stops)
    }

    def mean(stop: Stop) -> float:
        near = neighbours.get(stop, [stop])
        return sum(place[neighbour] for neighbour in near) / len(near)

    layers[number].sort(key=mean)


def _settled(
    layers: Sequence[Sequence[Stop]], links: Sequence[tuple[Stop, Stop]]
) -> dict[Stop, float]:
    """Return heights: near the mean of what a stop is joined to, in the order of its layer and with room between."""
    near = _neighbours([*links, *((end, start) for start, end in links)])
    heights = {stop: float(place) for stops in layers for place, stop in enumerate(stops)}
    for turn in range(SETTLING):
        for stops in layers if turn % 2 == 0 else reversed(layers):
            wanted = [_mean_height(stop, near, heights) for stop in stops]
            heights.update(zip(stops, spaced(wanted, _room(stops)), strict=True))
    least = min(heights.values())
    return {stop: height - least for stop, height in heights.items()}


def _mean_height(
    stop: Stop, near: Mapping[Stop, Sequence[Stop]], heights: Mapping[Stop, float]
) -> float:
    """Return the mean height of what a stop is joined to, and its own where that is nothing."""
    joined = near.get(stop, [stop])
    return sum(heights[neighbour] for neighbour in joined) / len(joined)


def _room(stops: Sequence[Stop]) -> list[float]:
    """Return the least distance between neighbours in a layer."""
    half = [BEND / 2 if isinstance(stop, Bend) else 0.5 for stop in stops]
    return [above + below for above, below in pairwise(half)]


def spaced(wanted: Sequence[float], room: Sequence[float]) -> list[float]:
    """Return the places that are nearest to wanted ones in mean square and keep their distances.

    Args:
        wanted: places, in the order that they must keep.
        room: least distance of each from the next, one fewer.

    >>> spaced([0.0, 0.0, 5.0], [1.0, 1.0])
    [-0.5, 0.5, 5.0]
    """
    offsets = [0.0]
    for distance in room:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets, strict=False):
        total = place - offset
        count = 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            more, members = blocks.pop()
            total += more
            count += members
        blocks.append((total, count))
    levels = [total / count for total, count in blocks for _ in range(count)]
    return [level + offset for level, offset in zip(levels, offsets, strict=False)]
