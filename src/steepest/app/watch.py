"""What the terminal shows of a monitored training."""

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from steepest.app.console import wide
from steepest.measurement import TrainingRun


def show(run: TrainingRun) -> None:
    """Print the findings and a short table."""
    console = wide()
    console.print(f"[bold]{escape(run.title)}[/]", highlight=False)
    for finding in run.findings:
        line = f"  {finding.sign} {finding.text}  ({finding.evidence})"
        console.print(line, markup=False, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("quantity")
    for title in ("first", "last", "least", "most"):
        table.add_column(title, justify="right")
    table.add_column("compared with")
    for row in run.rows:
        if row.last is None:  # of a batch of all examples, a noise scale is no number
            continue
        numbers = [_number(value) for value in (row.first, row.last, row.least, row.most)]
        limit = f" = {row.compared:.4g}" if row.compared is not None and "η" in row.theory else ""
        table.add_row(row.name, *numbers, row.theory + limit)
    console.print(table, markup=False)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def is_same_file(one: Path, other: Path) -> bool:
    """Tell whether two names are one file, so that a page would replace the log that it shows."""
    return one.exists() and other.exists() and one.samefile(other)
