"""The article on what does not hold as it is said: all such statements, and none that holds."""

import re

from steepest.core.words import Verdict
from steepest.site.book import docs_folder, read_statements
from steepest.site.book._html import errata, errata_abstract

MAP = read_statements(docs_folder() / "statements.toml")


def test_every_source_of_the_map_is_in_the_article():
    page = (docs_folder() / "errata.md").read_text("utf-8")
    assert all(f"{{errata}} {source}\n" in page for source in MAP.sources)


def test_the_abstract_counts_what_the_map_has():
    text = (docs_folder() / "statements.toml").read_text("utf-8")
    abstract = errata_abstract(MAP)
    assert (
        f"{len(re.findall(r'^holds = .corrected.$', text, re.MULTILINE))} of them hold after"
        in " ".join(abstract.split())
    )
    assert f"{len(re.findall(r'^holds = .no.$', text, re.MULTILINE))} do not hold" in " ".join(
        abstract.split()
    )


def test_a_finding_has_what_was_said_what_is_so_and_its_claim():
    row = next(row for row in MAP.statements if row.holds == "no")
    text = errata([row], {claim: None for claim, _ in row.checks}, "")
    assert f'id="erratum-{row.number}"' in text
    assert f"statements.html#statement-{row.number}" in text
    assert row.checks[0][0] in text and "not run yet" in text
    assert not any(
        str(verdict) in re.sub("<[^>]*>", "", text).split() for verdict in [Verdict.OUT_OF_RANGE]
    )
