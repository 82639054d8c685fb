"""``steepest list``: what there is and what it came to, without running anything or reading arrays."""

from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from steepest import catalogue
from steepest.app.console import wide
from steepest.app.streams import tell, tell_json
from steepest.catalogue import Entry, chapter_title
from steepest.core.errors import UserError, nearest
from steepest.core.words import LOOKS, STALE
from steepest.engine.fingerprint import current, entry_of, sources_now
from steepest.engine.records import Records
from steepest.record import Record, recorded

GREY = "bright_black"
"""The colour of what is recorded, and was not run here."""


def list_claims(chapter: str | None, results: Path, as_json: bool) -> None:
    """Print a line a claim: name, last verdict where there is one, sentence, and where it comes from.

    Raises:
        UserError: for an unknown chapter, with the nearest one.
    """
    records = Records(results)
    lines = known_claims(records)
    chapters = dict.fromkeys(line.chapter for line in lines)
    if chapter is not None:
        wanted = _plain(chapter)
        lines = [line for line in lines if _plain(line.chapter) == wanted]
        if not lines:
            titles = [chapter_title(name) for name in chapters]
            raise UserError(f"there is no chapter {chapter!r}; {nearest(chapter, titles)}")
    sources = sources_now()
    verdicts = {line.name: last_verdict(line, records, sources) for line in lines}
    records_of = {line.name: recorded(line) for line in lines}
    records.keep()
    if as_json:
        blocks = [_record(line, verdicts[line.name], records_of[line.name]) for line in lines]
        tell_json(blocks)
        return
    _print_lines(
        lines, {line.name: _sign(verdicts[line.name], records_of[line.name]) for line in lines}
    )
    if any(verdict.endswith(STALE) for verdict in verdicts.values()):
        tell(f"~ {STALE}: the code has changed since; steepest run judges or computes it again")


def _print_lines(lines: list[Entry], signs: dict[str, Text]) -> None:
    console = wide()
    plain: Any = {"highlight": False, "soft_wrap": True}
    width = max(len(line.name) for line in lines)
    column = max(cell_len(text.plain) for text in signs.values())
    for title in dict.fromkeys(line.chapter for line in lines):
        console.print(chapter_title(title), markup=False, **plain)
        for line in lines:
            if line.chapter == title:
                origin = "" if line.origin == catalogue.HERE else f"  [{line.origin}]"
                sign = signs[line.name].copy()
                sign.pad_right(column - cell_len(sign.plain))
                text = f"{line.name:<{width}}  {line.says}{origin}"
                console.print(sign, text, markup=False, **plain)


def known_claims(records: Records) -> list[Entry]:
    """Return the catalogue's lines, and those of a reader's own files that have results."""
    lines = catalogue.catalogue()
    for name in records.claims():
        stored = next(records.of_claim(name), None) if name not in lines else None
        if stored is not None:
            lines[name] = entry_of(stored[1])
    return list(lines.values())


def last_verdict(line: Entry, records: Records, sources: str = "") -> str:
    """Return the verdict of a claim's own run, with ``stale`` behind it where it is; empty where there is none.

    Args:
        line: the claim's line in the catalogue.
        records: those of a folder of results.
        sources: as of :func:`steepest.engine.fingerprint.stamp`.
    """
    runs = [record for _, record in records.of_claim(line.name) if record.answers("quick", 0)]
    if not runs:
        return ""
    run = max(runs, key=lambda run: run.judged_at)
    stale = "" if current(line, run, sources=sources) else f", {STALE}"
    return f"{run.verdict}{stale}"


def _plain(chapter: str) -> str:
    """Return a chapter's name, which may be that of a package, without what people write in different ways."""
    return chapter.replace("-", " ").replace("_", " ")


def _record(line: Entry, verdict: str, record: Record | None) -> dict[str, Any]:
    return {
        "claim": line.name,
        "chapter": line.chapter,
        "says": line.says,
        "origin": line.origin,
        "verdict": verdict,
        "recorded": record.to_json() if record else None,
    }


def _sign(verdict: str, record: Record | None) -> Text:
    """The sign of a stored verdict in its colour, else that of the recorded one in grey, with the word."""
    if verdict.endswith(STALE):
        return Text("~")
    if verdict:
        return Text(LOOKS[verdict].sign, style=LOOKS[verdict].colour)
    return Text(f"{LOOKS[record.verdict].sign} recorded", style=GREY) if record else Text(" ")
