"""``steepest list`` and ``steepest show``: what there is, without running anything."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.table import Table

from steepest import catalogue
from steepest.app.console import wide
from steepest.catalogue import Entry, chapter_title
from steepest.core.errors import UserError, nearest
from steepest.core.words import LOOKS, STALE
from steepest.engine.fingerprint import current, entry_of
from steepest.engine.rates import record_of, spelled_rates
from steepest.engine.results import Result
from steepest.engine.store import Store
from steepest.sources import cited, spelled


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
    if as_json:
        print(json.dumps([_record(line, verdicts[line.name]) for line in lines], indent=1))
        return
    width = max(len(line.name) for line in lines)
    for title in dict.fromkeys(line.chapter for line in lines):
        print(chapter_title(title))
        for line in lines:
            if line.chapter == title:
                origin = "" if line.origin == catalogue.HERE else f"  [{line.origin}]"
                print(f"{_sign(verdicts[line.name])} {line.name:<{width}}  {line.says}{origin}")
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
    rates = spelled_rates(record_of(line, kind.version))
    if rates:
        console.print(f"version {kind.version} {rates}", **plain)
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


def _record(line: Entry, verdict: str) -> dict[str, str]:
    return {
        "claim": line.name,
        "chapter": line.chapter,
        "says": line.says,
        "origin": line.origin,
        "verdict": verdict,
    }


def _sign(verdict: str) -> str:
    if not verdict:
        return " "
    return "~" if verdict.endswith(STALE) else LOOKS[verdict].sign


def _usual(result: Result) -> bool:
    return result.preset == "quick" and result.seed == 0 and not result.changes
