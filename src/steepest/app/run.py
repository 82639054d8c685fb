"""``steepest run``: one claim in this process, several in processes of their own."""

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from steepest.app.console import bar, styled, wide
from steepest.app.streams import say
from steepest.catalogue import Entry
from steepest.core.checks import Check
from steepest.core.errors import UserError
from steepest.core.hypotheses import Hypothesis
from steepest.core.words import CRASHED
from steepest.engine.crew import Outcome, run_all, stored
from steepest.engine.results import Result
from steepest.engine.store import Question, Store, move_into_place

FIRST = "edge-of-stability"
"""The claim that a run of many starts with: a reader has a verdict and a figure to look at while the others run."""
HOW = {"stored": ", stored earlier: --force runs it again", "judged anew": ", judged anew"}


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
    with bar() as shown:
        task = shown.add_task("", total=1, completed=0, claim=entry.name, stage="starting")
        watch = lambda stage: shown.update(task, stage=stage)
        try:
            return Outcome(entry.name, answer(asked, store=store, force=force, watch=watch))
        except UserError:
            raise
        except Exception as trouble:
            lines = f"{type(trouble).__name__}: {trouble}".splitlines()
            return Outcome(entry.name, None, lines[0][:300], traceback.format_exc())


def run_several(
    entries: Sequence[Entry], store: Store, preset: str, seed: int, force: bool, workers: int | None
) -> list[Outcome]:
    """Run several claims on all cores; each verdict is shown as it lands, with how many are left."""
    landed: dict[str, Outcome] = {}
    console = Console(file=sys.stderr)

    def progress() -> Table:
        table = _table([landed[e.name] for e in entries if e.name in landed])
        table.caption = f"{len(landed)} of {len(entries)} claims"
        return table

    options: dict[str, Any] = {
        "preset": preset,
        "seed": seed,
        "force": force,
        "workers": workers,
        "function": "steepest.app.worker:work",
        "first": FIRST,
    }

    def show_first(outcome: Outcome) -> None:
        """Say where the first figure is, while there is still much to wait for."""
        result = outcome.result
        if outcome.name != FIRST or result is None or result.how == "stored":
            return
        if len(landed) < len(entries):
            picture = draw_picture(result, store)
            console.print(f"a figure to look at: {picture}", highlight=False, soft_wrap=True)

    if not console.is_terminal:

        def print_line(outcome: Outcome) -> None:
            landed[outcome.name] = outcome
            result = outcome.result
            word = f"{result.verdict} ({result.seconds:.1f} s)" if result else CRASHED
            how = ", stored earlier" if result and result.how == "stored" else ""
            say(f"[{len(landed)}/{len(entries)}] {outcome.name}: {word}{how}")
            show_first(outcome)

        return run_all(entries, store, done=print_line, **options)
    with Live(progress(), console=console, transient=True, refresh_per_second=4) as live:

        def refresh(outcome: Outcome) -> None:
            landed[outcome.name] = outcome
            live.update(progress())
            show_first(outcome)

        return run_all(entries, store, done=refresh, **options)


def show_outcomes(outcomes: Sequence[Outcome], store: Store) -> None:
    """Print the verdicts; of a single claim its checks too, and where its picture is."""
    console = wide()
    for outcome in outcomes:
        if outcome.trace:
            say(outcome.trace)
    if len(outcomes) == 1 and outcomes[0].result is not None:
        show_details(console, outcomes[0].result)
        picture = draw_picture(outcomes[0].result, store)
        if picture is not None:
            console.print(f"  picture: {picture}", markup=False, highlight=False, soft_wrap=True)
        return
    console.print(_table(outcomes))


def draw_picture(result: Result, store: Store) -> Path | None:
    """Write the figure of a result beside it as SVG, once; None where nothing was observed."""
    if not result.panels:
        return None
    folder = store.root / result.claim / Question.of(result).key
    path = folder / "figure.svg"
    if result.how != "stored" or not path.is_file():
        from steepest.site.drawing import svg  # matplotlib only where something is drawn

        temporary = folder / f".new-{path.name}-{os.getpid()}"
        temporary.write_text(svg(result.panels), "utf-8")
        move_into_place(temporary, path)
    return path


def _table(outcomes: Sequence[Outcome]) -> Table:
    columns = ("claim", "verdict", "why", "seconds")
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for outcome in outcomes:
        result = outcome.result
        if result is None:
            table.add_row(outcome.name, styled(CRASHED), escape(outcome.crash), "")
            continue
        note = {"stored": " (stored)", "judged anew": " (judged anew)"}.get(result.how, "")
        table.add_row(
            result.claim,
            styled(result.verdict) + note,
            escape(result.reason),
            f"{result.seconds:.1f}",
        )
    return table


def show_details(console: Console, result: Result, verdict: str = "") -> None:
    """Print verdict, assumptions, checks, rivals and controls of one result.

    Args:
        console: where to.
        result: the result.
        verdict: the sign or word in front of the reason, as rich shows it; the usual one where it is left out.
    """
    word = verdict or f"{styled(result.verdict)} —"
    console.print(f"[bold]{result.claim}[/]: {word} {escape(result.reason)}", highlight=False)
    for hypothesis in result.assumptions:
        console.print(f"  assumes {_assumption(hypothesis)}", markup=False)
    counted = [check for check in result.checks if check.decides]
    others = [check for check in result.checks if not check.decides]
    for title, checks in (("check", counted), ("identities and consistency", others)):
        if checks:
            console.print(_checks(title, checks))
    for rival in result.rivals:
        verdict = f"rejected by {', '.join(rival.by)}" if rival.rejected else NOT_REJECTED
        if rival.accepted and not rival.rejected:
            verdict = f"accepted: {rival.accepted}"
        console.print(f"  rival: {rival.name} — {verdict}", markup=False, highlight=False)
    for control in result.controls:
        verdict = f"told apart by {', '.join(control.by)}" if control.rejected else PASSES
        console.print(f"  control: {control.name} — {verdict}", markup=False, highlight=False)
    how = HOW.get(result.how, "")
    console.print(f"  {result.seconds:.1f} s{how}", markup=False, highlight=False)
    console.print(f"  {result.command}", markup=False, highlight=False, soft_wrap=True)


def _checks(title: str, checks: Sequence[Check]) -> Table:
    titles = (title, "predicted", "measured", "interval", "margin", "would notice", "verdict")
    table = Table(*titles, box=None, header_style="bold")
    for check in checks:
        table.add_row(
            escape(check.name),
            f"{check.predicted:.4g}",
            f"{check.measured:.4g}",
            _span(check, "interval"),
            _span(check, "margin"),
            check.would_notice,
            styled(check.verdict),
        )
    return table


NOT_REJECTED = "not rejected: this run cannot tell the claim from this wrong theory"
PASSES = "passes: the judge does not see that the law must not hold for it"


def _assumption(hypothesis: Hypothesis) -> str:
    advice = f" — {hypothesis.note}" if hypothesis.note and not hypothesis.holds else ""
    return f"{'✓' if hypothesis.holds else '✗'} {hypothesis}{advice}"


def _span(check: Check, which: str) -> str:
    interval = getattr(check, which)
    if interval.low == interval.high:
        return interval.how
    return f"{interval.low:.4g} … {interval.high:.4g}"
