"""Movements of neurons: the theory's pull against a limit by hand, and its extremes against draws."""

import numpy as np
import pytest

from steepest.claim import Observation, Prediction
from steepest.claims.features.even_movement.claim import EvenMovement, Setting, largest
from steepest.core.errors import UserError

RNG = np.random.default_rng(0)


def test_the_expected_largest_is_that_of_draws():
    size = np.abs(RNG.standard_normal(20_000))
    drawn = RNG.choice(size, (4000, 32)).max(1) / np.sqrt(np.mean(size**2))
    (expected,) = largest(size, (64,))
    assert abs(drawn.mean() - expected) < 4 * drawn.std() / 4000**0.5


def test_one_example_is_pulled_until_its_loss_is_the_target():
    """With one example of kernel k the margin is k C, and its loss the target in small steps."""
    claim = EvenMovement(**{**EvenMovement.tiny, "step": 0.02, "target": 0.3})
    (pull,) = claim.pull(np.array([[0.7]]), np.array([-1.0]))
    assert np.isclose(np.log1p(np.exp(0.7 * pull)), 0.3, rtol=0.02)
    assert pull < 0


def test_a_wide_layer_moves_as_the_pull_says():
    """Neuron by neuron, to the order that is left out: 1/√m."""
    claim = EvenMovement(**{**EvenMovement.tiny, "examples": 6, "target": 0.5})
    x = RNG.normal(size=(6, 8))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    setting = Setting(x, RNG.choice([-1.0, 1.0], 6))
    m = 20_000
    w = np.repeat(RNG.standard_normal((m // 2, 8)), 2, axis=0)
    moved = claim.train(setting, w, m**-0.5, both=False)
    cosine = np.clip(x @ x.T, -1, 1)
    pull = claim.pull(cosine * (np.pi - np.arccos(cosine)) / (2 * np.pi), setting.y)
    theory = np.linalg.norm(((w @ x.T > 0) * pull) @ x, axis=1) / m**0.5
    assert np.corrcoef(moved.hidden, theory)[0, 1] > 0.99
    assert np.isclose(moved.hidden.mean(), theory.mean(), rtol=0.03)
    assert np.all(moved.output == 0)


@pytest.mark.parametrize("widths", [(64, 256), (256, 64, 1024)])
def test_widths_that_show_no_growth_in_one_sentence(widths):
    with pytest.raises(UserError, match="three increasing --widths"):
        EvenMovement(widths=widths)


def test_narrower_networks_get_a_wider_margin():
    """What theory leaves out is of order m^(−1/2), from 4096 neurons down."""
    halves = []
    for widths in ((64, 256, 1024), (64, 256, 4096), (64, 256, 16384)):
        claim = EvenMovement(widths=widths)
        ones = np.ones((3, 3))
        names = ("inner", "outer", "movement", "mean_inner", "mean_both")
        observed = Observation(**{name: ("seed width", ones) for name in names})
        predicted = Prediction(inner=("width", ones[0]), outer=("width", ones[0]), movement=-0.5)
        check = next(one for one in claim.judge(predicted, observed) if one.id == "inner")
        halves.append(check.margin.high - 1)
    np.testing.assert_allclose(halves, [0.08, 0.04, 0.04])
