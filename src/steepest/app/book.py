"""``steepest book``: run what the book tells of, then build it."""

import argparse
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from steepest import catalogue
from steepest.app.run import run_several
from steepest.app.streams import say
from steepest.engine.commands import spell
from steepest.engine.store import Store
from steepest.site.book import Asked, Book, Shelf, build, check, docs_folder, needs


def write_book(
    docs: Path | None,
    results: Path,
    out: Path,
    *,
    now: bool = False,
    workers: int | None = None,
    parser: argparse.ArgumentParser | None = None,
) -> Book:
    """Run what is not stored yet, and build the book.

    Args:
        docs: the folder of the sources; None for those that are installed.
        results: the folder of results.
        out: the folder of the book.
        now: build with what is stored, and run nothing.
        workers: processes; None for as many as fit.
        parser: of the command line, for its reference.

    Raises:
        UserError: no sources, Sphinx is not installed, or a place that cannot be written.
    """
    docs = docs_folder() if docs is None else docs
    check(docs, results, out)
    if not now:
        store = Store(results)
        lines = list(catalogue.built_in().values())
        say(f"looking through the results of {len(lines)} claims in {results}")
        run_several(lines, store, "quick", 0, False, workers)
        _run_settings(store, [one for one in needs(docs) if one.fields])
    say(
        "building the book: pages of claims, chapters and reference"
        + (", and running its tutorials" * (not now))
    )
    extra = {} if parser is None else {"reference/command_line.md": command_line(parser)}
    return build(docs, results, out, extra={**extra, **fields_of_claims()}, execute=not now)


def _run_settings(store: Store, settings: Iterable[Asked]) -> None:
    """Run claims at the settings that moving figures show."""
    shelf = Shelf(store.root)
    missing = [one for one in settings if (run := shelf.run(one)) is None or run.stale]
    if not missing:
        return
    from steepest.engine.run import answer, ready  # JAX is imported only where something runs

    for place, one in enumerate(missing, 1):
        result = answer(
            ready(catalogue.entry(one.claim), "quick", 0, dict(one.fields)), store=store
        )
        say(f"[{place}/{len(missing)}] {one}: {result.verdict} ({result.seconds:.1f} s)")


def command_line(parser: argparse.ArgumentParser) -> str:
    """Return the reference of the command line, Markdown, from its parser."""
    parts = [
        "# The command line\n",
        f"{parser.description}\n",
    ]
    for action in parser._subparsers._group_actions if parser._subparsers else ():
        for name, sub in dict(action.choices or {}).items():
            parts += [
                f"## steepest {name}\n",
                f"{_sentence(sub.description or '')}\n",
                _options(sub),
            ]
            if sub.epilog:
                parts.append(f"{sub.epilog}\n")
    return "\n".join(parts)


def _options(parser: argparse.ArgumentParser) -> str:
    lines = ["| | |", "|---|---|"]
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        word = ", ".join(action.option_strings) or _metavar(action)
        takes_value = action.option_strings and action.nargs != 0
        shown = f"{word} {_metavar(action)}" if takes_value else word
        meaning = (action.help or "").replace("|", "\\|")
        lines.append(f"| `{shown}` | {meaning} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _metavar(action: argparse.Action) -> str:
    if action.choices and not action.metavar:
        return "{" + ",".join(map(str, action.choices)) + "}"
    metavar = action.metavar or action.dest.upper()
    return " ".join(metavar) if isinstance(metavar, tuple) else str(metavar)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def fields_of_claims() -> dict[str, str]:
    """Return the reference of the claims' fields, a page a chapter, Markdown by path."""
    from steepest.engine.run import about  # JAX is imported only where a claim is

    pages = {}
    lines = catalogue.built_in()
    for chapter in catalogue.CHAPTERS:
        title = catalogue.chapter_title(chapter)
        parts = [f"# Fields: {title}\n"]
        for name, line in lines.items():
            if line.chapter != chapter:
                continue
            kind = catalogue.load(line)
            meanings = about(line, kind)["meanings"]
            rows = ["| field | default | meaning |", "|---|---|---|"]
            rows += [
                f"| `--{field.name}` | {spell(field.default)} | {_cell(meanings[field.name])} |"
                for field in fields(kind)
            ]
            parts += [
                f"## {name}\n",
                f"[{_cell(line.says)}](../../claims/{name}.md)\n",
                "\n".join(rows) + "\n",
            ]
        pages[f"reference/fields/{chapter}.md"] = "\n".join(parts)
    entries = "\n".join(catalogue.CHAPTERS)
    pages["reference/fields/index.md"] = (
        "# The claims' fields\n\n"
        "Every field can be set on the command line, as `--field value`, in Python, and swept.\n\n"
        f":::{{toctree}}\n{entries}\n:::\n"
    )
    return pages


def _cell(text: str) -> str:
    for mark in "\\`*_[]<>#|$":
        text = text.replace(mark, f"\\{mark}")
    return text
