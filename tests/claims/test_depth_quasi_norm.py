"""What the claim about depth rests on: its law, the exponents of approach, and theories that do differ."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.programs import (
    depth_interpolation,
    hard_margin,
    min_norm_interpolation,
    quasi_norm_margins,
)


@pytest.fixture(scope="module")
def small():
    claim = load("depth-quasi-norm")(
        seeds=3, sets=3, smallest=(1e-3, 0.1, 0.1), horizons=(100.0,) * 3
    )
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
        return claim, setting, claim.predict(setting)


def test_the_limit_is_the_linear_program_at_every_depth(small):
    _, setting, predicted = small
    for seed, (x, y) in enumerate(zip(np.asarray(setting.x), np.asarray(setting.y), strict=True)):
        expected = min_norm_interpolation(x, y, "l1")
        for depth in range(3):
            np.testing.assert_allclose(predicted["limit"][depth, seed], expected.beta, atol=1e-7)
        off = np.abs(x.T @ expected.dual)[np.abs(expected.beta) < 1e-6].max()
        np.testing.assert_allclose(predicted["limit_power"][0, seed], 2 * (1 - off), atol=1e-5)


def test_programs_approach_it_with_the_predicted_exponents(small):
    """By the exact programs at scales that no flow need reach."""
    _, setting, predicted = small
    for i, (depth, scales) in enumerate(((2, (1e-7, 1e-8)), (3, (1e-3, 5e-4)), (4, (2e-2, 1e-2)))):
        for seed, (x, y) in enumerate(
            zip(np.asarray(setting.x), np.asarray(setting.y), strict=True)
        ):
            place = int(predicted["slowest"][seed])
            weight = [abs(depth_interpolation(x, y, depth, a).beta[place]) for a in scales]
            slope = np.log(weight[0] / weight[1]) / np.log(scales[0] / scales[1])
            assert slope == pytest.approx(predicted["limit_power"][i, seed], abs=0.1)


def test_exponents_are_between_the_two_smallest_scales(small):
    """Of the exact programs, whose weights are the potential's derivative at the dual (Woodworth et al. 2020)."""
    claim, setting, predicted = small
    seed = 1
    place = int(predicted["slowest"][seed])
    for i, depth in enumerate((2, 3, 4)):
        weights = [
            np.abs(depth_interpolation(setting.x[seed], setting.y[seed], depth, a).beta[place])
            for a in claim.alphas[i, -2:]
        ]
        slope = np.log(weights[0] / weights[1]) / np.log(claim.alphas[i, -2] / claim.alphas[i, -1])
        assert predicted["power"][i, seed] == pytest.approx(slope, rel=1e-9)
    beta = claim.alphas[:, None, :, None] ** np.array([0.5, 1.5, 2.5])[None, :, None, None]
    beta = np.broadcast_to(beta, (3, 3, claim.points, setting.x.shape[-1]))
    expected = np.tile([0.5, 1.5, 2.5], (3, 1))
    np.testing.assert_allclose(claim.power(beta, predicted["slowest"]), expected, rtol=1e-9)


def test_the_margins_of_depths_differ(small):
    """Two layers have the ℓ1 direction for their only minimum; deeper ones do not have it at all."""
    claim, setting, predicted = small
    for seed, (x, y) in enumerate(
        zip(setting.inputs[: claim.sets], setting.labels[: claim.sets], strict=True)
    ):
        direction = hard_margin(x, y, "l1").direction
        direction = direction / np.linalg.norm(direction)
        gaps = np.linalg.norm(predicted["minima"][:, seed] - direction, axis=-1)
        assert gaps[0].max() < 1e-6 and gaps[1:].min() > 1e-4
        assert len(np.unique(predicted["minima"][1, seed], axis=0)) == len(
            quasi_norm_margins(x, y, 2 / 3)
        )


def test_a_program_of_another_depth_fails(small):
    claim, setting, predicted = small
    with jax.enable_x64(True):
        observed = claim.observe(setting, jax.random.key(1))
    turned = predicted.replace(beta=("depth seed scale unknown", predicted["beta"][[1, 2, 0]]))
    verdicts = [
        [c.verdict.value for c in claim.judge(p, observed) if "program_" in c.id]
        for p in (predicted, turned)
    ]
    assert verdicts[0] == ["holds"] * 3 and "holds" not in verdicts[1]


def test_stationarity_tells_the_order(small):
    """Margins of a minimum of ℓ_{2/3}: its own multipliers have the exponent −1/3, and equal ones have not."""
    claim, setting, predicted = small
    with jax.enable_x64(True):
        observed = claim.observe(setting, jax.random.key(1))
    order = 2 / 3
    weights = observed["weights"].copy()
    pull = observed["pull"].copy()
    for place, minimum in enumerate(predicted["minima"][1, :, 0]):
        weights[1, place] = minimum
        size = np.abs(minimum)
        pull[1, place] = 7.0 * np.where(size > 0, size, 1.0) ** (order - 1)
    made = observed.replace(
        weights=(observed.quantity("weights").dims, weights),
        pull=(observed.quantity("pull").dims, pull),
    )
    check = claim.stationarity(1, predicted, made)
    assert check.measured == pytest.approx(order - 1) and check.verdict.value == "holds"
    swapped = predicted.replace(margin_exponent=("depth", [0.0, -1 / 2, -1 / 3]))
    assert claim.stationarity(1, swapped, made).verdict.value == "fails"
