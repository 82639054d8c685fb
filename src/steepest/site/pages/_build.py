"""Build an atlas beside its place and move it there when it is whole."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from steepest.core.errors import UserError
from steepest.core.reading import read_bytes, read_text
from steepest.core.records import canonical_digest
from steepest.core.writing import move_into_place
from steepest.engine.fingerprint import everything

from . import _diagrams, _hover, _mathfont, _pages
from ._folders import list_files, new_folder, refuse_folder
from ._runs import Run, entries, gather
from ._style import stylesheet

if TYPE_CHECKING:
    from steepest.engine.sweeps import Sweep

MARKER = ".steepest-atlas"
"""Lies in every atlas and lists its files, one a line: a folder without it, or with other files, is never replaced."""

PAGES = ".pages.json"
"""Lies in every atlas and says what each page shows: the next atlas takes over the pages that would be the same."""
LARGEST = 2**28
"""Bytes of a file of an atlas; a larger one is none of ours."""
SHOWN = ("result.json", "panels.json")
"""Files of a result that its page shows."""


def build(results: Path, out: Path, watch: Callable[[str], None] = lambda name: None) -> Path:
    """Write the atlas of a folder of results: an index, and a page for every stored result and sweep.

    The pages open from disk and ask nothing of any network. An atlas that is already there stays whole until the new
    one is complete; a folder that is not an atlas, or in which other files lie, is left alone.

    Args:
        results: the folder of results, as :class:`steepest.engine.store.Store` keeps it.
        out: the folder of the atlas.
        watch: called with the name of each claim as its pages are written.

    Returns:
        the path of ``index.html``.

    Raises:
        UserError: no results, or a place that is not ours or cannot be written.
    """
    results = Path(results)
    out = Path(out).absolute()
    runs = gather(results)
    sweeps = _diagrams.gather(results)
    if not runs and not sweeps:
        raise UserError(
            f"there is no sound result in {results}; make some with `steepest run --out {results}`"
        )
    refuse(results, out)
    try:
        with new_folder(out) as fresh:
            _write(runs, sweeps, fresh, out, watch)
            move_into_place(fresh, out)
    except OSError as trouble:
        reason = trouble.strerror or trouble
        raise UserError(
            f"cannot write the atlas to {out} ({reason}); choose another place with --out"
        ) from None
    return out / "index.html"


def refuse(results: Path, out: Path) -> None:
    """Refuse a place for the atlas where something would be lost that is not ours.

    Raises:
        UserError: a folder with other files, something that is no folder, or a folder around the results.
    """
    refuse_folder(out, MARKER, "atlas", results)


def _write(
    runs: dict[str, list[Run]],
    sweeps: dict[str, list["Sweep"]],
    folder: Path,
    before: Path,
    watch: Callable[[str], None],
) -> None:
    """Every file of the atlas; pages that show the same as in the atlas before are taken over."""
    names = list(runs)
    earlier = _pages_of(before)
    written: dict[str, dict[str, str]] = {}
    cards = []
    shown = [run.result for claim in runs.values() for run in claim]
    for entry in entries(shown):
        name = entry.name
        if name not in runs and name not in sweeps:
            cards.append(_pages.Card(entry))
            continue
        watch(name)
        (folder / name).mkdir()
        diagrams = [
            _diagrams.save(sweep, i, folder, alone=name not in runs)
            for i, sweep in enumerate(sweeps.get(name, ()))
        ]
        if name not in runs:
            cards.append(_pages.Card(entry, figure=diagrams[0].figure, diagrams=diagrams))
            continue
        place = names.index(name)
        around = (
            names[place - 1] if place else None,
            names[place + 1] if place + 1 < len(names) else None,
        )
        shown = _digest_of(runs[name], around, diagrams)
        for run in runs[name]:
            kept = _kept(before / run.page, earlier.get(run.page), shown)
            text, thumbnail = kept or _pages.page(run, runs[name], around, diagrams)
            _save(run, text, folder)
            written[run.page] = {"shows": shown, "text": _digest(text), "thumbnail": thumbnail}
        small = Markup(written[runs[name][0].page]["thumbnail"])
        cards.append(_pages.Card(entry, runs[name][0], len(runs[name]), small, diagrams))
    (folder / "index.html").write_text(_pages.index(cards), "utf-8")
    pages = (page.read_text("utf-8") for page in sorted(folder.rglob("*.html")))
    written[_mathfont.MATH_FILE] = _save_font(_mathfont.characters(pages), folder, before, earlier)
    (folder / PAGES).write_text(json.dumps(written), "utf-8")
    (folder / "style.css").write_text(stylesheet() + _mathfont.MATH_SHEET, "utf-8")
    if sweeps:
        (folder / _diagrams.SCRIPT).write_bytes(_hover.script())
    list_files(folder, MARKER)


def _save_font(
    characters: str, folder: Path, before: Path, earlier: dict[str, Any]
) -> dict[str, str]:
    """Write the font with these characters, taken over from the atlas before where it is whole and has the same."""
    shown = canonical_digest([everything(), characters])
    font = _kept_font(before / _mathfont.MATH_FILE, earlier.get(_mathfont.MATH_FILE), shown)
    font = font or _mathfont.font(characters)
    (folder / _mathfont.MATH_FILE).write_bytes(font)
    return {"shows": shown, "bytes": hashlib.sha256(font).hexdigest()}


def _kept_font(path: Path, record: Any, shown: str) -> bytes | None:
    match record:
        case {"shows": str(shows), "bytes": str(digest)} if shows == shown:
            with suppress(OSError, ValueError):
                font = read_bytes(path, LARGEST)
                if hashlib.sha256(font).hexdigest() == digest:
                    return font
    return None


def _pages_of(atlas: Path) -> dict[str, Any]:
    """Return what an atlas says of its pages; nothing where that cannot be read."""
    try:
        pages = json.loads(read_text(atlas / PAGES, LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return pages if isinstance(pages, dict) else {}


def _kept(page: Path, record: Any, shown: str) -> tuple[str, str] | None:
    """Return a page and its thumbnail if it is whole and shows this, else None."""
    match record:
        case {"shows": str(shows), "text": str(digest), "thumbnail": str(thumbnail)}:
            with suppress(OSError, ValueError):
                text = read_text(page, LARGEST)
                if shows == shown and _digest(text) == digest:
                    return text, thumbnail
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest_of(
    runs: list[Run], around: tuple[str | None, str | None], diagrams: list[_pages.Diagram]
) -> str:
    """Return a digest of all that the pages of one claim show, and of the code that shows it."""
    files = [
        hashlib.sha256(read_bytes(run.folder / name)).hexdigest() for run in runs for name in SHOWN
    ]
    pages = [(run.page, run.stale) for run in runs]
    sweeps = [asdict(diagram) for diagram in diagrams]
    return canonical_digest([everything(), _templates(), files, pages, around, sweeps])


@cache
def _templates() -> str:
    """A digest of the templates."""
    room = resources.files("steepest.site.pages") / "templates"
    return canonical_digest(sorted((file.name, file.read_text("utf-8")) for file in room.iterdir()))


def _save(run: Run, text: str, folder: Path) -> None:
    """Write one page with its downloads."""
    files = folder / run.result.claim / run.folder.name
    files.mkdir(parents=True)
    for name in (*SHOWN, "arrays.npz"):
        shutil.copyfile(run.folder / name, files / name)
    (folder / run.page).write_text(text, "utf-8")
