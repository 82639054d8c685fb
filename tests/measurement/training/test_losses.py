"""Warnings from what each step has at hand: which losses and updates alarm, and which do not."""

import json

import numpy as np
import pytest

from steepest.measurement import Monitor, read_log, watch
from steepest.measurement.training._alarms import Rule
from steepest.measurement.training._chances import (
    EVER,
    EXCESS,
    allowance,
    chance_in_tail,
    chance_of_hits,
)
from steepest.measurement.training._divergence import QUIET, Course
from steepest.measurement.training._first_order import (
    EFFICIENCY,
    EVERY,
    SHARE,
    TO_DEVIATION,
    WARM,
    FirstOrder,
    StepNumbers,
)
from tests.extras import need

GUESS = 2.3


def alarms(losses, shares=None, guess: float | None = GUESS):
    """Return the steps that alarm and their rules."""
    course = Course()
    course.guess = guess
    shares = shares or {}
    raised = []
    for step, loss in enumerate(losses):
        numbers = StepNumbers(step, loss, shares.get(step), True)
        raised += [(step, alarm.rule) for alarm in course.alarms_of_step(numbers)]
    return raised


def descent(steps=40, noise=0.02):
    draws = np.random.default_rng(0).standard_normal(steps)
    return list(GUESS * np.exp(-np.arange(steps) / 10) + 0.1 + noise * draws)


@pytest.mark.parametrize("guess", [GUESS, None])
def test_a_descent_is_silent(guess):
    assert alarms(descent(), guess=guess) == []
    assert alarms([0.01] * 50, guess=guess) == []


@pytest.mark.parametrize("guess", [GUESS, None])
def test_losses_that_climb_alarm_before_they_are_back(guess):
    losses = descent()
    losses += [losses[-1] + 0.15 * step for step in range(15)]
    (first,) = alarms(losses, guess=guess)
    assert first[1] == Rule.LOSSES_CLIMB
    assert losses[first[0]] < 0.8 * GUESS


def test_the_same_climb_in_the_scatter_of_single_examples_is_silent():
    """The median of eight such losses rises by more than a constant guess has, and falls again."""
    draws = np.random.default_rng(1).exponential(2.0, 400)
    assert alarms(list(draws)) == []


def test_the_scatter_is_a_standard_deviation():
    draws = 3.0 * np.random.default_rng(2).standard_normal(100_000)
    assert np.median(np.abs(np.diff(draws))) * TO_DEVIATION / np.sqrt(2) == pytest.approx(
        3.0, rel=0.02
    )
    medians = np.median(draws[:99_000].reshape(-1, 99), axis=1)
    assert medians.std() == pytest.approx(3.0 * EFFICIENCY / np.sqrt(99), rel=0.05)


def test_a_few_losses_above_all_before_alarm_and_one_does_not():
    """The fewer there were before, the more are needed: of two equal examples one may be hard."""
    steady = [2.0 + 0.05 * (step % 3) for step in range(60)]
    assert alarms([*steady, 9.0, *steady[:20]]) == []
    (first,) = alarms([*steady, 9.0, 9.5, 10.0])
    assert first == (62, Rule.LOSSES_LEAP)
    assert alarms([*steady[:6], 9.0, 9.5, 10.0]) == []


def test_one_batch_that_is_far_above_all_is_named():
    steady = [2.0 + 0.05 * (step % 3) for step in range(60)]
    assert alarms([*steady, 2500.0, *steady[:20]]) == [(60, Rule.BAD_BATCH)]
    assert alarms([*steady, 25.0, *steady[:20]]) == []


COURSES = {
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "squares of Student's t": lambda rng, n: rng.standard_t(3, n) ** 2,
    "wide logarithms": lambda rng, n: np.exp(3.0 * rng.standard_normal(n)),
    "a tenth is wrong": lambda rng, n: np.where(rng.random(n) < 0.1, 3.0, 1e-3) * rng.random(n),
    "two classes": lambda rng, n: np.where(rng.random(n) < 0.37, 1.3, 0.3),
}


@pytest.mark.parametrize("kind", COURSES)
def test_losses_of_one_distribution_are_seldom_an_alarm(kind):
    """In at most three of 120 trainings of 300 steps: more than three at one in a hundred have chance 0.03."""
    guess = float(COURSES[kind](np.random.default_rng(999), 4000).mean())
    false = 0
    for seed in range(120):
        losses = COURSES[kind](np.random.default_rng(seed), 300)
        false += first_alarm(losses, guess) is not None
    assert false <= 3


def test_the_chance_of_hits_is_that_of_drawing_the_share_first():
    """Among draws with a uniform share that had one hit in six, how often at least two of the next three hit."""
    rng = np.random.default_rng(0)
    share = rng.random(400_000)
    among = rng.binomial(6, share) == 1
    hits = rng.binomial(3, share[among]) >= 2
    error = 4 * hits.std() / np.sqrt(hits.size)
    assert abs(hits.mean() - chance_of_hits(2, 3, 1, 6)) < error
    assert sum(chance_of_hits(k, 3, 1, 6) for k in (1, 2, 3)) > chance_of_hits(1, 3, 1, 6)
    assert chance_of_hits(0, 3, 1, 6) == pytest.approx(1)


def test_the_tail_is_that_of_exponential_excesses_of_an_unknown_rate():
    """The rate has a gamma distribution after the excesses: draw it, and then all of a row."""
    losses = [0.5, 2.0, 3.0, 0.7]
    level = 4.0
    length = 2
    total = EXCESS + np.log(2.0) + np.log(3.0)
    rates = np.random.default_rng(0).gamma(3, 1 / total, 400_000)
    beyond = np.exp(-rates * length * np.log(level))
    expected = beyond.mean() * chance_of_hits(length, length, 2, 4)
    assert chance_in_tail(length, level, 1.0, losses) == pytest.approx(expected, rel=0.01)


def test_chances_of_all_steps_have_a_sum():
    """Each factor of a hundred in length adds less than the one before."""
    sums = [sum(map(allowance, range(100**k, 100 ** (k + 1)))) for k in range(3)]
    assert sums[0] > sums[1] > sums[2]
    assert sum(sums) < EVER / 2


def test_a_start_far_above_a_constant_guess_is_no_leap():
    assert alarms([50.0, 48.0, 45.0, 30.0, 20.0, 5.0, 2.0, 1.0]) == []


def test_a_loss_that_is_scaled_is_judged_by_its_own_scale():
    assert alarms([65536 * loss for loss in descent()]) == []


def test_a_large_update_alarms_where_the_loss_has_not_fallen():
    losses = [2.3, 2.2, 2.1, 2.0, 1.9, 1.8]
    assert alarms(losses, {2: 0.5}) == []  # weights from zero grow like this
    assert alarms([*losses[:3], 2.4, 1.9, 1.8], {2: 0.5}) == [(3, Rule.UPDATE)]
    assert alarms([*losses[:3], 2.4, 1.9, 1.8], {2: 0.15}) == []


def test_steps_that_grow_geometrically_alarm_when_ten_of_them_replace_the_weights():
    """From 0.1 % of the weights' size by a fifth in each step: 25 steps before one moves all of them."""
    steps = range(60)
    growing = {step: 1e-3 * 1.2**step for step in steps}
    (first,) = alarms([2.0] * 30, growing)[:1]
    assert first == (26, Rule.STRIDE)  # 1.2²⁶ > 100
    assert 1e-3 * 1.2 ** (first[0] + 11) < 1
    assert alarms([0.97**step for step in steps], {step: 1 / (step + 1) for step in steps}) == []
    assert Rule.STRIDE not in dict(map(reversed, alarms([2.0] * 60, dict.fromkeys(steps, 0.15))))


def test_a_negative_loss_has_no_scale():
    assert alarms([-1.0, -2.0, 5.0, 50.0, 500.0, 500.0], guess=None) == []


def test_an_alarm_is_said_once_while_it_lasts():
    lasting = alarms([*[2.3, 2.2, 2.1] * 20, *[9.0] * 20])
    assert [rule for _, rule in lasting] == [Rule.LOSSES_LEAP, Rule.LOSSES_CLIMB]
    not_finite = alarms([2.3, float("nan"), float("nan"), *[1.0] * (QUIET + 1), float("inf")])
    assert not_finite == [(1, Rule.NOT_FINITE), (QUIET + 4, Rule.NOT_FINITE)]


def test_without_losses_there_are_none():
    assert alarms([None] * 20, {3: 5.0}) == []


def test_a_monitor_writes_a_warning_at_the_step_that_has_it(tmp_path, capsys):
    monitor = Monitor(tmp_path / "log")
    weights = np.ones(3)
    for step, loss in enumerate([*descent(), *[9.0] * 5]):
        monitor(step, (lambda w, x: x @ w, weights), loss=loss)
    warned = [record for record in read_log(tmp_path / "log") if "warnings" in record]
    assert [(record["step"], record["rules"]) for record in warned] == [(43, ["losses leap"])]
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("steepest: step 43: 4 batches in a row")
    assert "warned" in watch(tmp_path / "log").findings[0].text


def test_none_where_no_warnings_are_wanted(tmp_path, capsys):
    monitor = Monitor(tmp_path / "log", warn=False)
    for step, loss in enumerate([2.3, 2.2, 9.0, 9.0, 9.0]):
        monitor(step, (lambda w, x: x @ w, np.ones(3)), loss=loss)
    assert "warnings" not in (tmp_path / "log").read_text()
    assert capsys.readouterr().err == ""


def test_a_training_that_starts_again_has_no_past(tmp_path):
    monitor = Monitor(tmp_path / "log")
    for losses in (descent(), [GUESS] * 20):
        for step, loss in enumerate(losses):
            monitor(step, (lambda w, x: x @ w, np.ones(3)), loss=loss)
    assert not any("warnings" in json.loads(line) for line in (tmp_path / "log").open())


def test_looks_at_all_weights_keep_to_their_share_of_the_time():
    """Of a training whose steps take two milliseconds, where the clock goes on by half of one when it is read."""
    torch = need("torch")
    model = torch.nn.Linear(3, 3)
    now = [0.0]
    look = 0.5e-3

    def clock():
        now[0] += look
        return now[0]

    first_order = FirstOrder(clock)
    looked = 0
    for step in range(4000):
        now[0] += 2e-3
        news = first_order.look(step, model)
        looked += sum(numbers.share is not None for numbers in news)
    affordable = (
        SHARE * now[0] / look
    )  # half of them have no update, as the step before was not kept
    assert 0.4 * affordable < looked < affordable + WARM
    assert looked < 4000 / EVERY


def test_a_climb_by_part_of_what_was_learned_is_announced():
    """Losses fall from 4 to 3 and creep back, as of a language model that falls back to the frequencies of tokens."""
    rng = np.random.default_rng(0)
    course = [*np.linspace(4.0, 3.0, 60), *np.linspace(3.0, 3.9, 60)]
    losses = np.array(course) + 0.05 * rng.standard_normal(120)
    raised = first_alarm(losses)
    assert raised is not None and raised[1] == Rule.LOSSES_CLIMB
    assert 3.4 < course[raised[0]] < 3.8


def test_examples_that_are_learned_one_by_one_are_no_climb():
    """Losses of single examples: more and more are next to zero, the others stay where they were."""
    climbs = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        learned = rng.random(300) < np.linspace(0.0, 0.9, 300)
        others = 0.7 + 0.3 * rng.standard_normal(300).clip(-1)
        raised = first_alarm(np.where(learned, 0.05 * rng.random(300), others))
        climbs += raised is not None and raised[1] == Rule.LOSSES_CLIMB
    assert climbs <= 5  # the median of eight losses by itself raises 15 of them


def first_alarm(losses, guess=None):
    """Return the step and the rule of the first alarm of a course of losses."""
    course = Course()
    course.guess = guess
    for step, loss in enumerate(losses):
        for alarm in course.alarms_of_step(StepNumbers(step, float(loss), None, True)):
            return step, alarm.rule
    return None
