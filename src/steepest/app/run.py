"""``steepest run``: one claim in this process, several in processes of their own."""

import argparse
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from steepest.app.console import bar, beside, wide
from steepest.app.details import show_details
from steepest.app.onward import onward
from steepest.app.pictures import draw_picture, written_or_said
from steepest.app.progress import shown, waited_for
from steepest.app.standing import exit_code, record_for
from steepest.app.streams import say, tell, tell_json
from steepest.app.summary import (
    by_chapter,
    change,
    duration,
    exception,
    of_tour,
    show_exceptions,
    table,
    verdict_of,
)
from steepest.app.tour import guide, tour_of
from steepest.catalogue import Entry
from steepest.core.errors import UserError
from steepest.engine.crew import Outcome, run_all, stored
from steepest.engine.rates import hold_rates, record_behind, spelled_rates
from steepest.engine.store import Store, UnwritableError


def run(known: argparse.Namespace, entries: Sequence[Entry], changes: Mapping[str, Any]) -> int:
    """Run claims as the command line asks, show what became of them, and return the exit code.

    Args:
        known: the options of ``steepest run``.
        entries: the claims.
        changes: fields of a single claim that differ from the preset.
    """
    store = Store(known.out)
    if known.claims:
        outcomes = _run_named(known, entries, changes, store)
        _show(known, entries, outcomes, store)
    else:
        outcomes = _run_unnamed(known, entries, store)
    return exit_code(outcomes, known.strict)


def _run_named(
    known: argparse.Namespace, entries: Sequence[Entry], changes: Mapping[str, Any], store: Store
) -> list[Outcome]:
    """Run one claim here, or several in the order of their cost."""
    options = (store, known.preset, known.seed, known.force)
    if len(entries) == 1:
        return [run_one(entries[0], changes, *options)]
    return run_several(entries, *options, known.workers)


def _run_unnamed(
    known: argparse.Namespace, entries: Sequence[Entry], store: Store
) -> list[Outcome]:
    """Run the tour, and with ``--all`` every other claim; end with the atlas and what else there is to do."""
    from steepest.site.pages import build, refuse

    start = time.monotonic()
    refuse(known.out, known.atlas)
    console = beside()
    write_atlas = partial(written_or_said, "the atlas", partial(build, known.out, known.atlas))
    tour = tour_of(entries)
    asked = entries if known.all else tour
    landed = guide(tour, len(asked) - len(tour), store, console, write_atlas)
    outcomes = run_several(
        asked,
        store,
        known.preset,
        known.seed,
        known.force,
        known.workers,
        first=[entry.name for entry in tour],
        landed=landed,
        console=console,
    )
    _show(known, asked, outcomes, store)
    show = say if known.json else tell
    if any(outcome.result for outcome in outcomes):
        if (atlas := write_atlas()) is not None:
            show(f"atlas: {atlas}")
        show(f"{len(outcomes)} claims in {duration(time.monotonic() - start)}")
    if not known.all:
        for line in onward(known, entries, outcomes, store):
            show(line)
    return outcomes


def run_one(
    entry: Entry, changes: Mapping[str, Any], store: Store, preset: str, seed: int, force: bool
) -> Outcome:
    """Run one claim here; one that crashes is reported.

    Args:
        entry: the claim.
        changes: fields that differ from the preset.
        store: where results are kept, and found.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: seed of every random number.
        force: run even what is in the store.
    """
    store.prepare()
    kept = None if force or changes else stored(entry, store, preset, seed)
    if kept is not None:
        return Outcome(entry.name, kept)
    from steepest.engine.run import answer, ready  # JAX is imported only where something runs

    asked = ready(entry, preset, seed, changes)
    with bar() as progress, waited_for(progress.console, entry.name) as still:
        task = progress.add_task("", total=1, completed=0, claim=entry.name, stage="starting")

        def watch(stage: str) -> None:
            progress.update(task, stage=stage)
            still(stage)

        try:
            return Outcome(entry.name, answer(asked, store=store, force=force, watch=watch))
        except UnwritableError as trouble:
            if trouble.result is None:
                raise
            say(f"steepest: {trouble}")  # the verdict stands
            return Outcome(entry.name, trouble.result)
        except UserError:
            raise
        except Exception as trouble:
            lines = f"{type(trouble).__name__}: {trouble}".splitlines()
            return Outcome(entry.name, None, lines[0][:300], traceback.format_exc())


def run_several(
    entries: Sequence[Entry],
    store: Store,
    preset: str,
    seed: int,
    force: bool,
    workers: int | None,
    first: Sequence[str] = (),
    landed: Callable[[Outcome], None] = lambda outcome: None,
    console: Console | None = None,
) -> list[Outcome]:
    """Run several claims on all cores; each verdict is shown as it lands, with how many are left.

    Args:
        entries: the claims.
        store: where results are kept, and found.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: seed of every random number.
        force: run even what is in the store.
        workers: processes; None for as many as fit.
        first: names of the claims to start with.
        landed: called with each outcome, after it is shown.
        console: where they are shown; None for standard error.
    """
    names = [entry.name for entry in entries]
    with shown(console or beside(), names, first) as display:

        def done(outcome: Outcome) -> None:
            display.landed(outcome)
            landed(outcome)

        return run_all(
            entries,
            store,
            preset=preset,
            seed=seed,
            force=force,
            workers=workers,
            function="steepest.app.worker:work",
            first=first,
            done=done,
            begun=display.begun,
        )


def _show(
    known: argparse.Namespace, entries: Sequence[Entry], outcomes: Sequence[Outcome], store: Store
) -> None:
    """Print what became of the claims: as JSON, one in detail, some in a table, the tour or all of them by chapter."""
    if known.json:
        _print_json(outcomes, single=len(known.claims) == 1)
        return
    for outcome in outcomes:
        if outcome.trace:
            say(outcome.trace)
    console = wide()
    if len(outcomes) == 1 and outcomes[0].result is not None:
        _show_one(console, outcomes[0], store)
        return
    if known.claims or known.table:
        console.print(table(outcomes))
    else:
        console.print(by_chapter(entries, outcomes) if known.all else of_tour(entries, outcomes))
    show_exceptions(console, outcomes)


def _show_one(console: Console, outcome: Outcome, store: Store) -> None:
    result = outcome.result
    assert result is not None
    show_details(console, result, f"{verdict_of(outcome)} —")
    recorded = record_for(result)
    picture = draw_picture(result, store)
    lines = [
        change(result),
        spelled_rates(recorded),
        f"picture: {picture}" if picture else "",
    ]
    for line in filter(None, lines):
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def _print_json(outcomes: Sequence[Outcome], single: bool) -> None:
    """Print results on standard output, and on standard error what differs from the record or crashed."""
    records = []
    for outcome in outcomes:
        result = outcome.result
        if result is not None:
            recorded = record_for(result)
            more = {
                "how": result.how,
                "recorded": recorded.to_json() if recorded else None,
                "hold_rates": hold_rates(record_behind(result)),
            }
            records.append({**result.to_json(), **more})
        if result is None or change(result):
            say(f"steepest: {exception(outcome)}")
    tell_json(records[0] if single and records else records)
