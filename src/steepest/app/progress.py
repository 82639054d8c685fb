"""What is seen while claims run: a line for each that lands, or on a terminal a few lines that stay in place."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from steepest.app.streams import say
from steepest.app.summary import as_recorded, verdict_of
from steepest.core.words import CRASHED
from steepest.engine.crew import Outcome

RECENT = 5
"""Claims that the live display shows: those that landed last."""
LONG = 60.0
"""Seconds after which a stage of one claim is said to go on still."""


@dataclass(frozen=True)
class Display:
    """What shows how far a run is.

    Attributes:
        begun: called with the name of each claim as it starts.
        landed: called with each outcome.
    """

    begun: Callable[[str], None]
    landed: Callable[[Outcome], None]


@contextmanager
def shown(console: Console, names: Sequence[str], tour: Sequence[str] = ()) -> Iterator[Display]:
    """Show what runs and what lands; yield what is to be told of both.

    Args:
        console: where to.
        names: all claims that run.
        tour: those of them with which the run starts; they have a count of their own until they have landed.
    """
    if not console.is_terminal:
        yield Display(lambda name: None, _lines(len(names)))
        return
    with _live(console, names, tour) as display:
        yield display


@contextmanager
def waited_for(console: Console, name: str) -> Iterator[Callable[[str], None]]:
    """Say once of each stage that takes long that it goes on; yield what is to be called as a stage starts.

    Args:
        console: where to; nothing is seen of a quiet one.
        name: the claim.
    """
    timers: deque[threading.Timer] = deque(maxlen=1)

    def start(stage: str) -> None:
        end()
        line = f"still computing {name} ({stage}), {LONG:.0f} s; Ctrl-C stops without loss"
        timers.append(
            threading.Timer(LONG, console.print, (line,), {"highlight": False, "markup": False})
        )
        timers[0].daemon = True
        timers[0].start()

    def end() -> None:
        for timer in timers:
            timer.cancel()

    try:
        yield start
    finally:
        end()


def _lines(total: int) -> Callable[[Outcome], None]:
    count = 0

    def show(outcome: Outcome) -> None:
        nonlocal count
        count += 1
        say(f"[{count}/{total}] {line(outcome)}")

    return show


def line(outcome: Outcome) -> str:
    """Return what became of a claim on one line, in plain words."""
    result = outcome.result
    if result is None:
        return f"{outcome.name}: {CRASHED}"
    how = ", stored earlier" if result.how == "stored" else ""
    return f"{outcome.name}: {result.verdict}{as_recorded(outcome)} ({result.seconds:.1f} s){how}"


@contextmanager
def _live(console: Console, names: Sequence[str], tour: Sequence[str]) -> Iterator[Display]:
    """The claims that landed last above a bar, and those that run below it; all go when the run ends."""
    recent: deque[Outcome] = deque(maxlen=RECENT)
    waiting = set(tour)
    running: dict[str, None] = {}
    columns = (BarColumn(20), TextColumn("{task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=console)
    task = progress.add_task(_count(0, names, waiting, tour), total=len(names))

    with Live(progress, console=console, transient=True, refresh_per_second=4) as live:

        def show() -> None:
            said = Text(
                f"running {', '.join(running)}" if running else "",
                overflow="ellipsis",
                no_wrap=True,
            )
            live.update(Group(_table(recent), progress, said))

        def begun(name: str) -> None:
            running[name] = None
            show()

        def landed(outcome: Outcome) -> None:
            recent.append(outcome)
            running.pop(outcome.name, None)
            waiting.discard(outcome.name)
            progress.advance(task)
            count = int(progress.tasks[0].completed)
            progress.update(task, description=_count(count, names, waiting, tour))
            show()

        yield Display(begun, landed)


def _count(landed: int, names: Sequence[str], waiting: set[str], tour: Sequence[str]) -> str:
    """How far a run is."""
    of_tour = f" · tour {len(tour) - len(waiting)} of {len(tour)}" if waiting else ""
    return f"{landed} of {len(names)} claims{of_tour}"


def _table(recent: Sequence[Outcome]) -> Table:
    rows = Table.grid(padding=(0, 2))
    for outcome in recent:
        seconds = f"{outcome.result.seconds:.1f} s" if outcome.result else ""
        rows.add_row(outcome.name, verdict_of(outcome), seconds)
    return rows
