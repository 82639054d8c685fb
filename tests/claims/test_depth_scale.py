"""What depth-scale measures at infinite width, and what it says of networks that forget by another law."""

import jax
import numpy as np
import pytest

from steepest import catalogue
from steepest.claims.signals.depth_scale.experiment import GROUPS, fitted_scale, shares_left
from steepest.core.words import Verdict
from steepest.kit import judge_laws, seen

LAYERS = 17


def falling(fall, scatter=0.01):
    """Return groups of pairs of which the first correlation is what is left at each layer, and the second zero."""
    noise = 1 + scatter * np.linspace(-1, 1, GROUPS)[:, None] * np.arange(LAYERS) / LAYERS
    difference = fall * noise
    return np.stack([difference, 0 * difference], -1)


@pytest.mark.parametrize("scale", [2.3, 7.0])
def test_fit_and_shares_return_an_exponential(scale):
    difference = falling(np.exp(-np.arange(LAYERS) / scale))[..., 0]
    assert fitted_scale(difference, 0.15).mean() == pytest.approx(scale, rel=1e-3)
    left = shares_left(difference, (1, 3)).mean(0)
    np.testing.assert_allclose(left, np.exp([-1 / scale, -3 / scale]), rtol=1e-3)


@pytest.mark.parametrize(
    ("fall", "refuted"),
    [
        (lambda layer, scale: np.exp(-layer / scale), set()),
        (lambda layer, scale: np.exp(-layer / (1.07 * scale)), {"ordered", "remaining"}),
        (lambda layer, scale: np.exp(-layer / (1.25 * scale)), {"ordered", "chaotic", "remaining"}),
        (lambda layer, scale: 1 / (1 + layer / scale), {"ordered", "chaotic", "remaining"}),
    ],
)
def test_networks_that_forget_by_another_law_are_told(fall, refuted):
    claim = catalogue.load("depth-scale")()
    setting = claim.setting(jax.random.key(0))
    layers = np.arange(LAYERS)
    scales = [scales.xi_correlation for scales in setting.scales]
    correlation = np.stack([falling(fall(layers, scale)) for scale in scales])
    observed = seen(correlation=("point group depth pair", correlation))
    judged = judge_laws(claim, claim.predict(setting), observed, ())
    assert {check.id for check in judged.checks if check.verdict is Verdict.FAILS} == refuted
