"""The voting bound: its Rademacher average against all sign vectors, margins on coins against duality."""

from itertools import product

import numpy as np
import pytest

from steepest.claims.features.voting_margin_bound.claim import CONFIDENCE, VotingMarginBound
from steepest.claims.features.voting_margin_bound.experiment import (
    CELLS,
    FEATURES,
    THETAS,
    Setting,
    draw_fresh,
    largest_margin,
    stumps,
    toss,
)
from steepest.claims.features.voting_margin_bound.theory import rademacher_constant
from steepest.core.errors import UserError
from steepest.core.experiment import seeded
from steepest.programs import hard_margin

RNG = np.random.default_rng(0)


def test_the_constant_of_one_stump_and_of_two():
    """One stump has E|G| = √(2/π); two of two features at ½ are independent, with the maximum 2/√π."""
    rng = np.random.default_rng(1)
    assert rademacher_constant(1, 2, rng) == pytest.approx((2 / np.pi) ** 0.5, rel=0.02)
    assert rademacher_constant(2, 2, rng) == pytest.approx(2 / np.pi**0.5, rel=0.02)


def test_the_constant_is_that_of_many_examples():
    n = 3000
    votes = stumps(RNG.random((n, FEATURES)))
    tosses = RNG.choice([-1.0, 1.0], (400, n))
    drawn = (np.abs(tosses @ votes).max(1) / n**0.5).mean()
    assert rademacher_constant(FEATURES, CELLS, np.random.default_rng(0)) == pytest.approx(
        drawn, rel=0.05
    )


def test_the_page_s_figures():
    """Rad √n of the title, and the bound of a finite class with the constant one, at the largest θ."""
    assert rademacher_constant(FEATURES, CELLS, np.random.default_rng(0)) == pytest.approx(
        2.46, abs=0.005
    )
    n = np.array([60, 200, 600, 2000])
    classes = 2 * FEATURES * (CELLS - 1)
    confidence = np.sqrt(np.log(len(THETAS) / CONFIDENCE) / (2 * n))
    printed = np.sqrt(np.log(n) * np.log(classes) / n) / THETAS[-1] + confidence
    np.testing.assert_allclose(printed, [2.2, 1.4, 0.87, 0.52], rtol=0.03)


def test_the_luckiest_stump_over_all_signs():
    """Of four examples, by enumeration; its gap is its error on fresh tosses less that on its own."""
    votes = stumps(RNG.random((1, 4, FEATURES)))
    signs = np.array(list(product([-1.0, 1.0], repeat=4)))
    exact = np.abs(signs @ votes[0]).max(1).mean() / 4
    fresh = draw_fresh(RNG, (0.0, 1.0))
    setting = Setting([np.repeat(votes, 40, 0)], [np.ones((40, 2, 4))])
    tossed = toss(setting, fresh, RNG)
    assert tossed["luck"].mean() == pytest.approx(exact, abs=0.02)
    assert tossed["gap"].mean() == pytest.approx(exact / 2, abs=0.02)
    assert tossed["true_luck"].max() == np.abs(votes[0].sum(0)).max() / 4


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


@pytest.mark.parametrize("fields", [{"noises": (0.2, 1.0)}, {"noises": (0.0, 0.5)}])
def test_true_labels_coin_tosses_and_enough_examples(fields):
    claim = VotingMarginBound(seeds=3, **{"sizes": (60, 1500), **fields})
    failed = [one for one in claim.hypotheses(claim.setting(seeded(0)[0])) if not one.holds]
    assert len(failed) == 1
