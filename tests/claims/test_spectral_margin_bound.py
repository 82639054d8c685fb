"""What spectral-margin-bound rests on: how many labels are random, what they do, and orders that are refuted."""

import jax
import numpy as np
import pytest

from steepest import catalogue
from steepest.claims.margins.spectral_margin_bound.claim import vc_bound
from steepest.claims.margins.spectral_margin_bound.experiment import ranked
from steepest.core.words import Verdict
from steepest.kit import seen
from steepest.nn.networks import mlp


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.25, 50), (0.33, 66), (1.0, 200)])
def test_shares_of_random_labels_are_met_exactly_and_lie_in_each_other(share, count):
    places = ranked(np.random.default_rng(0), 200)
    assert (places < share).sum() == count
    assert set(np.flatnonzero(places < share)) <= set(np.flatnonzero(places < share + 0.1))


def test_random_labels_cannot_be_predicted():
    """With all labels random the test error is that of guessing, with none it is small."""
    claim = catalogue.load("spectral-margin-bound")(noise=(0.0, 1.0), seeds=3, steps=200)
    setting = claim.setting(jax.random.key(0))
    observed = claim.observe(setting, jax.random.key(1))
    test = observed["excess"] + observed["train_error"]
    assert test[0, :, -1].max() < 0.3
    assert test[1, :, -1].min() > 0.8


def test_the_vc_bound():
    p = 64 * 10 + 10 * 10
    expected = np.sqrt(p * 2 * np.log(p) / 100)
    assert np.isclose(vc_bound(mlp((64, 10, 10), "relu", bias=False), 100), expected)


@pytest.mark.parametrize(
    ("lipschitz", "margins", "refuted"),
    [
        ((1, 2, 3, 4), (4, 3, 2, 1), set()),
        ((1, 2.2, 2, 4), (4, 3, 2, 1), {"lipschitz"}),
        ((4, 3, 2, 1), (1, 2, 3, 4), {"lipschitz", "margin", "ratio"}),
        ((1, 2, 3, 4), (4, 2.2, 2.4, 1), {"margin"}),
    ],
)
def test_other_orders_are_refuted(lipschitz, margins, refuted):
    claim = catalogue.load("spectral-margin-bound")(noise=(0.0, 0.25, 0.5, 1.0), seeds=4)
    scatter = 1 + 0.01 * np.arange(4)[:, None]
    lay = lambda values: np.array(values, float)[:, None, None] * scatter
    axes = "noise seed record"
    observed = seen(
        lipschitz=(axes, lay(lipschitz)),
        margins=(axes, lay(margins)),
        excess=(axes, lay((1, 2, 3, 4))),
        train_error=(axes, lay((0, 0, 0, 0))),
    )
    law = claim.predict(claim.setting(jax.random.key(0)))
    checks = claim.checks(law, observed)
    assert {check.id for check in checks if check.verdict is Verdict.FAILS} == refuted
