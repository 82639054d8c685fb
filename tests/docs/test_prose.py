"""Every number in the prose is that of a result."""

import re

import pytest

from steepest import catalogue
from steepest.site.book import Number, chapters, docs_folder, needs, written
from tests.docs import record

RECORD = record.recorded()
CHAPTERS = [chapter for chapter in chapters(docs_folder()) if chapter.name.startswith("chapters/")]


@pytest.mark.parametrize("page, number", record.told(), ids=str)
def test_what_was_typed_is_what_the_result_says(page, number):
    """The number that the author saw is still that of the claim; if not, the sentence around it is to be read again."""
    of = RECORD.get(str(number.of), {}).get("numbers", {})
    assert record.key(number) in of, (
        f"{page}: no result is recorded for {number.typed} <{number.target}>; "
        "run python -m tests.docs.record"
    )
    assert written(of[record.key(number)], number.typed) == number.typed, (
        f"{page}: {number.typed} was typed, {number.target} is {of[record.key(number)]}"
    )


def test_a_number_that_differs_is_noticed():
    """The comparison fails for a number that is off by one in its last digit."""
    number = Number("measured", "0.98", "catapult loss")
    assert written(0.98, number.typed) == "0.98"
    assert written(0.9851, number.typed) != "0.98"


@pytest.mark.parametrize("asked", needs(docs_folder()), ids=str)
def test_the_record_is_of_the_code_that_is_here(asked):
    """A claim whose code has changed is recorded again: its numbers may have moved."""
    assert RECORD.get(str(asked), {}).get("judged") == record.code_of(asked), (
        f"{asked} has changed since the record; run python -m tests.docs.record"
    )


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_verdicts_are_those_that_the_text_was_written_for(chapter):
    for asked, expected in chapter.boxes:
        assert RECORD[str(asked)]["verdict"] == expected, f"{chapter.name}: {asked}"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_boxes_show_checks_that_count(chapter):
    checks = record.recorded_checks()
    missing = [(claim, id) for claim, id in chapter.checks if id not in checks[claim]["checks"]]
    assert not missing


def test_every_claim_is_told_or_listed():
    """Each folder of claims is listed at the end of a chapter; a chapter may name single claims besides."""
    listed = {
        word
        for chapter in CHAPTERS
        for line in re.findall(r"^:{3,}\{claims\} (.+)$", chapter.text, re.MULTILINE)
        for word in line.split()
    }
    assert listed - set(catalogue.built_in()) == set(catalogue.CHAPTERS)
