"""What the claim about the bound rests on: rank correlations, and that noise is on training and test labels alike."""

import jax
import numpy as np
from scipy.stats import spearmanr

from steepest.catalogue import load
from steepest.claims.margins.spectral_margin_bound.claim import _ranks


def test_rank_correlation():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20)).round(1)
    assert np.isclose(_ranks(a, b), spearmanr(a, b).statistic)
    assert _ranks(np.r_[np.nan, 1, 2, 3], np.r_[9, 1.0, 2, 3]) == 1.0
    assert _ranks(np.ones(4), np.arange(4.0)) == 0.0


def test_random_labels_cannot_be_predicted():
    """With all labels random the test error is that of guessing, with none it is small."""
    claim = load("spectral-margin-bound")(noise=(0.0, 1.0), seeds=3, steps=200)
    setting = claim.setting(jax.random.key(0))
    found = claim.observe(setting, jax.random.key(1))
    test = found["excess"] + found["train_error"]
    assert test[0, :, -1].max() < 0.3 and test[1, :, -1].min() > 0.8


def test_the_vc_bound():
    claim = load("spectral-margin-bound")(depth=1, width=10, n=100)
    p = 64 * 10 + 10 * 10
    found = claim.predict(claim.setting(jax.random.key(0)))["vc"]
    assert np.isclose(found, np.sqrt(p * 2 * np.log(p) / 100))
