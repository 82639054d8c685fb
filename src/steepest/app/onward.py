"""What there is to do after the tour, as its last lines say it."""

import argparse
import math
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from steepest.catalogue import Entry
from steepest.core.words import Verdict
from steepest.engine.crew import Outcome, expected_seconds, processes, unanswered
from steepest.engine.store import Store

PROGRAM = "steepest"
CARRIED = (
    ("preset", "quick"),
    ("seed", 0),
    ("out", Path("results")),
    ("atlas", Path("atlas")),
    ("workers", None),
)
"""Options with which the tour and the run of everything belong together, and what each is where it is not given."""


def onward(
    known: argparse.Namespace, entries: Sequence[Entry], outcomes: Sequence[Outcome], store: Store
) -> list[str]:
    """Return the lines behind the tour: how to run all other claims, how long that takes, and what else there is.

    Args:
        known: the options of ``steepest run``.
        entries: all claims.
        outcomes: what became of the tour.
        store: where results are kept.
    """
    names = {outcome.name for outcome in outcomes}
    others = [entry for entry in entries if entry.name not in names]
    program = program_name()
    rows = (
        [(f"{program} {_all_of(known)}", _cost(known, others, outcomes, store))] if others else []
    )
    rows += [
        (f"{program} measure my_model.py:build", "your own network"),
        (f"{program} book", "chapters, tutorials, and a page for every claim"),
        (f"{program} list", "the claims and their verdicts"),
    ]
    width = max(len(command) for command, _ in rows)
    return ["", "next:", *(f"  {command:<{width}}   {what}" for command, what in rows)]


def program_name() -> str:
    """Return how the reader calls the program: by its path, where the shell does not find it by its name."""
    called = Path(sys.argv[0])
    if called.stem != PROGRAM:
        return PROGRAM
    reachable = shutil.which(PROGRAM)
    if reachable and called.exists() and os.path.samefile(reachable, called):
        return PROGRAM
    return shlex.quote(sys.argv[0])


def _all_of(known: argparse.Namespace) -> str:
    """``run --all`` with the options that lead to the same results and pages."""
    words = ["run", "--all"]
    for option, default in CARRIED:
        value = getattr(known, option)
        if value != default:
            words += [f"--{option}", shlex.quote(str(value))]
    return " ".join(words)


def _cost(
    known: argparse.Namespace, others: Sequence[Entry], outcomes: Sequence[Outcome], store: Store
) -> str:
    """How many claims are left, and how long they take here."""
    missing = unanswered(others, store, known.preset, known.seed)
    if not missing:
        return f"the other {len(others)} claims, all of which are stored"
    what = f"the other {len(others)} claims"
    if len(missing) < len(others):
        what += f", {len(others) - len(missing)} of them stored"
    if known.preset != "quick":  # costs are recorded of that alone
        return what
    timed = [
        outcome.result
        for outcome in outcomes
        if outcome.result is not None and outcome.result.verdict is not Verdict.OUT_OF_RANGE
    ]
    seconds = expected_seconds(timed, missing, known.workers or processes())
    return f"{what}: {spelled_minutes(seconds)} at this pace" if math.isfinite(seconds) else what


def spelled_minutes(seconds: float) -> str:
    """Return an estimate in whole minutes, rounded up.

    >>> spelled_minutes(740.0), spelled_minutes(12.0)
    ('about 13 minutes', 'about a minute')
    """
    minutes = max(1, math.ceil(seconds / 60))
    return "about a minute" if minutes == 1 else f"about {minutes} minutes"
