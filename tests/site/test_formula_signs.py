"""Delimiters of a size and primes in formulas."""

import re
from xml.etree import ElementTree

import pytest

from steepest import catalogue
from steepest.engine.descriptions import description
from steepest.site.pages import formula


def shown(latex):
    return "".join(ElementTree.fromstring(formula(latex)).itertext())


@pytest.mark.parametrize(
    ("latex", "signs"),
    [
        (r"\Bigl\{i\Bigr\}", "{i}"),
        (r"\Big\|i\Big\|", "‖i‖"),
        (r"\big\langle i\big\rangle", "⟨i⟩"),
        (r"\Bigl\lbrace i\Bigr\rbrace", "{i}"),
        (r"\bigl\lfloor i\bigr\rceil", "⌊i⌉"),
        (r"\Bigg\Vert i\Bigg\Vert", "‖i‖"),
    ],
)
def test_delimiters_of_a_size_are_signs(latex, signs):
    assert shown(latex) == signs


def test_both_delimiters_of_a_pair_have_their_size():
    """One that has an exponent grows in browsers only where a row is around it."""
    for latex in (r"\Big\|x\Big\|^2", r"\Bigl(x\Bigr)^2", r"\Bigl|x\Bigr|_2^2"):
        root = ElementTree.fromstring(formula(latex))
        sized = [part for part in root.iter("mo") if part.get("minsize")]
        assert len(sized) == 2 and all(part.get("stretchy") == "true" for part in sized)
        scripted = next(part for part in root.iter() if part.tag in ("msup", "msubsup"))
        assert scripted[0].tag == "mrow" and scripted[0][0] is sized[1]


def test_a_bar_without_a_size_does_not_grow():
    root = ElementTree.fromstring(formula(r"|x|"))
    assert {part.get("stretchy") for part in root.iter("mo")} == {"false"}


@pytest.mark.parametrize("latex", ["f'(x)", "x'_i", "x_i'", "f''", r"W^{\prime}", "g_{cc'}"])
def test_a_prime_is_no_exponent(latex):
    root = ElementTree.fromstring(formula(latex))
    primes = [part for part in root.iter() if part.text in ("′", "″")]
    assert len(primes) == 1
    scripts = [part for part in root.iter() if part.tag in ("msup", "msubsup")]
    assert not any(primes[0] in list(part) for part in scripts)


def test_an_index_stays_below_beside_a_prime():
    root = ElementTree.fromstring(formula("x_i'"))
    (index,) = root.iter("msub")
    assert [part.text for part in index] == ["x", "i"]


@pytest.mark.parametrize("name", sorted(catalogue.built_in()))
def test_no_sign_of_a_statement_is_left_as_it_was_written(name):
    statement = description(catalogue.built_in()[name]).statement
    assert not re.search(r"\\\S", shown(statement))
