"""The claim's own sampler, and why another one, layer by layer, goes wrong."""

import jax
import numpy as np
import pytest

from steepest import kit
from steepest.bayes import posterior_scale
from steepest.claims.bayes_and_transfer.bayesian_deep_linear import theory
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.claim import BayesianDeepLinear
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.data import data_of_size
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.experiment import (
    PRIOR_DRAWS,
    evidence_ratios,
    prior_scales,
    spread_by_chain,
    untaught_networks,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.gibbs import gibbs_over_layers
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.slices import (
    Shape,
    draw_first_layer,
    padded,
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


def test_moments_of_the_scale_are_those_of_the_posterior():
    first, second = theory.scale_moments((5, 7), 6, 2.0)
    assert first == pytest.approx(posterior_scale((5, 7), 6, 2.0))
    assert second == pytest.approx(posterior_scale((5, 7), 6, 2.0, 2))
    assert theory.scale_moments((), 6, 2.0) == (1.0, 1.0)


@pytest.mark.parametrize("widths", [theory.equal_widths, theory.two_widths_in_turn])
def test_networks_of_the_limit_have_its_effective_depth(widths):
    assert 100 * sum(1 / n for n in widths(100, 3.0)) == pytest.approx(3.0)


def test_spread_by_chain_has_the_ratio_as_its_mean():
    square = np.random.default_rng(0).exponential(size=(2, 50, 200))
    ratio = (square**2).mean((1, 2)) / square.mean((1, 2)) ** 2
    np.testing.assert_allclose(spread_by_chain(square).mean(1), ratio)


def test_untaught_networks_have_the_moments_of_the_prior():
    drawn = untaught_networks((6, 9), 12, 8, 50, np.random.default_rng(7))
    assert drawn.scale.shape == (50, PRIOR_DRAWS)
    for measured, exact in ((drawn.scale, 1.0), (drawn.square, 8 / 12)):
        error = measured.std() / np.sqrt(measured.size)
        assert measured.mean() == pytest.approx(exact, abs=4 * error)


def as_predicted(claim):
    """Return an observation that follows the law, with some scatter between repetitions."""
    law = claim.predict(None)
    scatter = 1 + 0.01 * np.linspace(-1, 1, 8)
    repeated = lambda name: law[name][..., None] * scatter
    gibbs = ("gibbs_scale", "gibbs_perp", "gibbs_spread")
    sliced = ("perp", "spread")
    flat = ("limit", "gap", "best_variance")
    return kit.seen(
        **{name: ("kind gibbs_size gibbs_chain", repeated(name)) for name in gibbs},
        **{f"prior_{name}": ("gibbs_chain", 3 * scatter) for name in gibbs},
        **{name: ("network chain", repeated(name)) for name in sliced},
        **{f"prior_{name}": ("network chain", 3 * repeated(name)) for name in sliced},
        **{name: (law.quantity(name).dims, law[name]) for name in flat},
        evidence=("group layers", scatter[:, None] * law["evidence"]),
        far=("architecture limit_size depth", 1.1 * law["limit"]),
        along=("network chain", 0.001 * repeated("perp")),
        residual=("network chain", 0 * repeated("perp")),
        gibbs_residual=("kind gibbs_size gibbs_chain", 0 * repeated("gibbs_perp")),
        first_scales=("chain record", 1 + np.random.default_rng(0).random((8, 20))),
    )


def test_laws_flat_reversed_and_tilted_fail():
    claim = BayesianDeepLinear()
    law = claim.predict(None)
    nulls = {
        (null.law, null.axis, null.kind): null
        for null in kit.judge_laws(_without_run(claim), law, as_predicted(claim), ()).nulls
    }
    assert nulls["gibbs_scale", "gibbs_size", "reversed"].by == ("gibbs_scale",)
    assert {("perp", "network", "reversed"), ("limit", "depth", "flat")} <= set(nulls)
    assert [null for null in nulls.values() if not null.rejected] == []


def _without_run(claim):
    """Return the claim without conditions on the run, of which nothing is observed here."""

    class WithoutRun(type(claim)):
        def run_conditions(self, observed):
            return []

    return WithoutRun()


def test_every_wrong_theory_and_changed_world_fails():
    claim = _without_run(BayesianDeepLinear())
    law = claim.predict(None)
    judgement = claim.judged(law, as_predicted(claim), claim.wrong_theories(None, law))
    assert {check.verdict for check in judgement.checks} == {"holds"}
    assert [rival.id for rival in judgement.rivals if not rival.rejected] == []
    assert [control.id for control in judgement.controls if not control.rejected] == []
    assert [clause.verdict for clause in judgement.says] == ["holds", "holds"]


def test_heavy_evidences_are_out_of_range():
    claim = BayesianDeepLinear(uneven_size=6.0)
    with jax.enable_x64(True):
        hypotheses = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert [hypothesis.holds for hypothesis in hypotheses].count(False) == 1


@pytest.mark.parametrize(
    "fields", [{"evidence_layers": (1,)}, {"gibbs_sweeps": 50}, {"sweeps": 100}]
)
def test_settings_that_leave_nothing_to_compare_are_refused(fields):
    with pytest.raises(UserError, match="expected two"):
        BayesianDeepLinear(**fields)
