"""Wrong calls end in a sentence; ``benchmarks/wrong_calls`` makes all of them, here is a part that a seed chose."""

import numpy as np
import pytest

from benchmarks.wrong_calls.calls import of_files_and_claims, of_measure, of_monitor
from benchmarks.wrong_calls.run import outcome
from steepest.core import given
from steepest.core.errors import UserError

CALLS = [*of_measure(), *of_monitor(), *of_files_and_claims()]
CHOSEN = np.random.default_rng(7).choice(len(CALLS), 60, replace=False)


def test_wrong_calls_are_answered_or_refused_in_a_sentence():
    ends = {CALLS[place][0]: outcome(CALLS[place][1]) for place in CHOSEN}
    assert {name: end for name, end in ends.items() if end[0] not in ("UserError", "answer")} == {}


@pytest.mark.parametrize("value", [None, "1", "", [1], 1j, np.nan, np.inf, True, np.ones(2)])
def test_what_is_no_number_is_refused(value):
    for check in (given.real, given.whole):
        with pytest.raises(UserError):
            check("lr", value)


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.array(3)])
def test_numbers_of_any_library_are_numbers(value):
    assert given.real("lr", value) == given.whole("seed", value) == 3


@pytest.mark.parametrize("value", [2.5, -1, "3"])
def test_what_is_no_count_is_refused(value):
    with pytest.raises(UserError):
        given.whole("seeds", value)


@pytest.mark.parametrize("value", [None, 3, b"x", [], "", "a\0b"])
def test_what_is_no_file_is_refused(value):
    with pytest.raises(UserError):
        given.file("a log", value)


@pytest.mark.parametrize(
    "value", [None, "text", [], [np.nan], [1j], [[1.0]], object(), iter([1.0])]
)
def test_what_is_no_vector_is_refused(value):
    with pytest.raises(UserError):
        given.vector("start", value)
