"""Mean regions: coin networks against brute force, closed forms against sampled lines and general position."""

import math

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import planar_patterns, relu_layers
from steepest.kernels import (
    coin_forms,
    disc_regions,
    origin_cell_vertices,
    plane_regions,
    triangle_regions,
    wide_disc_regions,
)

TRIANGLE = np.array([[2.0, 0.0], [-1.0, 1.5], [-0.5, -2.0]])


def networks(rng, number, widths, c_w=2.0, c_b=1.0, draw=np.random.Generator.standard_normal):
    made = []
    for _ in range(number):
        shapes = list(zip((*widths, 1), (2, *widths), strict=True))
        weights = [draw(rng, shape) * (c_w / shape[1]) ** 0.5 for shape in shapes]
        made.append(relu_layers(weights, [c_b**0.5 * draw(rng, shape[0]) for shape in shapes]))
    return made


def counts(nets, corners):
    return np.bincount(planar_patterns(nets, corners).owner, minlength=len(nets))


@pytest.mark.parametrize("widths", [(2, 2, 2), (4, 3), (3, 5, 3)])
def test_coin_networks_have_as_many_regions_as_networks(widths):
    rng = np.random.default_rng(0)
    measured = counts(networks(rng, 1000, widths), TRIANGLE)
    expected = triangle_regions(TRIANGLE, widths, 2.0, 1.0, rng, 20_000)
    error = math.hypot(measured.std() / len(measured) ** 0.5, expected.error)
    assert abs(measured.mean() - expected.mean) < 4 * error


def test_discs_by_the_closed_form_of_independent_lines():
    rng = np.random.default_rng(1)
    for widths in ((6, 9), (4, 4, 4)):
        scales = np.repeat(np.sqrt(1.3 * np.cumsum(np.ones(len(widths)))), widths)  # C_w = 2
        lines = rng.standard_normal((40_000, len(scales), 3)) * np.stack(
            [np.ones_like(scales), np.ones_like(scales), scales], 1
        )
        hits = np.abs(lines[..., 2]) < 0.8 * np.hypot(lines[..., 0], lines[..., 1])
        i, j = np.triu_indices(len(scales), 1)
        point = np.cross(lines[:, i], lines[:, j])
        inside = np.hypot(point[..., 0], point[..., 1]) < 0.8 * np.abs(point[..., 2])
        regions = 1 + hits.sum(1) + inside.sum(1)
        expected = wide_disc_regions(widths, 2.0, 1.3, 0.8)
        assert abs(regions.mean() - expected) < 4 * regions.std() / len(regions) ** 0.5


def test_one_layer_is_its_own_limit_and_many_wide_ones_are_near():
    rng = np.random.default_rng(2)
    shallow = disc_regions((15,), 1.5, 0.7, 2.0, rng, 20_000)
    assert abs(shallow.mean - wide_disc_regions((15,), 1.5, 0.7, 2.0)) < 4 * shallow.error
    deep = disc_regions((60, 60), 2.0, 1.0, 1.0, rng, 1000)
    assert deep.mean == pytest.approx(wide_disc_regions((60, 60), 2.0, 1.0, 1.0), rel=0.05)


def test_large_discs_hold_all_of_the_plane():
    rng = np.random.default_rng(3)
    for widths in ((7,), (2, 3), (2, 2, 2), (4, 1, 3)):
        mean, error = disc_regions(widths, 2.0, 1.0, 1e5, rng, 20_000)
        assert abs(mean - plane_regions(widths)) < 4 * error + 1e-3
    assert plane_regions((7,)) == 1 + 7 + 21


def test_the_plane_s_law_needs_no_gaussian_weights():
    """Cauchy weights, in a polygon so large that few crossings are outside; their tails leave some."""
    rng = np.random.default_rng(4)
    nets = networks(rng, 1500, (2, 2), draw=np.random.Generator.standard_cauchy)
    measured = counts(nets, 1e5 * TRIANGLE)
    error = measured.std() / len(measured) ** 0.5
    assert abs(measured.mean() - plane_regions((2, 2))) < 4 * error + 0.02


def test_coins_are_fair_and_weights_are_the_network_s():
    forms = coin_forms(np.eye(2), np.ones(2), (50, 50), 2.0, 0.5, np.random.default_rng(0), 2000)
    second = np.einsum("sni,snj->nij", forms, forms) / len(forms)
    first = np.eye(2) + 0.5
    np.testing.assert_allclose(second[:50].mean(0), first, atol=0.03)
    # half of C_w = 2 is on
    np.testing.assert_allclose(second[50:].mean(0), first + 0.5, atol=0.08)


@pytest.mark.parametrize(("n", "d"), [(3, 2), (5, 2), (30, 2), (20, 3)])
def test_corners_of_the_origin_s_cell_by_brute_force(n, d):
    """All intersections of d hyperplanes that no other one parts from the origin."""
    import itertools

    rng = np.random.default_rng(n)
    samples = 4000 if n < 10 else 300
    g = rng.standard_normal((samples, n, d))
    offset = 0.7 * rng.standard_normal((samples, n))
    total = np.zeros(samples)
    for chosen in itertools.combinations(range(n), d):
        at = list(chosen)
        corner = np.linalg.solve(g[:, at], -offset[:, at, None])[..., 0]
        others = np.setdiff1d(np.arange(n), at)
        side = np.einsum("snd,sd->sn", g[:, others], corner) + offset[:, others]
        total += (np.sign(side) == np.sign(offset[:, others])).all(1)
    error = total.std() / samples**0.5
    assert abs(total.mean() - origin_cell_vertices(n, d)) < 4 * error


def test_crofton_s_cell():
    assert origin_cell_vertices(10**7, 2) == pytest.approx(math.pi**2 / 2, rel=1e-5)
    kappa = 4 * math.pi / 3
    assert origin_cell_vertices(10**6, 3) == pytest.approx(6 / 8 * kappa**2, rel=1e-4)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda rng: disc_regions((3,), 2.0, 1.0, 0.0, rng), "radius"),
        (lambda rng: wide_disc_regions((3,), 2.0, 1.0, -1.0), "radius"),
        (lambda rng: disc_regions((3,), 0.0, 1.0, 1.0, rng), "positive"),
        (lambda rng: disc_regions((3,), 1.0, 1.0, 1.0, rng, 1), "two samples"),
        (lambda rng: triangle_regions([[1.0, 0.0]], (3,), 1.0, 1.0, rng), "three corners"),
        (lambda rng: plane_regions((0,)), "whole numbers"),
        (lambda rng: origin_cell_vertices(1, 2), "needs d hyperplanes"),
    ],
)
def test_what_no_network_has_is_refused(build, words):
    with pytest.raises(UserError, match=words):
        build(np.random.default_rng(0))
