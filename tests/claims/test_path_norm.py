"""What the claim about path norms rests on: two starts with one function, and the measures along training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

from steepest.catalogue import load
from steepest.claims.implicit_bias.path_norm.claim import (
    NORMS,
    RULES,
    norms_of_two_layers,
    rescaled,
)
from steepest.programs import frobenius_norm, path_norm, weight_matrices


@pytest.fixture(scope="module")
def small():
    with jax.enable_x64(True):
        claim = load("path-norm")(
            n=20,
            test=40,
            shape=(6, 5),
            rescaled_steps=40,
            compared=2.2,
            widths=(16, 24, 32),
            lr=0.05,
            steps=600,
            total=0.5,
            seeds=3,
        )
        setting = claim.setting(jax.random.key(0))
        yield claim, setting, claim.observe(setting, jax.random.key(1))


def verdicts(claim, predicted, observed) -> dict[str, str]:
    return {check.id: check.verdict.value for check in claim.checks(predicted, observed)}


def test_the_two_starts_are_one_function_with_one_path_norm(small):
    claim, setting, _ = small
    start = claim.net(*claim.shape).init(jax.random.key(2))
    moved = rescaled(start, setting.factors[0])
    apply = claim.net(*claim.shape).apply
    np.testing.assert_allclose(
        apply(moved, setting.x[0]), apply(start, setting.x[0]), rtol=1e-10, atol=1e-12
    )
    for order in (1, 2):
        assert path_norm(weight_matrices(moved), order) == pytest.approx(
            float(path_norm(weight_matrices(start), order)), rel=1e-12
        )
    assert not np.allclose(moved[0]["w"], start[0]["w"])


def test_norms_of_two_layers_are_those_of_the_library():
    generator = np.random.default_rng(0)
    first = generator.normal(size=(4, 5, 3))
    second = generator.normal(size=(4, 2, 5))
    norms = norms_of_two_layers(first, second)
    for lane, weights in enumerate(zip(first, second, strict=True)):
        l2 = np.sqrt(sum(float(frobenius_norm(w)) ** 2 for w in weights))
        expected = [float(path_norm(weights, 2)), float(path_norm(weights, 1)), l2]
        np.testing.assert_allclose(norms[:, lane], expected, rtol=1e-12)


def test_factors_stay_in_their_range(small):
    claim, setting, _ = small
    assert setting.factors.min() >= 1 / claim.spread and setting.factors.max() <= claim.spread
    assert np.abs(np.log(setting.factors)).max() > 0.5 * np.log(claim.spread)


def test_no_image_is_in_both_sets(small):
    _, setting, _ = small
    far = jnp.abs(setting.x[:, :, None] - setting.test_x[:, None]).max(-1)
    assert float(far.min()) > 0


def test_widths_are_compared_at_the_risk_wanted(small):
    """Descent stops with the first step at which the risk is low enough; a step lowers it by a quarter or so."""
    claim, _, observed = small
    assert (observed["total"] <= claim.total).all() and (
        observed["total"] > 0.7 * claim.total
    ).all()
    assert (observed["error"] == 0).all() and (observed["norms"] > 0).all()


def test_the_law_is_that_of_split_neurons(small):
    """Two copies of each neuron, all weights over √2: π₂ falls by √2; π₁, ‖w‖ and the function stay."""
    claim, setting, _ = small
    below, above = (np.asarray(p["w"])[None] for p in claim.net(6).init(jax.random.key(3)))
    split = [np.concatenate([below, below], 1) / 2**0.5, np.concatenate([above, above], 2) / 2**0.5]
    ratios = (norms_of_two_layers(*split) / norms_of_two_layers(below, above))[:, 0]
    law = claim.predict(setting)["norms"]
    powers = np.log(law[:, 1] / law[:, 0]) / np.log(24 / 16)
    np.testing.assert_allclose(np.log2(ratios), powers, atol=1e-12)


def test_only_gradient_descent_sees_the_balance(small):
    _, _, observed = small
    path_sgd, descent = observed["apart"].max(-1)
    assert path_sgd.max() < 1e-11 and descent.min() > 1e-2
    np.testing.assert_allclose(observed["risk"][0, :, 0], observed["risk"][0, :, 1], rtol=1e-10)


def test_norms_of_split_neurons_hold_and_those_of_drawn_ones_fail(small):
    claim, setting, observed = small
    predicted = claim.predict(setting)
    widths = np.array(claim.widths, float)
    as_norms = lambda norms: observed.replace(
        norms=("norm seed c_w width", np.broadcast_to(norms[:, None, None], (3, 3, 3, 3)))
    )
    split = predicted["norms"]
    ids = ("order_2", "order_1", "l2")
    holds = verdicts(claim, predicted, as_norms(split))
    fails = verdicts(claim, predicted, as_norms(split * widths**0.5))
    assert {holds[id] for id in ids} == {"holds"} and {fails[id] for id in ids} == {"fails"}


def test_the_order_of_starts_and_of_widths_is_the_prediction(small):
    claim, setting, observed = small
    predicted = claim.predict(setting)
    widths = np.array(claim.widths, float)
    powers = np.array([0.0, 0.1, 0.3])[:, None] + 0.01 * np.arange(3)[:, None, None]
    norms = np.broadcast_to(widths**powers, (3, 3, 3, 3))
    test = np.broadcast_to([0.3, 0.2, 0.1], (3, 3, 3)) + 0.01 * np.arange(3)[:, None, None]
    shown = observed.replace(norms=("norm seed c_w width", norms), test=("seed c_w width", test))
    right = verdicts(claim, predicted, shown)
    turned = predicted.replace(growth=("c_w", claim.c_w[::-1]), errors=("end", [0.0, 1.0]))
    wrong = verdicts(claim, turned, shown)
    for id in ("order_2_start", "order_1_start", "l2_start", "test_error"):
        assert (right[id], wrong[id]) == ("holds", "fails")


def test_errors_are_read_at_the_risk_wanted():
    """By hand: between risks 0.4 and 0.1 with errors 0.3 and 0.2, the risk 0.2 is half way in its logarithm."""
    claim = load("path-norm")(compared=0.2)
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


def test_the_changed_worlds_are_what_they_are_called(small):
    claim, _, observed = small
    worlds = {world.id: world.observation for world in claim.changed_worlds(observed)}
    split = worlds["split"]["norms"]
    narrow = observed["norms"][..., 0]
    np.testing.assert_allclose(split[0, :, :, 1], narrow[0] * (24 / 16) ** -0.5)
    np.testing.assert_allclose(split[1:, :, :, 2], narrow[1:])
    assert len(NORMS) == len(split)
