"""Mean classifiers of all labels and of few."""

import numpy as np
import pytest

from steepest.claims.bayes_and_transfer._contrastive import CLASSES
from steepest.claims.bayes_and_transfer.contrastive_few_labels.claim import ContrastiveFewLabels
from steepest.claims.bayes_and_transfer.contrastive_few_labels.experiment import (
    few_label_accuracy,
    pair_accuracy,
)
from steepest.core.errors import UserError


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


def test_images_that_would_be_held_out_too_are_refused():
    with pytest.raises(UserError, match="at most 74"):
        ContrastiveFewLabels(per_class=150)
