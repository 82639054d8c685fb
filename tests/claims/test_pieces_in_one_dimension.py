"""Pieces in one dimension: breakpoints by another count, the conditional mean by quadrature, ordinary fields."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from steepest.claim import Verdict
from steepest.claims.expressivity._random_networks import random_network
from steepest.claims.expressivity.pieces_in_one_dimension.claim import (
    PiecesInOneDimension,
    _end_angles,
)
from steepest.claims.expressivity.pieces_in_one_dimension.experiment import (
    conditional_mean,
    coordinates,
    features_below,
    on_line,
    pieces,
    redrawn,
)
from steepest.geometry import preactivations
from tests.claims.judging import judged

TINY = PiecesInOneDimension(**PiecesInOneDimension.tiny)


def test_breakpoints_are_where_pre_activations_change_their_sign():
    layers = random_network(np.random.default_rng(0), (1, 5, 5), 2.0, 1.0)
    x = np.linspace(-4, 4, 400_001)
    signals = preactivations(layers, x[:, None])[:-1]
    changes = [np.flatnonzero(((z[1:] > 0) != (z[:-1] > 0)).any(1)) for z in signals]
    expected = np.sort(np.concatenate(changes))
    places = coordinates(on_line(layers))
    inside = places[(np.abs(places) < 4) & (places != 0)]
    np.testing.assert_allclose(inside, x[expected], atol=3e-5)


def test_pieces_of_the_output_by_its_slopes():
    for seed in range(5):
        layers = random_network(np.random.default_rng(seed), (1, 4, 4), 2.0, 1.0)
        along = on_line(layers)
        x = np.sort(np.append(coordinates(along)[1:-1], [-1e4, 1e4]))
        middles = (x[1:] + x[:-1]) / 2
        step = 1e-4 * (x[1:] - x[:-1])
        heights = [preactivations(layers, (middles + s * step)[:, None])[-1][:, 0] for s in (-1, 1)]
        slopes = (heights[1] - heights[0]) / (2 * step)
        expected = 1 + (np.abs(np.diff(slopes)) > 1e-6).sum()
        assert pieces(along) == expected <= 1 + along.crossings.sum()


def test_the_conditional_mean_is_kac_and_rice_s_integral():
    """√(det)/var along the segment by quadrature, and by drawing the last layer."""
    layers = random_network(np.random.default_rng(1), (1, 6, 6), 2.0, 1.0)
    ends = np.array([[-1.0], [1.0]])
    features = features_below(layers, ends, 2.0, 1.0)
    t = np.linspace(-1, 1, 200_001)
    below = np.maximum(preactivations(layers, t[:, None])[0], 0) * (2.0 / 6) ** 0.5
    phi = np.concatenate([np.ones((len(t), 1)), below], 1)
    middle = (phi[1:] + phi[:-1]) / 2
    slope = (phi[1:] - phi[:-1]) / (t[1] - t[0])
    variance = (middle**2).sum(1)
    cross = (middle * slope).sum(1)
    density = np.sqrt(np.maximum(variance * (slope**2).sum(1) - cross**2, 0)) / (np.pi * variance)
    expected = density.sum() * (t[1] - t[0])
    assert conditional_mean(features)[0] == pytest.approx(expected, rel=1e-3)
    drawn = redrawn(features, np.random.default_rng(0), 200_000)
    assert drawn == pytest.approx(expected, abs=4 * (expected / 200_000) ** 0.5 * 1.5)


def test_signs_at_the_ends_are_those_of_wide_networks():
    rng = np.random.default_rng(0)
    ends = np.array([[-1.0], [1.0]])
    shares = []
    for _ in range(200):
        signals = preactivations(random_network(rng, (1, 64, 64, 64), 2.0, 1.0), ends)[:-1]
        shares.append([((z[0] > 0) != (z[1] > 0)).mean() for z in signals])
    error = np.std(shares, axis=0) / 200**0.5
    z = (np.mean(shares, axis=0) - _end_angles(ends, (64,) * 3, 2.0, 1.0)) / error
    assert np.abs(z).max() < 4


@pytest.mark.parametrize(
    "fields",
    [{"width": 1}, {"depth": 1}, {"narrow": 1}, {"half": 1e-3}, {"half": 3e6}, {"c_w": 0.1}],
)
def test_ordinary_fields_do_not_fail(fields):
    verdict = judged(replace(TINY, **fields))
    assert verdict is None or verdict[0] is not Verdict.FAILS


@pytest.mark.parametrize("fields", [{"c_b": 0.0}, PiecesInOneDimension.out_of_scope])
def test_what_the_theorem_leaves_out_is_out_of_range(fields):
    assert judged(replace(TINY, **fields))[0] is Verdict.OUT_OF_RANGE


def test_the_point_counts_like_the_claim():
    point = PiecesInOneDimension.point.of(replace(TINY, networks=50))
    counted = np.asarray(jax.jit(point.observe)(None, jax.random.key(0))["share"])
    claim = replace(TINY, networks=50)
    segment = claim.counts(claim.setting(jax.random.key(0)).wide, claim.ends).mean(1)
    spread = (counted.var() / 50 + segment.var() / 50) ** 0.5
    assert abs(counted.mean() - segment.mean()) < 4 * spread
