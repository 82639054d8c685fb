"""The voting bound: its Rademacher average against all sign vectors, margins on coins against duality."""

from itertools import product

import numpy as np
import pytest

from steepest.claim import seeded
from steepest.claims.features.voting_margin_bound.claim import (
    FEATURES,
    VotingMarginBound,
    largest_margin,
    rademacher,
    stumps,
)
from steepest.core.errors import UserError
from steepest.programs import hard_margin

RNG = np.random.default_rng(0)


def test_the_rademacher_average_is_that_over_all_signs():
    n = 4
    signs = np.array(list(product([-1.0, 1.0], repeat=n)))
    exact = [
        np.abs(signs @ stumps(RNG.random((n, FEATURES)))).max(1).mean() / n for _ in range(300)
    ]
    drawn = np.mean([rademacher(n, np.random.default_rng(i)) for i in range(10)])
    assert abs(drawn - np.mean(exact)) < 0.01


def test_no_vote_on_coins_has_a_larger_margin_than_the_best_stumps_correlation():
    """Uniform weights are one choice of the dual player."""
    votes = stumps(RNG.random((25, FEATURES)))
    for _ in range(5):
        y = RNG.choice([-1.0, 1.0], 25)
        best = np.abs(y @ votes).max() / 25
        assert 0 < hard_margin(votes, y, "l1").margin <= best + 1e-9
        assert largest_margin(votes, y) == hard_margin(votes, y, "l1").margin


def test_no_vote_is_right_on_an_example_with_both_labels():
    assert largest_margin(np.ones((2, 3)), np.array([1.0, -1.0])) == 0


def test_stumps_vote_by_their_thresholds():
    votes = stumps(np.array([[0.5] * FEATURES]))
    assert votes.shape == (1, FEATURES * 15)
    assert votes.sum() == FEATURES * (7 - 8)  # 0.5 > k/16 for k = 1 … 7


def test_fields_in_one_sentence():
    with pytest.raises(UserError, match="--sizes are increasing"):
        VotingMarginBound(sizes=(200, 60))
    with pytest.raises(UserError, match="two --sizes"):
        VotingMarginBound(sizes=(100,))
    with pytest.raises(UserError, match="comes before the last"):
        VotingMarginBound(rounds=20, first=20)


@pytest.mark.parametrize(
    "fields", [{"sizes": (60, 600)}, {"noises": (0.2, 1.0)}, {"noises": (0.0, 0.5)}]
)
def test_true_labels_coin_tosses_and_enough_examples(fields):
    claim = VotingMarginBound(seeds=3, **{"sizes": (60, 1500), **fields})
    failed = [one for one in claim.hypotheses(claim.setting(seeded(0)[0])) if not one.holds]
    assert len(failed) == 1
