"""``steepest sweep``: the plan, how far it is, what came."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from steepest.app.console import bar, styled, wide
from steepest.app.sharding import read_shard
from steepest.app.streams import say, tell_json
from steepest.core.errors import UserError
from steepest.core.writing import temporary
from steepest.engine import sweeps
from steepest.engine.workers import check_place

HOUR = 3600.0
SHORT = 30.0
"""A sweep of fewer seconds is not worth starting processes for."""


def sweep(known: Any, changes: Mapping[str, Any]) -> sweeps.Sweep:
    """Sweep as the command line says: print the plan, ask where it is long, compute, show what came.

    Args:
        known: the options of the command line.
        changes: fields that differ from the preset at every point.
    """
    _exportable(known.export)
    check_place(known.on)
    shard = read_shard(known.shard)
    over = None if known.over is None else _over(known.over)
    options = {name: getattr(known, name) for name in ("preset", "seed", "whole", "batch")}
    plan = sweeps.plan(known.claim, over, sobol=known.sobol, changes=changes, **options)
    left = sweeps.work(plan, known.out, shard=shard, force=known.force, retry=known.retry)
    _show(plan)
    mine = sum(map(len, plan.tasks[shard[0] - 1 :: shard[1]]))
    stored = mine - len(left.missing)
    already = f", {stored} are in {known.out} already" if stored else ""
    _say(f"{len(left.missing)} points to compute{already}")
    if left.missing:
        expected = sweeps.estimate(left)
        _say(str(expected))
        if not known.plan:
            _compute(left, expected.seconds, known)
    result = sweeps.gather(plan, known.out)
    if not known.plan:
        _report(result, known)
    return result


def _show(plan: sweeps.Plan) -> None:
    for axis in plan.axes:
        _say(f"over {axis}")
    programs = len(set(plan.groups.tolist()))
    how = "each a run of the whole claim"
    if plan.experiment is not None:
        how = f"{programs} compiled program{'s' * (programs != 1)}"
    _say(f"{len(plan)} points, {how}")


def _compute(left: sweeps.Work, seconds: float, known: Any) -> None:
    if seconds > HOUR and not known.yes:
        timed = "the first point, which was timed, is kept"
        _confirm("nothing was computed" if left.plan.experiment else timed)
    short = known.on == "local" and known.workers is None and seconds < SHORT
    with bar() as shown:
        task = shown.add_task("", total=len(left.missing), claim=known.claim, stage="points")
        watch = lambda done, total: shown.update(task, completed=done)
        left.run("here" if short else known.on, known.workers, watch)


def _confirm(so_far: str) -> None:
    """Ask before more than an hour's work; without a terminal to ask, refuse."""
    if not sys.stdin.isatty():
        raise UserError(
            "this takes more than an hour; say --yes to start it, or divide it with --shard 1/10"
        )
    say("This takes more than an hour. Go on? [y/N] ", end="")
    if input().strip().lower() not in ("y", "yes"):
        raise UserError(f"not started; {so_far}")


def _export(write: Callable[[Path], Path], file: Path) -> None:
    """Write a table, whole or not at all.

    Raises:
        UserError: a place that cannot be written.
    """
    if file.exists() and not file.is_file():  # such as /dev/stdout
        write(file)
        return
    try:
        with temporary(file) as fresh:
            write(fresh)
            os.replace(fresh, file)
    except OSError as trouble:
        reason = trouble.strerror or trouble
        raise UserError(
            f"cannot write the table {file} ({reason}); the points are kept, choose another place with --export"
        ) from None


def _report(result: sweeps.Sweep, known: Any) -> None:
    """Print the counts of verdicts and the ranges of quantities, or all of it as JSON."""
    if known.export is not None:
        write = result.to_parquet if known.export.suffix == ".parquet" else result.to_csv
        _export(write, known.export)
        _say(f"table: {known.export}")
    if known.json:
        record = {
            "claim": result.claim,
            "sweep": result.key,
            "command": result.command,
            "total": result.total,
            "counts": result.counts,
            "points": result.points,
        }
        tell_json(record)
        return
    console = wide()
    counts = ", ".join(f"{count} {styled(verdict)}" for verdict, count in result.counts.items())
    points = f"{sum(result.counts.values())} of {result.total} points"
    console.print(f"[bold]{result.claim}[/]: {points}: {counts}", highlight=False)
    titles = ("quantity", "measured", "predicted")
    table = Table(*titles, box=None, pad_edge=False, header_style="bold")
    for id in (*result.judged, *result.others):
        ends = (result.ends(f"{id}_{side}") for side in ("measured", "predicted"))
        table.add_row(escape(result.labels[id]), *ends)
    console.print(table)
    for reason, count in list(result.crashes.items())[:5]:
        console.print(f"  {count} × {reason}", markup=False, highlight=False)
    page = f"diagram: steepest atlas --results {known.out}"
    console.print(page, markup=False, highlight=False, soft_wrap=True)


def _over(words: Sequence[str]) -> dict[str, str]:
    """``FIELD=VALUES`` words as a mapping."""
    ranges: dict[str, str] = {}
    for word in words:
        field, sign, values = word.partition("=")
        if not (field and sign and values):
            raise UserError(f"--over takes FIELD=VALUES such as lr=log:0.01:1:20, got {word!r}")
        field = field.replace("-", "_")
        if field in ranges:
            raise UserError(
                f"{field} is swept twice; write all its values in one --over, such as {field}=1,2,3"
            )
        ranges[field] = values
    return ranges


def _exportable(path: Path | None) -> None:
    """Refuse a table that could not be written, before anything is computed."""
    if path is None:
        return
    if path.suffix not in (".csv", ".parquet"):
        raise UserError(f"a table is a .csv or .parquet file, got --export {path}")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder} for --export {path}; make it first")
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"cannot write --export {path}; choose another file")
    if path.suffix == ".parquet":
        sweeps.exportable()


def _say(text: str) -> None:
    say(f"  {text}")
