"""The map of the theory: how it is read, drawn and written as lists."""

import re
from xml.etree import ElementTree

import pytest

from steepest.core.errors import UserError
from steepest.site.book._theory import Word, theory_of
from steepest.site.book._theory_drawing import HEIGHT, WIDTH, drawn, nested, wrapped
from tests.site.book.conftest import THEORY

CHAPTER = ["plain-decay", "shifted-decay", "growing"]


@pytest.fixture
def theory():
    return theory_of(THEORY)


def test_ties_are_read_in_the_order_of_claims(theory):
    assert list(theory.ties) == ["plain-decay", "shifted-decay", "growing", "unrun"]
    limits, uses = theory.ties["unrun"]
    assert (limits.basis, limits.word) == ("shifted-decay", Word.LIMITS)
    assert (uses.basis, uses.why) == ("plain-decay", "It decays first.")


def test_what_rests_on_a_claim_through_others_counts(theory):
    assert theory.resting["plain-decay"] == ("shifted-decay", "unrun")
    assert theory.carried["plain-decay"] == {"shifted-decay", "unrun"}
    assert theory.carried["growing"] == set()


def test_roots_carry_and_rest_on_nothing(theory):
    assert theory.roots == ["plain-decay"]
    assert theory.pillars == ["plain-decay", "shifted-decay"]


@pytest.mark.parametrize(
    "claim, ties, sentence",
    [
        ("unrun", {"uses": {"plain-deca": "It decays."}}, "is not on the map"),
        (
            "unrun",
            {"uses": {"growing": "So."}, "limits": {"growing": "So."}},
            "tied to growing twice",
        ),
        ("unrun", {"uses": {"unrun": "It is."}}, "unrun on unrun"),
        ("plain-decay", {"uses": {"unrun": "It does."}}, "rest on each other"),
        ("unrun", {"uses": {"plain-decay": ""}}, "no sentence says how"),
    ],
)
def test_a_bad_map_is_refused(claim, ties, sentence):
    with pytest.raises(UserError, match=sentence):
        theory_of({**THEORY, claim: ties})


def test_claims_of_a_chapter_are_drawn_with_what_they_rest_on(theory):
    drawing = drawn(theory, ["shifted-decay", "growing"])
    assert {node.name: node.inside for node in drawing.nodes} == {
        "plain-decay": False,
        "shifted-decay": True,
    }
    assert [curve.tie.basis for curve in drawing.curves] == ["plain-decay"]
    assert drawing.alone == ["growing"]


def test_lines_lead_from_box_to_box(theory):
    """Each begins at the right edge of its basis and its arrow ends at the left edge of its claim."""
    drawing = drawn(theory, list(theory.ties))
    boxes = {node.name: node for node in drawing.nodes}
    for curve in drawing.curves:
        start, _ = _first(curve.path)
        tip, height = _first(curve.head)
        basis = boxes[curve.tie.basis]
        claim = boxes[curve.tie.claim]
        assert start == pytest.approx(basis.left + WIDTH, abs=0.06)
        assert tip == pytest.approx(claim.left, abs=0.06)
        assert claim.top < height < claim.top + claim.height


def test_boxes_stay_on_the_drawing_and_apart(theory):
    drawing = drawn(theory, list(theory.ties))
    for node in drawing.nodes:
        assert 0 <= node.left <= drawing.width - WIDTH
        assert 0 <= node.top <= drawing.height - HEIGHT
    corners = {(node.left, node.top) for node in drawing.nodes}
    assert len(corners) == len(drawing.nodes)


def test_a_long_name_is_broken_behind_hyphens():
    assert wrapped("statistical-query-hardness") == ["statistical-", "query-hardness"]
    assert wrapped("catapult") == ["catapult"]


def test_each_claim_stands_once_in_the_list(theory):
    drawing = drawn(theory, list(theory.ties))
    (top,) = nested(theory, drawing)
    (shifted,) = top.branches
    (unrun,) = shifted.branches
    assert (top.name, shifted.name, unrun.name) == ("plain-decay", "shifted-decay", "unrun")
    assert unrun.word is Word.LIMITS
    assert [tie.basis for tie in unrun.also] == ["plain-decay"]


def test_the_drawing_is_on_the_page(book):
    page = (book.index.parent / "chapters" / "decay.html").read_text("utf-8")
    figure = page.split('<figure class="theory">')[1].split("</figure>")[0]
    svg = ElementTree.fromstring(f"<svg{figure.split('<svg')[1].split('</svg>')[0]}</svg>")
    assert svg.attrib["aria-label"].startswith("2 claims of this chapter")
    links = [link.attrib["href"] for link in svg.iter("a")]
    assert links == ["../claims/plain-decay.html", "../claims/shifted-decay.html"]
    assert "From zero to any place." in figure
    assert "✓" in figure


def test_roots_and_what_carries_most_are_on_the_page(book):
    page = (book.index.parent / "chapters" / "decay.html").read_text("utf-8")
    table = page.split('<table class="pillars">')[1].split("</table>")[0]
    assert re.findall(r"<td>(\d)</td>", table) == ["2", "2"]
    assert "carries 2" in page


def _first(path):
    """The point at which a path begins."""
    across, down = re.findall(r"[\d.]+", path)[:2]
    return float(across), float(down)
