"""Figures as files, and pages without letters that no browser needs."""

import re

from markupsafe import Markup

from steepest.site.book._gallery import Gallery
from steepest.site.book._lean import lean_menu, lean_page, lean_sheet

GRAPHIC = Markup(
    '<svg viewBox="0 0 10 5" role="img" aria-label="a &lt; b"><path d="M0 0L1 1"/></svg>'
)


def test_a_picture_has_a_file_a_size_and_words(tmp_path):
    gallery = Gallery()
    shown = gallery.picture(GRAPHIC, "one", "../")
    assert 'src="../figures/one.svg"' in shown and 'alt="a &lt; b"' in shown
    assert 'width="10" height="5" loading="lazy"' in shown
    gallery.write(tmp_path)
    assert (tmp_path / "figures" / "one.svg").read_text("utf-8").startswith("<svg")


def test_the_books_far_figures_are_files_and_near_ones_are_not(book):
    chapter = (book.index.parent / "chapters" / "decay.html").read_text("utf-8")
    files = re.findall(r'<img src="\.\./(figures/[^"]+)"', chapter)
    assert files and all((book.index.parent / file).is_file() for file in files)
    assert all("moving" in file for file in files)  # two boxes with results: both are near


def test_each_figure_of_a_claim_is_a_file_to_take_along(book):
    folder = book.index.parent / "claims"
    page = (folder / "plain-decay.html").read_text("utf-8")
    files = re.findall(r'class="file" href="([^"]+)"', page)
    assert len(files) == 2
    for file in files:
        text = (folder / file).read_text("utf-8")
        assert (
            "<svg" in text and "var(" not in text
        )  # colours of its own: other programs know no theme


def test_lean_pages_keep_code_and_words():
    text = "<ul>\n  <li>a  b</li>\n  <li>c\n  d</li>\n</ul>\n<pre>x\n\n  y</pre>"
    lean = lean_page(text)
    assert "<pre>x\n\n  y</pre>" in lean
    words = lambda page: re.sub(r"<[^>]*>", " ", page).split()
    assert words(lean) == words(text)
    assert len(lean) < len(text)


def test_a_long_list_that_is_closed_is_not_on_every_page():
    links = '<li class="toctree-l2"><a href="a.html">a</a><ul><li>b</li></ul></li>'
    menu = '<li class="toctree-l1 has-children"><a href="index.html">All</a><input/><ul>{}</ul></li><li>next</li>'
    assert lean_menu(menu.format(links)) == menu.format(links)
    long = lean_menu(menu.format(links * 12))
    assert long == '<li class="toctree-l1"><a href="index.html">All</a></li><li>next</li>'
    read = menu.replace("has-children", "current has-children").format(links * 12)
    assert lean_menu(read) == read


def test_a_lean_sheet_has_the_same_rules():
    sheet = 'a:hover , b > c { margin: 0 auto; content: "x"; }\n/* no */ @media (min-width: 1px) { d { e: f } }'
    lean = lean_sheet(sheet)
    assert "no" not in lean.replace("auto", "")
    squeezed = re.sub(r"\s|/\*.*?\*/", "", sheet).replace(";}", "}")
    assert re.sub(r"\s", "", lean) == squeezed


def test_the_search_puts_a_claim_first_for_its_own_name(book):
    scripts = (path.read_text("utf-8") for path in (book.index.parent / "_static").glob("*.js"))
    assert any("`claims/${asked" in script for script in scripts)


def test_menus_out_of_sight_are_out_of_reach(book):
    sheet = (book.index.parent / "_static" / "book.css").read_text("utf-8")
    for drawer, toggle in ((".sidebar-drawer", "#__navigation"), (".toc-drawer", "#__toc")):
        assert f"{drawer}{{visibility: hidden}}" in sheet
        assert f"{toggle}:checked ~ .page {drawer}{{visibility: visible}}" in sheet
