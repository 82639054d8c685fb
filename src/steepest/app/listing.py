"""``steepest list`` and ``steepest show``: what there is, without running anything."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from steepest import catalogue
from steepest.app.console import wide
from steepest.app.summary import spelled_record
from steepest.catalogue import Entry, chapter_title
from steepest.core.errors import UserError, nearest
from steepest.core.words import LOOKS, STALE
from steepest.engine.fingerprint import current, entry_of
from steepest.engine.results import Result
from steepest.engine.store import Store
from steepest.record import Record, recorded
from steepest.sources import cited, spelled

GREY = "bright_black"
"""The colour of what is recorded, and was not run here."""


def list_claims(chapter: str | None, results: Path, as_json: bool) -> None:
    """Print a line a claim: name, last verdict where there is one, sentence, and where it comes from.

    Raises:
        UserError: for an unknown chapter, with the nearest one.
    """
    lines = known_claims(results)
    chapters = dict.fromkeys(line.chapter for line in lines)
    if chapter is not None:
        wanted = _plain(chapter)
        lines = [line for line in lines if _plain(line.chapter) == wanted]
        if not lines:
            titles = [chapter_title(name) for name in chapters]
            raise UserError(f"there is no chapter {chapter!r}; {nearest(chapter, titles)}")
    verdicts = {line.name: last_verdict(line, results) for line in lines}
    records = {line.name: recorded(line) for line in lines}
    if as_json:
        blocks = [_record(line, verdicts[line.name], records[line.name]) for line in lines]
        print(json.dumps(blocks, indent=1))
        return
    console = wide()
    plain: Any = {"highlight": False, "soft_wrap": True}
    width = max(len(line.name) for line in lines)
    signs = {line.name: _sign(verdicts[line.name], records[line.name]) for line in lines}
    column = max(cell_len(text.plain) for text in signs.values())
    for title in dict.fromkeys(line.chapter for line in lines):
        console.print(chapter_title(title), markup=False, **plain)
        for line in lines:
            if line.chapter == title:
                origin = "" if line.origin == catalogue.HERE else f"  [{line.origin}]"
                verdict = signs[line.name]
                verdict.pad_right(column - cell_len(verdict.plain))
                text = f"{line.name:<{width}}  {line.says}{origin}"
                console.print(verdict, text, markup=False, **plain)
    if any(verdict.endswith(STALE) for verdict in verdicts.values()):
        print(f"~ {STALE}: the code has changed since; steepest run judges or computes it again")


def known_claims(results: Path) -> list[Entry]:
    """Return the catalogue's lines, and those of a reader's own files that have results."""
    lines = catalogue.catalogue()
    folders = sorted(path.name for path in results.glob("*") if path.is_dir())
    for name in folders:
        stored = next(Store(results).of_claim(name), None) if name not in lines else None
        if stored is not None:
            lines[name] = entry_of(stored)
    return list(lines.values())


def last_verdict(line: Entry, results: Path) -> str:
    """Return the verdict of a claim's own run in a folder of results, with ``stale`` behind it where it is."""
    runs = [run for run in Store(results).of_claim(line.name) if _usual(run)]
    if not runs:
        return ""
    run = max(runs, key=lambda run: run.judged_at)
    return str(run.verdict) if current(line, run) else f"{run.verdict}, {STALE}"


def describe(target: str) -> None:
    """Print a claim's statement, explanation, source, corrections, hypotheses' texts, rivals and fields."""
    from steepest.engine.run import about, build  # JAX is imported only where a claim is

    line = catalogue.entry(target)
    kind = catalogue.load(line)
    text = about(line, kind)
    console = wide()
    plain: Any = {"highlight": False, "markup": False}
    console.print(f"[bold]{line.name}[/] ({chapter_title(line.chapter)})", highlight=False)
    console.print(f"{text['says']}\n", **plain)
    if text["explanation"]:
        console.print(f"{text['explanation']}\n", **plain)
    console.print(f"{text['kind'] or 'statement'}: {text['statement']}", **plain)
    console.print(f"source: {spelled(text['source'], known_only=False)}", **plain)
    for work in cited(text["source"], known_only=False):
        console.print(f"  {work.reference}{'. ' * bool(work.link)}{work.link}", **plain)
    for correction in text["corrections"]:
        console.print(f"correction: {correction}", **plain)
    if line.origin != catalogue.HERE:
        console.print(f"from: {line.origin}", **plain)
    record = recorded(line)
    if record is not None:
        console.print(f"recorded: {spelled_record(record)}", **plain)
    table = Table(
        "field", "quick", "full", "meaning", box=None, pad_edge=False, header_style="bold"
    )
    full = build(kind, "full", {})
    for field in fields(kind):
        meaning = text["meanings"][field.name].replace("[", r"\[")
        values = (str(field.default), str(getattr(full, field.name)))
        table.add_row(f"--{field.name}", *values, meaning)
    console.print()
    console.print(table)
    plane = " and ".join((kind.point or kind).diagram)
    if plane:
        console.print(f"\nphase diagram over {plane}: steepest sweep {target}", **plain)


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


def _usual(result: Result) -> bool:
    return result.preset == "quick" and result.seed == 0 and not result.changes
