"""The claim's theory of small representations, its blocks and its classifiers against plain sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.bayes_and_transfer.contrastive_transfer.claim import ContrastiveTransfer
from steepest.claims.bayes_and_transfer.contrastive_transfer.experiment import (
    CLASSES,
    block_slacks,
    covariance_forms,
    few_label_accuracy,
    images_by_class,
    leading_slack,
    mean_slack,
    pair_accuracy,
    several_negatives,
    zipf,
)
from steepest.core.errors import UserError
from steepest.measurement.quantities import SPREAD_CONSTANT, contrastive, pair_weights


@pytest.fixture(scope="module")
def images():
    return images_by_class(np.random.default_rng(0), 6, 10)[0]


def slack(features, shares):
    losses = jax.jit(contrastive)(jnp.asarray(features), jnp.asarray(shares))
    return float((losses.un - losses.collision) / (1 - losses.collision) - losses.supervised)


@pytest.mark.parametrize("skew", [0.0, 1.5])
def test_leading_slack_is_the_slack_of_small_representations(images, skew):
    features = 0.05 * images @ np.random.default_rng(1).standard_normal((64, 3)) / np.sqrt(3)
    shares = zipf(skew)
    assert slack(features, shares) == pytest.approx(leading_slack(features, shares).total, rel=2e-3)


def test_the_loss_of_all_negatives_has_two_parts_and_collisions_cost_a_bit(images):
    features = images @ np.random.default_rng(6).standard_normal((64, 3))
    losses = jax.jit(contrastive)(jnp.asarray(features), jnp.asarray(zipf(1.0)))
    tau = (zipf(1.0) ** 2).sum()
    both = tau * losses.same + (1 - tau) * losses.different
    assert float(both) == pytest.approx(float(losses.un), rel=1e-12)
    assert losses.same > 1  # Jensen's inequality, as x⁺ and x⁻ are alike


def test_the_constant_of_spread_is_sharp_for_uniform_features():
    # n points evenly spaced in place of a uniform law, far out
    n = 20
    line = 100 * jnp.linspace(-1, 1, n)[None, :, None]
    losses = jax.jit(contrastive)(jnp.tile(line, (2, 1, 1)))
    share = float((losses.same - 1) / losses.spread)
    assert share == pytest.approx(SPREAD_CONSTANT * np.sqrt(1 - 1 / n**2), rel=0.005)


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


def test_the_losses_of_two_negatives_are_those_of_all_tuples():
    rng = np.random.default_rng(7)
    features = rng.standard_normal((2, 3, 2))
    rows = features.reshape(6, 2)
    means = features.mean(1)
    estimates = several_negatives(features, (1, 2), 400_000, rng)
    slack = []
    without = []
    for image, positive, first, second in np.ndindex(6, 3, 6, 6):
        label = image // 3
        bits = lambda *points, image=image, top: np.log2(
            1 + sum(np.exp(-rows[image] @ (top - point)) for point in points)
        )
        of_means = bits(means[first // 3], means[second // 3], top=means[label])
        slack.append(bits(rows[first], rows[second], top=rows[3 * label + positive]) - of_means)
        # with two classes all negatives of others are of the other class
        of_other_classes = (
            rows[(first + 3 * (first // 3 == label)) % 6],
            rows[(second + 3 * (second // 3 == label)) % 6],
        )
        without.append(bits(*of_other_classes, top=rows[3 * label + positive]) - of_means)
    assert estimates.left[1] == pytest.approx(np.mean(slack), abs=0.01)
    assert estimates.slack[1] == pytest.approx(np.mean(slack), abs=0.01)
    assert estimates.without_own[1] == pytest.approx(np.mean(without), abs=0.01)


def test_the_leading_slack_of_several_negatives_by_the_expansion_of_their_loss(images):
    claim = ContrastiveTransfer(per_class=6, seeds=3)
    setting = claim.setting(jax.random.key(0))
    law = claim.several_slack(setting, shared=True)[0]
    features = claim.small_features(setting)[0]
    # one negative: the slack of a pair, less what is divided by 1 − τ
    assert law[0] == pytest.approx(leading_slack(features, zipf(0.0)).total * (1 - 0.1), rel=1e-9)
    # 2: second derivatives of the loss by differences, and variances by sums over images
    bits = lambda v: np.log2(1 + np.exp(-v).sum())
    step = 1e-3
    corners = [(i, j) for i in (1, -1) for j in (1, -1)]
    cross = sum(i * j * bits(step * np.array([i, j])) for i, j in corners) / (4 * step**2)
    twice = (
        bits(np.array([step, 0])) - 2 * bits(np.zeros(2)) + bits(np.array([-step, 0]))
    ) / step**2
    of_one, of_any = covariance_forms(features)
    assert law[1] == pytest.approx((of_one + of_any) * twice + of_one * cross, rel=1e-5)
    variances = [
        np.var(features[c, i] @ features[d].T)
        for c in range(10)
        for i in range(6)
        for d in range(10)
    ]
    assert of_any == pytest.approx(np.mean(variances))


def test_images_are_disjoint_and_centred():
    first, second = images_by_class(np.random.default_rng(4), 20, 30)
    assert first.shape == (10, 20, 64)
    pool = np.concatenate([first, second], 1).reshape(-1, 64)
    assert len(np.unique(pool, axis=0)) == 500
    assert pair_weights(zipf(0.0)).collision == pytest.approx(0.1)
    assert pair_weights(zipf(1.0)).different.sum() == pytest.approx(1)


def test_accuracy_counts_pairs():
    rng = np.random.default_rng(5)
    images = rng.standard_normal((CLASSES, 7, 5)) + 2 * rng.standard_normal((CLASSES, 1, 5))
    weights = rng.standard_normal((5, 2))
    means = (images @ weights).mean(1)
    right = [
        (images[c] @ weights @ (means[c] - means[d]))
        > (means[c] @ means[c] - means[d] @ means[d]) / 2
        for c in range(CLASSES)
        for d in range(CLASSES)
        if c != d
    ]
    assert pair_accuracy(images, weights, means) == pytest.approx(np.mean(right))
    whole = few_label_accuracy(images, weights, 7, 2, rng)
    assert whole == pytest.approx(np.mean(right))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"per_class": 150}, "at most 74 images"),
        ({"blocks": (1,)}, "two sizes"),
    ],
)
def test_settings_that_cannot_run_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        ContrastiveTransfer(**fields)
