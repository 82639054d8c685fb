"""Kernels of finite convolutions: moments by draws, by other closed forms, and the library's networks in NumPy."""

import itertools

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from steepest.claims.kernels import _convolution_covariances as covariances
from steepest.claims.kernels import _convolution_draws as draws
from steepest.claims.kernels.cntk_fluctuations import experiment, theory
from steepest.claims.kernels.cntk_fluctuations.claim import COUNTED, CntkFluctuations
from steepest.kernels import empirical_ntk, gram

SHARED = covariances.equal_correlations(3, 0.4)
UNEQUAL = np.array([[1.0, 0.3, -0.2], [0.3, 2.0, 0.5], [-0.2, 0.5, 0.5]])


def on_circle(function, covariance):
    """The mean of a function of signals of two-dimensional patches, by the angle of the filter.

    ``function`` has degree 4 in signals or is multiplied by that: E r⁴ = 8, and E r² = 2 of degree 2.
    """
    values, vectors = np.linalg.eigh(covariance)
    patches = vectors[:, -2:] * np.maximum(values[-2:], 0) ** 0.5
    angle = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    z = np.stack([np.cos(angle), np.sin(angle)], 1) @ patches.T
    return function(z).mean(0)


def phi_of_pooled(z, covariance, last):
    gates = (z > 0).astype(float)
    return np.maximum(z, 0).sum(1) ** 2 + last**2 * np.einsum(
        "ip,pq,iq->i", gates, covariance, gates
    )


def phi_of_flattened(z, covariance, last):
    gates = last * (z > 0)
    return (np.maximum(z, 0) ** 2).sum(1) + np.einsum("ip,pq,iq->i", gates, covariance, gates)


def by_draws(phi, covariance, columns):
    rng = np.random.default_rng(1)
    z = rng.multivariate_normal(np.zeros(len(covariance)), covariance, 400_000)
    values = phi(z, covariance, rng.standard_normal((len(z), columns) if columns > 1 else len(z)))
    return values.var() / values.mean() ** 2


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.9])
def test_pooled_law_by_draws_of_channels(rho):
    covariance = covariances.equal_correlations(4, rho)
    assert theory.pooled(4, rho) == pytest.approx(by_draws(phi_of_pooled, covariance, 1), rel=0.03)


@pytest.mark.parametrize("covariance", [SHARED, UNEQUAL])
def test_flattened_law_by_draws_of_channels(covariance):
    drawn = by_draws(phi_of_flattened, covariance, 3)
    assert covariances.flattened(covariance) == pytest.approx(drawn, rel=0.03)


def test_pooled_law_of_two_positions_in_the_plane():
    """Two patches span a plane, so that the mean over filters is one over an angle; E r⁴ = 8, E r² = 2."""
    rho = 0.3
    covariance = covariances.equal_correlations(2, rho)
    gates = lambda z: np.einsum("ip,pq,iq->i", z > 0, covariance, z > 0)
    read = lambda z: np.maximum(z, 0).sum(1) ** 2
    mean = on_circle(lambda z: 2 * read(z) + gates(z), covariance)
    square = on_circle(
        lambda z: 8 * read(z) ** 2 + 4 * read(z) * gates(z) + 3 * gates(z) ** 2, covariance
    )
    assert theory.pooled(2, rho) == pytest.approx(square / mean**2 - 1, rel=1e-5)


def test_flattened_law_of_two_positions_in_the_plane():
    covariance = np.array([[1.0, 0.5], [0.5, 3.0]])
    variances = np.diag(covariance)
    read = lambda z: (np.maximum(z, 0) ** 2).sum(1)
    gates = lambda z: (z > 0) @ variances
    pairs = lambda z: np.einsum("ip,pq,iq->i", z > 0, covariance**2, z > 0)
    mean = on_circle(lambda z: 2 * read(z) + gates(z), covariance)
    # over last weights the square of Σ a_p a_q G_pq has the mean (tr G)² + 2 tr G²
    square = on_circle(
        lambda z: 8 * read(z) ** 2 + 4 * read(z) * gates(z) + gates(z) ** 2 + 2 * pairs(z),
        covariance,
    )
    assert covariances.flattened(covariance) == pytest.approx(square / mean**2 - 1, rel=1e-5)


def test_one_position_and_independent_positions():
    assert theory.pooled(1, 0.5) == pytest.approx(3)
    for positions in (2, 7):
        independent = covariances.flattened(covariances.equal_correlations(positions, 0.0))
        assert independent == pytest.approx(3 / positions)


def test_pooling_of_many_independent_positions():
    """Σσ is a normal with relative variance (π − 1)/P then, and filters are a part π/P of the mean: 4(π − 1)/P."""
    assert theory.pooled(800, 0.0) * 800 == pytest.approx(4 * (np.pi - 1), rel=0.02)


def test_pooling_shares_one_weight():
    """The part of the filters alone: at one correlation it never varies less than a² does."""
    rng = np.random.default_rng(0)
    for positions, rho in itertools.product((4, 32), (0.0, 0.5)):
        covariance = covariances.equal_correlations(positions, rho)
        z = rng.multivariate_normal(np.zeros(positions), covariance, 50_000)
        filters = rng.standard_normal(50_000) ** 2 * (((z > 0) @ covariance) * (z > 0)).sum(1)
        assert filters.var() / filters.mean() ** 2 > 1.9


def test_channels_that_are_drawn_have_the_law_of_equal_correlations():
    drawn = theory.pooled_by_draws(SHARED, 200_000)
    assert drawn == pytest.approx(theory.pooled(3, 0.4), rel=0.03)


def test_moments_of_half_a_normal():
    points = np.linspace(0, 12, 200_001)
    density = multivariate_normal(0.3, 0.7**2).pdf(points)
    for k, moment in enumerate(theory.half_moments(np.array(0.3), 0.7)):
        assert moment == pytest.approx(np.trapezoid(points**k * density, points), rel=1e-6)


def test_powers_of_series():
    rng = np.random.default_rng(0)
    series = rng.random((5, 5, 1))
    cubed = theory.power_of_series(series, 3)[..., 0]
    s = 1e-3
    t = 2e-3
    value_of = lambda c: np.polynomial.polynomial.polyval2d(s, t, c)
    assert value_of(cubed) == pytest.approx(value_of(series[..., 0]) ** 3, rel=1e-12)


def test_signals_have_equal_correlations_of_windows():
    for signal, rho in zip(draws.signals(5, (0.2, 0.7)), (0.2, 0.7), strict=True):
        read = np.concatenate([np.roll(signal, shift, 0) for shift in (-1, 0, 1)], axis=1)
        wanted = 3 * covariances.equal_correlations(5, rho)
        np.testing.assert_allclose(read @ read.T, wanted, atol=1e-5)


@pytest.mark.parametrize("head", experiment.HEADS)
def test_the_network_is_a_mean_over_channels(head):
    """Θ of the library's network by the formula of φ, at its own weights, on a digit."""
    image = draws.images(np.random.default_rng(3), 1)
    net = draws.build(5, image.shape[1:], is_pooled=head == "pooled")
    params = draws.draw(np.random.default_rng(0), net, 1)
    (first, *_, last) = jax.tree.map(lambda leaf: np.asarray(leaf[0], float), params)
    covariance = covariances.windows(image[0, ..., 0]) / 9
    flat = image[0, ..., 0].astype(float)
    shifted = [np.roll(flat, (-i, -j), (0, 1)).ravel() for i in (-1, 0, 1) for j in (-1, 0, 1)]
    z = first["w"].reshape(5, 9) @ np.array(shifted) / 3
    if head == "pooled":
        values = phi_of_pooled(z, covariance, last["w"][0]) / 64**2
    else:
        values = phi_of_flattened(z, covariance, last["w"].reshape(64, 5).T) / 64
    theta = jax.jit(jax.vmap(lambda p: empirical_ntk(net, p, image)))(params)
    assert float(theta[0, 0, 0]) == pytest.approx(values.mean(), rel=1e-5)


@pytest.mark.parametrize("head", experiment.HEADS)
def test_the_mean_kernel_is_that_of_the_limit(head):
    signal = draws.signals(4, (0.3,)).astype(float)
    limit = gram(draws.build(4, (4, 5), is_pooled=head == "pooled").limit(), signal).ntk[0, 0]
    covariance = covariances.equal_correlations(4, 0.3) * 3 / (3 * 5)
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal(np.zeros(4), covariance, 200_000)
    if head == "pooled":
        mean = phi_of_pooled(z, covariance, rng.standard_normal(len(z))).mean() / 16
    else:
        mean = phi_of_flattened(z, covariance, rng.standard_normal(z.shape)).mean() / 4
    assert limit == pytest.approx(mean, rel=0.02)


def test_windows_of_zeros_count_as_positions():
    """Half of the positions read nothing: they add nothing to φ, and P drops out of a ratio."""
    padded = np.zeros((6, 6))
    padded[:3, :3] = SHARED
    assert covariances.flattened(padded) == pytest.approx(covariances.flattened(SHARED))


def test_directions_are_those_of_the_spectrum():
    """Windows of one lit pixel are nine unit vectors; equal correlations have P/(1 + (P − 1)ρ²) directions."""
    lit = np.zeros((1, 8, 8, 1))
    lit[0, 3, 3, 0] = 2.0
    assert theory.directions(lit) == pytest.approx([9.0])
    values = np.linalg.eigvalsh(covariances.equal_correlations(6, 0.4))
    assert values.sum() ** 2 / (values**2).sum() == pytest.approx(6 / (1 + 5 * 0.16))


def test_digits_count_as_many_positions_as_the_first_sentence_says():
    """By the exact law of flattened networks, at other digits than those of a run."""
    images = draws.images(np.random.default_rng(11), 40)
    centred = images - images.mean((1, 2, 3), keepdims=True)
    for kind, inputs in enumerate((images, centred)):
        spreads = [covariances.flattened(covariances.windows(image[..., 0])) for image in inputs]
        positions = 3 / np.mean(spreads)
        assert positions == pytest.approx(COUNTED[1][kind], rel=0.1)


def test_a_network_of_the_changed_world_has_one_scale():
    net = draws.build(4, (3, 4), is_pooled=True)
    params = draws.draw(np.random.default_rng(0), net, 2)
    scaled = experiment.with_one_scale(np.random.default_rng(1), params)
    ratio = scaled[0]["w"] / params[0]["w"]
    assert np.allclose(ratio, ratio[:, :1, :1, :1]) and ratio[0, 0, 0, 0] != ratio[1, 0, 0, 0]


def test_the_relative_spread_of_kernels():
    theta = np.array([[[1.0, 3.0], [2.0, 2.0]]])
    np.testing.assert_allclose(draws.relative_spread(theta), [[0.25, 0.0]])


def test_equal_positions_are_out_of_range():
    claim = CntkFluctuations(correlations=(0.1, 1.0))
    assert not next(iter(claim.hypotheses(claim.setting(jax.random.key(0))))).holds
