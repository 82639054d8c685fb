"""What the claim about depth rests on: its law, minima by another way, and theories and worlds that do differ."""

import jax
import numpy as np
import pytest
import xarray

from steepest.catalogue import load
from steepest.claims.implicit_bias.depth_quasi_norm.theory import missing_margin, quasi_norm
from steepest.programs import hard_margin, min_norm_interpolation


@pytest.fixture(scope="module")
def small():
    claim = load("depth-quasi-norm")(seeds=3, sets=32, points=2)
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
        return claim, setting, claim.predict(setting)


@pytest.fixture(scope="module")
def followed(small):
    claim, setting, _ = small
    with jax.enable_x64(True):
        return claim.observe(setting, jax.random.key(1))


def test_the_limit_of_the_squared_loss_is_the_linear_program(small):
    _, setting, predicted = small
    for seed, (x, y) in enumerate(zip(setting.x, setting.y, strict=True)):
        expected = min_norm_interpolation(x, y, "l1")
        np.testing.assert_allclose(predicted["l1"][seed], expected.beta, atol=1e-7)


def test_programs_of_all_depths_are_close_to_it_at_the_smallest_scales(small):
    _, _, predicted = small
    gaps = np.linalg.norm(predicted["beta"][:, :, -1] - predicted["l1"], axis=-1)
    assert np.median(gaps / np.linalg.norm(predicted["l1"], axis=-1)) < 1e-3


def test_the_only_minimum_of_two_layers_is_the_linear_program_of_margins(small):
    _, setting, predicted = small
    for draw in range(5):
        program = hard_margin(setting.inputs[draw], setting.labels[draw], "l1")
        size = np.abs(predicted["minima"][0, draw]).sum(-1)
        np.testing.assert_allclose(size, 1 / program.margin, rtol=1e-6)


def test_minima_of_three_layers_are_minima(small):
    """Weights that keep all margins, near a minimum, have no smaller quasi-norm."""
    _, setting, predicted = small
    rng = np.random.default_rng(0)
    for draw in range(5):
        x = setting.inputs[draw]
        y = setting.labels[draw]
        best = predicted["minima"][1, draw, 0]
        near = best + 1e-3 * rng.standard_normal((500, len(best))) * np.abs(best).max()
        near /= (y * (near @ x.T)).min(1)[:, None]
        assert (np.abs(near) ** (2 / 3)).sum(1).min() > (np.abs(best) ** (2 / 3)).sum()


def test_missing_margins_by_hand():
    law = xarray.Dataset(
        {
            "order": ("depth", [0.5]),
            "minima": (("depth", "draw", "start", "feature"), [[[[1.0, 0.0], [0.0, 4.0]]]]),
        }
    )
    weights = xarray.DataArray([[[0.0, 10.0]]], dims=("depth", "draw", "feature"))
    least = xarray.DataArray([[2.0]], dims=("depth", "draw"))
    assert quasi_norm(weights, law.order).item() == pytest.approx(10.0)
    assert missing_margin(law, weights, least).item() == pytest.approx(0.2)
    assert missing_margin(law, weights, -least).item() == 1.0


def test_a_power_tail_passes_exponents_and_fails_what_is_judged(small, followed):
    """The identity that a referee found: exponents of stationarity hold on a loss of which the law is false."""
    claim, _, predicted = small
    names = ("weights", "least", "pull", "off_margin")
    tail = followed.replace(**{name: followed.quantity(f"{name}_tail") for name in names})
    stated = {check.id: check.verdict.value for check in claim.checks(predicted, followed)}
    assert stated["kkt"] == stated["minimum"] == "holds"
    with_tail = {check.id: check.verdict.value for check in claim.checks(predicted, tail)}
    assert with_tail["kkt"] == "fails"
    assert with_tail["minimum"] != "holds"
    assert with_tail["margin_exponent"] != "fails"


def test_a_program_of_another_depth_fails(small, followed):
    claim, _, predicted = small
    turned = predicted.replace(beta=(predicted.quantity("beta").dims, predicted["beta"][[1, 2, 0]]))
    check = {check.id: check for check in claim.checks(turned, followed)}["program_distance"]
    assert check.verdict.value == "fails"
