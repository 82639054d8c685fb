"""The lengths of deep-linear-limits against explicit products and against the digamma functions."""

import jax
import numpy as np
import pytest

from steepest.claims.signals.deep_linear_limits.claim import DeepLinearLimits

SMALL = DeepLinearLimits(alternating=(8, 32), aspect=0.5, networks=1000, groups=4)


def test_alternating_widths_add_their_own_terms():
    """Mean and variance of log(χ²_n/n)/2 of both widths, here from drawn χ² and not from ψ."""
    predicted = SMALL.predict(None)
    rng = np.random.default_rng(0)
    logs = [np.log(rng.chisquare(n, (200_000, SMALL.pairs)) / n) / 2 for n in SMALL.alternating]
    total = np.sum(logs, axis=(0, 2))
    deviation = float(np.sqrt(predicted["alternating_variance"] / len(total)))
    assert total.mean() == pytest.approx(float(predicted["alternating_mean"]), abs=4 * deviation)
    assert total.var() == pytest.approx(float(predicted["alternating_variance"]), rel=0.02)


def test_measured_lengths_agree_and_do_not_follow_a_mean_width():
    predicted = SMALL.predict(None)
    logs = SMALL.alternating_logs(jax.random.key(0)).ravel()
    z = (logs.mean() - float(predicted["alternating_mean"])) / (logs.std() / len(logs) ** 0.5)
    assert abs(z) < 4
    rivals = {rival.id: rival.prediction for rival in SMALL.rivals(None, predicted)}
    for name in ("mean_width", "geometric_width"):
        other = float(rivals[name]["alternating_mean"])
        assert abs(logs.mean() - other) / (logs.std() / len(logs) ** 0.5) > 4


def test_one_layer_is_a_root_of_a_chi_square():
    """A round of two widths with the second first: E θ² = 1 after every layer, whatever the fan-in."""
    logs = np.asarray(SMALL.lengths(jax.random.key(1), (8, 32), 1), float).ravel()
    squares = np.exp(2 * logs)
    # a product of two factors of mean one, of variance 2/8 + 2/32 + (2/8)(2/32)
    assert squares.mean() == pytest.approx(1, abs=4 * 0.58 / len(squares) ** 0.5)
