"""What the sources of a book tell: which claims, at which fields, and where."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ._numbers import Asked, asked, numbers

_BOX = re.compile(r"^:{3,}\{claim\}\s+(\S+)[^\n]*\n((?::\w+:[^\n]*\n)*)", re.MULTILINE)
_MOVING = re.compile(r"^:{3,}\{moving\}\s+(\S+)[^\n]*\n((?::\w+:[^\n]*\n)*)", re.MULTILINE)
_OPTION = re.compile(r"^:(\w+):\s*(.*)$", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


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
        return [
            (match[1], id)
            for match in _BOX.finditer(self.text)
            for id in _options(match[2]).get("checks", "").split()
        ]

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
