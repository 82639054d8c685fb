"""A small book: what its pages show, and that nothing of the reader's is lost."""

import re
import shutil
from types import SimpleNamespace
from typing import Any

import pytest

from steepest.app.book import write_book
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.record import HoldRate, Record
from steepest.site.book import build, chapters, needs
from steepest.site.book._where import where_it_holds
from tests.extras import need
from tests.site.book.whole import problems


@pytest.fixture
def chapter(book) -> str:
    return (book.index.parent / "chapters" / "decay.html").read_text("utf-8")


def test_nothing_is_wrong_with_the_whole(book):
    """No dead link or anchor, no request, nothing heavy, no raw formula; and Sphinx has nothing to say."""
    assert list(problems(book.index.parent)) == []
    assert [line for line in book.warnings if "unrun" not in line] == []


def test_numbers_come_from_results(chapter):
    """Not what was typed (0.49, 7) but what was measured; what is not stored is marked."""
    shown = re.findall(r'class="number[^"]*"[^>]*>([^<]*)<', chapter)
    assert shown == ["0.50", "0.6", "0.3", "0.25"]
    assert re.search(r'class="unfilled"[^>]*>7<', chapter)


def test_a_number_leads_to_its_check(chapter):
    assert 'href="../claims/plain-decay.html#check-rate"' in chapter


def test_a_claim_shows_what_would_refute_it(chapter):
    told = chapter.split('aria-label="The claim plain-decay"')[1].split("</aside>")[0]
    for part in (
        "What is multiplied by ρ decays",
        "<svg",
        "0.45 to 0.55",
        "a faster decay",
        "holds",
    ):
        assert part in told


def test_a_claim_says_where_it_holds(chapter):
    told = chapter.split('aria-label="The claim plain-decay"')[1].split("</aside>")[0]
    assert "<b>Where it holds.</b> A decay whose rate is measured." in told
    assert "fresh seeds" not in told  # nobody has counted


def test_where_a_claim_of_the_catalogue_holds(monkeypatch):
    """Sentence, counts and ranges are those of its result and of the record."""
    about = {
        "origin": "steepest",
        "experiment": "Networks on digits.",
        "scope": {"lr": {"low": 0.1, "high": 0.2, "why": ""}},
    }
    result: Any = SimpleNamespace(about=about, preset="quick", claim="decay", claim_version=3)
    counted = Record(3, Verdict.HOLDS, seeds=HoldRate(19, fails=1), settings=HoldRate(20))
    monkeypatch.setattr("steepest.record.records", lambda: {"decay": counted})
    where = where_it_holds(result)
    assert where.rates == (
        "holds at 19 of 20 fresh seeds (1 fails), 20 of 20 settings; settings span a factor of 2 (lr)"
    )
    assert (where.experiment, where.ranges) == ("Networks on digits.", {"lr": "0.1 … 0.2"})


def test_the_formula_of_each_claim_is_listed(chapter):
    listed = chapter.split('class="formulas"')[1].split("</dl>")[0]
    assert listed.count("<dt>") == len(listed.split('class="formula"')) - 1
    assert 'href="../claims/plain-decay.html"' in listed
    assert "<math" in listed
    assert "not run yet" in listed


def test_each_chapter_of_the_catalogue_has_a_page_of_formulas(book):
    leading = (book.index.parent / "formulas.html").read_text("utf-8")
    assert 'href="formulas/first_steps.html"' in leading and "<math" not in leading
    page = (book.index.parent / "formulas" / "first_steps.html").read_text("utf-8")
    assert 'href="../claims/plain-decay.html"' in page and "<math" in page


def test_claims_are_listed_by_chapter_or_by_name(chapter):
    of_chapter, named = chapter.split('<ul class="overview">')[1:]
    assert of_chapter.split("</ul>")[0].count("<li>") > 1
    assert re.findall(r'href="\.\./claims/([\w-]+)\.html"', named.split("</ul>")[0]) == [
        "shifted-decay"
    ]


def test_a_claim_without_result_says_how_to_get_one(chapter):
    told = chapter.split('aria-label="The claim unrun"')[1].split("</aside>")[0]
    assert "not run yet" in told
    assert "steepest run unrun" in told


def test_a_moving_figure_has_a_frame_a_value_and_works_without_scripts(chapter):
    slides = chapter.split('class="slides"')[1]
    assert re.findall(r'data-value="([\d.]+)"', slides) == ["0.25", "0.5", "1.5"]
    assert "hidden" not in re.findall(r"<figure[^>]*>", slides)[0]
    assert "out of range" in slides


def test_a_question_is_folded_and_its_markup_is_read(chapter):
    question = chapter.split('<details class="predict">')[1].split("</details>")[0]
    assert "<em>grow</em>" in question
    assert "<math" in question


def test_a_claim_s_page_says_where_it_is_told(book):
    page = (book.index.parent / "claims" / "plain-decay.html").read_text("utf-8")
    assert 'href="../chapters/decay.html">How things decay</a>' in page
    assert 'id="check-rate"' in page


def test_markup_of_claims_stays_text(book):
    page = (book.index.parent / "claims" / "plain-decay.html").read_text("utf-8")
    assert "<script>alert" not in page


def test_the_search_knows_the_chapters(book):
    index = (book.index.parent / "searchindex" / "base.js").read_text("utf-8")
    assert "How things decay" in index


def test_what_a_book_needs(docs):
    wanted = [str(asked) for asked in needs(docs)]
    assert "plain-decay(rate=0.25)" in wanted
    assert wanted.count("plain-decay") == 1
    assert "growing" not in wanted  # a verdict in the text needs no run
    titles = {chapter.name: chapter.title for chapter in chapters(docs)}
    assert titles["chapters/decay"] == "How things decay"


def test_a_folder_that_is_not_a_book_is_left_alone(docs, results, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(
        UserError, match=r"is not a book \(thesis\.tex\), and nothing in it was touched"
    ):
        build(docs, results, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_reader_s_file_in_a_book_is_not_lost(docs, results, book, tmp_path):
    out = tmp_path / "book"
    shutil.copytree(book.index.parent, out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"holds a file that is not the book's \(notes.txt\)"):
        build(docs, results, out)
    assert (out / "notes.txt").read_text() == "mine"


def test_what_is_missing_is_said_before_anything_runs(tmp_path, monkeypatch):
    """Eight minutes of claims are not run for a book that cannot be built."""
    monkeypatch.setattr("steepest.app.book.run_several", None)
    monkeypatch.setattr("steepest.site.book._build.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"the book needs sphinx; install it with pip install"):
        write_book(None, tmp_path / "results", tmp_path / "book")


def test_no_sources_are_refused(results, tmp_path):
    with pytest.raises(UserError, match=r"it has no index\.md"):
        build(tmp_path, results, tmp_path / "book")


WRONG = {
    "{measured}`0.5 <plain-decay nothing>`": "has no check 'nothing'",
    "{measured}`0.5 <plain-decayed rate>`": None,  # no such claim: nothing is stored, so it is marked
    "{measured}`half <plain-decay rate>`": "cannot tell how 'half' is written",
    "{measured}`0.5`": "write {measured}`number <claim what>`",
    "{verdict}`nobody`": "there is no claim",
    "It was 0.73 in the end.": "the number 0.73 is typed by hand",
    ":::{claim} plain-decay\n:checks: rat\n:::": "did you mean 'rate'",
    ":::{claim} plain-decay\n:panels: 9\n:::": "has 2 panels, got number 9",
    ":::{claims} nowhere\n:::": "no claim is in nowhere",
    ":::{claims} plain-decay nobody\n:::": "no claim is in nobody, or is called so",
}


def test_what_an_author_gets_wrong_is_said(results, tmp_path):
    """Each mistake is a warning with its sentence, and the book is built all the same."""
    need("sphinx")
    (tmp_path / "docs" / "chapters").mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text("# Front\n", "utf-8")
    text = "# Wrong\n\n" + "\n\n".join(WRONG)
    (tmp_path / "docs" / "chapters" / "wrong.md").write_text(text, "utf-8")
    book = build(tmp_path / "docs", results, tmp_path / "book", reference=False, execute=False)
    said = "\n".join(book.warnings)
    for sentence in WRONG.values():
        assert sentence is None or sentence in said
    assert book.index.is_file()


def test_braces_of_plain_text_are_indices_and_exponents(chapter):
    assert "n<sup>−α</sup>" in chapter
    assert "W<sub>l+k</sub>" in chapter


def test_an_array_like_is_called_so():
    from sphinx.util.inspect import signature, stringify_signature

    from steepest.dynamics import mean_square
    from steepest.site.book._reference import short_signature

    long = stringify_signature(signature(mean_square), unqualified_typehints=True)
    short, _ = short_signature(None, "function", "", mean_square, None, long, None)
    assert short.startswith(
        "(eigenvalues: ArrayLike, steps: ArrayLike, noise: ArrayLike, start: ArrayLike = 1.0)"
    )


def test_roles_of_indices_do_not_hold_each_other():
    """``2^{−n_k}`` of a docstring is an exponent with a plain index; literal text stays."""
    from steepest.site.book._reference import clean_docstring

    lines = ["with probability 2^{−n_k}, z_i^{l+1} and ``x_i``"]
    clean_docstring(None, "function", "", None, None, lines)
    assert lines == [
        "with probability 2\\ :sup:`−n_k`\\ , z\\ :sub:`i`\\ \\ :sup:`l+1`\\  and ``x_i``"
    ]
