"""Layouts of what rests on what: layers, few crossings, room between things."""

from itertools import pairwise

import numpy as np
import pytest

from steepest.site.book._layers import BEND, Bend, Edge, crossings, laid_out, parts, ranks, spaced

DIAMOND = [Edge("a", "b"), Edge("a", "c"), Edge("b", "d"), Edge("c", "d"), Edge("a", "d")]


def test_a_layer_is_the_longest_path():
    rank = ranks("abcd", DIAMOND)
    assert rank == {"a": 0, "b": 1, "c": 1, "d": 2}


def test_what_nothing_comes_before_stands_next_to_what_it_leads_to():
    rank = ranks("abcde", [*DIAMOND, Edge("e", "d")])
    assert rank["e"] == 1


def test_a_long_line_bends_in_each_layer_between():
    layout = laid_out("abcd", DIAMOND)
    long = Edge("a", "d")
    assert layout.route(long) == ["a", Bend(long, 1), "d"]
    assert set(layout.layers[1]) == {"b", "c", Bend(long, 1)}


def test_every_line_goes_forward_and_everything_has_a_place():
    layout = laid_out("abcd", DIAMOND)
    layer = layout.layer
    assert all(layer[edge.start] < layer[edge.end] for edge in DIAMOND)
    assert set(layout.heights) == set(layer)
    assert min(layout.heights.values()) == 0


def test_crossed_lines_are_untangled():
    lines = [Edge("a", "z"), Edge("b", "y"), Edge("c", "x"), Edge("a", "y"), Edge("b", "x")]
    assert crossings(["abc", "xyz"], lines) == 6
    assert crossings(laid_out("abcxyz", lines).layers, lines) == 0


@pytest.mark.parametrize("seed", range(5))
def test_things_of_a_layer_keep_their_distance_and_their_order(seed):
    rng = np.random.default_rng(seed)
    names = [f"n{number}" for number in range(16)]
    pairs = {tuple(sorted(rng.choice(16, 2, replace=False))) for _ in range(22)}
    edges = [Edge(names[low], names[high]) for low, high in sorted(pairs)]
    layout = laid_out(names, edges)
    for stops in layout.layers:
        for above, below in pairwise(stops):
            bends = isinstance(above, Bend) + isinstance(below, Bend)
            distance = layout.heights[below] - layout.heights[above]
            assert distance >= 1 - bends * (1 - BEND) / 2 - 1e-9
    assert laid_out(names, edges) == layout


def test_parts_lie_one_below_the_other():
    lines = [Edge("a", "b"), Edge("x", "y"), Edge("x", "z")]
    assert parts("abxyz", lines) == [["x", "y", "z"], ["a", "b"]]
    heights = laid_out("abxyz", lines).heights
    assert min(heights["a"], heights["b"]) >= max(heights[name] for name in "xyz") + 1


def test_nothing_has_no_layers():
    layout = laid_out([], [])
    assert layout.layers == []
    assert layout.heights == {}


def test_spaced_places_are_the_nearest_that_keep_their_distances():
    """Beside projection by many small steps of Dykstra's algorithm."""
    rng = np.random.default_rng(3)
    wanted = rng.normal(size=7) * 2
    room = rng.uniform(0.3, 1, size=6)
    places = wanted.copy()
    owed = np.zeros(6)
    for _ in range(4000):
        for number in range(6):
            places[number] -= owed[number]
            places[number + 1] += owed[number]
            missing = room[number] - (places[number + 1] - places[number])
            owed[number] = -max(missing, 0) / 2
            places[number] += owed[number]
            places[number + 1] -= owed[number]
    assert np.allclose(spaced(list(wanted), list(room)), places, atol=1e-6)
