"""The bibliography is sound, and every claim and every work has its place in it."""

import re
from pathlib import Path

import pytest

from steepest import catalogue
from steepest.core.errors import UserError
from steepest.sources import ENTRIES, cited, expand, sources, spelled

ROOT = Path(__file__).parent.parent
NAMES = list(catalogue.built_in())


@pytest.fixture(scope="module")
def claims():
    return {name: catalogue.load(name) for name in NAMES}


def test_every_claim_cites_a_work_or_says_that_it_is_ours(claims):
    bare = {
        name: kind.source
        for name, kind in claims.items()
        if not cited(kind.source) and "derived here" not in kind.source
    }
    assert bare == {}


def test_every_work_is_cited(claims):
    used = {work.key for kind in claims.values() for work in cited(kind.source)}
    assert used == set(sources())


def test_only_a_source_is_expanded_so_only_it_cites(claims):
    others = {
        name: [*kind.corrections, *kind.remarks, kind.statement, kind.__doc__ or ""]
        for name, kind in claims.items()
    }
    assert [name for name, texts in others.items() if "[@" in "".join(texts)] == []


def test_no_text_names_a_source_by_the_number_of_a_file():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *catalogue.ROOT.rglob("*.py")]
    numbered = re.compile(r"seeds 0\d\d|(talk|panel|slides in|talk of) 0\d\d")
    assert [str(page) for page in pages if numbered.search(page.read_text("utf-8"))] == []


@pytest.mark.parametrize("work", sources().values(), ids=lambda work: work.key)
def test_a_work_is_whole(work):
    assert re.fullmatch(r"[a-z]+\d{4}[a-z]?", work.key)
    assert work.kind in ENTRIES
    assert work.authors and all(author == author.strip() for author in work.authors)
    assert str(work.year) in work.key
    assert work.title and work.venue
    assert re.fullmatch(r"(10\.\d{4,9}/\S+)?", work.doi)
    assert re.fullmatch(r"(\d{4}\.\d{4,5})?", work.arxiv)
    assert re.fullmatch(r"(https://\S+)?", work.url)
    family = work.short.split(" ")[0].lower().replace("-", "")
    assert work.key.startswith(family[:4].encode("ascii", "ignore").decode())


def test_no_two_works_are_cited_alike_and_letters_are_not_wasted():
    shorts = [work.short for work in sources().values()]
    assert len(set(shorts)) == len(shorts)
    assert not sources()["papyan2020a"].letter  # Papyan et al. 2020 is the other one
    links = [work.link for work in sources().values() if work.link]
    assert len(set(links)) == len(links)


def test_citations_split_a_text():
    pieces = expand("[@cohen2021], and [@lyu2020][@cohen2021]")
    assert [piece if isinstance(piece, str) else piece.key for piece in pieces] == [
        "cohen2021",
        ", and ",
        "lyu2020",
        "cohen2021",
    ]
    assert [work.key for work in cited("[@lyu2020] [@cohen2021] [@lyu2020]")] == [
        "lyu2020",
        "cohen2021",
    ]
    assert spelled("no citation [1]") == "no citation [1]"
    assert expand("") == ()


def test_an_unknown_work_is_refused_with_the_nearest_or_left_as_it_is():
    with pytest.raises(UserError, match=r"no work 'lewkowitz2020'.*did you mean 'lewkowycz2020'"):
        expand("[@lewkowitz2020]")
    with pytest.raises(UserError, match="sources.toml has all keys"):
        expand("[@?]")
    assert expand("see [@lewkowitz2020]", known_only=False) == ("see ", "[@lewkowitz2020]")
    assert cited("[@lewkowitz2020]", known_only=False) == ()


def test_bibtex_escapes_what_latex_would_read():
    from dataclasses import replace

    work = replace(sources()["cohen2021"], title="50 % of $x_1$ & more")
    assert r"title = {{50 \% of \$x\_1\$ \& more}}" in work.bibtex()
    assert work.bibtex().count("{") == work.bibtex().count("}")
    assert "Gérard {Ben Arous}" in sources()["auffinger2013"].bibtex()
    assert "Gérard Ben Arous" in sources()["auffinger2013"].people
