"""What the terminal shows of a comparison of two reports."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from steepest.app.console import wide
from steepest.measurement import LEGEND, Comparison


def show_comparison(comparison: Comparison) -> None:
    """Print findings, notes and the table."""
    console = wide()
    before = comparison.before
    after = comparison.after
    title = f"{before['model']}, before and after: {before['weights']} weights"
    if before != after:
        title = f"{_worded(before)} before, {_worded(after)} after"
    console.print(f"[bold]{escape(title)}[/]", highlight=False)
    for finding in comparison.findings:
        line = f"  {finding.sign} {finding.text}  ({finding.evidence})"
        console.print(line, markup=False, highlight=False)
    for note in comparison.notes:
        console.print(f"  {note}", markup=False, highlight=False)
    table = Table(
        "quantity",
        "before",
        "after",
        "change",
        "what it means",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for change in comparison.changes:
        values = (f"{change.before:.4g}", f"{change.after:.4g}", change.size)
        table.add_row(change.name, *values, change.interpretation)
    console.print(table, markup=False)
    for what, finding in comparison.others():
        line = f"  {what}: {finding.sign} {finding.text}  ({finding.evidence})"
        console.print(line, markup=False, highlight=False)
    console.print(f"  {LEGEND}", markup=False, highlight=False)


def _worded(report: dict[str, Any]) -> str:
    return f"{report['model']} ({report['weights']} weights, {report['examples']} examples)"
