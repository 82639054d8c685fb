"""Kernels with shared filters and without: closed forms by the library's limit, by draws, and networks in NumPy."""

import jax
import numpy as np
import pytest

from steepest.claims.kernels import _convolution_covariances as covariances
from steepest.claims.kernels import _convolution_draws as draws
from steepest.claims.kernels.shared_filters import experiment, theory
from steepest.claims.kernels.shared_filters.claim import SharedFilters
from steepest.kernels import empirical_ntk, gram


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_kernel_is_that_of_the_limit(is_shared, layers):
    """The library's recursion over displacements, for both kinds of filters."""
    rho = 0.4
    pair = experiment.pair_of(draws.signals(4, (rho,))[0]).astype(float)
    limit = gram(
        draws.build(8, (4, 5), is_pooled=False, layers=layers, is_shared=is_shared).limit(), pair
    ).ntk
    expected = [theory.kernel(layers, 1 / 5, cosine) for cosine in (1.0, rho)]
    np.testing.assert_allclose(limit[0], expected, rtol=1e-6)


def test_where_positions_meet_the_kernel_is_that_of_pooled_networks():
    claim = SharedFilters(positions=(4, 12), correlations=(0.1, 0.4))
    pair = experiment.pair_of(draws.signals(4, (claim.middle,))[0]).astype(float)
    pooled = [
        gram(draws.build(8, (4, 5), is_pooled=True, layers=layers).limit(), pair).ntk[0]
        for layers in (1, 2)
    ]
    np.testing.assert_allclose(claim.kernel_of_pooled(), pooled, rtol=1e-6)


def test_filters_of_their_own_by_draws():
    variances = np.array([0.5, 1.0, 4.0])
    rng = np.random.default_rng(0)
    z = rng.standard_normal((400_000, 3)) * variances**0.5
    last = rng.standard_normal(z.shape)
    phi = (np.maximum(z, 0) ** 2 + last**2 * (z > 0) * variances).sum(1)
    assert theory.of_their_own(variances) == pytest.approx(phi.var() / phi.mean() ** 2, rel=0.02)


@pytest.mark.parametrize("is_shared", [True, False])
def test_the_network_is_a_mean_over_channels(is_shared):
    """Θ of the library's network on a digit, by its own weights: one filter, or one at each position."""
    image = draws.images(np.random.default_rng(3), 1)
    net = draws.build(5, image.shape[1:], is_pooled=False, is_shared=is_shared)
    params = draws.draw(np.random.default_rng(0), net, 1)
    (first, *_, last) = jax.tree.map(lambda leaf: np.asarray(leaf[0], float), params)
    pixels = image[0, ..., 0].astype(float)
    moves = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    windows = np.stack([np.roll(pixels, (-i, -j), (0, 1)).ravel() for i, j in moves], 1)  # (64, 9)
    a = last["w"].reshape(64, 5)
    if is_shared:
        z = windows @ first["w"].reshape(5, 9).T / 3
        reach = np.ones((64, 64))
    else:
        own = np.moveaxis(first["w"].reshape(8, 8, 5, 9), 2, 0).reshape(5, 64, 9)
        z = np.einsum("cpk,pk->pc", own, windows) / 3
        reach = np.eye(64)
    covariance = reach * (windows @ windows.T) / 9
    gates = a * (z > 0)
    phi = (np.maximum(z, 0) ** 2).sum(0) + np.einsum("pc,pq,qc->c", gates, covariance, gates)
    theta = jax.jit(jax.vmap(lambda p: empirical_ntk(net, p, image)))(params)
    assert float(theta[0, 0, 0]) == pytest.approx(phi.mean() / 64, rel=1e-5)


def test_positions_that_are_independent_vary_alike():
    """At ρ = 0 nothing tells a shared filter from filters of their own; at ρ = 1 it counts as one position."""
    for rho, times in ((0.0, 1.0), (1.0, 6.0)):
        covariance = covariances.equal_correlations(6, rho)
        own = theory.of_their_own(np.diag(covariance))
        assert covariances.flattened(covariance) / own == pytest.approx(times)


@pytest.mark.parametrize("is_centred", [False, True])
def test_a_digits_windows_by_the_two_laws(is_centred):
    """Channels that are drawn, with one filter for all windows and with one for each."""
    pixels = draws.images(np.random.default_rng(0), 1)[0, ..., 0]
    covariance = covariances.windows(pixels - pixels.mean() * is_centred)
    rng = np.random.default_rng(1)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.maximum(values, 0) ** 0.5
    z = rng.standard_normal((40_000, 64)) @ root.T
    last = rng.standard_normal(z.shape)
    shared = (np.maximum(z, 0) ** 2).sum(1) + (((last * (z > 0)) @ root) ** 2).sum(1)
    sizes = np.diag(covariance)
    apart = rng.standard_normal(z.shape) * sizes**0.5
    own = (np.maximum(apart, 0) ** 2 + last**2 * (apart > 0) * sizes).sum(1)
    relative = lambda phi: phi.var() / phi.mean() ** 2
    assert covariances.flattened(covariance) == pytest.approx(relative(shared), rel=0.1)
    assert theory.of_their_own(sizes) == pytest.approx(relative(own), rel=0.05)


def test_how_many_times_more_the_kernels_of_digits_vary():
    """What the remarks say of digits: some eighteen times, and five times less their means."""
    images = draws.Setting.draw(np.random.default_rng(11), 60).images
    ratios = [
        [covariances.flattened(K) / theory.of_their_own(np.diag(K)) for K in map(windows_of, kind)]
        for kind in images
    ]
    plain, centred = np.mean(ratios, axis=1)
    assert 16 < plain < 21
    assert 4.5 < centred < 6.5


def windows_of(image):
    return covariances.windows(image[..., 0])


def test_with_two_convolutions_filters_of_their_own_vary_about_twice_as_much():
    """The remarks say that the law is for one convolution."""
    rng = np.random.default_rng(5)
    signal = draws.signals(4, (0.3,))
    net = draws.build(8, signal.shape[1:], is_pooled=False, layers=2, is_shared=False)
    theta = draws.in_chunks(draws.kernels_at(net, signal), rng, net, 4, 600)
    times = 8 * draws.relative_spread(theta).mean() / theory.of_their_own(np.ones(4))
    assert 1.7 < times < 2.8


def test_kernels_are_those_of_networks_that_are_drawn_in_parts():
    pair = experiment.pair_of(draws.signals(3, (0.5,))[0])
    net = draws.build(2, pair.shape[1:], is_pooled=False, is_shared=False)
    means = experiment.mean_kernels(np.random.default_rng(0), net, pair, 2, 8)
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(draws.CHUNKS):
        params = draws.draw(rng, net, 4)
        nets = [jax.tree.map(lambda leaf, i=i: leaf[i], params) for i in range(4)]
        theta = np.array([empirical_ntk(net, one, pair)[0] for one in nets])
        parts.append(theta.reshape(2, 2, 2))
    np.testing.assert_allclose(means, np.concatenate(parts, axis=1).mean(1).T, rtol=1e-5)


def test_equal_positions_are_out_of_range():
    claim = SharedFilters(correlations=(0.1, 1.0))
    assert not next(iter(claim.hypotheses(claim.setting(jax.random.key(0))))).holds
