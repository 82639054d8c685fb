"""The page of benchmarks says what the records say."""

import json

import pytest

from benchmarks import page
from steepest.catalogue import built_in
from steepest.record import HoldRate


def test_the_page_is_written_from_the_records():
    written = (page.DOCS / "benchmarks.md").read_text("utf-8")
    assert written == page.page(), "the records have changed; run python benchmarks/page.py"


def test_every_record_is_on_the_page():
    recorded = {path.parent.name for path in page.HERE.glob("*/record.json")}
    assert recorded == {*page.ORDER, "seeds"}


@pytest.mark.parametrize("name", page.ORDER)
def test_rows_have_their_columns(name):
    record = json.loads((page.HERE / name / "record.json").read_text("utf-8"))
    for table in record["tables"]:
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}


def test_fresh_seeds_are_of_claims_that_exist():
    counted = json.loads((page.HERE / "seeds" / "record.json").read_text("utf-8"))
    assert set(counted) <= set(built_in())


def test_counts_in_words():
    assert page.said(HoldRate(holds=20)) == "20 of 20"
    assert (
        page.said(HoldRate(holds=18, undecided=1, out_of_range=1))
        == "18 hold, 1 undecided, 1 out of range"
    )
