"""What the claim about Path-SGD rests on: two starts with one function, and errors at one risk."""

import jax
import numpy as np
import pytest
import xarray

from steepest.catalogue import load
from steepest.claims.implicit_bias._few_digits import without_biases
from steepest.claims.implicit_bias.path_sgd.claim import RULES, rescaled
from steepest.programs import path_norm, weight_matrices


@pytest.fixture(scope="module")
def small():
    with jax.enable_x64(True):
        claim = load("path-sgd")(n=20, test=40, shape=(6, 5), steps=40, compared=2.2, seeds=3)
        setting = claim.setting(jax.random.key(0))
        yield claim, setting, claim.observe(setting, jax.random.key(1))


def verdicts(claim, predicted, observed) -> dict[str, str]:
    return {check.id: check.verdict.value for check in claim.checks(predicted, observed)}


def test_the_two_starts_are_one_function_with_one_path_norm(small):
    claim, setting, _ = small
    net = without_biases(claim.shape, claim.activation, claim.c_w)
    start = net.init(jax.random.key(2))
    moved = rescaled(start, setting.factors[0])
    apply = net.apply
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


def test_only_gradient_descent_sees_the_balance(small):
    _, _, observed = small
    path_sgd, descent = observed["apart"].max(-1)
    assert path_sgd.max() < 1e-11 and descent.min() > 1e-2
    np.testing.assert_allclose(observed["risk"][0, :, 0], observed["risk"][0, :, 1], rtol=1e-10)


def test_errors_are_read_at_the_risk_wanted():
    """By hand: between risks 0.4 and 0.1 with errors 0.3 and 0.2, the risk 0.2 is half way in its logarithm."""
    claim = load("path-sgd")(compared=0.2)
    risk = np.broadcast_to([2.0, 0.4, 0.1, 0.05], (2, 2, 2, 4)).copy()
    test = np.broadcast_to([0.9, 0.3, 0.2, 0.1], (2, 2, 2, 4)).copy()
    risk[1, 1, 1] = 1.0
    dims = ("rule", "seed", "start", "step")
    measured = xarray.Dataset(
        {"risk": (dims, risk), "rule_test": (dims, test)}, {"rule": list(RULES)}
    )
    errors = claim.errors_at_risk(measured).values
    assert errors[0] == pytest.approx(0.25)
    assert np.isnan(errors[1, 1, 1]) and np.isfinite(errors).sum() == 7


def test_path_sgd_errs_alike_from_both_starts(small):
    """The two starts are one function, and so are the two ends; their test errors are equal."""
    _, _, observed = small
    np.testing.assert_array_equal(observed["rule_test"][0, :, 0], observed["rule_test"][0, :, 1])
    np.testing.assert_array_equal(
        observed["rule_test"][:, :, 0, 0], observed["rule_test"][:, :, 1, 0]
    )


def test_the_order_of_the_rules_is_the_prediction(small):
    claim, setting, observed = small
    predicted = claim.predict(setting)
    better = np.array(observed["rule_test"])
    better[0] = 0.1 + 0.01 * np.arange(3)[:, None, None]
    better[1] = 0.3
    risk = np.array(observed["risk"])
    risk[..., -1] = claim.compared / 2
    dims = "rule seed start step"
    shown = observed.replace(rule_test=(dims, better), risk=(dims, risk))
    assert verdicts(claim, predicted, shown)["test_error_rescaled"] == "holds"
    wrong = predicted.replace(rule_errors=("rule", [1.0, 0.0]))
    assert verdicts(claim, wrong, shown)["test_error_rescaled"] == "fails"
