"""Margins of parities: programs on the cube, integrals, dense kernels, and the search for neurons."""

import numpy as np
import pytest
from scipy.integrate import quad

from steepest.core.errors import UserError
from steepest.kernels import arc_cosine
from steepest.nn.data import hypercube
from steepest.programs import (
    kernel_margin,
    neuron_edges,
    neuron_margin,
    parity_margins,
)
from steepest.programs._edges import search_edges


def cube(d, k):
    signs = hypercube(d)
    return signs / np.sqrt(d), signs[:, :k].prod(1)


@pytest.mark.parametrize("d, k", [(1, 1), (2, 2), (4, 1), (5, 2), (5, 4), (6, 6)])
def test_programs_find_the_same(d, k):
    x, y = cube(d, k)
    margins = parity_margins(d, k)
    assert neuron_margin(x, y).margin == pytest.approx(margins.first, rel=1e-7)
    tangent = kernel_margin(arc_cosine(x @ x.T).inner, y).margin
    assert tangent == pytest.approx(margins.tangent, rel=1e-6)


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_the_constant_is_an_integral(k):
    # over all periods Σ 1/(t + πn)² = 1/sin² t, so that ∫ sin^k t/t² over t > 0 is half of this
    integral = quad(lambda t: np.sin(t) ** (k - 2), 0, np.pi)[0] / 2
    assert parity_margins(9, k).first == pytest.approx(integral / np.pi / np.sqrt(9 * k))


def test_no_neuron_has_a_larger_edge():
    """The bound by Hölder, over random neurons: near the best, and anywhere."""
    x, y = cube(8, 4)
    rng = np.random.default_rng(0)
    best = np.append(np.full(4, 0.5), np.zeros(4))
    u = np.concatenate([rng.normal(size=(500, 8)), best + 0.05 * rng.normal(size=(500, 8)), [best]])
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    edges = np.abs(y @ np.maximum(x @ u.T, 0)) / len(y)
    assert edges[:-1].max() < parity_margins(8, 4).first
    assert edges[-1] == pytest.approx(parity_margins(8, 4).first)


@pytest.mark.parametrize("d, k", [(3, 3), (4, 3)])
def test_odd_parities_have_no_margin(d, k):
    x, y = cube(d, k)
    assert parity_margins(d, k) == (0.0, 0.0)
    assert not neuron_margin(x, y).separable


def test_the_power_of_the_frozen_features_is_reached_in_many_dimensions():
    assert parity_margins(2000, 2).tangent * 2000 == pytest.approx(np.pi**-0.5, rel=1e-3)
    assert parity_margins(1000, 4).tangent * 1e6 == pytest.approx((2 / np.pi) ** 0.5, rel=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_the_best_neuron_of_the_plane(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20, 2))
    signed = rng.normal(size=20)
    exact = np.abs(neuron_edges(x, signed)[0]).max()
    assert np.abs(search_edges(x, signed, rng)[0]).max() == pytest.approx(exact, rel=1e-10)


def test_the_search_beats_a_fine_grid_in_space():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(15, 3))
    signed = rng.normal(size=15)
    grid = rng.normal(size=(100_000, 3))
    grid /= np.linalg.norm(grid, axis=1, keepdims=True)
    reached = np.abs(np.maximum(grid @ x.T, 0) @ signed).max()
    edges, directions = search_edges(x, signed, rng)
    assert reached <= np.abs(edges).max() <= 1.01 * reached
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)


def test_a_margin_in_space_that_is_planar_is_that_of_the_plane():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(8, 2))
    y = np.sign(x[:, 0] * x[:, 1])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
    flat = neuron_margin(x, y)
    space = neuron_margin(x @ turn, y, 1e-7)
    assert space.margin == pytest.approx(flat.margin, rel=1e-6)
    assert (flat.certificate, space.certificate) == ("exact", "search")


@pytest.mark.parametrize("d, k", [(3, 4), (3, 0)])
def test_more_bits_than_there_are_is_a_sentence(d, k):
    with pytest.raises(UserError, match="parity margins: expected"):
        parity_margins(d, k)


def test_labels_and_starts_are_checked():
    x, y = cube(3, 2)
    with pytest.raises(UserError, match="labels"):
        neuron_margin(x, y / 2)
    with pytest.raises(UserError, match="at least one start"):
        neuron_margin(x, y, starts=0)
