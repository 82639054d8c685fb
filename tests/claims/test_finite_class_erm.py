"""The best of many predictors: the formula against enumeration and draws, parities against a plain search."""

import itertools

import jax
import numpy as np
import pytest
from scipy.stats import norm

from steepest.claims.margins.finite_class_erm.claim import FiniteClassErm
from steepest.claims.margins.finite_class_erm.experiment import (
    Study,
    chosen,
    correlations,
    crossing,
    needed_examples,
    walsh,
)
from steepest.claims.margins.finite_class_erm.theory import chance_right, thresholds
from steepest.core.errors import UserError

RNG = np.random.default_rng(0)


def enumerated(samples, edge, own, longest, penalty):
    """The chance by all outcomes of all coins: (½ + ε)-coin of the right name, fair coins of all others."""
    lengths = [0, *(bits for bits in range(1, longest + 1) for _ in range(2 ** (bits - 1)))]
    right = lengths.index(own)
    chance = 0.0
    for flips in itertools.product(itertools.product((0, 1), repeat=samples), repeat=len(lengths)):
        hits = [sum(coin) for coin in flips]
        costs = [penalty * np.sqrt(bits * np.log(2) / (2 * samples)) for bits in lengths]
        scores = [hit / samples - cost for hit, cost in zip(hits, costs, strict=True)]
        wrong = [score for place, score in enumerate(scores) if place != right]
        weight = 0.5 ** (samples * len(wrong))
        weight *= (0.5 + edge) ** hits[right] * (0.5 - edge) ** (samples - hits[right])
        chance += weight * all(scores[right] > rival + 1e-12 for rival in wrong)
    return chance


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_the_formula_is_that_of_all_outcomes(penalty):
    for samples, length, longest in ((2, 1, 2), (3, 0, 2), (3, 2, 2), (5, 1, 1)):
        exact = chance_right(samples, 0.2, length, longest, penalty)[-1]
        assert exact == pytest.approx(enumerated(samples, 0.2, length, longest, penalty), abs=1e-12)


def test_the_formula_is_that_of_independent_predictors_with_errors_drawn_one_by_one():
    draws = 4000
    wrong = RNG.random((draws, 2**5 - 1, 60)) < 0.5
    right = RNG.random((draws, 60)) < 0.6
    share = (right.sum(1) > wrong.sum(2).max(1)).mean()
    exact = chance_right(60, 0.1, 5, 5)[-1]
    assert abs(share - exact) < 4 * np.sqrt(exact * (1 - exact) / draws)


def test_chances_that_specifications_list():
    """Examples at one half for N = 10, 100, 1000 worthless ones, ε = 0.1, by another sum."""
    for names, examples in ((10, 68), (100, 167), (1000, 271)):
        coin = np.array([1.0])
        good = np.array([1.0])
        for _ in range(examples):
            coin = np.convolve(coin, [0.5, 0.5])
            good = np.convolve(good, [0.4, 0.6])
        below = np.concatenate([[0.0], np.cumsum(coin)[:-1]])
        assert (good * below**names).sum() == pytest.approx(0.5, abs=0.01)


def test_a_further_bit_costs_one_over_the_capacity_of_a_channel():
    """Less than it at eleven bits, and more than that at fewer."""
    edge = 0.2
    entropy = -(0.7 * np.log2(0.7) + 0.3 * np.log2(0.3))
    examples = thresholds(edge, 1, 11)
    costs = np.diff(examples)
    assert (np.diff(costs[3:]) > -0.05).all()
    assert 0.85 < costs[-1] * (1 - entropy) < 1


def test_the_transform_is_a_sum_over_inputs():
    for bits in (1, 3, 6):
        counts = RNG.standard_normal((4, 2**bits)).astype(np.float32)
        sets = np.arange(2**bits)
        signs = (-1.0) ** np.bitwise_count(sets[:, None] & sets)
        assert np.allclose(walsh(counts), counts @ signs, atol=1e-4)


def test_sums_are_those_of_one_parity_after_the_other():
    """The right set's sums have the mean 2εm and all others zero, whatever the set is."""
    study = Study((4,), 1, 1, 0.5, 4)
    secrets = np.full(3000, 0b1010, np.int32)
    sums = correlations(RNG, study, secrets, 50, 0.2)
    expected = np.zeros(16)
    expected[0b1010] = 2 * 0.2 * 50
    assert np.abs(sums.mean(0) - expected).max() < 4 * np.sqrt(50 / 3000)
    assert (np.abs(sums) <= 50).all()
    assert np.allclose(sums % 2, 0)  # 50 examples


def searched(sums, secret, bits, samples, penalty):
    """Whether the right set beats every other of up to so many bits, one by one."""

    def score(name):
        length = len(f"{name:b}") if name else 0
        cost = penalty * np.sqrt(length * np.log(2) / (2 * samples))
        return (samples + sums[name]) / (2 * samples) - cost

    return all(score(secret) > score(name) + 1e-6 for name in range(2**bits) if name != secret)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_the_least_risk_by_a_search_of_all_names(penalty):
    study = Study((2, 4), 1, 1, 0.5, 4)
    secrets = RNG.integers(2, 4, 40).astype(np.int32)
    sums = correlations(RNG, study, secrets, 12, 0.3)
    for row, bits in zip(chosen(sums, secrets, study, 12, penalty), study.lengths, strict=True):
        slow = [searched(*draw, bits, 12, penalty) for draw in zip(sums, secrets, strict=True)]
        assert row.tolist() == slow


def test_names_that_are_copies_count_once():
    lengths = (3, 6)
    every = Study(lengths, 4, 200, 0.5, 6)
    copied = needed_examples(RNG, every._replace(read=3), 0.2, 3, (0.0,))[0].mean(1)
    apart = needed_examples(RNG, every, 0.2, 3, (0.0,))[0].mean(1)
    assert copied[1] == pytest.approx(copied[0])
    assert copied[0] == pytest.approx(apart[0], rel=0.15)
    assert apart[1] > 1.5 * apart[0]


def test_where_shares_cross_a_half():
    samples = np.arange(10, 100, 3)
    assert crossing(samples, norm.cdf(0.7 * (np.sqrt(samples) - 6))) == pytest.approx(36)
    assert np.isnan(crossing(samples, np.ones(len(samples))))


def test_correlated_parities_are_out_of_range_and_names_must_fit():
    claim = FiniteClassErm(**{**FiniteClassErm.tiny, "ones": 0.3})
    assert not all(h.holds for h in claim.hypotheses(None))
    with pytest.raises(UserError, match="choose --bits above"):
        FiniteClassErm(bits=(4, 6), lengths=(5,))


def test_the_judge_refutes_wrong_laws():
    claim = FiniteClassErm(edges=(0.14, 0.2), bits=(4, 6, 8), lengths=(2, 4), seeds=8, draws=20)
    law = claim.predict(None)
    exact = lambda name: ("edge bits seed", law[name][..., None] * (1 + 0.01 * RNG.normal(size=8)))
    charged = ("length bits seed", exact("charged")[1])
    observed = claim.observe(None, jax.random.key(0)).replace(
        threshold=exact("threshold"), charged=charged
    )
    fails = lambda **wrong: {
        check.id
        for check in claim.checks(law.replace(**wrong), observed)
        if check.verdict.value == "fails"
    }
    assert not fails()
    assert fails(threshold=("edge bits", law["threshold"] * 1.15)) == {"threshold"}
    assert fails(price=("edge", law["price"] * 1.3)) == {"price"}
    assert fails(charged=("length bits", law["charged"] * 0.8)) == {"own_name"}
