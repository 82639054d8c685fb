"""What the claim about convolutions rests on: minima are stationary, wrong orders and losses are refuted."""

import jax
import numpy as np
import pytest
import xarray

from steepest.catalogue import load
from steepest.claims.implicit_bias._stationarity import kkt_residual
from steepest.programs import fourier_margin, hard_margin


@pytest.fixture(scope="module")
def followed():
    claim = load("linear-convolution")(sets=40)
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(2))
        return claim, claim.predict(setting), claim.observe(setting, jax.random.key(3))


def verdicts(claim, predicted, observed):
    return {check.id: check.verdict.value for check in claim.checks(predicted, observed)}


@pytest.mark.parametrize("seed", range(3))
def test_solutions_of_programs_are_stationary_in_their_own_norm_only(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(5, 8))
    y = np.where(rng.random(5) < 0.5, -1.0, 1.0)
    two = fourier_margin(x, y)
    plain = hard_margin(x, y)
    orders = xarray.DataArray([1.0, 2.0 - 1e-9], dims="layers")
    residuals = [_residual(orders, program, x, y) for program in (two, plain)]
    assert residuals[0][0] < 1e-3 < 0.05 < residuals[0][1]
    assert residuals[1][1] < 1e-3 < 0.05 < residuals[1][0]


def _residual(orders, program, x, y):
    """Return residuals of a solution with its multipliers, which are on the margin, under each order."""
    transform = lambda w: xarray.DataArray(np.fft.fft(w, norm="ortho"), dims="frequency")
    weights = transform(program.direction)
    weights = weights.where(abs(weights) > 1e-6, 0.0)  # what the solver left off the support
    pull = transform((program.dual * y) @ x)
    return kkt_residual(orders, weights, pull, xarray.DataArray(0.0), "frequency").values


def test_only_the_law_holds(followed):
    claim, predicted, observed = followed
    assert set(verdicts(claim, predicted, observed).values()) == {"holds"}
    for orders in ([1.0, 1.0], [2 / 3, 1 / 2], [2 / 3, 1.0]):
        wrong = predicted.replace(order=("depth", np.array(orders)))
        assert "fails" in verdicts(claim, wrong, observed).values()
    larger = predicted.replace(margin=("draw", 1.1 * predicted["margin"]))
    assert verdicts(claim, larger, observed)["margin"] == "fails"


def test_a_power_tail_passes_exponents_and_fails_what_is_judged(followed):
    """Exponents of stationarity hold on a loss of which the law is false: they are an identity."""
    claim, predicted, observed = followed
    names = ("weights", "least", "pull", "off_margin")
    tail = observed.replace(**{name: observed.quantity(f"{name}_tail") for name in names})
    found = verdicts(claim, predicted, tail)
    assert found["kkt"] == found["margin"] == "fails"
    assert found["spectral_exponent"] != "fails"


def test_labels_that_are_flipped_are_out_of_range():
    claim = load("linear-convolution")(n=60, flipped=0.3, sets=3)
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
    assert not all(hypothesis.holds for hypothesis in claim.hypotheses(setting))
