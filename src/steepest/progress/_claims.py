"""What the terminal shows while claims run, and after."""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from steepest.claims import entry, load
from steepest.claims._claim import documentation
from steepest.errors import UserError
from steepest.judging import Check
from steepest.progress._terminal import LOOKS, bar, wide
from steepest.results import Result
from steepest.running import run
from steepest.store import Store

# Claims share compiled programs, but each program keeps memory maps, of which a process may have 65 530: after this
# many claims they are freed.
KEPT = 8


class Session:
    """One call of ``steepest run``: a bar over claims on standard error, a table of verdicts at the end.

    Attributes:
        store: where results go.
        options: preset, seed and again, for every claim.
    """

    def __init__(self, out: Path, **options: Any) -> None:
        self.store = Store(out)
        self.options = options

    def run(self, names: Sequence[str], changes: Mapping[str, Any]) -> tuple[list[Result], dict[str, str]]:
        """Run claims one after the other; one that crashes is reported and does not stop the others.

        Returns:
            The results, and the last line of the error of each claim that crashed.
        """
        self.store.prepare()
        results: list[Result] = []
        crashed: dict[str, str] = {}
        with bar() as shown:
            task = shown.add_task("", total=len(names), claim="", stage="")
            for done, name in enumerate(names, 1):

                def watch(stage: str, name: str = name) -> None:
                    shown.update(task, claim=name, stage=stage)

                watch("starting")
                try:
                    results.append(run(name, store=self.store, watch=watch, **self.options, **changes))
                except UserError:
                    raise
                except Exception as error:
                    # A defect of one claim must not cost the user the others.
                    shown.console.print(traceback.format_exc(), style="red", markup=False, highlight=False)
                    crashed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
                if done % KEPT == 0:
                    jax.clear_caches()
                shown.advance(task)
        return results, crashed

    def table(self, results: Sequence[Result], crashed: Mapping[str, str]) -> None:
        """Print the verdicts, and for a single claim its checks."""
        console = wide()
        if len(results) == 1 and not crashed:
            _details(console, results[0])
            return
        table = Table("claim", "verdict", "why", "seconds", box=None, pad_edge=False, header_style="bold")
        for result in results:
            table.add_row(result.claim, LOOKS[result.verdict], result.reason, f"{result.seconds:.1f}")
        for name, error in crashed.items():
            table.add_row(name, "[red]crashed[/]", error, "")
        console.print(table)


def describe(name: str) -> None:
    """Print a claim's statement, source, corrections and fields."""
    claim, found, console = load(name), entry(name), wide()
    console.print(f"[bold]{name}[/] ({found.chapter.replace('_', ' ')})\n{found.says}", highlight=False)
    console.print(f"\nsource: {claim.source}", highlight=False, markup=False)
    for correction in claim.corrections:
        console.print(f"correction: {correction}", highlight=False, markup=False)
    table = Table("field", "quick", "full", "meaning", box=None, pad_edge=False, header_style="bold")
    meaning = documentation(claim)
    for field in fields(claim):
        full = claim.full.get(field.name, field.default)
        table.add_row(f"--{field.name}", str(field.default), str(full), meaning.get(field.name, "").replace("[", r"\["))
    console.print()
    console.print(table)
    if claim.cell is not None:
        plane = " and ".join(claim.cell.diagram)
        console.print(f"\nphase diagram over {plane}: steepest sweep {name}", highlight=False)


def _details(console: Console, result: Result) -> None:
    console.print(f"[bold]{result.claim}[/]: {LOOKS[result.verdict]} — {result.reason}", highlight=False)
    for h in result.hypotheses:
        sign = "✓" if h.holds else "✗"
        advice = f" — {h.note}" if h.note and not h.holds else ""
        console.print(f"  assumes {sign} {h.name}: {h.value:.4g} {h.relation} {h.threshold:.4g}{advice}", markup=False)
    table = Table("check", "predicted", "measured", "interval", "margin", "verdict", box=None, header_style="bold")
    for check in result.checks:
        interval, margin = _span(check, "interval"), _span(check, "margin")
        numbers = f"{check.predicted:.4g}", f"{check.measured:.4g}"
        table.add_row(check.name, *numbers, interval, margin, LOOKS[check.verdict])
    console.print(table)
    for r in result.rivals:
        words = f"rejected by {', '.join(r.by)}" if r.rejected else "not rejected: this claim has no power here"
        console.print(f"  rival: {r.name} — {words}", markup=False, highlight=False)
    console.print(f"  {result.seconds:.1f} s; {result.command}", markup=False, highlight=False)


def _span(check: Check, which: str) -> str:
    interval = getattr(check, which)
    if interval.low == interval.high:
        return interval.how
    return f"{interval.low:.4g} … {interval.high:.4g}"
