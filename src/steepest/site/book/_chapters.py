"""What the sources of a book tell: which claims, at which fields, and where."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ._numbers import Asked, asked, numbers
from ._points import Row, read_row

_BOX = re.compile(r"^:{3,}\{claim\}\s+(\S+)[^\n]*\n((?::\w+:[^\n]*\n)*)", re.MULTILINE)
_MOVING = re.compile(r"^:{3,}\{moving\}\s+(\S+)[^\n]*\n((?::\w+:[^\n]*\n)*)", re.MULTILINE)
_OPTION = re.compile(r"^:(\w+):[ \t]*(.*)$", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_QUESTION = re.compile(r"\A# .+\n+\*([^*]+)\*", re.MULTILINE)
_BLOCK = re.compile(
    r"^:{3,}\{(claim|predict|idea|toy)\}\s+(\S[^\n]*)\n((?::\w+:[^\n]*\n)*)", re.MULTILINE
)
_LAST = re.compile(r"^## To take away\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A directive of a chapter that a lecture shows.

    Attributes:
        kind: ``claim``, ``predict``, ``idea`` or ``toy``.
        argument: the claim's name, the question, or the name of the drawing.
        options: its options as they are written, by name.
    """

    kind: str
    argument: str
    options: dict[str, str]


@dataclass(frozen=True)
class TakeAway:
    """What a chapter ends with.

    Attributes:
        lead: what its formulas say, as Markdown.
        formulas: the formulas, as LaTeX.
        figure: which figure to remember, as Markdown that names a claim.
        doubt: what is not known, as Markdown.
    """

    lead: str
    formulas: tuple[str, ...]
    figure: str
    doubt: str


@dataclass(frozen=True)
class Chapter:
    """A page of the book that tells of claims.

    Attributes:
        name: its path below the sources without the ending, such as ``chapters/curvature``.
        title: its first heading.
        text: its source.
    """

    name: str
    title: str
    text: str

    @property
    def question(self) -> str:
        """The question under its title, as Markdown; empty where it has none."""
        asked_first = _QUESTION.match(self.text)
        return " ".join(asked_first[1].split()) if asked_first else ""

    @property
    def blocks(self) -> list[Block]:
        """Its claims, questions, drawings and toys, in order."""
        return [
            Block(match[1], match[2].strip(), _options(match[3]))
            for match in _BLOCK.finditer(self.text)
        ]

    @property
    def take_away(self) -> TakeAway | None:
        """What it ends with, or None where it has no such section."""
        section = _LAST.search(self.text)
        if section is None:
            return None
        formulas = tuple(latex.strip() for latex in _DISPLAYED.findall(section[1]))
        texts = [
            _under(title, section[1]) for title in ("Three formulas", "One figure", "One doubt")
        ]
        return TakeAway(texts[0], formulas, texts[1], texts[2])

    @property
    def boxes(self) -> list[tuple[Asked, str]]:
        """The claims that it shows, in order, each with the verdict that the text was written for."""
        boxes = []
        for match in _BOX.finditer(self.text):
            options = _options(match[2])
            boxes.append(
                (asked(match[1], options.get("fields", "")), options.get("expect", "holds"))
            )
        return boxes

    @property
    def claims(self) -> list[str]:
        """The names of the claims that it shows, once each."""
        return list(dict.fromkeys(shown.claim for shown, _ in self.boxes))

    @property
    def checks(self) -> list[tuple[str, str]]:
        """Claim and id of each check that a box names."""
        return [(claim.claim, one.check) for claim, one in self.rows]

    @property
    def rows(self) -> list[tuple[Asked, Row]]:
        """Each row that the table of a box is told to show, with the claim, in order."""
        return [
            (asked(match[1], options.get("fields", "")), read_row(word))
            for match in _BOX.finditer(self.text)
            for options in [_options(match[2])]
            for word in options.get("checks", "").split()
        ]

    @property
    def points(self) -> dict[tuple[Asked, str], set[int | None]]:
        """Which points of each check its text quotes, by claim and id; None for the worst."""
        points: dict[tuple[Asked, str], set[int | None]] = {}
        for number in numbers(self.text):
            if number.of_check:
                quoted = read_row(number.what.split()[-1])
                points.setdefault((number.of, quoted.check), set()).add(quoted.place)
        return points

    def needs(self) -> Iterator[Asked]:
        """Yield every result that it shows or quotes."""
        yield from (shown for shown, _ in self.boxes)
        for match in _MOVING.finditer(self.text):
            yield from frames(match[1], _options(match[2]))
        for number in numbers(self.text):
            yield number.of


def frames(claim: str, options: dict[str, str]) -> list[Asked]:
    """Return the settings that a moving figure goes through: ``field`` takes each of ``values``."""
    return [asked(claim, f"{options['field']}={word}") for word in options["values"].split()]


def chapters(docs: Path) -> list[Chapter]:
    """Return every Markdown page of the sources, in the order of their names."""
    pages = []
    for path in sorted(docs.rglob("*.md")):
        text = path.read_text("utf-8")
        heading = _TITLE.search(text)
        name = path.relative_to(docs).with_suffix("").as_posix()
        pages.append(Chapter(name, heading[1].strip() if heading else name, text))
    return pages


def needs(docs: Path) -> list[Asked]:
    """Return every result that the book shows or quotes, once each."""
    return list(dict.fromkeys(asked for chapter in chapters(docs) for asked in chapter.needs()))


def _options(lines: str) -> dict[str, str]:
    return {name: setting.strip() for name, setting in _OPTION.findall(lines)}


def _under(title: str, section: str) -> str:
    """Return the paragraph that begins with a title in bold, without it; empty where there is none."""
    paragraph = re.search(rf"^\*\*{title}\.\*\*(.*?)(?=\n\n|\Z)", section, re.MULTILINE | re.DOTALL)
    return " ".join(paragraph[1].split()) if paragraph else ""
