"""The tour, which ``steepest run`` is without a name: one claim of each chapter. A run of everything starts with it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from steepest.app.pictures import picture_of
from steepest.catalogue import Entry
from steepest.engine.crew import Outcome
from steepest.engine.store import Store

TOUR = (
    "sawtooth",
    "logistic-max-margin",
    "two-speed-circle",
    "edge-of-stability",
    "spectral-margin-bound",
    "contrastive-transfer",
    "alignment-time",
    "width-transfer",
    "depth-scale",
    "class-covariances",
    "representer",
)
"""A claim of each chapter, in the order in which they start, as ``benchmarks/cold`` measures them. The first three are
quick, so that there is something to look at; then the expensive ones first, as what starts last is waited for."""
NEXT = (
    "next: the other {others} claims. You may stop whenever you like: what is finished is kept, and the same command "
    "goes on from there"
)


def tour_of(entries: Sequence[Entry]) -> list[Entry]:
    """Return the claims of the tour that are among some, in the order of the tour."""
    by_name = {entry.name: entry for entry in entries}
    return [by_name[name] for name in TOUR if name in by_name]


def guide(
    tour: Sequence[Entry],
    others: int,
    store: Store,
    console: Console,
    write_atlas: Callable[[], Path | None],
) -> Callable[[Outcome], None]:
    """Return what is to be called with each outcome of a run that starts with the tour.

    It says where the figure of the first claim is, which its worker has drawn. When the whole tour has landed and
    something of it was new, it writes the atlas and says what follows; where nothing follows, the run itself ends with
    the atlas.

    Args:
        tour: the claims of the tour.
        others: how many claims follow.
        store: where the results are.
        console: where to say it.
        write_atlas: writes the atlas of all that is stored, and returns its first page; None where it cannot.
    """
    waiting = {entry.name for entry in tour}
    fresh: list[str] = []

    def tell(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    def landed(outcome: Outcome) -> None:
        nonlocal others
        if outcome.name not in waiting:
            others -= 1
            return
        waiting.remove(outcome.name)
        result = outcome.result
        if result is not None and result.how != "stored":
            fresh.append(outcome.name)
            picture = picture_of(result, store)
            if outcome.name == TOUR[0] and picture.is_file():
                tell(f"a figure to look at: {picture}")
        if not waiting and fresh and others:
            atlas = write_atlas()
            tell("the tour is complete" + (f"; its atlas: {atlas}" if atlas else ""))
            tell(NEXT.format(others=others))

    return landed
