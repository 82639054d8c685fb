"""Announcing a divergence: what a step does to a quadratic, which records alarm, and which do not."""

import json

import numpy as np
import pytest

from steepest.measurement import Monitor, read_log
from steepest.measurement.training._divergence import BATCH_GROWTH, GROWTH, Course, growth
from tests.measurement.test_measure import linear, regression, squared


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.3, 3.0, 4.5])
def test_growth_is_that_of_the_iteration(ratio, momentum):
    """Iterate w ← (1 + β − ηλ) w − β w' itself, and count its factor by the spectral radius of the step."""
    product = 2 * (1 + momentum) * ratio  # ηλ
    step = np.array([[1 + momentum - product, -momentum], [1.0, 0.0]])
    radius = np.abs(np.linalg.eigvals(step)).max()
    assert growth(ratio, momentum) == pytest.approx(radius, rel=1e-6)


def entry(value, compared=None, theory="", interval=None):
    return {"value": value, "compared": compared, "theory": theory, "interval": interval}


def record(step, risk=1.0, guess=2.3, **quantities):
    of_risk = entry(risk, guess, f"{guess} for a constant guess")
    return {"step": step, "quantities": {"risk": of_risk, **quantities}}


def rules(course, one):
    return [alarm.rule for alarm in course.alarms(one)]


def at(ratio, momentum=0.0, lr=0.1):
    """A record whose sharpness is this multiple of its limit."""
    limit = 2 * (1 + momentum) / lr
    value = ratio * limit
    one = record(5, sharpness=entry(value, limit, "2(1+β)/η", [0.999 * value, 1.001 * value]))
    return {**one, "lr": lr, "momentum": momentum}


def test_slightly_above_the_edge_is_no_alarm():
    """Progressive sharpening hovers there, and catapults go far beyond it for some steps."""
    for ratio in (0.5, 1.0, 1.3, 3.0, 4.4):
        assert rules(Course(), at(ratio)) == []
    assert rules(Course(), at(4.6)) == ["curvature"]
    assert rules(Course(), at(2.5, 0.9)) == []
    assert rules(Course(), at(2.8, 0.9)) == ["curvature"]


def test_the_whole_interval_must_be_above():
    wide = at(6.0)
    wide["quantities"]["sharpness"]["interval"] = [20.0, 300.0]
    assert rules(Course(), wide) == []


def test_negative_curvature_is_no_alarm():
    assert rules(Course(), at(-6.0)) == []


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_batches_alarm_far_above_their_limit(momentum):
    ratio = next(r for r in np.arange(1, 9, 0.01) if growth(r, momentum) >= BATCH_GROWTH)
    for factor, expected in ((0.9, []), (1.1, ["batches"])):
        one = at(0.5, momentum)
        limit = one["quantities"]["sharpness"]["compared"]
        one["quantities"]["batch sharpness"] = entry(factor * ratio * limit, None, "")
        assert rules(Course(), one) == expected
    assert GROWTH > BATCH_GROWTH


def test_curvature_of_adam_is_no_alarm():
    """Its preconditioned sharpness is thousands of times its limit in the first steps of good trainings."""
    one = record(3, sharpness=entry(5.0), **{"preconditioned sharpness": entry(1e6, 100.0, "38/η")})
    one["quantities"]["batch sharpness"] = entry(1e6)
    assert rules(Course(), {**one, "lr": 0.1, "momentum": 0.9}) == []


def test_a_risk_that_stays_high_alarms_and_a_spike_does_not():
    course = Course()
    said = [
        rules(course, record(step, risk))
        for step, risk in enumerate([2.3, 0.3, 2.0, 0.4, 2.0, 2.1])
    ]
    assert said == [[], [], [], [], [], ["risk"]]


def test_a_small_risk_may_double():
    course = Course()
    assert not any(
        rules(course, record(step, risk)) for step, risk in enumerate([2.3, 1e-3, 1.0, 0.5, 1.0])
    )


def test_without_a_constant_guess_the_start_is_the_scale():
    for start, expected in ((0, ["risk"]), (100, [])):
        course = Course()
        said = [
            rules(course, record(start + step, risk, None))
            for step, risk in enumerate([3.0, 0.5, 2.5, 2.6])
        ]
        assert said == [[], [], [], expected]
        assert all("None" not in alarm.text for alarm in course.alarms(record(200, 9.0, None)))


def test_a_warning_is_logged_each_time_and_printed_once(tmp_path, capsys):
    x, y = regression()
    largest = 2 / np.linalg.eigvalsh(x.T @ x / len(x))[-1]
    monitor = Monitor(
        tmp_path / "log", squared, (x, y), every=1, budget=None, lr=6 * float(largest)
    )
    for step in range(3):
        monitor(step, (linear, np.zeros(6)))
    records = read_log(tmp_path / "log")
    assert all(
        one["warnings"][0].startswith("the step is 6 times the largest stable") for one in records
    )
    said = capsys.readouterr()
    assert said.err.count("steepest: step 0: the step is 6 times") == 1
    assert said.err.count("\n") == 1 and said.out == ""


def test_a_training_that_starts_again_is_judged_by_itself(tmp_path):
    x, y = regression()
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    monitor = Monitor(tmp_path / "log", squared, (x, y), ["risk"], every=1, budget=None)
    for step, far in ((8, 0.0), (9, 0.0), (0, 2.5), (1, 2.4), (2, 2.4)):
        monitor(step, (linear, (1 + far) * best))
    assert not any("warnings" in one for one in read_log(tmp_path / "log"))
    monitor(3, (linear, best))
    for step in (4, 5):
        monitor(step, (linear, 3 * best))
    assert "warnings" in read_log(tmp_path / "log")[-1]


def test_no_warnings_where_none_are_wanted(tmp_path, capsys):
    monitor = Monitor(tmp_path / "log", squared, regression(), budget=None, lr=100.0, warn=False)
    monitor(0, (linear, np.zeros(6)))
    assert "warnings" not in json.loads((tmp_path / "log").read_text())
    assert capsys.readouterr().err == ""
