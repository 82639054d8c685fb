"""The claim's own sampler, and why another one, layer by layer, goes wrong."""

from itertools import pairwise

import jax
import numpy as np
import pytest

from steepest.bayes import posterior_scale
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.experiment import (
    Shape,
    data_of_size,
    draw_first_layer,
    evidence_ratios,
    padded,
    prior_scales,
    product_row,
)


def test_padded_networks_are_products_of_their_matrices():
    architectures = [(3, 2, 4), (5,)]
    shapes = padded(architectures)
    rng = np.random.default_rng(0)
    for i, widths in enumerate(architectures):
        shape = Shape(*(part[i] for part in shapes))
        weights = rng.standard_normal(len(shape.deviations)) * shape.deviations
        row = weights[None, : widths[-1]]
        first = widths[-1]
        for rows, columns in zip(widths[:0:-1], widths[-2::-1], strict=True):
            row = row @ weights[first : first + rows * columns].reshape(rows, columns)
            first += rows * columns
        product = np.asarray(product_row(jax.numpy.asarray(weights), shape))
        np.testing.assert_allclose(product[: widths[0]], row[0], rtol=1e-12)
        assert not product[widths[0] :].any()
        expected = np.repeat([1 / n for n in widths[::-1]], [widths[-1], *_sizes(widths)])
        np.testing.assert_allclose(shape.deviations[: len(expected)] ** 2, expected)


def _sizes(widths):
    return [n * m for n, m in zip(widths[:0:-1], widths[-2::-1], strict=True)]


def test_the_first_layer_is_drawn_from_its_conditional():
    """θ interpolates, and θ_⊥ has the law N(0, ‖v‖²Π_⊥/n_0)."""
    rng = np.random.default_rng(1)
    data = data_of_size(rng.standard_normal((6, 2)), rng.standard_normal(2), 3.0)
    assert 6 * (data.interpolant**2).sum() / 2 == pytest.approx(3.0)
    rows = np.tile([1.0, -2.0, 0.0], (20_000, 1))
    drawn = draw_first_layer(rows, data, rng)
    assert drawn.residual.max() < 1e-12
    square = 5.0 * 4 / 6  # ‖v‖²(n_0 − P)/n_0
    assert drawn.square.mean() == pytest.approx(square, abs=4 * drawn.square.std() / 20_000**0.5)
    assert drawn.along.var() == pytest.approx(5 / 6, rel=4 * np.sqrt(2 / 20_000))


def test_prior_scales_are_products_of_chi_squares():
    scales = prior_scales(6, 3, 20, 2000, np.random.default_rng(2)).reshape(-1, 3)
    exact = (1 + 2 / 6) ** np.arange(1, 4)
    error = 4 * (scales**2).std(0) / np.sqrt(len(scales))
    assert np.all(np.abs((scales**2).mean(0) - exact) < error)
    assert evidence_ratios(np.ones((2, 3, 1)), 5, 2.0).tolist() == [[1.0], [1.0]]


def _gibbs(n, sweeps, networks, rng, own):
    """Return s at the start and after sweeps of layers drawn in turn, each from its conditional on interpolation."""
    inputs = 12
    points = 6
    widths = (inputs, n, n, 1)
    x = rng.standard_normal((inputs, points))
    weights = [rng.standard_normal((networks, b, a)) / np.sqrt(a) for a, b in pairwise(widths)]
    y = (weights[2] @ weights[1] @ weights[0] @ x)[:, 0]  # each network's own data
    if not own:
        y = np.broadcast_to(data_of_size(x, y[0], 3.0).y, y.shape)
    scales = []
    for sweep in range(sweeps + 1):
        if sweep:
            scales.append(((weights[2] @ weights[1]) ** 2).sum((1, 2)))
        for layer in range(3) if sweep else (0,):
            above = np.ones((networks, 1, 1))
            for matrix in weights[:layer:-1]:
                above = above @ matrix
            below = np.broadcast_to(x, (networks, *x.shape))
            for matrix in weights[:layer]:
                below = matrix @ below
            fresh = rng.standard_normal(weights[layer].shape) / np.sqrt(widths[layer])
            gap = y - (above @ fresh @ below)[:, 0]
            step = gap[:, None] @ np.linalg.pinv(below, rcond=1e-10)
            norms = (above**2).sum((1, 2))[:, None, None]
            weights[layer] = fresh + above.transpose(0, 2, 1) @ step / norms
    return np.array(scales)


def test_gibbs_over_layers_is_reducible_where_layers_are_no_wider_than_the_data():
    """With all n_l ≤ P the scale never moves, whatever the data say; with n_l > P the chain is right."""
    rng = np.random.default_rng(3)
    stuck = _gibbs(6, 20, 50, rng, own=False)
    assert np.abs(stuck / stuck[0] - 1).max() < 1e-6
    assert stuck[-1].mean() < posterior_scale((6, 6), 6, 3.0) - 0.5
    moving = _gibbs(12, 60, 300, rng, own=False)[20:].mean(0)
    exact = posterior_scale((12, 12), 6, 3.0)
    assert moving.mean() == pytest.approx(exact, abs=4 * moving.std() / np.sqrt(300))


def test_gibbs_over_layers_keeps_the_joint_law():
    """Geweke: networks of the prior with their own outputs as data stay networks of the prior."""
    scales = _gibbs(9, 10, 2000, np.random.default_rng(4), own=True)
    change = scales[-1] ** 2 - scales[0] ** 2
    assert change.mean() == pytest.approx(0, abs=4 * change.std() / np.sqrt(2000))
    assert np.corrcoef(scales[0], scales[-1])[0, 1] < 0.9
