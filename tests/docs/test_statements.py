"""The map of the sources: every check that it names exists and counts, and every claim is on it."""

import pytest

from steepest import catalogue
from steepest.core.errors import UserError
from steepest.site.book import State, counts, docs_folder, read_statements
from tests.docs import record

MAP = read_statements(docs_folder() / "statements.toml")
CHECKS = record.recorded_checks()
GOOD = """[[statement]]
number = 1
source = "hanin2022"
place = "5 October"
says = "The sharpness rises to 2/η."
state = "built"
holds = "yes"
checks = ["edge-of-stability late_sharpness"]
"""


@pytest.mark.parametrize("claim", sorted({claim for _, claim, _ in MAP.checks}))
def test_every_check_of_the_map_exists_and_counts(claim):
    """A check that was renamed, is gone, or that nothing fails tests no statement."""
    assert claim in CHECKS, f"no claim is called {claim!r}"
    asked = {id: row.number for row, name, id in MAP.checks if name == claim}
    missing = {row: id for id, row in asked.items() if id not in CHECKS[claim]["checks"]}
    assert not missing, f"{claim} has {', '.join(CHECKS[claim]['checks'])}"


@pytest.mark.parametrize("claim", sorted(catalogue.built_in()))
def test_the_checks_are_those_of_the_code_that_is_here(claim):
    """A claim whose code has changed is recorded again: its checks may be others."""
    assert CHECKS.get(claim, {}).get("judged") == record.code_of_claim(claim), (
        f"{claim} has changed since the record; run python -m tests.docs.record"
    )


def test_every_claim_is_on_the_map():
    """A claim tests a statement of the sources, or the map says where it comes from."""
    on_the_map = {claim for _, claim, _ in MAP.checks} | set(MAP.elsewhere)
    assert on_the_map == set(catalogue.built_in())


def test_every_source_has_its_part_of_the_page():
    page = (docs_folder() / "statements.md").read_text("utf-8")
    assert all(f"{{statements}} {source}\n" in page for source in MAP.sources)


def test_counts_add_up():
    assert sum(counts(MAP.statements).values()) == len(MAP.statements)
    assert counts(MAP.statements)[State.BUILT] == sum(
        row.state == "built" for row in MAP.statements
    )


@pytest.mark.parametrize(
    "old, new, sentence",
    [
        ("number = 1", "number = 2", "is number 2, expected 1"),
        ('"hanin2022"', '"hanin1922"', "the bibliography lacks"),
        ('"built"', '"built up"', "not a valid State"),
        ('"built"', '"part"', "does not say why"),
        ('"built"', '"none"', "names checks"),
        ('["edge-of-stability late_sharpness"]', "[]", "names no check"),
        ("edge-of-stability late", "edge-of-stability_late", "a claim and an id"),
        ('"yes"', '"no"', "does not say what is so"),
        ("place =", "places =", "'place'"),
        ("number = 1", "number = ", "cannot read"),
    ],
)
def test_a_bad_row_is_refused(tmp_path, old, new, sentence):
    path = tmp_path / "statements.toml"
    path.write_text(GOOD)
    assert len(read_statements(path).statements) == 1
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(UserError, match=sentence):
        read_statements(path)
