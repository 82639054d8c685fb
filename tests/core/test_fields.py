"""Fields take what they are declared to take, and refuse everything else in a sentence that names them."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.core.fields import (
    Count,
    Fraction,
    NonNegative,
    Positive,
    Seeds,
    field_type,
    field_types,
)


@dataclass(frozen=True)
class Example:
    lr: Positive = 0.1
    width: Count = 8
    seeds: Seeds = 5
    share: Fraction = 0.5
    noise: NonNegative = 0.0
    shift: float = 0.0
    scales: tuple[Positive, ...] = (0.5, 1.0)
    pair: tuple[Count, Count] = (1, 2)
    empty: tuple[Count, ...] = ()
    sigma: Literal["tanh", "relu"] = "tanh"
    word: str = "digits"
    flag: bool = False


def check(field, value):
    return field_types(Example)[field].check(value)


def read(field, *words):
    return field_types(Example)[field].read(words)


@pytest.mark.parametrize(
    ("field", "words", "value"),
    [
        ("lr", ["1e-2"], 0.01),
        ("width", ["7"], 7),
        ("scales", ["1", "2"], (1.0, 2.0)),
        ("pair", ["3", "4"], (3, 4)),
        ("sigma", ["relu"], "relu"),
        ("word", ["other"], "other"),
        ("flag", ["TRUE"], True),
    ],
)
def test_words_of_a_command_line_become_values(field, words, value):
    assert read(field, *words) == value
    assert type(read(field, *words)) is type(value)


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        ("lr", 1, 1.0),
        ("lr", np.float32(0.5), 0.5),
        ("width", np.int64(3), 3),
        ("scales", [1, 2], (1.0, 2.0)),
        ("scales", np.array([0.5]), (0.5,)),
        ("flag", np.True_, True),
        ("empty", (), ()),
    ],
)
def test_values_from_python_are_kept_as_the_fields_type(field, value, kept):
    assert check(field, value) == kept
    assert type(check(field, value)) is type(kept)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("lr", 0.0, "lr must be above 0, got 0.0; try 0.1"),
        ("lr", math.inf, "lr must be a finite number, got inf"),
        ("lr", "1", "lr takes a number, got '1'"),
        ("lr", True, "lr takes a number, got True"),
        ("lr", (1.0,), r"lr takes a number, got \(1.0,\)"),
        ("shift", math.nan, "shift must be a finite number, got nan"),
        ("width", 1.0, "width takes a whole number, got 1.0"),
        ("width", 0, "width must be at least 1, got 0"),
        ("width", 2**63, "width must be a whole number of at most 64 bits"),
        ("seeds", 2, "seeds must be at least 3 and at most 10000, got 2"),
        ("share", 1.5, "share must be at least 0 and at most 1, got 1.5"),
        ("noise", -1e-9, "noise must be at least 0"),
        ("scales", 1.0, "scales takes several values of a number, got 1.0; try 0.5 1.0"),
        ("scales", (), "scales takes at least one value, got 0"),
        ("scales", (1.0, math.nan), "scales must be a finite number, got nan"),
        ("scales", "12", "scales takes several values"),
        ("pair", (1, 2, 3), "pair takes 2 values, got 3"),
        ("sigma", "rleu", "sigma takes one of tanh, relu, got 'rleu'"),
        ("word", 3, "word takes a word, got 3"),
        ("flag", 1, "flag takes true or false, got 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(field, value, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        check(field, value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "words", "sentence"),
    [
        ("scales", [], "scales needs a value, such as 0.5 1.0"),
        ("lr", ["1", "2"], "lr takes one value, got 2: 1 2"),
        ("width", ["8.0"], "width takes a whole number, got '8.0'"),
        ("flag", ["yes"], "flag takes true or false, got 'yes'"),
        ("scales", ["1", "nan"], "scales must be a finite number, got nan"),
        ("width", ["9" * 5000], "width"),
    ],
)
def test_words_that_cannot_be_read_are_refused(field, words, sentence):
    with pytest.raises(UserError, match=sentence):
        read(field, *words)


def test_an_unknown_field_gets_the_nearest_one():
    with pytest.raises(UserError, match="Example has no field 'widht'; did you mean 'width'"):
        field_type(Example, "widht")


def test_what_is_no_number_word_or_tuple_is_no_field():
    @dataclass
    class Wrong:
        table: dict[str, int]

    with pytest.raises(UserError, match="table of Wrong is .*; a field is a number, a word"):
        field_types(Wrong)
