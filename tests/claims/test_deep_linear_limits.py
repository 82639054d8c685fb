"""The lengths of deep-linear-limits against explicit products and against the digamma functions."""

import jax
import numpy as np
import pytest
import xarray

from steepest import kit
from steepest.claims.signals.deep_linear_limits.claim import DeepLinearLimits
from steepest.kit._laws import completed_rival, labelled

SMALL = DeepLinearLimits(
    widths=(8, 9, 10), alternating=(8, 32), aspect=0.5, deep=16, networks=1000, groups=4
)


def test_alternating_widths_add_their_own_terms():
    """Mean and variance of log(χ²_n/n)/2 of both widths, here from drawn χ² and not from ψ."""
    law = labelled(SMALL, SMALL.predict(None)).isel(network=-1, ratio=-1)
    rng = np.random.default_rng(0)
    shape = (200_000, SMALL.rounds(SMALL.alternating)[-1])
    logs = [np.log(rng.chisquare(n, shape) / n) / 2 for n in SMALL.alternating]
    total = np.sum(logs, axis=(0, 2))
    deviation = float(np.sqrt(law.variance / len(total)))
    assert total.mean() == pytest.approx(float(law["mean"]), abs=4 * deviation)
    assert total.var() == pytest.approx(float(law.variance), rel=0.02)


def test_measured_lengths_agree_and_do_not_follow_a_mean_width():
    predicted = SMALL.predict(None)
    rounds = SMALL.rounds(SMALL.alternating)[-1]
    logs = SMALL.log_lengths(np.random.default_rng(0), SMALL.alternating, rounds)[..., -1].ravel()
    off = lambda mean: abs(logs.mean() - mean) / (logs.std() / len(logs) ** 0.5)
    assert off(predicted["mean"][-1, -1]) < 4
    law: xarray.Dataset = labelled(SMALL, predicted)
    wrong = {rival.id: completed_rival(rival, predicted) for rival in SMALL.rivals(None, law)}
    for name in ("mean_width", "geometric_width"):
        other = wrong[name].prediction["mean"]
        assert off(other[-1, -1]) > 4
        assert (other[:-1] == predicted["mean"][:-1]).all()


def test_one_layer_is_a_root_of_a_chi_square():
    """A round of two widths with the second first: E θ² = 1 after every layer, whatever the fan-in."""
    squares = np.exp(2 * SMALL.log_lengths(np.random.default_rng(1), (8, 32), 1).ravel())
    # a product of two factors of mean one, of variance 2/8 + 2/32 + (2/8)(2/32)
    assert squares.mean() == pytest.approx(1, abs=4 * 0.58 / len(squares) ** 0.5)


def test_one_matrix_in_all_layers_is_its_power():
    """The changed world against an explicit power: from the third power on its variance is that of no product."""
    tied = SMALL.log_lengths(np.random.default_rng(2), (8,), 5, tied=True)
    matrices = np.random.default_rng(2).standard_normal((4000, 8, 8), np.float32) / 8**0.5
    powers = np.linalg.matrix_power(matrices.astype(float), 5)[:, :, 0]
    np.testing.assert_allclose(
        tied[..., -1].ravel(), np.log(np.linalg.norm(powers, axis=1)), atol=1e-4
    )
    law = labelled(SMALL, SMALL.predict(None))
    steps = kit.numpy_generator(jax.random.key(0)), (8,), 5
    free = SMALL.log_lengths(*steps)[..., -1].var()
    assert tied[..., -1].var() > 1.5 * free
    assert free == pytest.approx(5 * float(law.spread[0]) ** 2 / SMALL.shallow, rel=0.1)
