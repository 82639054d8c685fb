"""A reader's question finds its chapter or claim among the first results of the search."""

import json
from pathlib import Path

import pytest

from steepest.catalogue import built_in
from steepest.site import book as site_book
from steepest.site.book import docs_folder
from steepest.site.book._search import keywords
from tests.site.book.node import printed

QUESTIONS_OF_READERS = {
    "learning rate": "chapters/descent",
    "saddle": "chapters/descent",
    "Adam": "chapters/training",
    "NTK": "chapters/kernels",
    "double descent": "claims/double-descent",
    "initialization": "chapters/signals",
    "batch size": "chapters/training",
    "grokking": "chapters/training",
    "transformer": "chapters/training",
    "label noise": "chapters/margins",
    "Edge-of-stability": "claims/edge-of-stability",
}


def scores(query):
    """Return what the scorer makes of equal matches of several pages, best page first."""
    by_word = keywords(docs_folder())
    pages = [f"chapters/{path.stem}" for path in (docs_folder() / "chapters").glob("*.md")]
    pages += [f"claims/{name}" for name in built_in()] + ["subjects", "reference/api/kernels"]
    scorer = (Path(site_book.__file__).parent / "scorer.js").read_text("utf-8")
    asked = json.dumps("?q=" + query.replace(" ", "+"))
    script = scorer.replace("KEYWORDS", json.dumps(by_word))
    script += f"\nglobalThis.location = {{ search: {asked} }};"
    script += f"\nconst pages = {json.dumps(pages)};"
    script += "\nconst scored = pages.map((page) => [Scorer.score([page, '', '', '', 10]), page]);"
    return printed(script + "\nconsole.log(JSON.stringify(scored.sort((a, b) => b[0] - a[0])));")


@pytest.mark.parametrize("query", QUESTIONS_OF_READERS)
def test_a_question_finds_its_page_among_the_first_three(query):
    ranked = scores(query)
    best = [page for _, page in ranked[:3]]
    assert QUESTIONS_OF_READERS[query] in best
    assert ranked[2][0] > ranked[3][0] or best.index(QUESTIONS_OF_READERS[query]) < 2
    by_page = {page: score for score, page in ranked}
    assert by_page["reference/api/kernels"] == min(by_page.values())


def test_keywords_name_pages_that_are_there():
    names = built_in()
    for word, pages in keywords(docs_folder()).items():
        assert word == word.lower() and pages
        for page in pages:
            claim = page.removeprefix("claims/")
            assert claim in names or (docs_folder() / f"{page}.md").is_file(), (word, page)
