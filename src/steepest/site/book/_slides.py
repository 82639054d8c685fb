"""Slides of a chapter for a lecture: one page that prints, of what the chapter's source says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from steepest import catalogue
from steepest.core.checks import Check, Rejection, Verdict
from steepest.core.errors import UserError
from steepest.engine.descriptions import description
from steepest.site import pages
from steepest.site.pages import Run

from . import _html
from ._chapters import Block, Chapter, chapters
from ._inline import inline
from ._numbers import Asked, asked
from ._shelf import Shelf

CHAPTERS = "chapters/"
"""Pages below this folder have slides."""
SLIDES = "slides/"
"""The folder of the slides in the book."""
SHEET = "slides.css"
ROOT = "../"
_NAMED = re.compile(r"\{verdict\}`([^`]+)`")


class Slide(NamedTuple):
    """A slide.

    Attributes:
        kind: which template sets it.
        parts: what the template is given.
    """

    kind: str
    parts: dict[str, Any]


def address(page: str) -> str:
    """Return where the slides of a chapter are, below the book's folder.

    >>> address("chapters/descent")
    'slides/descent.html'
    """
    return f"{SLIDES}{page.removeprefix(CHAPTERS)}.html"


def write_slides(source: Path, html: Path, shelf: Shelf) -> None:
    """Write the slides of each chapter.

    Args:
        source: the folder of the book's sources.
        html: the folder of the book's pages.
        shelf: the stored results.
    """
    for chapter in chapters(source):
        if not chapter.name.startswith(CHAPTERS):
            continue
        path = html / address(chapter.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(chapter, shelf), "utf-8")


def page(chapter: Chapter, shelf: Shelf) -> Markup:
    """Return the slides of a chapter as a page."""
    shown = list(slides(chapter, shelf))
    template = _html.environment().get_template("slides.html")
    return Markup(
        template.render(
            root=ROOT, sheet=SHEET, title=chapter.title, chapter=chapter.name, slides=shown
        )
    )


def slides(chapter: Chapter, shelf: Shelf) -> Iterator[Slide]:
    """Yield the slides of a chapter: its question, its claims, questions and drawings, and what it ends with.

    A claim or a drawing that is named wrongly is left out: the chapter's own page warns of it.
    """
    yield Slide("title", {"question": inline(chapter.question, shelf, ROOT)})
    for block in chapter.blocks:
        try:
            yield _of_block(block, shelf)
        except (UserError, ValueError):
            continue
    last = chapter.take_away
    if last is None:
        return
    yield Slide("formulas", {"lead": inline(last.lead, shelf, ROOT), "formulas": last.formulas})
    yield Slide(
        "figure",
        {
            "text": inline(last.figure, shelf, ROOT),
            "figure": _remembered(last.figure, chapter, shelf),
        },
    )
    yield Slide("doubt", {"text": inline(last.doubt, shelf, ROOT)})


def _of_block(block: Block, shelf: Shelf) -> Slide:
    """Return the slide of a claim, a question, a drawing or a toy.

    Raises:
        UserError: there is no such claim, panel, check, rival or drawing.
        ValueError: a panel is no number.
    """
    match block.kind:
        case "claim":
            return Slide("claim", _claim(block, shelf))
        case "predict":
            return Slide("question", {"question": inline(block.argument, shelf, ROOT)})
        case "idea":
            return Slide("drawing", {"drawing": _html.idea(block.argument)})
        case _:
            return Slide("drawing", {"drawing": _html.toy(block.argument)})


def _claim(block: Block, shelf: Shelf) -> dict[str, Any]:
    """Return what the slide of a claim shows; its panel is the first that the chapter shows, or that there is."""
    wanted = asked(block.argument, block.options.get("fields", ""))
    entry = catalogue.entry(wanted.claim)
    run = shelf.run(wanted)
    parts: dict[str, Any] = {"entry": entry, "run": run, "formula": description(entry).statement}
    if run is None:
        return parts
    ids = block.options.get("checks", "").split()
    compared = _html.compared(run.result, ids, block.options.get("rival", ""))
    decisive = _decisive(compared["checks"], compared["rival"])
    return parts | {
        "figure": _figure(run, block),
        "roles": pages.roles(run.result.panels),
        "check": decisive,
        "rival": compared["rival"],
        "wrong": _wrong(decisive, compared["rival"], ids),
    }


def _figure(run: Run, block: Block | None) -> tuple[str, Markup] | None:
    """Return title and graphic of the first panel that a box shows, or of the first of all; None without panels."""
    if not run.result.panels:
        return None
    named = block.options.get("panels", "").split() if block else []
    return _html.panel(run, int(named[0]) if named else 1)


def _decisive(checks: list[Check], rival: Rejection | None) -> Check | None:
    """Return the check that tells most: one that fails, else one that the wrong theory fails, else one that counts."""
    by = rival.by if rival else ()
    ranks = (
        [check for check in checks if check.verdict is Verdict.FAILS],
        [check for check in checks if check.id in by],
        [check for check in checks if check.decides],
        checks,
    )
    return next((ranked[0] for ranked in ranks if ranked), None)


def _wrong(check: Check | None, rival: Rejection | None, rows: list[str]) -> Check | None:
    """Return the same check, at the same point, under the wrong theory, where it fails there."""
    if check is None or rival is None or check.id not in rival.by:
        return None
    return _html.under(rival, rows, check.id)


def _remembered(text: str, chapter: Chapter, shelf: Shelf) -> tuple[str, Markup] | None:
    """Return the figure of the claim that a text names, or None where nothing is stored or its box is wrong."""
    named = _NAMED.search(text)
    run = shelf.run(Asked(named[1].strip())) if named else None
    if named is None or run is None:
        return None
    boxes = [
        block for block in chapter.blocks if (block.kind, block.argument) == ("claim", named[1])
    ]
    try:
        return _figure(run, boxes[0] if boxes else None)
    except (UserError, ValueError):
        return None
