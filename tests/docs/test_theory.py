"""The map of the theory: every claim of the catalogue is on it, and the page has every chapter."""

from steepest import catalogue
from steepest.site.book import docs_folder, theory_of_catalogue
from steepest.site.book._theory_drawing import LETTERS, drawn, wrapped

MAP = theory_of_catalogue()
COLUMNS = 4  # that fit on a page with words of a readable size


def test_every_claim_is_on_the_map_in_the_order_of_the_catalogue():
    assert list(MAP.ties) == list(catalogue.built_in())


def test_every_chapter_has_its_drawing():
    page = (docs_folder() / "theory.md").read_text("utf-8")
    assert all(f"{{theory}} {chapter}\n" in page for chapter in catalogue.CHAPTERS)


def test_every_drawing_fits_on_a_page():
    for chapter in catalogue.CHAPTERS:
        names = [name for name, line in catalogue.built_in().items() if line.chapter == chapter]
        drawing = drawn(MAP, names)
        assert len({node.left for node in drawing.nodes}) <= COLUMNS


def test_every_name_fits_into_its_box():
    for name in MAP.ties:
        lines = wrapped(name)
        assert len(lines) <= 2
        assert max(map(len, lines)) <= LETTERS


def test_no_two_ties_say_the_same():
    """A sentence that would do for two ties says nothing of either."""
    reasons = [tie.why for ties in MAP.ties.values() for tie in ties]
    assert len(set(reasons)) == len(reasons)
