"""The drawings of a result, made once and kept beside it: drawing takes longer than anything else on a page."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

from steepest.core.panels import Panel, panels_to_json
from steepest.core.reading import read_text
from steepest.core.records import canonical_digest
from steepest.core.writing import move_into_place, temporary
from steepest.site.drawing import page_svg, svg, thumbnail

from ._figures import harmless

ON_PAGES = "drawn.json"
TO_TAKE = "taken.json"
LARGEST = 2**28
"""Bytes; more are no drawings of ours."""


@dataclass(frozen=True)
class Drawn:
    """A result's drawings for pages, as SVG.

    Attributes:
        figures: one a panel, narrow and without its title.
        thumbnail: the first panel, small; empty where there is none.
    """

    figures: tuple[str, ...]
    thumbnail: str


def drawn(panels: Sequence[Panel], folder: Path) -> Drawn:
    """Return the drawings of a result for its pages: those kept in its folder if they are of these panels."""

    def draw() -> list[str]:
        return [*map(page_svg, panels), *map(thumbnail, panels[:1])]

    texts = _kept(ON_PAGES, panels, folder, draw)
    return Drawn(texts[: len(panels)], "".join(texts[len(panels) :]))


def drawn_files(panels: Sequence[Panel], folder: Path) -> tuple[str, ...]:
    """Return one SVG a panel, with its title, for readers who take it elsewhere; the book alone offers them."""
    texts = _kept(TO_TAKE, panels, folder, lambda: [svg([panel]) for panel in panels])
    return tuple(map(harmless, texts))  # the folder may be somebody else's


def _kept(
    file: str, panels: Sequence[Panel], folder: Path, draw: Callable[[], list[str]]
) -> tuple[str, ...]:
    """Return what a file of the folder has if it is sound and of these panels and this code; else draw, and keep it."""
    asked = canonical_digest([panels_to_json(panels), _style()])
    try:
        record = json.loads(read_text(folder / file, LARGEST))
        sound = record.pop("digest") == canonical_digest(record)
        if sound and record["asked"] == asked and len(record["drawings"]) >= len(panels):
            for drawing in record["drawings"]:
                ElementTree.fromstring(drawing.encode())
            return tuple(record["drawings"])
    except (OSError, SyntaxError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # whatever is wrong with it, it is drawn again
    record = {"asked": asked, "drawings": draw()}
    text = json.dumps({**record, "digest": canonical_digest(record)})
    # a folder that cannot be written costs time, not the page
    with suppress(OSError), temporary(folder / file) as fresh:
        fresh.write_text(text, "utf-8")
        move_into_place(fresh, folder / file)
    return tuple(record["drawings"])


@cache
def _style() -> str:
    """A digest of the code that draws."""
    room = resources.files("steepest.site.drawing")
    sources = sorted(
        (path.name, path.read_text("utf-8")) for path in room.iterdir() if path.name.endswith(".py")
    )
    return canonical_digest(sources)
