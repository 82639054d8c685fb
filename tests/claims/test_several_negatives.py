"""Losses of several negatives, and what theory says of small representations, against plain sums."""

import jax
import numpy as np
import pytest

from steepest.claims.bayes_and_transfer._contrastive import zipf
from steepest.claims.bayes_and_transfer.contrastive_transfer.theory import leading_slack
from steepest.claims.bayes_and_transfer.several_negatives.claim import (
    SeveralNegatives,
    _covariance_forms,
)
from steepest.claims.bayes_and_transfer.several_negatives.experiment import several_negatives


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


def test_the_leading_slack_of_several_negatives_by_the_expansion_of_their_loss():
    claim = SeveralNegatives(per_class=6, seeds=3)
    setting = claim.setting(jax.random.key(0))
    law = claim.slack(setting, shared=True)[0]
    features = setting.features(claim.middle, claim.scale)[0]
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
    of_one, of_any = _covariance_forms(features)
    assert law[1] == pytest.approx((of_one + of_any) * twice + of_one * cross, rel=1e-5)
    variances = [
        np.var(features[c, i] @ features[d].T)
        for c in range(10)
        for i in range(6)
        for d in range(10)
    ]
    assert of_any == pytest.approx(np.mean(variances))
