"""What the claim about margins rests on: the share of ordered pairs is the area under the ROC curve."""

import numpy as np
from sklearn.metrics import roc_auc_score

from steepest.claims.margins.margin_distribution.claim import _ordered


def test_ordered_pairs_are_the_area_under_the_roc_curve():
    margins = np.random.default_rng(0).normal(size=(2, 2, 3, 20)).round(1)  # with ties
    found = _ordered(margins)
    assert found.shape == (2, 3)
    truth = np.repeat([1, 0], 20)
    expected = roc_auc_score(truth, np.r_[margins[1, 0, 2], margins[1, 1, 2]])
    assert np.isclose(found[1, 2], expected)
