"""Every letter in a formula of the book is in the table of notation, and has one meaning within a section."""

import re
from typing import NamedTuple

import pytest

from steepest.site.book import chapters, docs_folder

TABLES = (docs_folder() / "notation.md").read_text("utf-8")
CHAPTERS = [chapter for chapter in chapters(docs_folder()) if chapter.name.startswith("chapters/")]
EVERYWHERE = "In every chapter"
START = "start"
"""What comes before the first heading of a chapter."""
GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi varphi "
    "chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
LETTERS = {f"\\{name}" for name in (*GREEK.split(), "ell", "nabla")}
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$]+?)\$", re.DOTALL)
WORDS = re.compile(
    r"\\(?:text|mathrm|operatorname|begin|end)\s*(?:\{[^{}]*\}|[A-Za-z])|\{\\rm [^{}]*\}"
)
"""Words within formulas, which are no letters."""


class Row(NamedTuple):
    """A row of a table: symbols as tokens, and the beginnings of the titles of their sections, none for all."""

    symbols: list[list[str]]
    places: list[str]


def tokens(latex):
    """A formula as commands, letters and signs, without braces, spaces and words."""
    plain = WORDS.sub(" ", latex)
    return [
        token
        for token in re.findall(r"\\[a-zA-Z]+|\\.|[^\s{}]", plain)
        if token not in ("\\,", "\\;")
    ]


def formulas(text):
    """The formulas of a text, as tokens; code is left out."""
    plain = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [tokens(match[1] or match[2]) for match in FORMULA.finditer(plain)]


def sections(text):
    """Title and text of each section of a chapter, down to the third level."""
    parts = re.split(r"^###? (.+)$", text, flags=re.MULTILINE)
    return [(START, parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def table(title):
    """The rows below a heading of the page."""
    below = re.split(r"^## ", TABLES, flags=re.MULTILINE)
    text = next(part for part in below if part.startswith(f"{title}\n"))
    rows = []
    for line in re.findall(r"^\| (\$.+) \|$", text, re.MULTILINE):
        cells = [cell.strip() for cell in line.split(" |")]
        places = cells[2].split("; ") if len(cells) > 2 and cells[2] else []
        rows.append(Row([tokens(match[2]) for match in FORMULA.finditer(cells[0])], places))
    return rows


def applies(row, title):
    return not row.places or any(title.startswith(place) for place in row.places)


def read(formula, symbols):
    """What a formula uses: symbols of the table, the longest first, and letters that are in none."""
    longest_first = sorted(symbols, key=len, reverse=True)
    used = []
    place = 0
    while place < len(formula):
        ahead = (
            symbol for symbol in longest_first if formula[place : place + len(symbol)] == symbol
        )
        symbol = next(ahead, None)
        if symbol is None and (formula[place] in LETTERS or formula[place].isalpha()):
            symbol = [formula[place]]
        if symbol is not None:
            used.append(symbol)
        place += len(symbol or "1")
    return used


def uses(chapter):
    """Each section of a chapter with each symbol that it uses, and the rows that tell what it means."""
    rows = [*table(EVERYWHERE), *table(chapter.title)]
    for title, text in sections(chapter.text):
        rows_of_section = [row for row in rows if applies(row, title)]
        symbols = [symbol for row in rows_of_section for symbol in row.symbols]
        used = [symbol for formula in formulas(text) for symbol in read(formula, symbols)]
        for symbol in dict.fromkeys(map(tuple, used)):
            meanings = [row for row in rows_of_section if list(symbol) in row.symbols]
            yield title, list(symbol), meanings


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_a_letter_has_one_meaning_within_a_section(chapter):
    wrong = {
        (title, "".join(symbol)): len(meanings)
        for title, symbol, meanings in uses(chapter)
        if len(meanings) != 1
    }
    assert wrong == {}, "symbols with no meaning or several, by section; see docs/notation.md"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_no_row_is_left_over(chapter):
    """Each symbol of a chapter's table is used, in each of the sections that the table names."""
    used = [(title, symbol) for title, symbol, _ in uses(chapter)]
    left_over = [
        ("".join(symbol), place)
        for row in table(chapter.title)
        for symbol in row.symbols
        for place in row.places or [""]
        if not any(title.startswith(place) and symbol == shown for title, shown in used)
    ]
    assert left_over == []


def test_no_table_is_of_a_chapter_that_is_not_there():
    titles = re.findall(r"^## (.+)$", TABLES, re.MULTILINE)
    assert sorted(titles) == sorted([EVERYWHERE, *(chapter.title for chapter in CHAPTERS)])


def test_how_a_formula_is_read():
    symbols = [tokens(latex) for latex in ("C_W", "C", r"\lambda_{\max}", r"\hat P")]
    latex = r"C_W C_b + \lambda_{\max}(\hat P_i)^2 \text{ of } \mathrm{tr}\, \lambda"
    used = ["".join(symbol) for symbol in read(tokens(latex), symbols)]
    assert used == ["C_W", "C", "b", r"\lambda_\max", r"\hatP", "i", r"\lambda"]


def test_a_second_meaning_is_noticed(monkeypatch):
    doubled = TABLES.replace("## Kernels", "## Kernels\n\n| $n$ | number of examples | |\n", 1)
    monkeypatch.setattr("tests.docs.test_notation.TABLES", doubled)
    chapter = next(chapter for chapter in CHAPTERS if chapter.title == "Kernels")
    meanings = [len(rows) for _, symbol, rows in uses(chapter) if symbol == ["n"]]
    assert set(meanings) == {2}
