"""The claim's theory of small representations, its blocks and its images against plain sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.bayes_and_transfer._contrastive import images_by_class, zipf
from steepest.claims.bayes_and_transfer.contrastive_transfer.claim import ContrastiveTransfer
from steepest.claims.bayes_and_transfer.contrastive_transfer.experiment import block_slacks
from steepest.claims.bayes_and_transfer.contrastive_transfer.theory import leading_slack, mean_slack
from steepest.core.errors import UserError
from steepest.measurement.quantities import contrastive, pair_weights


@pytest.fixture(scope="module")
def images():
    return images_by_class(np.random.default_rng(0), 6)[0]


def slack(features, shares):
    losses = jax.jit(contrastive)(jnp.asarray(features), jnp.asarray(shares))
    return float((losses.un - losses.collision) / (1 - losses.collision) - losses.supervised)


@pytest.mark.parametrize("skew", [0.0, 1.5])
def test_leading_slack_is_the_slack_of_small_representations(images, skew):
    features = 0.05 * images @ np.random.default_rng(1).standard_normal((64, 3)) / np.sqrt(3)
    shares = zipf(skew)
    assert slack(features, shares) == pytest.approx(leading_slack(features, shares).total, rel=2e-3)


def test_mean_slack_is_the_mean_over_matrices(images):
    rng = np.random.default_rng(2)
    shares = zipf(0.0)
    draws = [
        leading_slack(images @ rng.standard_normal((64, 3)) / np.sqrt(3), shares).total
        for _ in range(300)
    ]
    error = 4 * np.std(draws) / np.sqrt(300)
    assert np.mean(draws) == pytest.approx(mean_slack(images, shares, 3), abs=error)


def test_blocks_of_one_have_the_exact_slack(images):
    features = 0.5 * images @ np.random.default_rng(3).standard_normal((64, 4))
    draws = [
        block_slacks(features, (1,), 20_000, np.random.default_rng(seed))[0] for seed in range(10)
    ]
    error = 4 * np.std(draws, ddof=1) / np.sqrt(10)
    assert np.mean(draws) == pytest.approx(slack(features, zipf(0.0)), abs=error)


def test_images_are_disjoint_and_centred():
    first, second = images_by_class(np.random.default_rng(4), 20, 30)
    assert first.shape == (10, 20, 64)
    pool = np.concatenate([first, second], 1).reshape(-1, 64)
    assert len(np.unique(pool, axis=0)) == 500
    assert pair_weights(zipf(0.0)).collision == pytest.approx(0.1)
    assert pair_weights(zipf(1.0)).different.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("fields", "words"), [({"per_class": 175}, "at most 174"), ({"blocks": (1,)}, "two sizes")]
)
def test_settings_that_cannot_run_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        ContrastiveTransfer(**fields)
