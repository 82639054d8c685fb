"""Slides of chapters: what the source says is on them, and keys go through them."""

import json
import re
from pathlib import Path

import pytest

from steepest.site.book import Shelf, _slides, chapters, docs_folder
from steepest.site.book._chapters import Chapter
from steepest.site.book._inline import inline
from tests.site.book.node import printed

CHAPTERS = [chapter for chapter in chapters(docs_folder()) if chapter.name.startswith("chapters/")]
KINDS = [
    "title",
    "claim",
    "claim",
    "claim",
    "question",
    "drawing",
    "drawing",
    "formulas",
    "figure",
    "doubt",
]


@pytest.fixture
def page(book) -> str:
    return (book.index.parent / "slides" / "decay.html").read_text("utf-8")


@pytest.fixture
def shelf(results) -> Shelf:
    return Shelf(results)


def slide(page, place):
    """The HTML of one slide, counted from 1."""
    return re.split(r'<section class="slide ', page)[place].split("</section>")[0]


def test_each_part_of_a_chapter_has_a_slide_with_its_number(page):
    assert re.findall(r'class="slide (\w+)"', page) == KINDS
    numbers = re.findall(r"(\d+) / (\d+)</a>", page)
    assert numbers == [(str(place), str(len(KINDS))) for place in range(1, len(KINDS) + 1)]


def test_nothing_waits_for_a_script(page):
    """Only the control of a toy is hidden until its script turns it."""
    assert re.findall(r"<(\w+)[^>]* hidden>", page) == ["p"]
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", page)


def test_the_first_slide_asks_the_question_of_the_chapter(page):
    first = slide(page, 1)
    assert "How things decay</h1>" in first
    assert 'class="asked">How fast?</p>' in first
    assert 'href="../chapters/decay.html"' in first


def test_a_claim_is_its_sentence_formula_figure_and_decisive_check(page):
    shown = slide(page, 2)
    for part in (
        "What is multiplied by ρ decays",
        "<math",
        "<svg",
        "0.45 to 0.55",
        "a faster decay",
    ):
        assert part in shown
    verdicts = re.findall(r'class="badge (\w+)"', shown)
    assert verdicts == [
        "holds",
        "holds",
        "fails",
    ]  # of the claim, of its check, and under the wrong theory
    assert re.findall(r"<dt>predicted</dt><dd>([\d.]+)</dd>", shown) == ["0.5", "0.3"]


def test_a_claim_without_result_says_how_to_get_one(page):
    shown = slide(page, 4)
    assert "not run yet" in shown
    assert "steepest run unrun" in shown


def test_the_last_slides_are_what_the_chapter_ends_with(page):
    assert slide(page, 8).count('<div class="formula">') == 3
    assert "for ever:" in slide(page, 8)
    assert "<em>decays</em>" in slide(page, 9)
    assert "<svg" in slide(page, 9)
    assert "Nobody knows why" in slide(page, 10)


def test_a_chapter_links_its_slides(book):
    text = (book.index.parent / "chapters" / "decay.html").read_text("utf-8")
    assert 'href="../slides/decay.html">Slides of this chapter</a>' in text
    front = book.index.read_text("utf-8")
    assert "Slides of this chapter" not in front


def test_lines_are_set_and_filled(shelf):
    numbers = "At $\\rho$ it is {measured}`0.49 <plain-decay rate>`, not {measured}`7 <unrun rate>`"
    line = f"{numbers}; **see** [it](a.md) & <b>"
    shown = inline(line, shelf, "../")
    assert "<mi>ρ</mi>" in shown
    assert '<a class="number" href="../claims/plain-decay.html#check-rate">0.50</a>' in shown
    assert '<span class="unfilled">7</span>' in shown
    assert "<strong>see</strong> it &amp; &lt;b&gt;" in shown


@pytest.mark.parametrize(
    "block",
    [
        ":::{claim} nobody\n:::\n",
        ":::{claim} plain-decay\n:panels: 9\n:::\n",
        ":::{claim} plain-decay\n:checks: rat\n:::\n",
        ":::{idea} vally\n:::\n",
    ],
)
def test_what_is_named_wrongly_is_left_out(shelf, block):
    """The page of the chapter warns of it; the slides are built all the same."""
    text = f"# Wrong\n\n{block}\n## To take away\n\n**One figure.** See {{verdict}}`plain-decay`.\n"
    kinds = [
        shown.kind for shown in _slides.slides(Chapter("chapters/wrong", "Wrong", text), shelf)
    ]
    assert kinds == ["title", "formulas", "figure", "doubt"]


def test_an_option_without_a_word_does_not_take_the_next_line():
    text = ":::{claim} plain-decay\n:panels:\n:checks: rate\n:::\n"
    assert Chapter("wrong", "Wrong", text).blocks[0].options == {"panels": "", "checks": "rate"}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_each_chapter_has_what_its_slides_need(chapter):
    assert chapter.question.endswith("?")
    last = chapter.take_away
    assert last is not None
    assert len(last.formulas) == 3
    assert last.lead.endswith(":")
    assert re.search(r"\{verdict\}`[\w-]+`", last.figure)
    assert last.doubt.endswith(".")


STUB = """
const reached = [];
const slides = [...Array(4).keys()].map((place) => ({
  id: `slide-${place + 1}`,
  getBoundingClientRect: () => ({ top: 800 * place - 800 * SCROLLED, height: 700 }),
  scrollIntoView: () => reached.push(place),
}));
const handlers = {};
globalThis.document = { querySelectorAll: () => slides, body: { dataset: {} } };
globalThis.addEventListener = (kind, handler) => { handlers[kind] = handler; };
globalThis.innerHeight = 720;
globalThis.history = { replaceState: () => {} };
const event = { target: { closest: () => null }, preventDefault: () => {} };
const press = (key, more = {}) => handlers.keydown({ ...event, key, ...more });
"""


def test_keys_go_forward_and_back_and_stop_at_the_ends():
    """From the second slide, to which a reader has scrolled."""
    script = (Path(_slides.__file__).parent / "slides.js").read_text("utf-8")
    keys = ["ArrowRight", " ", "ArrowDown", "ArrowLeft", "Home", "ArrowUp", "End", "x"]
    presses = "".join(f"press({json.dumps(key)});" for key in keys)
    more = 'press(" ", { shiftKey: true }); press("ArrowLeft", { ctrlKey: true });'
    run = STUB.replace("SCROLLED", "1") + f"(() => {{ {script} }})();{presses}{more}"
    assert printed(run + "console.log(JSON.stringify(reached))") == [2, 3, 3, 2, 0, 0, 3, 2]
