"""The terminal: a bar on standard error, tables on standard output."""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.text import Text

from steepest.core.text import visible
from steepest.core.words import LOOKS


def styled(verdict: str) -> str:
    """Return a verdict as rich shows it: sign and word in its colour."""
    look = LOOKS[verdict]
    return f"[{look.colour}]{look.sign} {look.word}[/]"


def sign(holds: bool | None) -> str:
    """Return the sign of something that holds, does not, or is not known."""
    return {True: LOOKS["holds"].sign, False: LOOKS["fails"].sign, None: "?"}[holds]


def wide() -> Console:
    """Return standard output; a file or pipe has no width of its own, so that tables are not folded there.

    A notebook gets the plain text of a file too: rich would make a page of each line, and its kernel asks for colours.
    """
    if type(sys.stdout).__module__.partition(".")[0] == "ipykernel":
        return _Output(width=160, force_jupyter=False, force_terminal=False)
    return _Output() if sys.stdout.isatty() else _Output(width=160)


class _Output(Console):
    """Shows text without what controls a terminal, which the styles and the bar alone may do.

    A pipe whose reader went away is left to the command line, for which it is no error.
    """

    def render_str(self, text: str, **look: Any) -> Text:
        """Return a text as rich lays it out."""
        return super().render_str(visible(text), **look)

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Yield the parts of what is shown; those that control the terminal are rich's own."""
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else visible(segment.text)
            yield Segment(shown, segment.style, segment.control)

    def on_broken_pipe(self) -> None:
        """Go on with the error that was raised."""
        raise BrokenPipeError


def beside() -> Console:
    """Return standard error, for what is said while something runs: standard output stays free for its result."""
    return _Output(file=sys.stderr)


class _Count(ProgressColumn):
    """How much is done, where that can be counted."""

    def render(self, task: Task) -> Text:
        """Return it in figures; nothing where nobody knows how much there is, or it is one thing."""
        counted = task.total is not None and task.total > 1
        return Text(f"{task.completed:.0f}/{task.total:.0f}" if counted else "")


def bar() -> Progress:
    """Return a bar on standard error: standard output stays free for JSON."""
    columns = (
        SpinnerColumn(),
        BarColumn(20),
        _Count(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[claim]}: {task.fields[stage]}", markup=False),
    )
    console = beside()
    # where no bar can be drawn, rich would leave an empty line behind, older versions even if it is disabled
    console.quiet = not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=console.quiet)
