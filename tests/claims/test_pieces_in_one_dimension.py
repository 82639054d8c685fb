"""Pieces in one dimension: breakpoints by another count, the conditional mean by quadrature, ordinary fields."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from steepest import kit
from steepest.claims.expressivity._random_networks import random_network
from steepest.claims.expressivity.pieces_in_one_dimension.claim import PiecesInOneDimension
from steepest.claims.expressivity.pieces_in_one_dimension.experiment import (
    along_line,
    on_segment,
    pieces,
    redrawn,
)
from steepest.claims.expressivity.pieces_in_one_dimension.theory import (
    conditional_mean,
    features_below,
    signs_at_the_ends,
)
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.geometry import preactivations

TINY = PiecesInOneDimension(**PiecesInOneDimension.tiny)


def coordinates(along):
    """Return x at the places of a trace along the line, infinite at its ends."""
    with np.errstate(divide="ignore"):
        return (along.places - 1) / (1 - np.abs(along.places - 1))


@pytest.fixture(scope="module")
def claim():
    return PiecesInOneDimension(networks=200, narrow_networks=200, pairs=300)


@pytest.fixture(scope="module")
def predicted(claim):
    return claim.predict(claim.setting(jax.random.key(4)))


@pytest.fixture(scope="module")
def observed(predicted):
    """What would be counted if every network had the mean that theory says."""

    def repeated(name, dims, times):
        return dims, np.stack([predicted[name]] * times, dims.split().index(dims.split()[0]))

    narrow = ("narrow draw layer", np.stack([predicted["narrow_line"]] * 3, 1))
    return kit.seen(
        line=repeated("line", "seed layer", 3),
        narrow_line=narrow,
        cauchy_line=narrow,
        segment=repeated("segment", "seed layer", 3),
        narrow_segment=repeated("narrow_segment", "draw layer", 3),
        digits=repeated("digits", "pair layer_of_digits", 3),
        redrawn=("start", predicted["conditional"]),
        shallow=("shallow", np.full(3, 33)),
    )


def verdicts(claim, predicted, observed):
    return {check.id: check.verdict for check in claim.checks(predicted, observed)}


def test_what_theory_says_holds(claim, predicted, observed):
    assert set(verdicts(claim, predicted, observed).values()) == {Verdict.HOLDS}


@pytest.mark.parametrize("kind", ["flat", "reversed", "steeper", "shallower"])
@pytest.mark.parametrize(
    ("law", "axis"),
    [
        ("narrow_line", "layer"),
        ("narrow_line", "narrow"),
        ("segment", "layer"),
        ("narrow_segment", "layer"),
        ("digits", "layer_of_digits"),
    ],
)
def test_laws_made_wrong_along_their_axes_fail(claim, predicted, observed, law, axis, kind):
    quantity = predicted.quantity(law)
    place = quantity.dims.index(axis)
    wrong = kit.wrong_along(quantity.values, place, claim.axes()[axis])[kind]
    mutant = predicted.replace(**{law: (quantity.dims, wrong)})
    assert verdicts(claim, mutant, observed)[law] is Verdict.FAILS


def test_the_product_by_enumeration_of_gates(predicted):
    """A slope is lost where all of a layer's n fair gates are closed: 2^−n of the layers, each on its own."""
    for width, law in zip((1, 3), predicted["narrow_line"], strict=True):
        gates = np.array(list(np.ndindex((2,) * width)))
        survives = (gates.sum(1) > 0).mean()
        np.testing.assert_allclose(law, survives ** np.arange(4))


def test_breakpoints_are_where_pre_activations_change_their_sign():
    layers = random_network(np.random.default_rng(0), (1, 5, 5), 2.0, 1.0)
    x = np.linspace(-4, 4, 400_001)
    signals = preactivations(layers, x[:, None])[:-1]
    changes = [np.flatnonzero(((z[1:] > 0) != (z[:-1] > 0)).any(1)) for z in signals]
    expected = np.sort(np.concatenate(changes))
    places = coordinates(along_line(layers))
    inside = places[(np.abs(places) < 4) & (places != 0)]
    np.testing.assert_allclose(inside, x[expected], atol=3e-5)


def test_pieces_of_the_output_by_its_slopes():
    for seed in range(5):
        layers = random_network(np.random.default_rng(seed), (1, 4, 4), 2.0, 1.0)
        along = along_line(layers)
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
    anew = redrawn([layers] * 500, ends, 2.0, 1.0, np.random.default_rng(0))
    assert anew.mean() == pytest.approx(expected, abs=4 * anew.std() / 500**0.5)


def test_signs_at_the_ends_are_those_of_wide_networks():
    rng = np.random.default_rng(0)
    ends = np.array([[-1.0], [1.0]])
    shares = []
    for _ in range(200):
        signals = preactivations(random_network(rng, (1, 64, 64, 64), 2.0, 1.0), ends)[:-1]
        shares.append([((z[0] > 0) != (z[1] > 0)).mean() for z in signals])
    error = np.std(shares, axis=0) / 200**0.5
    z = (np.mean(shares, axis=0) - signs_at_the_ends(ends, 3, 2.0, 1.0)) / error
    assert np.abs(z).max() < 4


@pytest.mark.parametrize(
    "fields",
    [{"width": 1}, {"depth": 3}, {"narrow": (2,)}, {"half": 1e-3}, {"half": 3e6}, {"c_w": 0.1}],
)
def test_ordinary_fields_do_not_fail(fields):
    claim = replace(TINY, **fields)
    setting = claim.setting(jax.random.key(0))
    if all(hypothesis.holds for hypothesis in claim.hypotheses(setting)):
        came_to = verdicts(claim, claim.predict(setting), claim.observe(setting, jax.random.key(1)))
        assert Verdict.FAILS not in came_to.values()


@pytest.mark.parametrize("fields", [{"c_b": 0.0}, PiecesInOneDimension.out_of_scope])
def test_what_the_theorem_leaves_out_is_out_of_range(fields):
    claim = replace(TINY, **fields)
    hypotheses = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert not all(hypothesis.holds for hypothesis in hypotheses)


def test_one_layer_has_none_below():
    with pytest.raises(UserError, match="depth must be at least 2, got 1"):
        PiecesInOneDimension(depth=1)


def test_the_point_counts_like_the_claim():
    point = PiecesInOneDimension.point.of(replace(TINY, networks=50))
    counted = np.asarray(jax.jit(point.observe)(None, jax.random.key(0))["share"])
    claim = replace(TINY, networks=50)
    segment = on_segment(claim.setting(jax.random.key(0)).wide, claim.ends).mean(1)
    spread = (counted.var() / 50 + segment.var() / 50) ** 0.5
    assert abs(counted.mean() - segment.mean()) < 4 * spread
