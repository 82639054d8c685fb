"""``steepest show``: what a claim says of itself, without running anything."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from steepest import catalogue
from steepest.app.console import wide
from steepest.app.plain_formulas import plain_formula
from steepest.app.summary import spelled_record
from steepest.catalogue import chapter_title
from steepest.engine.descriptions import description
from steepest.record import recorded
from steepest.sources import cited, spelled


def show_claim(target: str) -> None:
    """Print a claim's statement, explanation, source, corrections and fields.

    Raises:
        UserError: there is no such claim, or it cannot be read.
    """
    line = catalogue.entry(target)
    text = description(line)
    console = wide()
    plain: Any = {"highlight": False, "markup": False}
    console.print(f"[bold]{line.name}[/] ({escape(chapter_title(line.chapter))})", highlight=False)
    console.print(f"{line.says}\n", **plain)
    if text.explanation:
        console.print(f"{text.explanation}\n", **plain)
    console.print(f"{text.kind or 'statement'}: {plain_formula(text.statement)}", **plain)
    console.print(f"source: {spelled(text.source, known_only=False)}", **plain)
    for work in cited(text.source, known_only=False):
        console.print(f"  {work.reference}{'. ' * bool(work.link)}{work.link}", **plain)
    for correction in text.corrections:
        console.print(f"correction: {correction}", **plain)
    if line.origin != catalogue.HERE:
        console.print(f"from: {line.origin}", **plain)
    record = recorded(line)
    if record is not None:
        console.print(f"recorded: {spelled_record(record)}", **plain)
    table = Table(
        "field", "quick", "full", "meaning", box=None, pad_edge=False, header_style="bold"
    )
    for field in text.fields:
        table.add_row(f"--{field.name}", field.quick, field.full, field.meaning)
    console.print()
    console.print(table, markup=False)
    plane = " and ".join(text.diagram)
    if plane:
        console.print(f"\nphase diagram over {plane}: steepest sweep {target}", **plain)
