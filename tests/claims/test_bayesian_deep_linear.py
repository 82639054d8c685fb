"""The claim's Gibbs chain, where it is reducible, and what its judge rejects."""

import jax
import numpy as np
import pytest

from steepest import kit
from steepest.bayes import posterior_scale
from steepest.claims.bayes_and_transfer.bayesian_deep_linear import theory
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.claim import BayesianDeepLinear
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.data import (
    Examples,
    data_of_size,
    draw_digits,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.experiment import (
    PRIOR_DRAWS,
    deviations,
    evidence_ratios,
    prior_scales,
    spread_by_chain,
    untaught_networks,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.gibbs import gibbs_over_layers
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.point import sample_scales
from steepest.core.errors import UserError


def test_the_points_chain_has_the_exact_scale_where_layers_are_narrow():
    def chain(key):
        return sample_scales(2, 6, 8, 3.0, key, 600, 100).mean()

    with jax.enable_x64(True):
        means = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), 40)))
    error = means.std() / np.sqrt(40)
    assert means.mean() == pytest.approx(posterior_scale((6, 6), 8, 3.0), abs=4 * error)


def test_prior_scales_are_products_of_chi_squares():
    scales = prior_scales(6, 3, 20, 2000, np.random.default_rng(2)).reshape(-1, 3)
    exact = (1 + 2 / 6) ** np.arange(1, 4)
    error = 4 * (scales**2).std(0) / np.sqrt(len(scales))
    assert np.all(np.abs((scales**2).mean(0) - exact) < error)
    assert evidence_ratios(np.ones((2, 3, 1)), 5, 2.0).tolist() == [[1.0], [1.0]]


def _data(inputs, points, rng):
    x = rng.standard_normal((inputs, points))
    y = rng.standard_normal(points)
    return data_of_size(Examples(x, y, rng.standard_normal((inputs, 4))), 3.0)


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
        size = 12 * ((y @ np.linalg.pinv(x)) ** 2).sum() / 6
        data = data_of_size(Examples(x, y, x), size)
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


def test_predictions_of_a_row_that_is_there():
    """Interpolants with a θ_⊥ of N(0, sI/n_0), s of two values: by outputs, and by moments of the mixture."""
    rng = np.random.default_rng(8)
    for data in (_data(12, 6, rng), data_of_size(draw_digits(14, 6, rng), 0.5)):
        n = len(data.x)
        off = np.eye(n) - data.x @ data.inverse
        s = np.array([1.0, 3.0]).repeat(20_000)
        perp = rng.standard_normal((len(s), n)) * np.sqrt(s / n)[:, None] @ off
        theta = data.interpolant + perp
        np.testing.assert_allclose(theta @ data.x, np.broadcast_to(data.y, (len(s), 6)), atol=1e-8)
        apart = deviations((theta @ data.new).T[None, None], [data])[0, 0]
        np.testing.assert_allclose(
            apart, (perp @ data.new).T / data.new_lengths[:, None], atol=1e-8
        )
        by_projection = np.linalg.norm(off @ data.new, axis=0)
        np.testing.assert_allclose(data.new_lengths, by_projection)
        assert (apart**2).mean() == pytest.approx(2 / n, rel=0.03)
        ratio = (apart**4).mean() / (apart**2).mean() ** 2
        assert ratio == pytest.approx(3 * 5 / 4, rel=0.04)  # E s² = 5, (E s)² = 4


def test_spread_by_chain_has_the_ratio_as_its_mean():
    square = np.random.default_rng(0).exponential(size=(2, 50, 200))
    ratio = (square**2).mean((1, 2)) / square.mean((1, 2)) ** 2
    np.testing.assert_allclose(spread_by_chain(square).mean(1), ratio)


def test_untaught_networks_have_the_moments_of_the_prior():
    drawn = untaught_networks((6, 9), 12, 8, 50, np.random.default_rng(7))
    assert drawn.scale.shape == (50, PRIOR_DRAWS)
    for measured, exact in (
        (drawn.scale, 1.0),
        (drawn.square, 8 / 12),
        (drawn.deviation**2, 1 / 12),
    ):
        error = measured.std() / np.sqrt(measured.size)
        assert measured.mean() == pytest.approx(exact, abs=4 * error)


def as_predicted(claim):
    """Return an observation that follows the law, with some scatter between repetitions."""
    law = claim.predict(None)
    scatter = 1 + 0.01 * np.linspace(-1, 1, 8)
    posterior = ("scale", "perp", "spread", "prediction", "tails")
    dims = "kind size network chain"
    untaught = 3 * np.ones((len(claim.architectures), 1)) * scatter
    return kit.seen(
        **{name: (dims, law[name][..., None] * scatter) for name in posterior},
        **{f"prior_{name}": ("network chain", untaught) for name in posterior},
        evidence=("group layers", scatter[:, None] * law["evidence"]),
        expected_evidence=("group layers", scatter[:, None] * [0.9, 0.8, 0.6, 0.4, 0.2]),
        first_scales=("chain record", 1 + np.random.default_rng(0).random((8, 20))),
    )


def test_laws_flat_reversed_and_tilted_fail():
    claim = BayesianDeepLinear()
    law = claim.predict(None)
    nulls = {
        (null.law, null.axis, null.kind): null
        for null in kit.judge_laws(_without_run(claim), law, as_predicted(claim), ()).nulls
    }
    assert "scale" in nulls["scale", "size", "reversed"].by
    assert {("perp", "network", "exchanged"), ("evidence", "layers", "flat")} <= set(nulls)
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
    claim = BayesianDeepLinear(evidence_size=6.0)
    with jax.enable_x64(True):
        hypotheses = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert [hypothesis.name for hypothesis in hypotheses if not hypothesis.holds] == [
        "logarithm of the largest weight in the evidence"
    ]


def test_evidence_that_only_falls_is_out_of_range():
    claim = BayesianDeepLinear(evidence_size=1.5)
    with jax.enable_x64(True):
        hypotheses = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert [hypothesis.name for hypothesis in hypotheses if not hypothesis.holds] == [
        "depths measured on either side of the best"
    ]


@pytest.mark.parametrize("fields", [{"evidence_layers": (1, 4)}, {"sweeps": 100}])
def test_settings_that_leave_nothing_to_compare_are_refused(fields):
    with pytest.raises(UserError, match="expected (two|three)"):
        BayesianDeepLinear(**fields)
