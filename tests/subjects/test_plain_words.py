"""What is said first of a claim on a network: each number in plain words, and what the law asks for."""

import math

import pytest

from steepest.catalogue import entry
from steepest.claims.curvature.neural_collapse.claim import FALL
from steepest.claims.curvature.neural_collapse.on_subject import CollapseOnSubject
from steepest.core.checks import Check
from steepest.core.intervals import Interval
from steepest.core.words import Verdict
from steepest.engine.subjects import available, plain_words, version_of
from steepest.kit.subjects import OnSubject


def check(id, measured, interval, margin, verdict=Verdict.FAILS):
    return Check(
        id, "log NC1", "order", 0.0, measured, Interval(*interval), Interval(*margin), verdict
    )


def test_a_logarithm_is_shown_as_the_factor_that_people_know():
    """NC1 that fell by 2 where the law asks for 10: the logarithm of 2/10 is judged, and 2 is said."""
    lag = math.log(2 / FALL)
    (line,) = plain_words(
        CollapseOnSubject, [check("variability_falls", lag, (lag, lag), (5e-324, math.inf))]
    )
    assert "zero error is 2; the law asks for at least 10" in line["text"]
    assert (line["check"], line["verdict"]) == ("variability_falls", "fails")


def test_a_check_without_words_has_its_own_name():
    (line,) = plain_words(OnSubject, [check("any", -2.0, (-2.5, -1.5), (5e-324, math.inf))])
    assert line["text"] == "log NC1 is -2 (-2.5 to -1.5); the law asks for more than 0"


def test_what_fails_comes_first_and_what_does_not_count_is_left_out():
    holds = check("idle", 1.0, (1.0, 1.0), (0.5, 2.0), Verdict.HOLDS)
    fails = check("fails", 3.0, (3.0, 3.0), (0.5, 2.0))
    challenged = Check(**{**vars(holds), "id": "holds", "challenged_by": ("rival",)})
    lines = plain_words(OnSubject, [holds, challenged, fails])
    assert [line["check"] for line in lines] == ["fails", "holds"]


@pytest.mark.parametrize("name", available())
def test_words_are_of_checks_that_are_judged_on_subjects(name):
    kind = version_of(entry(name))
    assert kind.plainly
    assert not set(kind.plainly) & set(kind.left_out)
