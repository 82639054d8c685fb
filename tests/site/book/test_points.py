"""Points of laws in chapters' tables: their numbers, their places in words, and the worst as a note."""

from dataclasses import replace

import pytest

from steepest.core.checks import Interval
from steepest.core.errors import UserError
from steepest.core.laws import At, LawCheck
from steepest.core.words import Verdict
from steepest.site.book._points import at_row, in_words, read_row

POINTS = (
    At({"step_size": 0.276923}, 7.222, 7.308, 7.2, 7.4, 6.861, 8.306, Verdict.HOLDS),
    At({"step_size": 0.36}, 5.556, 5.663, 5.543, 5.784, 5.278, 6.389, Verdict.HOLDS),
    At({"step_size": 0.468}, 4.274, 4.3, 4.2, 4.4, 4.06, 4.915, Verdict.INCONCLUSIVE),
)
CHECK = LawCheck(
    "late",
    "late sharpness",
    "follows",
    7.222,
    7.308,
    Interval(7.2, 7.4, "95% of the mean"),
    Interval(6.861, 8.306, "5 % below"),
    Verdict.HOLDS,
    "a note; worst at step_size = 0.276923",
    points=POINTS,
    law="edge",
    axes=("step_size",),
)


@pytest.mark.parametrize("place", range(3))
def test_a_row_has_the_numbers_of_its_point(place):
    shown = at_row(CHECK, place)
    point = POINTS[place]
    assert (shown.predicted, shown.measured) == (point.predicted, point.measured)
    assert (shown.interval.low, shown.interval.high) == (point.low, point.high)
    assert (shown.margin.low, shown.margin.high) == (point.least, point.most)
    assert shown.verdict is point.verdict
    assert shown.interval.how == CHECK.interval.how
    assert (shown.id, shown.name) == (CHECK.id, CHECK.name)


def test_the_worst_point_is_a_note_below():
    parts = at_row(CHECK, 1).note.split("; ")
    assert parts[:2] == ["at η = 0.36", "a note"]
    assert "η = 0.2769" in parts[2] and "7.308" in parts[2]
    assert at_row(CHECK, 0).note.startswith("at η = 0.2769; a note; the worst")


def test_a_row_without_a_place_has_the_worst_point_in_letters():
    shown = at_row(CHECK, None)
    assert (shown.predicted, shown.measured) == (7.222, 7.308)
    assert "η = 0.2769" in shown.note and "step_size" not in shown.note


def test_what_it_would_notice_is_that_of_the_point():
    low = 5.784 - 5.278
    high = 6.389 - 5.543
    assert at_row(CHECK, 1).notices == pytest.approx((low + high) / 2 / 5.556)


@pytest.mark.parametrize("place", (3, 7))
def test_a_point_that_is_not_there_is_refused(place):
    with pytest.raises(UserError):
        at_row(CHECK, place)


@pytest.mark.parametrize("word", ("late[", "late[-1]", "late[0][1]", "[1]", "late[one]"))
def test_a_row_that_is_none_is_refused(word):
    with pytest.raises(UserError):
        read_row(word)


def test_places_are_in_letters_and_words():
    where = {"lr": 0.1, "lambda": 2.0, "n_examples": 8, "rule": "path_sgd", "d": 5}
    assert in_words(where) == "η = 0.1, λ = 2, n examples = 8, rule: path sgd, d = 5"


def test_points_that_are_alike_have_no_worst():
    alike = tuple(replace(POINTS[0], where={"step_size": float(k)}) for k in range(3))
    check = replace(CHECK, points=alike, note="")
    assert at_row(check, 2).note == "at η = 2"
    assert at_row(check, 0).note.startswith("at η = 0; the worst")
