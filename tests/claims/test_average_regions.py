"""Average regions: counts by sampling, the plane by a large polygon, figures of the remarks, ordinary fields."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from steepest.claims.expressivity._random_networks import random_network
from steepest.claims.expressivity.average_regions.claim import AverageRegions
from steepest.claims.expressivity.average_regions.experiment import (
    CORNERS,
    cell_sides,
    counts,
    counts_in_plane,
    disc,
    euler_defect,
    even_widths,
    origin_jets,
    unbounded_ends,
)
from steepest.core.words import Verdict
from steepest.geometry import planar_regions, preactivations
from steepest.kernels import disc_regions, origin_cell_vertices, plane_regions, wide_disc_regions
from tests.claims.judging import judged

TINY = AverageRegions(**AverageRegions.tiny)


def networks(number, widths, seed=0, c_b=1.0):
    rng = np.random.default_rng(seed)
    return [random_network(rng, (2, *widths), 2.0, c_b) for _ in range(number)]


def test_the_polygon_has_the_disc_s_area():
    corners = disc(1.5)
    following = np.roll(corners, -1, axis=0)
    area = (corners[:, 0] * following[:, 1] - corners[:, 1] * following[:, 0]).sum() / 2
    assert len(corners) == CORNERS
    assert area == pytest.approx(np.pi * 1.5**2)


def test_all_of_the_plane_is_a_large_polygon_but_for_what_is_far():
    nets = networks(40, (3, 3))
    plane = counts_in_plane(nets)
    large = counts(nets, disc(1e5))
    assert (plane >= large).all()
    assert (plane == large).mean() > 0.9
    assert (counts_in_plane(networks(3, (7,))) == plane_regions((7,))).all()


def test_regions_are_the_patterns_that_dense_sampling_sees():
    nets = networks(3, (4, 4), seed=1)
    turns = np.random.default_rng(0).random((100_000, 2))
    x = np.sqrt(turns[:, :1]) * np.stack(
        [np.cos(2 * np.pi * turns[:, 1]), np.sin(2 * np.pi * turns[:, 1])], 1
    )
    for layers, count in zip(nets, counts(nets, disc(1.0)), strict=True):
        patterns = np.concatenate([z > 0 for z in preactivations(layers, x)[:-1]], 1)
        seen = len(np.unique(np.packbits(patterns, axis=1), axis=0))
        assert count - 3 <= seen <= count
        assert euler_defect(planar_regions(layers, disc(1.0))) == 0


def test_the_origin_s_cell_is_the_region_of_the_origin():
    """Its sides by cutting up a large polygon, and by the hull of the dual points."""
    rng = np.random.default_rng(3)
    widths = (12, 12)
    layers = random_network(rng, (2, *widths), 2.0, 1.0)
    signals = preactivations(layers, np.zeros((1, 2)))[:-1]
    values = np.concatenate(signals, axis=1)[0]
    steps = [preactivations(layers, 1e-6 * np.eye(2)[[i]])[:-1] for i in range(2)]
    slopes = np.stack([(np.concatenate(step, axis=1)[0] - values) / 1e-6 for step in steps], 1)
    hull = cell_sides(np.concatenate([slopes, values[:, None]], 1)[None])[0]
    regions = planar_regions(layers, disc(50.0))
    mine = (regions.patterns == (values > 0)).all(1)
    assert mine.sum() == 1
    assert regions.sides[mine][0] == hull


def test_ends_of_borders_are_sign_changes_far_out():
    """By the signs of a dense circle, dead sectors with the sign of their bias; and a case that can be counted."""
    nets = networks(30, (2, 2, 2), seed=5)
    turns = 2 * np.pi * np.arange(200_001) / 200_000
    circle = 1e9 * np.stack([np.cos(turns), np.sin(turns)], 1)
    by_circle = [
        [
            (np.diff(np.sign(z), axis=0) != 0).sum() / z.shape[1]
            for z in preactivations(net, circle)[:-1]
        ]
        for net in nets
    ]
    ends = unbounded_ends(nets)
    assert (ends[:, 0] == 2).all()
    assert (
        ends == by_circle
    ).mean() > 0.97  # rays that are nearly parallel to a sector's edge pass between points
    # one neuron: its half plane is live, and there a second has the sign of its weight, elsewhere that of its bias
    single = networks(200, (1, 1), seed=6)
    opposed = [np.sign(net[1].matrix[0, 0]) != np.sign(net[1].bias[0]) for net in single]
    assert unbounded_ends(single)[:, 1].tolist() == [2.0 * is_opposed for is_opposed in opposed]


def test_figures_of_the_remarks():
    rng = np.random.default_rng(7)
    wide = cell_sides(origin_jets(rng, 6000, (32,) * 4, 2, 2.0, 1.0))
    assert wide.mean() == pytest.approx(origin_cell_vertices(128, 2), rel=0.01)
    narrow = cell_sides(origin_jets(rng, 12_000, (12,) * 8, 2, 2.0, 1.0))
    error = narrow.std() / len(narrow) ** 0.5
    assert -7 < (narrow.mean() - origin_cell_vertices(96, 2)) / error < -1.5
    assert plane_regions((2, 2, 2)) == pytest.approx(10.94, abs=0.005)
    for widths, excess in (((12, 12), 1.075), ((6,) * 4, 1.496)):
        coins = disc_regions(widths, 2.0, 1.0, 1.0, rng, 40_000)
        wide = wide_disc_regions(widths, 2.0, 1.0, 1.0)
        assert wide / coins.mean == pytest.approx(excess, rel=0.01)


def test_neurons_are_divided_evenly():
    assert even_widths(24, 5) == (5, 5, 5, 5, 4)
    assert even_widths(2, 4) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"neurons": 1},
        {"depths": (3,)},
        {"depths": (1,)},
        {"narrow": 1},
        {"radius": 1e-3},
        {"radius": 1e3},
        {"radius": 1e6},
        {"c_w": 0.1},
    ],
)
def test_ordinary_fields_do_not_fail(fields):
    verdict = judged(replace(TINY, **fields))
    assert verdict is None or verdict[0] is not Verdict.FAILS


@pytest.mark.parametrize("fields", [{"c_b": 0.0}, AverageRegions.out_of_scope])
def test_what_the_theorem_leaves_out_is_out_of_range(fields):
    assert judged(replace(TINY, **fields))[0] is Verdict.OUT_OF_RANGE


def test_the_point_counts_like_the_claim():
    claim = replace(TINY, networks=200, depths=(2,))
    point = AverageRegions.point.of(claim)
    counted = np.asarray(jax.jit(point.observe)(None, jax.random.key(0))["regions"])
    regions = counts(claim.setting(jax.random.key(0)).own.disc[0], disc(claim.radius))
    spread = (counted.var() / 200 + regions.var() / 200) ** 0.5
    assert abs(counted.mean() - regions.mean()) < 4 * spread
