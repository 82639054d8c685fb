"""The judge: one rule, four kinds of check, rivals, and a battery of wrong theories that it must see through."""

import json
import math

import numpy as np
import pytest
from hypothesis import assume as given_that
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steepest.core.checks import (
    Check,
    Control,
    Rejection,
    Rival,
    agreement,
    bound,
    challenge,
    conclude,
    decide,
    equal,
    exponent,
    idle,
    order,
    reject,
)
from steepest.core.hypotheses import Hypothesis, assume
from steepest.core.intervals import Interval, fit_exponent, mean_interval
from steepest.core.words import Verdict

HOLDS = Verdict.HOLDS
FAILS = Verdict.FAILS
INCONCLUSIVE = Verdict.INCONCLUSIVE
OUT_OF_RANGE = Verdict.OUT_OF_RANGE
NOT_FINITE = (math.nan, math.inf, -math.inf)
REPETITIONS = 200
numbers = st.floats(-1e6, 1e6)


def check(id="c", verdict=HOLDS):
    return Check(id, f"check {id}", "equal", 0.0, 0.0, Interval(0, 0), Interval(0, 0), verdict)


def z_of_coverage(covered, level=0.95):
    """How many standard deviations the number of covering intervals lies from its binomial mean."""
    covered = np.asarray(covered)
    return (covered.sum() - level * covered.size) / math.sqrt(covered.size * level * (1 - level))


# ---------------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.9, 1.1), HOLDS),
        ((0.8, 1.2), HOLDS),  # closed: the ends belong to the margin
        ((0.7, 1.0), INCONCLUSIVE),
        ((1.2, 1.3), INCONCLUSIVE),
        ((0.0, 9.0), INCONCLUSIVE),
        ((1.3, 1.4), FAILS),
        ((-5.0, 0.7), FAILS),
        ((-math.inf, math.inf), INCONCLUSIVE),
        ((math.nan, 1.0), FAILS),
        ((1.0, math.nan), FAILS),
    ],
)
def test_one_rule_decides(interval, verdict):
    assert decide(Interval(*interval), Interval(0.8, 1.2)) is verdict


@given(numbers, numbers, numbers, numbers)
@settings(max_examples=60, deadline=None)
def test_the_rule_says_what_sampling_the_interval_says(a, b, c, d):
    """HOLDS: no point of the interval outside; FAILS: none inside; points of both kinds: INCONCLUSIVE."""
    interval = Interval(min(a, b), max(a, b))
    margin = Interval(min(c, d), max(c, d))
    candidates = {interval.low, interval.high, margin.low, margin.high}
    just_outside = {np.nextafter(margin.low, -np.inf), np.nextafter(margin.high, np.inf)}
    points = [p for p in candidates | just_outside if interval.low <= p <= interval.high]
    inside = [margin.low <= p <= margin.high for p in points]
    expected = HOLDS if all(inside) else INCONCLUSIVE if any(inside) else FAILS
    assert decide(interval, margin) is expected


@given(numbers, st.floats(0, 10), st.floats(0, 10), st.floats(0, 10))
@settings(max_examples=40, deadline=None)
def test_a_tighter_interval_keeps_a_decided_verdict(centre, half, margin_half, shrink):
    wide = Interval(centre - half, centre + half)
    narrow = Interval(centre - half / (1 + shrink), centre + half / (1 + shrink))
    margin = Interval(-margin_half, margin_half)
    verdict = decide(wide, margin)
    given_that(verdict is not INCONCLUSIVE)
    assert decide(narrow, margin) is verdict


def test_inside_and_disjoint():
    assert Interval(1, 2).inside(Interval(1, 2))
    assert not Interval(1, 2).inside(Interval(1.5, 3))
    assert Interval(1, 2).disjoint(Interval(2.1, 3))
    assert not Interval(1, 2).disjoint(Interval(2, 3))


# ---------------------------------------------------------------------------------- Student's interval


@given(st.integers(2, 30), st.integers(0, 1000), st.floats(0.5, 0.999))
@settings(max_examples=30, deadline=None)
def test_the_interval_is_students(n, seed, level):
    values = np.random.default_rng(seed).normal(3.0, 2.0, n)
    low, high = stats.t.interval(level, n - 1, loc=values.mean(), scale=stats.sem(values))
    found = mean_interval(values, level)
    np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-10, atol=1e-12)
    assert f"{n} seeds" in found.how


@pytest.mark.parametrize("seeds", [2, 5, 20])
def test_the_interval_covers_the_mean_as_often_as_it_says(seeds):
    samples = np.random.default_rng(seeds).normal(1.0, 0.3, (REPETITIONS, seeds))
    found = [mean_interval(row) for row in samples]
    assert abs(z_of_coverage([i.low <= 1.0 <= i.high for i in found])) <= 4


@pytest.mark.parametrize("samples", [[1.0], [], np.ones((2, 2)), 3.0])
def test_an_interval_needs_a_vector_of_samples(samples):
    with pytest.raises(ValueError, match="at least two samples"):
        mean_interval(samples)


def test_a_single_seed_is_refused_by_every_check():
    with pytest.raises(ValueError, match="use more seeds"):
        equal("q", 1.0, [1.0], 0.1)
    with pytest.raises(ValueError, match="use more seeds"):
        bound("q", [1.0], at_most=2.0)
    with pytest.raises(ValueError, match="use more seeds"):
        exponent("q", 1.0, [1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]], 0.1)
    with pytest.raises(ValueError, match="use more seeds"):
        order("q", ["a", "b"], {"a": [1.0], "b": [2.0]})


# ------------------------------------------------------------------------------------------------ equal


def test_a_number_is_deterministic():
    found = equal("q", 2.0, 2.1, 0.1)
    assert found.verdict is HOLDS
    assert (found.interval.low, found.interval.high, found.interval.how) == (
        2.1,
        2.1,
        "deterministic",
    )
    assert (found.kind, found.predicted, found.measured, found.note) == ("equal", 2.0, 2.1, "")
    assert equal("q", 2.0, 2.3, 0.1).verdict is FAILS


def test_the_margin_is_relative_or_absolute():
    margin = lambda *a, **k: equal("q", *a, **k).margin
    assert margin(4.0, 4.0, 0.25) == Interval(3.0, 5.0)
    assert margin(4.0, 4.0, (0.5, 2.0)) == Interval(2.0, 8.0)
    assert margin(4.0, 4.0, 0.25, absolute=True) == Interval(3.75, 4.25)
    assert margin(4.0, 4.0, (-1.0, 2.0), absolute=True) == Interval(3.0, 6.0)
    assert margin(0.0, 0.0, 0.1, absolute=True) == Interval(-0.1, 0.1)


@pytest.mark.parametrize("within", [0.25, (0.75, 1.25)])
def test_a_negative_prediction_keeps_its_margin_in_order(within):
    found = equal("q", -4.0, [-4.1, -3.9, -4.0], within)
    assert found.margin == Interval(-5.0, -3.0)
    assert found.verdict is HOLDS
    assert equal("q", -4.0, 4.0, within).verdict is FAILS


@given(st.floats(0.1, 100), st.floats(0.01, 0.9), st.integers(0, 500))
@settings(max_examples=30, deadline=None)
def test_the_verdict_is_odd_in_the_sign(target, within, seed):
    samples = target * np.random.default_rng(seed).normal(1.0, 0.3, 6)
    assert (
        equal("q", target, samples, within).verdict is equal("q", -target, -samples, within).verdict
    )


def test_a_vector_of_predictions_is_compared_seed_by_seed():
    predicted = np.array([1.0, 10.0, -100.0])
    found = equal("q", predicted, 1.01 * predicted, 0.05)
    assert found.predicted == 1.0
    assert found.measured == pytest.approx(1.01, rel=1e-12)
    assert found.verdict is HOLDS
    shuffled = equal("q", predicted, 1.01 * predicted[::-1], 0.05)
    assert shuffled.verdict is not HOLDS


def test_every_seed_must_agree_where_each_is_asked():
    samples = [1.0] * 30 + [1.2]
    assert equal("q", 1.0, samples, 0.1).verdict is HOLDS
    found = equal("q", 1.0, samples, 0.1, aggregate="all")
    assert found.verdict is INCONCLUSIVE
    assert (found.interval.low, found.interval.high) == (1.0, 1.2)
    assert found.measured == pytest.approx(np.mean(samples))
    assert "31 seeds" in found.interval.how
    assert equal("q", 1.0, [2.0, 3.0], 0.1, aggregate="all").verdict is FAILS


@pytest.mark.parametrize("bad", NOT_FINITE)
def test_diverged_seeds_fail_and_say_so(bad):
    checks = [
        equal("q", 1.0, [1.0, bad, 1.0], 0.5, note="mine"),
        equal("q", 1.0, [1.0, bad, 1.0], 0.5, aggregate="all", note="mine"),
        equal("q", np.ones(3), [1.0, bad, 1.0], 0.5, note="mine"),
        bound("q", [1.0, bad, 1.0], at_most=math.inf, note="mine"),
        bound("q", [1.0, bad, 1.0], at_least=-math.inf, note="mine"),
    ]
    for found in checks:
        assert found.verdict is FAILS
        assert found.note == "mine; not finite in 1 of 3 seeds"
        assert math.isnan(found.measured)
    alone = equal("q", 1.0, bad, 0.5)
    assert alone.verdict is FAILS
    assert alone.note == "not finite"


# ------------------------------------------------------------------------------------------------ bound


def test_bounds_are_one_sided():
    assert bound("q", 1.0, at_most=1.0).verdict is HOLDS
    assert bound("q", -1e300, at_most=1.0).verdict is HOLDS
    assert bound("q", 1.1, at_most=1.0).verdict is FAILS
    assert bound("q", 1.0, at_least=1.0).verdict is HOLDS
    assert bound("q", 0.9, at_least=1.0).verdict is FAILS
    assert bound("q", [0.5, 1.5], at_least=1.0).verdict is INCONCLUSIVE
    assert bound("q", [0.5, 1.5], at_least=0.4, aggregate="all").verdict is HOLDS
    assert bound("q", 1.0, at_least=0.5).predicted == 0.5


@pytest.mark.parametrize("limits", [{}, {"at_most": 1.0, "at_least": 0.0}])
def test_a_bound_has_exactly_one_side(limits):
    with pytest.raises(ValueError, match="exactly one"):
        bound("q", 1.0, **limits)


# --------------------------------------------------------------------------------------------- exponent


@given(st.floats(-3, 3), st.floats(0.1, 10), st.integers(3, 12))
@settings(max_examples=30, deadline=None)
def test_a_pure_power_law_gives_its_exponent(p, factor, points):
    x = np.geomspace(1.0, 50.0, points)
    slope, interval = fit_exponent(x, factor * x**p)
    assert slope == pytest.approx(p, abs=1e-10)
    assert interval.low - 1e-10 <= p <= interval.high + 1e-10
    assert (
        interval.high - interval.low < 1e-5
    )  # residuals are known to √ε, and t is 12.7 at one degree of freedom
    assert exponent("q", p, x, factor * x**p, 1e-3).verdict is HOLDS


def test_the_fit_is_least_squares_with_the_classical_standard_error():
    rng = np.random.default_rng(0)
    x = np.geomspace(1, 100, 8)
    y = 2 * x**1.5 * np.exp(0.1 * rng.normal(size=8))
    coefficients, covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    slope, interval = fit_exponent(x, y)
    half = stats.t.ppf(0.975, 6) * math.sqrt(covariance[0, 0])
    assert slope == pytest.approx(coefficients[0], rel=1e-10)
    np.testing.assert_allclose(
        [interval.low, interval.high], [slope - half, slope + half], rtol=1e-10
    )


@pytest.mark.parametrize("points", [0, 1, 2])
def test_fewer_than_three_points_speak_for_no_exponent_and_against_none(points):
    ones = np.arange(1.0, points + 1)
    check = exponent("q", 1.0, ones, ones, 0.1)
    assert check.verdict is INCONCLUSIVE
    assert f"{points} points" in check.interval.how
    assert Check.from_json(check.to_json()).interval == check.interval


def test_the_intervals_of_exponents_cover_as_often_as_they_say():
    rng = np.random.default_rng(7)
    x = np.geomspace(10, 1000, 6)
    y = 3 * x**-0.5 * np.exp(0.2 * rng.normal(size=(REPETITIONS, 5, x.size)))
    of_fit = [fit_exponent(x, rows[0])[1] for rows in y]
    over_seeds = [exponent("q", -0.5, x, rows, 1.0).interval for rows in y]
    for found in (of_fit, over_seeds):
        assert abs(z_of_coverage([i.low <= -0.5 <= i.high for i in found])) <= 4


def test_an_exponent_over_seeds_is_the_mean_of_their_slopes():
    x = np.array([1.0, 2.0, 4.0])
    y = np.stack([x**1.0, x**1.2])
    found = exponent("q", 1.0, x, y, 0.5)
    assert found.measured == pytest.approx(1.1, rel=1e-12)
    each = exponent("q", 1.0, x, y, 0.15, aggregate="all")
    assert each.verdict is INCONCLUSIVE
    np.testing.assert_allclose([each.interval.low, each.interval.high], [1.0, 1.2], rtol=1e-12)
    own = exponent(
        "q", 1.0, np.stack([x, 3 * x]), np.stack([x, (3 * x) ** 1.2]), 0.5
    )  # abscissae of their own
    assert own.measured == pytest.approx(1.1, rel=1e-12)


@pytest.mark.parametrize("points", [0, 1, 2])
def test_an_exponent_needs_three_points(points):
    x = np.arange(1.0, points + 1)
    with pytest.raises(ValueError, match="at least three pairs"):
        fit_exponent(x, x)


def test_an_exponent_needs_pairs():
    with pytest.raises(ValueError, match="at least three pairs"):
        fit_exponent([1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("bad", [0.0, -1.0, *NOT_FINITE])
def test_what_is_no_power_law_fails_with_a_note(bad):
    x = np.array([1.0, 2.0, 3.0])
    for points in ((x, [1.0, bad, 3.0]), ([1.0, bad, 3.0], x)):
        slope, interval = fit_exponent(*points)
        assert math.isnan(slope)
        assert "not positive and finite" in interval.how
        found = exponent("q", 1.0, *points, 100.0)
        assert found.verdict is FAILS
        assert "not positive and finite" in found.note
    seeds = exponent("q", 1.0, x, [[1.0, 2.0, 3.0], [1.0, bad, 3.0]], 100.0)
    assert seeds.verdict is FAILS
    assert seeds.note == "not finite in 1 of 2 seeds"


def test_large_numbers_are_finite_numbers():
    x = np.array([1e200, 1e220, 1e240])
    assert fit_exponent(x, x)[0] == pytest.approx(1.0, rel=1e-10)


# ------------------------------------------------------------------------------------------------ order


def test_an_order_is_judged_by_its_worst_gap():
    values = {"a": [1.0, 1.1], "b": [2.0, 2.1], "c": [2.5, 2.6]}
    found = order("q", ["a", "b", "c"], values)
    assert found.verdict is HOLDS
    assert found.measured == pytest.approx(0.5, rel=1e-12)
    assert found.note == "smallest gap of a < b < c"
    assert order("q", ["b", "a", "c"], values).verdict is FAILS
    assert order("q", ["a", "c", "b"], values).verdict is FAILS


def test_an_order_is_paired_by_seed():
    """Seeds that differ by much more than the quantities do not hide the order."""
    base = np.array([0.0, 10.0, 100.0, 1000.0])
    gap = np.array([0.9, 1.0, 1.1, 1.0])
    assert order("q", ["a", "b"], {"a": base, "b": base + gap}).verdict is HOLDS


def test_an_order_of_numbers_is_strict():
    assert order("q", ["a", "b"], {"a": 1.0, "b": 1.0 + 1e-9}).verdict is HOLDS
    assert order("q", ["a", "b"], {"a": 1.0, "b": 1.0}).verdict is FAILS
    assert order("q", ["a", "b"], {"a": [1.0, 1.2], "b": [1.1, 1.1]}).verdict is INCONCLUSIVE


@pytest.mark.parametrize("place", ["a", "b", "c"])
@pytest.mark.parametrize("bad", NOT_FINITE)
def test_a_diverged_seed_spoils_an_order_wherever_it_stands(place, bad):
    values = {"a": [1.0, 1.1], "b": [2.0, 2.1], "c": [3.0, 3.1]}
    values[place] = [bad, values[place][1]]
    found = order("q", ["a", "b", "c"], values)
    assert found.verdict is FAILS
    assert "not finite" in found.note


def test_a_noisy_gap_does_not_hide_a_refuted_one():
    """a < b is refuted by every seed; b < c is only noisy, with a lower end below that of the refuted gap."""
    values = {"a": [1.0, 1.0], "b": [0.0, 0.01], "c": [1.0, 3.0]}
    assert order("q", ["a", "b"], values).verdict is FAILS
    assert order("q", ["b", "c"], values).verdict is INCONCLUSIVE
    assert order("q", ["a", "b", "c"], values).verdict is FAILS


# --------------------------------------------------------------------------- hypotheses, rivals, the claim


@pytest.mark.parametrize(
    ("relation", "below", "same", "above"),
    [
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
        ("==", False, True, False),
    ],
)
def test_hypotheses_compare(relation, below, same, above):
    found = [assume("h", value, relation, 2).holds for value in (1, 2, 3)]
    assert found == [below, same, above]
    assert not assume("h", math.nan, relation, 2).holds


def test_a_hypothesis_keeps_its_numbers():
    assert assume("h", np.float32(1), ">", 0, "try") == Hypothesis("h", 1.0, 0.0, ">", True, "try")


def test_a_rival_is_rejected_by_a_check_that_the_claim_passes():
    rival = Rival("r", {}, "why")
    found = reject(rival, [check("a"), check("b")], [check("a", FAILS), check("b")])
    assert found.rejected
    assert (found.name, found.by, found.why, len(found.checks)) == ("r", ("a",), "why", 2)
    assert reject(rival, [check("a", INCONCLUSIVE)], [check("a", FAILS)]).rejected


def test_a_rival_that_fails_only_where_the_claim_does_is_not_rejected():
    own = [check("a", FAILS), check("b")]
    found = reject(Rival("r", {}), own, [check("a", FAILS), check("b")])
    assert not found.rejected
    assert found.by == ()


def test_doubt_about_a_rival_does_not_reject_it():
    assert not reject(Rival("r", {}), [check("a")], [check("a", INCONCLUSIVE)]).rejected
    assert not reject(Rival("r", {}), [check("a")], [check("another", FAILS)]).rejected


YES = assume("yes", 1, ">", 0)
NO = assume("no", 0, ">", 1)
REJECTED = Rejection("gone", "gone", True, ("c0",), ())
ACCEPTED = Rejection("alive", "alive", False, (), ())
SAID = Rejection("near", "near", False, (), (), accepted="they differ by less than the noise")


@pytest.mark.parametrize(
    ("hypotheses", "verdicts", "rivals", "controls", "expected", "word"),
    [
        ([YES], [HOLDS, HOLDS], [REJECTED], [], HOLDS, "agrees in 1 challenged check, 1 rival"),
        ([], [HOLDS], [], [REJECTED], HOLDS, "0 rivals rejected, 1 control told apart"),
        ([YES], [HOLDS, INCONCLUSIVE], [REJECTED], [], INCONCLUSIVE, "straddles"),
        ([YES], [INCONCLUSIVE, FAILS], [REJECTED], [], FAILS, "disagrees"),
        ([YES], [HOLDS], [REJECTED, ACCEPTED], [], INCONCLUSIVE, "do not reject alive"),
        ([YES], [HOLDS], [REJECTED, SAID], [], HOLDS, "1 rival rejected"),
        ([YES], [HOLDS], [REJECTED], [ACCEPTED], INCONCLUSIVE, "passes alive too"),
        ([YES], [FAILS], [ACCEPTED], [], FAILS, "disagrees"),
        ([YES, NO], [HOLDS], [REJECTED], [], OUT_OF_RANGE, "no"),
        ([NO], [FAILS], [ACCEPTED], [], OUT_OF_RANGE, "assumed but not true here"),
        ([NO], [], [], [], OUT_OF_RANGE, "no"),
    ],
)
def test_the_verdict_of_a_claim(hypotheses, verdicts, rivals, controls, expected, word):
    checks = [check(f"c{i}", v) for i, v in enumerate(verdicts)]
    tried = challenge(checks, [*rivals, *controls])
    verdict, reason = conclude(hypotheses, tried, rivals, controls)
    assert verdict is expected
    assert word in reason


def test_a_claim_whose_headline_nothing_fails_has_no_power():
    """Another check that a rival fails does not help, unless the claim says that it is the headline."""
    checks = challenge([check("c1"), check("c0")], [REJECTED])
    assert [one.challenged_by for one in checks] == [(), ("gone",)]
    verdict, reason = conclude([YES], checks, [REJECTED], [])
    assert verdict is INCONCLUSIVE
    assert "no power: nothing that was tried fails check c1" in reason
    assert conclude([YES], checks, [REJECTED], [], ("c0",))[0] is HOLDS


def test_an_idle_check_is_not_counted_but_may_fail():
    consistent = idle(check("c1"), "two forms of one sum")
    checks = challenge([check("c0"), consistent], [REJECTED])
    assert "1 challenged check" in conclude([YES], checks, [REJECTED], [])[1]
    broken = challenge([check("c0"), idle(check("c1", FAILS), "")], [REJECTED])
    assert conclude([YES], broken, [REJECTED], [])[0] is FAILS


def test_a_check_that_failed_decides_whatever_challenges_it():
    assert not check("c0").decides
    assert check("c0", FAILS).decides
    assert idle(check("c0", FAILS), "an identity").decides
    assert challenge([check("c0")], [REJECTED])[0].decides


def test_a_control_is_judged_like_a_rival():
    control = Control("shuffled", {}, "no order is left", "shuffled labels")
    found = reject(control, [check("a")], [check("a", FAILS)])
    assert (found.id, found.name, found.rejected) == ("shuffled", "shuffled labels", True)


@pytest.mark.parametrize(
    ("found", "notices", "unit", "words"),
    [
        (equal("a", 2.0, [1.9, 2.0, 2.1], 0.1), None, "relative", " %"),
        (equal("a", 2.0, 2.1, 0.1), 0.1, "relative", "10 %"),
        (equal("a", 0.0, 0.01, 0.1, absolute=True), 0.1, "absolute", "0.1"),
        (exponent("a", -1.0, [1.0, 2.0, 4.0], [1.0, 0.5, 0.25], 0.2), 0.2, "absolute", "0.2"),
        (bound("a", 0.5, at_most=2.0), 0.75, "relative", "75 %"),
        (bound("a", 30.0, at_least=1.0), 29.0, "relative", "a factor 29"),
        (bound("a", 181.0, at_least=1.0), 180.0, "relative", "a factor 180"),
        (bound("a", 0.5, at_most=1.0), 0.5, "relative", "50 %"),
        (equal("a", 2.0, 4.1, 0.1), None, "relative", "–"),
        (agreement("a", 1e-12, 1e-9), 1e-9, "absolute", "1e-09"),
        (order("a", ["x", "y"], {"x": 1.0, "y": 2.0}), math.nan, "absolute", "another order"),
    ],
)
def test_what_a_check_would_notice(found, notices, unit, words):
    assert found.notices_in == unit
    assert words in found.would_notice
    if notices is not None:
        assert found.notices == pytest.approx(notices, rel=1e-2, nan_ok=True)


def test_a_prediction_wrong_by_what_is_noticed_is_refuted():
    """The definition, tried: the margin moved by the error leaves the interval, a little less does not."""
    found = equal("a", 2.0, [1.98, 2.0, 2.02, 2.0], 0.1)
    error = found.notices * found.predicted
    moved = Interval(found.margin.low + 1.01 * error, found.margin.high + 1.01 * error)
    nearly = Interval(found.margin.low + 0.99 * error, found.margin.high + 0.99 * error)
    assert found.interval.disjoint(moved)
    assert not found.interval.disjoint(nearly)


def test_a_claim_that_checks_nothing_does_not_hold():
    assert conclude([YES], [], [], [])[0] is INCONCLUSIVE


# ---------------------------------------------------------------------------- a battery of wrong theories

LAWS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
X = np.geomspace(10, 1000, 5)


def law(p, seeds, seed, noise=0.1):
    """Measurements of y = x^p with multiplicative noise, shape (seeds, points)."""
    return X**p * np.exp(noise * np.random.default_rng(seed).normal(size=(seeds, X.size)))


@pytest.mark.parametrize("p", LAWS)
@pytest.mark.parametrize("wrong", LAWS)
def test_only_the_true_exponent_survives(p, wrong):
    found = exponent("q", wrong, X, law(p, 10, seed=1), 0.2)
    assert found.verdict is (HOLDS if wrong == p else FAILS)


@pytest.mark.parametrize("p", LAWS)
def test_a_claim_about_a_law_holds_and_its_rival_is_rejected(p):
    y = law(p, 10, seed=2)
    judge = lambda q: [exponent("law", q, X, law(p, 10, seed=2), 0.2)]
    for theory, wrong in ((p, -p), (p, p + 0.5)):
        rival = reject(Rival("wrong", {"p": wrong}), judge(theory), judge(wrong))
        checks = challenge(judge(theory), [rival])
        assert conclude([], checks, [rival], [])[0] is HOLDS
        # the roles exchanged: the wrong theory fails, whatever its rival does
        assert (
            conclude(
                [], judge(wrong), [reject(Rival("true", {"p": p}), judge(wrong), judge(p))], []
            )[0]
            is FAILS
        )
    assert y.shape == (10, 5)


def test_wrong_laws_fail_once_there_are_seeds_enough():
    """With two noisy seeds the judge may doubt; with forty it never accepts, and nearly always refutes."""
    few = [exponent("q", 1.25, X, law(1.0, 2, seed, noise=0.5), 0.1).verdict for seed in range(40)]
    many = [
        exponent("q", 1.25, X, law(1.0, 40, seed, noise=0.5), 0.1).verdict for seed in range(40)
    ]
    assert INCONCLUSIVE in few
    assert HOLDS not in many
    assert many.count(FAILS) > few.count(FAILS)
    assert many.count(FAILS) >= 36


def test_a_true_law_is_seldom_refuted():
    """To refute p needs an interval away from p by more than the margin: far rarer than one in twenty."""
    found = [
        exponent("q", 1.0, X, law(1.0, 3, seed, noise=0.5), 0.05).verdict
        for seed in range(REPETITIONS)
    ]
    assert found.count(FAILS) <= 0.05 * REPETITIONS + 4 * math.sqrt(REPETITIONS * 0.05 * 0.95)


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.25, 2.0])
def test_a_theory_that_is_off_by_a_factor_fails(factor):
    """The mistakes of lecture notes: the right form with a wrong constant."""
    samples = np.random.default_rng(3).normal(1.0, 0.05, 10)
    assert equal("q", 1.0, samples, 0.1).verdict is HOLDS
    assert equal("q", factor, samples, 0.1).verdict is FAILS
    assert equal("q", -1.0, samples, 0.1).verdict is FAILS


def test_a_margin_that_forgives_everything_has_no_power():
    judge = lambda q: [equal("q", q, [1.0, 1.1, 0.9], 5.0, absolute=True)]
    rival = reject(Rival("wrong", {}), judge(1.0), judge(2.0))
    assert conclude([], judge(1.0), [rival], [])[0] is INCONCLUSIVE


# ----------------------------------------------------------------------------------- ids, labels and JSON


def test_a_check_has_an_id_and_a_label():
    named = equal("late_sharpness", 1.0, 1.0, 0.1, label="late sharpness / (2/η)")
    assert (named.id, named.name) == ("late_sharpness", "late sharpness / (2/η)")
    x = np.array([1.0, 2.0, 4.0])
    for unnamed in (
        equal("late_sharpness", 1.0, 1.0, 0.1),
        bound("late_sharpness", 1.0, at_most=1.0),
        agreement("late_sharpness", 0.0, 1e-9),
        exponent("late_sharpness", 1.0, x, x, 0.1),
        order("late_sharpness", ["a", "b"], {"a": 0.0, "b": 1.0}),
    ):
        assert (unnamed.id, unnamed.name) == ("late_sharpness", "late sharpness")


def test_rivals_are_matched_by_id_and_not_by_label():
    own = equal("q", 1.0, 1.0, 0.1, label="at one")
    wrong = equal("q", 2.0, 1.0, 0.1, label="at two")
    found = reject(Rival("twice", {}, label="two of them"), [own], [wrong])
    assert (found.id, found.name, found.by) == ("twice", "two of them", ("q",))
    assert reject(Rival("two_laws", {}), [], []).name == "two laws"


def test_an_agreement_predicts_no_deviation():
    found = agreement("recursion", 3e-12, 1e-9)
    assert (found.kind, found.predicted, found.verdict) == ("agreement", 0.0, HOLDS)
    assert agreement("recursion", 2e-9, 1e-9).verdict is FAILS
    assert agreement("recursion", [0.0, 2e-9], 1e-9).verdict is INCONCLUSIVE  # every seed counts
    assert agreement("recursion", math.nan, 1e-9).verdict is FAILS


@pytest.mark.parametrize(
    ("within", "absolute"), [((0.5, 0.9), False), ((1.1, 2.0), False), ((0.1, 0.2), True)]
)
def test_a_margin_without_its_own_prediction_is_refused(within, absolute):
    with pytest.raises(ValueError, match=r"check 'q': the margin .* leaves out the prediction"):
        equal("q", 4.0, 4.0, within, absolute=absolute)


@pytest.mark.parametrize(
    "found",
    [
        equal("q", 1.0, [0.9, 1.1], 0.1, label="γ", note="mine"),
        bound("q", 1.0, at_most=2.0),
        bound("q", [0.5, 1.5], at_least=1.0),
        agreement("q", [0.0, 1e-10], 1e-9),
    ],
)
def test_a_check_comes_back_from_json(found):
    text = json.dumps(found.to_json(), allow_nan=False)
    assert Check.from_json(json.loads(text)) == found


def test_what_is_not_finite_is_null_and_comes_back_as_nan():
    found = equal("q", 1.0, [1.0, math.nan], 0.1)
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["measured"] is None
    back = Check.from_json(record)
    assert repr(back) == repr(found)


def test_hypotheses_may_ask_for_an_interval():
    assert assume("γλ₀", 3, between=(2, 4)).holds
    for value in (2, 4, 1, 5, math.nan):
        assert not assume("γλ₀", value, between=(2, 4)).holds
    found = assume("γλ₀", 5, between=(2, 4), note="choose less")
    assert Hypothesis.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert str(found) == "2 < γλ₀ = 5 < 4"


def test_a_rejection_comes_back_from_json():
    found = reject(Rival("r", {}, "why"), [check("a")], [check("a", FAILS)])
    assert Rejection.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_headline_that_the_fields_leave_out_is_said():
    """A sentence that no check tests does not hold; one that is tested in part says so."""
    checks = challenge([check("c0")], [REJECTED])
    verdict, reason = conclude([YES], checks, [REJECTED], [], ("c7", "c8"))
    assert verdict is INCONCLUSIVE
    assert "no check tests its first sentence" in reason
    verdict, reason = conclude([YES], checks, [REJECTED], [], ("c0", "c7"))
    assert verdict is HOLDS
    assert "1 of its headline left out" in reason


@pytest.mark.parametrize("points", [1, 2])
def test_an_exponent_of_few_points_a_seed_is_not_decided(points):
    x = np.array([4.0, 8.0])[:points]
    alone = exponent("slope", -0.5, x, np.ones((8, points)), 0.1)
    assert alone.verdict is INCONCLUSIVE
    assert f"{points} points, of which a fit needs three" in alone.note


def test_an_infinite_prediction_notices_nothing():
    endless = equal("mean", math.inf, 3.0, 0.1)
    assert math.isnan(endless.notices)
    assert endless.verdict is not Verdict.HOLDS
