"""Regions in a plane: areas, maps, Euler's identity, a fine grid, arrangements of lines whose cells are known."""

import itertools
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.geometry import Layer, planar_regions, preactivations, relu_layers

SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])


def network(rng, widths, bias=1.0):
    sizes = list(itertools.pairwise(widths))
    return relu_layers(
        [rng.standard_normal((n, m)) * np.sqrt(2 / m) for m, n in sizes],
        [bias * rng.standard_normal(n) for _, n in sizes],
    )


def patterns_at(layers, points):
    return np.concatenate([z > 0 for z in preactivations(layers, points)[:-1]], axis=1)


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(2, 5),
    st.sampled_from([1.0, 0.1]),
)
def test_regions_tile_the_polygon_and_carry_the_network(seed, widths, inputs, bias):
    rng = np.random.default_rng(seed)
    layers = network(rng, [inputs, *widths, 2], bias)
    corners = SQUARE @ rng.standard_normal((2, inputs)) + rng.standard_normal(inputs)
    regions = planar_regions(layers, corners)
    area = planar_regions(relu_layers([np.ones((1, inputs))]), corners).areas
    assert regions.areas.sum() == pytest.approx(area[0])
    assert len(np.unique(regions.patterns, axis=0)) == regions.count
    inputs_there = regions.points(regions.vertices)
    out = preactivations(layers, inputs_there.reshape(-1, inputs))[-1]
    np.testing.assert_allclose(
        regions.values().reshape(out.shape), out, atol=1e-9 * (1 + np.abs(out).max())
    )
    centres = inputs_there[:, :1] + 0.0
    for i in range(regions.count):
        centres[i, 0] = inputs_there[i, : regions.sides[i]].mean(0)
    large = regions.areas > 1e-9
    assert (patterns_at(layers, centres[:, 0])[large] == regions.patterns[large]).all()
    # Euler: every closed curve of zeros bends on a border of a lower layer, so all borders hang together
    assert regions.count == 1 + regions.inner_vertices + regions.boundary_vertices / 2


@pytest.mark.parametrize(
    ("half", "centre"), [(1e5, 0.0), (1e3, 0.0), (1.0, 1e5)], ids=["huge", "large", "far"]
)
def test_corners_close_together_in_a_large_polygon_are_not_one(half, centre):
    rng = np.random.default_rng(0)
    polygon = half * SQUARE + centre
    for _ in range(8):
        layers = network(rng, [2, 12, 12, 1])
        layers[0] = replace(layers[0], bias=layers[0].bias - layers[0].matrix.sum(1) * centre)
        regions = planar_regions(layers, polygon)
        assert regions.count == 1 + regions.inner_vertices + regions.boundary_vertices / 2


def test_a_grid_sees_no_pattern_that_is_missing():
    rng = np.random.default_rng(3)
    layers = network(rng, [2, 12, 12, 1])
    regions = planar_regions(layers, SQUARE)
    axis = np.linspace(-1, 1, 400)
    points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    on_grid = {row.tobytes() for row in patterns_at(layers, points)}
    exact = {row.tobytes() for row in regions.patterns}
    assert on_grid <= exact
    shares = dict(zip((row.tobytes() for row in regions.patterns), regions.areas / 4, strict=True))
    assert all(shares[row] < 2e-4 for row in exact - on_grid)


@pytest.mark.parametrize("lines", [1, 2, 5, 9])
def test_lines_in_general_position(lines):
    rng = np.random.default_rng(lines)
    shallow = relu_layers(
        [rng.standard_normal((lines, 2)), np.ones((1, lines))], [rng.standard_normal(lines), None]
    )
    regions = planar_regions(shallow, 1e4 * SQUARE)
    assert regions.count == 1 + lines + comb(lines, 2)
    assert regions.inner_vertices == comb(lines, 2)
    assert regions.boundary_vertices == 2 * lines


@pytest.mark.parametrize("lines", [2, 5, 20])
def test_lines_through_one_point_make_cones(lines):
    """A degenerate case: the crossing is a corner of every region, and lies on every later line."""
    rng = np.random.default_rng(lines)
    shallow = relu_layers([rng.standard_normal((lines, 2)), np.ones((1, lines))])
    regions = planar_regions(shallow, SQUARE)
    assert regions.count == 2 * lines
    assert regions.areas.sum() == pytest.approx(4)


def test_length_of_the_borders_of_a_cross():
    cross = relu_layers([np.eye(2), np.ones((1, 2))])
    assert planar_regions(cross, SQUARE).boundary_length == pytest.approx(4)


def test_slopes_on_both_sides_and_units_without_a_corner():
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((4, 2))
    right = np.array([1.0, 1.0, 1.0, 2.0])
    left = np.array([0.1, -1.0, 1.0, 0.0])
    layers = [
        Layer(matrix, rng.standard_normal(4) / 4, left, right),
        *relu_layers([np.ones((1, 4))]),
    ]
    regions = planar_regions(layers, SQUARE)
    assert regions.patterns.shape[1] == 3
    out = preactivations(layers, regions.vertices.reshape(-1, 2))[-1]
    np.testing.assert_allclose(regions.values().ravel(), out.ravel(), atol=1e-12)


def test_a_dead_layer_leaves_the_regions_below():
    dead = relu_layers([np.eye(2), -np.ones((3, 2)), np.ones((1, 3))], [None, -np.ones(3), None])
    assert planar_regions(dead, SQUARE).count == 4


@pytest.mark.parametrize(
    ("corners", "words"),
    [
        (SQUARE[:2], "at least three"),
        (SQUARE[[0, 2, 1, 3]], "in order"),
        (np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), "no three on a line"),
        (np.array([[np.cos(t), np.sin(t)] for t in 4 * np.pi / 5 * np.arange(5)]), "in order"),
        (np.full((3, 2), np.nan), "finite"),
        (np.zeros((4, 3)), "2 inputs"),
    ],
)
def test_what_is_no_convex_polygon_is_refused(corners, words):
    with pytest.raises(UserError, match=words):
        planar_regions(relu_layers([np.eye(2), np.ones((1, 2))]), corners)


def test_corners_out_of_one_plane_and_too_many_regions_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(UserError, match="one plane"):
        planar_regions(relu_layers([np.eye(3)]), rng.standard_normal((4, 3)))
    with pytest.raises(UserError, match="more than 5 regions"):
        planar_regions(network(rng, [2, 20, 1]), SQUARE, most=5)
