"""What the terminal shows of a sweep: the plan, how far it is, what came."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from steepest import sweeping
from steepest.errors import UserError
from steepest.progress._terminal import LOOKS, bar, wide

HOUR = 3600.0
SHORT = 30.0
"""A sweep of fewer seconds is not worth starting processes for."""


def swept(known: Any, changes: Mapping[str, Any]) -> sweeping.Sweep:
    """Sweep as the command line says: print the plan, ask where it is long, compute, show what came."""
    _exportable(known.export)
    shard, over = _shard(known.shard), None if known.over is None else _over(known.over)
    options = {name: getattr(known, name) for name in ("preset", "seed", "whole", "batch")}
    plan = sweeping.plan(known.claim, over, sobol=known.sobol, changes=changes, **options)
    _show(plan)
    left = sweeping.work(plan, known.out, shard=shard, again=known.again, retry=known.retry)
    there = sum(map(len, plan.tasks[shard[0] - 1 :: shard[1]])) - len(left.missing)
    _say(f"{len(left.missing)} points to compute" + f", {there} are in {known.out} already" * bool(there))
    if left.missing:
        sweeping.check(plan)
        expected = sweeping.estimate(left)
        _say(str(expected))
        if not known.plan:
            _compute(left, expected.seconds, known)
    found = sweeping.gather(plan, known.out)
    if not known.plan:
        _told(found, known)
    return found


def _show(plan: sweeping.Plan) -> None:
    for axis in plan.axes:
        _say(f"over {axis}")
    programs = len(set(plan.groups.tolist()))
    how = f"{programs} compiled program{'s' * (programs != 1)}" if plan.cell else "each a run of the whole claim"
    _say(f"{len(plan)} points, {how}")


def _compute(left: sweeping.Work, seconds: float, known: Any) -> None:
    if seconds > HOUR and not known.yes:
        _confirm("nothing was computed" if left.plan.cell else "the first point, which was timed, is kept")
    short = known.on == "local" and known.workers is None and seconds < SHORT
    with bar() as shown:
        task = shown.add_task("", total=len(left.missing), claim=known.claim, stage="points")
        watch = lambda done, total: shown.update(task, completed=done)
        left.run("here" if short else known.on, known.workers, watch)


def _confirm(so_far: str) -> None:
    """Ask before more than an hour's work; without a terminal to ask, refuse."""
    if not sys.stdin.isatty():
        raise UserError("this takes more than an hour; say --yes to start it, or divide it with --shard 1/10")
    print("This takes more than an hour. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if input().strip().lower() not in ("y", "yes"):
        raise UserError(f"not started; {so_far}")


def _told(found: sweeping.Sweep, known: Any) -> None:
    """The counts of verdicts and the ranges of quantities, or all of it as JSON."""
    if known.export is not None:
        (found.to_parquet if known.export.suffix == ".parquet" else found.to_csv)(known.export)
        _say(f"table: {known.export}")
    if known.json:
        plain = {"claim": found.claim, "sweep": found.key, "command": found.command, "total": found.total}
        print(json.dumps({**plain, "counts": found.counts, "points": found.points}, indent=1))
        return
    console = wide()
    looks = {str(verdict): look for verdict, look in LOOKS.items()} | {"failed": "[red]✗ not computed[/]"}
    counts = ", ".join(f"{count} {looks[verdict]}" for verdict, count in found.counts.items())
    console.print(
        f"[bold]{found.claim}[/]: {sum(found.counts.values())} of {found.total} points: {counts}", highlight=False
    )
    table = Table("quantity", "measured", "predicted", box=None, pad_edge=False, header_style="bold")
    for name in [*found.judged, *found.others]:
        table.add_row(name, *(found.ends(f"{name} {side}") for side in ("measured", "predicted")))
    console.print(table)
    for reason, count in list(found.failures.items())[:5]:
        console.print(f"  {count} × {reason}", markup=False, highlight=False)
    console.print(f"diagram: steepest atlas --results {known.out}", markup=False, highlight=False)


def _over(words: Sequence[str]) -> dict[str, str]:
    """``FIELD=VALUES`` words as a mapping."""
    found: dict[str, str] = {}
    for word in words:
        field, sign, values = word.partition("=")
        if not (field and sign and values):
            raise UserError(f"--over takes FIELD=VALUES such as lr=log:0.01:1:20, got {word!r}")
        field = field.replace("-", "_")
        if field in found:
            raise UserError(f"{field} is swept twice; write all its values in one --over, such as {field}=1,2,3")
        found[field] = values
    return found


def _shard(words: str | None) -> tuple[int, int]:
    """``"3/40"`` as two numbers."""
    if words is None:
        return 1, 1
    i, sign, n = words.partition("/")
    if not (sign and i.isdigit() and n.isdigit()):
        raise UserError(f"--shard takes I/N such as 3/40, counted from 1, got {words!r}")
    return int(i), int(n)


def _exportable(path: Path | None) -> None:
    """Refuse a table that could not be written, before anything is computed."""
    if path is None:
        return
    if path.suffix not in (".csv", ".parquet"):
        raise UserError(f"a table is a .csv or .parquet file, got --export {path}")
    if not path.absolute().parent.is_dir():
        raise UserError(f"there is no folder {path.absolute().parent} for --export {path}; make it first")
    if path.suffix == ".parquet":
        sweeping.exportable()


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr)
