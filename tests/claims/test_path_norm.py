"""What the claim about path norms rests on: two starts with one function, and the measures along training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.implicit_bias.path_norm.claim import _rescaled
from steepest.programs import path_norm, weight_matrices


@pytest.fixture(scope="module")
def small():
    with jax.enable_x64(True):
        claim = load("path-norm")(
            n=20,
            test=40,
            shape=(6, 5),
            rescaled_steps=40,
            widths=(16, 24, 32),
            lr=0.05,
            steps=600,
            total=0.5,
            seeds=3,
        )
        setting = claim.setting(jax.random.key(0))
        yield claim, setting, claim.observe(setting, jax.random.key(1))


def test_the_two_starts_are_one_function_with_one_path_norm(small):
    claim, setting, _ = small
    start = claim.net(*claim.shape).init(jax.random.key(2))
    moved = _rescaled(start, setting.factors[0])
    apply = claim.net(*claim.shape).apply
    np.testing.assert_allclose(
        apply(moved, setting.x[0]), apply(start, setting.x[0]), rtol=1e-10, atol=1e-12
    )
    for order in (1, 2):
        assert path_norm(weight_matrices(moved), order) == pytest.approx(
            float(path_norm(weight_matrices(start), order)), rel=1e-12
        )
    assert not np.allclose(moved[0]["w"], start[0]["w"])


def test_factors_stay_in_their_range(small):
    claim, setting, _ = small
    assert setting.factors.min() >= 1 / claim.spread and setting.factors.max() <= claim.spread
    assert np.abs(np.log(setting.factors)).max() > 0.5 * np.log(claim.spread)


def test_no_image_is_in_both_sets(small):
    _, setting, _ = small
    far = jnp.abs(setting.x[:, :, None] - setting.test_x[:, None]).max(-1)
    assert float(far.min()) > 0


def test_widths_are_compared_at_the_risk_wanted(small):
    claim, _, observed = small
    assert (observed["total"] <= claim.total).all() and (observed["total"] > claim.total / 2).all()
    assert (observed["error"] == 0).all() and (observed["norms"] > 0).all()
    assert (observed["stopped"] < claim.steps).all()


def test_splitting_every_neuron_lowers_order_two_only(small):
    """Two copies of each neuron with half the output weights: π₂ falls by √2, π₁ and the function stay."""
    claim, _, _ = small
    below, above = (layer["w"] for layer in claim.net(6).init(jax.random.key(3)))
    split = [jnp.concatenate([below, below]), jnp.concatenate([above, above], 1) / 2]
    assert float(path_norm(split, 1)) == pytest.approx(
        float(path_norm([below, above], 1)), rel=1e-12
    )
    assert float(path_norm(split, 2)) == pytest.approx(
        float(path_norm([below, above], 2)) / 2**0.5, rel=1e-12
    )


def test_only_gradient_descent_sees_the_balance(small):
    _, _, observed = small
    path_sgd, descent = observed["apart"].max(-1).T
    assert path_sgd.max() < 1e-11 and descent.min() > 1e-2
    np.testing.assert_allclose(observed["risk"][:, 0, 0], observed["risk"][:, 0, 1], rtol=1e-10)


def test_the_judge_reads_the_signs_of_the_prediction(small):
    claim, setting, observed = small
    predicted = claim.predict(setting)
    steeper = observed.replace(
        test=("seed width", [[0.3, 0.2, 0.1], [0.32, 0.2, 0.12], [0.3, 0.21, 0.11]])
    )
    wrong = predicted.replace(trend=("quantity", [1, 1, 1, 1]))
    assert claim.judge(predicted, steeper)[2].verdict.value == "holds"
    assert claim.judge(wrong, steeper)[2].verdict.value == "fails"


def test_errors_are_read_at_the_risk_wanted():
    """By hand: between risks 0.4 and 0.1 with errors 0.3 and 0.2, the risk 0.2 is half way in its logarithm."""
    claim = load("path-norm")(compared=0.2)
    risk = np.broadcast_to([2.0, 0.4, 0.1, 0.05], (2, 2, 2, 4)).copy()
    test = np.broadcast_to([0.9, 0.3, 0.2, 0.1], (2, 2, 2, 4)).copy()
    risk[1, 1, 1] = 1.0
    errors = claim.errors_at_risk({"risk": risk, "rule_test": test})
    assert errors[0] == pytest.approx(0.25)
    assert np.isnan(errors[1, 1, 1]) and np.isfinite(errors).sum() == 7


def test_path_sgd_errs_alike_from_both_starts(small):
    """The two starts are one function, and so are the two ends; their test errors are equal."""
    _, _, observed = small
    np.testing.assert_array_equal(observed["rule_test"][:, 0, 0], observed["rule_test"][:, 0, 1])
    np.testing.assert_array_equal(
        observed["rule_test"][..., 0, 0], observed["rule_test"][..., 1, 0]
    )


def test_the_order_of_the_rules_is_the_prediction(small):
    claim, setting, observed = small
    predicted = claim.predict(setting)
    better = np.array(observed["rule_test"])
    better[:, 0] = 0.1 + 0.01 * np.arange(3)[:, None, None]
    better[:, 1] = 0.3
    risk = np.array(observed["risk"])
    risk[..., -1] = claim.compared / 2
    shown = observed.replace(
        rule_test=(observed.quantity("rule_test").dims, better),
        risk=(observed.quantity("risk").dims, risk),
    )
    verdicts = lambda prediction: {
        check.id: check.verdict.value for check in claim.judge(prediction, shown)
    }
    assert verdicts(predicted)["test_error_rescaled"] == "holds"
    assert verdicts(predicted.replace(rules=1))["test_error_rescaled"] == "fails"
