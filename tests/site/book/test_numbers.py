"""What a number in the prose is, and how it is written."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.engine.run import run
from steepest.site.book import Number, numbers, written
from steepest.site.book._numbers import value


@pytest.fixture(scope="module")
def result(catalogue):
    return run("plain-decay")


def test_every_kind_of_number(result):
    """Against the fields of the result, read without this code."""
    (rate,) = (check for check in result.checks if check.id == "rate")
    (rival,) = (check for check in result.rivals[0].checks if check.id == "rate")
    expected = {
        ("measured", "rate"): rate.measured,
        ("predicted", "rate"): rate.predicted,
        ("low", "rate"): rate.interval.low,
        ("high", "rate"): rate.interval.high,
        ("least", "rate"): rate.margin.low,
        ("most", "rate"): rate.margin.high,
        ("ratio", "rate"): rate.measured / rate.predicted,
        ("rival", "faster rate"): rival.predicted,
        ("setting", "seeds"): 4,
        ("assumed", "rate below"): 0.5,
        ("array", "observed/path[0, -1]"): result.observed["path"][0, -1],
        ("array", "mean observed/rate"): np.mean(result.observed["rate"]),
        ("array", "count observed/path[:, 0]"): 4,
        ("array", "max predicted/path[1:]"): 0.5,
    }
    for (kind, what), number in expected.items():
        asked = Number(kind, "0.5", f"plain-decay {what}")
        assert value(asked, result, result.arrays) == pytest.approx(number, rel=1e-12)


WRONG = {
    ("measured", "rat"): "did you mean 'rate'",
    ("setting", "seed"): "did you mean 'seeds'",
    ("rival", "slower rate"): "has no rival 'slower'",
    ("assumed", "nothing"): "assumes nothing that begins with 'nothing'",
    ("array", "observed/paths"): "did you mean 'observed/path'",
    ("array", "observed/path"): r"has shape \(4, 60\); say which element",
    ("array", "path"): "an array's place looks like",
}


@pytest.mark.parametrize("kind, what", WRONG, ids=str)
def test_what_a_result_has_not_is_refused(result, kind, what):
    with pytest.raises(UserError, match=WRONG[kind, what]):
        value(Number(kind, "0.5", f"plain-decay {what}"), result, result.arrays)


@pytest.mark.parametrize(
    "number, typed, shown",
    [
        (0.98724, "0.98", "0.99"),
        (1234.5, "1230", "1234"),
        (0.3123, "30 %", "31 %"),
        (0.31234, "30.1 %", "31.2 %"),
        (2.134e-7, "2.0×10⁻³", "2.1×10⁻⁷"),
        (-0.5, "−0.49", "−0.50"),
        (-0.001, "0.10", "0.00"),
        (float("inf"), "3", "not finite"),
    ],
)
def test_numbers_are_written_as_they_were_typed(number, typed, shown):
    assert written(number, typed) == shown


def test_the_numbers_of_a_text_are_found():
    text = "From {measured}`0.5\n<a-claim x>` to {low}`−2 % <other(lr=0.1, name=relu) y>`, not {code}`x <y>`."
    first, second = numbers(text)
    assert (first.kind, first.typed, str(first.of), first.what) == (
        "measured",
        "0.5",
        "a-claim",
        "x",
    )
    assert str(second.of) == 'other(lr=0.1, name="relu")'
    assert dict(second.of.fields) == {"lr": 0.1, "name": "relu"}


@pytest.mark.parametrize("target", ["alone", "Claim x", "claim(lr x"])
def test_a_source_that_names_no_claim_is_refused(target):
    with pytest.raises(UserError, match="a number's source is a claim and what of it"):
        _ = Number("measured", "1", target).of


@pytest.mark.parametrize(
    ("kind", "target", "address"),
    [
        ("measured", "plain-decay rate", "claims/plain-decay.html#check-rate"),
        ("rival", "plain-decay faster rate", "claims/plain-decay.html#check-rate"),
        ("measured", "plain-decay rate[1]", "claims/plain-decay.html#check-rate"),
        ("measured", "plain-decay(rate=0.25) rate", "claims/plain-decay.html"),
        ("setting", "plain-decay seeds", "claims/plain-decay.html"),
    ],
)
def test_a_number_is_found_at_its_check(kind, target, address):
    """A point of a law is in the row of its check, and a run with other fields has no page of its own."""
    assert Number(kind, "0.5", target).address == address
