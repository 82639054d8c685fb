"""The terminal: a bar on standard error, tables on standard output."""

import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from steepest.judging import Verdict

LOOKS = {
    Verdict.HOLDS: "[green]✓ holds[/]",
    Verdict.FAILS: "[red]✗ fails[/]",
    Verdict.INCONCLUSIVE: "[yellow]? inconclusive[/]",
    Verdict.OUT_OF_RANGE: "[blue]– out of range[/]",
}


def wide() -> Console:
    """Standard output; a file or pipe has no width of its own, so that tables are not folded there."""
    return Console() if sys.stdout.isatty() else Console(width=160)


def bar() -> Progress:
    """A bar on standard error: standard output stays free for JSON."""
    columns = (
        SpinnerColumn(),
        BarColumn(20),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[claim]}: {task.fields[stage]}"),
    )
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)
