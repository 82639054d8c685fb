"""The claim's own sampler, and why another one, layer by layer, goes wrong."""

import jax
import numpy as np
import pytest

from steepest.bayes import posterior_scale
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.claim import BayesianDeepLinear
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.experiment import (
    Shape,
    data_of_size,
    draw_first_layer,
    evidence_ratios,
    gibbs_over_layers,
    padded,
    prior_scales,
    product_row,
)
from steepest.core.errors import UserError


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


def _data(inputs, points, rng):
    return data_of_size(rng.standard_normal((inputs, points)), rng.standard_normal(points), 3.0)


def test_gibbs_over_layers_has_the_exact_scale_where_layers_are_wider_than_the_data():
    rng = np.random.default_rng(3)
    drawn = gibbs_over_layers([_data(12, 6, rng)], (12, 14), 300, 60, rng)
    assert drawn.residual.max() < 1e-9
    for measured, factor in ((drawn.scale, 1.0), (drawn.square, 0.5)):
        means = measured[0, :, 20:].mean(1)
        exact = factor * posterior_scale((12, 14), 6, 3.0)
        assert means.mean() == pytest.approx(exact, abs=4 * means.std() / np.sqrt(300))


@pytest.mark.parametrize(
    ("widths", "stuck"), [((10, 10), True), ((10, 30), True), ((30, 10), False), ((30, 30), False)]
)
def test_the_scale_never_moves_if_and_only_if_the_first_layer_is_no_wider_than_the_data(
    widths, stuck
):
    """Interpolation pins W^(L+1)⋯W^(l+1) where n_l ≤ P; of l = 1 that is the row whose squared length is s."""
    rng = np.random.default_rng(4)
    scales = gibbs_over_layers([_data(20, 10, rng)], widths, 20, 30, rng).scale
    moves = np.abs(scales / scales[..., :1] - 1).max(-1)
    assert moves.max() < 1e-6 if stuck else moves.min() > 0.1


def test_a_narrow_upper_layer_keeps_the_chain_from_the_posterior():
    """With n_2 ≤ P < n_1 s moves about a value that its start has chosen."""
    rng = np.random.default_rng(5)
    data = [_data(12, 6, rng)]
    chosen = {}
    for upper in (4, 12):
        start = [
            rng.standard_normal((1, 200, rows, columns)) / np.sqrt(columns)
            for rows, columns in ((24, 12), (upper, 24), (1, upper))
        ]
        first = (start[2][0] ** 2).sum((1, 2))
        last = gibbs_over_layers(data, (24, upper), 200, 60, rng, start).scale[0, :, 30:].mean(1)
        chosen[upper] = np.corrcoef(first, last)[0, 1]
    assert chosen[4] > 0.8
    assert abs(chosen[12]) < 0.3


def test_gibbs_over_layers_keeps_the_joint_law():
    """Geweke: networks of the prior with their own outputs as data stay networks of the prior."""
    rng = np.random.default_rng(6)
    networks = 400
    x = rng.standard_normal((12, 6))
    before = []
    after = []
    for _ in range(networks):
        start = [
            rng.standard_normal((1, 1, rows, columns)) / np.sqrt(columns)
            for rows, columns in ((9, 12), (9, 9), (1, 9))
        ]
        y = (start[2] @ start[1] @ start[0])[0, 0, 0] @ x
        data = data_of_size(x, y, 12 * ((y @ np.linalg.pinv(x)) ** 2).sum() / 6)
        scales = gibbs_over_layers([data], (9, 9), 1, 8, rng, start).scale[0, 0]
        before.append(scales[0])
        after.append(scales[-1])
    change = np.square(after) - np.square(before)
    assert change.mean() == pytest.approx(0, abs=4 * change.std() / np.sqrt(networks))
    assert np.corrcoef(before, after)[0, 1] < 0.9


@pytest.mark.parametrize(
    "fields", [{"evidence_layers": (1,)}, {"gibbs_sweeps": 50}, {"sweeps": 100}]
)
def test_settings_that_leave_nothing_to_compare_are_refused(fields):
    with pytest.raises(UserError, match="expected two"):
        BayesianDeepLinear(**fields)
