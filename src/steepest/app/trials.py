"""``steepest trials``: how often a claim holds, at fresh seeds and at random settings of its scope."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from steepest.app.console import bar, styled, wide
from steepest.app.pictures import written_or_said
from steepest.app.sharding import read_shard
from steepest.app.streams import say, say_page, tell_json
from steepest.core.words import CRASHED, word
from steepest.engine import sweeps
from steepest.engine.trials import MOST, RunKind, Tally, TrialPlan, Trials, gather
from steepest.engine.workers import check_place

TITLES = ("", "runs", "holds", "fails", "undecided", "out of range", CRASHED, "hold rate", "95 %")
LIVE = {RunKind.SEED: "fresh seed", RunKind.SETTING: "setting, seed"}
ROWS = {RunKind.SEED: "fresh seeds", RunKind.SETTING: "settings"}


def trials(known: Any) -> Trials:
    """Try a claim as the command line says: compute what is missing, show how often it holds.

    Args:
        known: the options of the command line.
    """
    check_place(known.on)
    plan = TrialPlan(known.claim, known.seeds, known.settings, known.preset)
    if known.record:
        from steepest.app.recording import check_recordable

        check_recordable(plan)
    shard = read_shard(known.shard)
    left = sweeps.work(plan, known.out, shard=shard, force=known.force, retry=known.retry)
    _show_plan(plan, len(left.missing))
    if left.missing:
        _compute(left, known)
    result = gather(plan, known.out)
    if known.json:
        tell_json(result.to_json())
    else:
        show_trials(wide(), result)
    if known.page is not None:
        from steepest.site.pages import trials_page

        page = written_or_said("the page", lambda: trials_page(result, known.page))
        if page is not None:
            say_page(page, known.json)
    if known.record:
        from steepest.app.recording import write_record

        say(f"recorded: {', '.join(str(path) for path in write_record(result))}")
    return result


def exit_code(result: Trials) -> int:
    """Return 0 where every run was computed and none fails, else 1."""
    return int(any(row.verdict in ("fails", CRASHED) for row in result.rows))


def _show_plan(plan: TrialPlan, missing: int) -> None:
    """Say on standard error what is tried."""
    for sentence in about_draws(plan):
        say(f"  {sentence}")
    stored = len(plan) - missing
    already = f", {stored} are stored or belong to other shards" if stored else ""
    say(f"  {missing} runs to compute{already}")


def about_draws(plan: TrialPlan) -> list[str]:
    """Return what a reader should know of the seeds and settings, one sentence each."""
    first = plan.first_seed
    sentences = [f"seeds from {first} on, those of version {plan.version}"] if plan.seeds else []
    if not plan.scope:
        return [*sentences, f"{plan.claim} states no scope, so no settings are drawn"]
    if plan.settings:
        where = ", ".join(f"{name} {scope}" for name, scope in plan.scope.items())
        sentences.append(f"settings from {where}; seeds from {first + MOST} on")
    if plan.draws.refused:
        count = plan.draws.refused
        sentences.append(f"the claim refused {count} draws, which were drawn again")
    if plan.given_up:
        sentences.append(f"{plan.given_up} settings were given up: the claim refused every draw")
    return sentences


def _compute(left: sweeps.Work[TrialPlan], known: Any) -> None:
    """Compute what is missing, with a live count of verdicts."""
    verdicts: list[str] = []
    total = len(left.missing)
    with bar() as shown:
        task = shown.add_task("", total=total, claim=left.plan.claim, stage="trying")

        def landed(numbers: Sequence[int], records: Sequence[sweeps.Record]) -> None:
            for number, record in zip(numbers, records, strict=True):
                verdicts.append(record["verdict"])
                run = left.plan.runs[number]
                _tell(shown, f"[{len(verdicts)}/{total}] {LIVE[run.kind]} {run.seed}", record)
            shown.update(task, completed=len(verdicts), stage=counted(verdicts))

        left.run(known.on, known.workers, landed=landed)


def _tell(shown: Progress, what: str, record: sweeps.Record) -> None:
    """Print a line for a run where no bar can be drawn."""
    if not shown.console.is_terminal:
        say(f"  {what}: {word(record['verdict'])} ({record['seconds']:.1f} s)")


def counted(verdicts: Sequence[str]) -> str:
    """Return verdicts counted, in words.

    >>> counted(["holds", "fails", "holds"])
    '2 holds, 1 fails'
    """
    distinct = dict.fromkeys(verdicts)
    return ", ".join(f"{verdicts.count(verdict)} {word(verdict)}" for verdict in distinct)


def show_trials(console: Console, result: Trials) -> None:
    """Print how often the claim holds, where in its scope, and each run that does not."""
    plain: Any = {"markup": False, "highlight": False, "soft_wrap": True}
    console.print(
        f"[bold]{escape(result.claim)}[/], version {result.version}, preset {result.plan.preset}",
        highlight=False,
    )
    console.print(_table(result))
    settings = result.settings
    if settings.runs:
        low, high = settings.interval_of_decided
        decided = f"{settings.decided} of {settings.runs} settings are decided"
        console.print(f"  {decided}, {settings.holds} hold ({low:.2f} to {high:.2f})", **plain)
    if result.missing:
        console.print(f"  {result.missing} runs are not computed yet", **plain)
    if result.maps:
        console.print(_map(result))
    for row in result.exceptions:
        console.print(f"  {styled(row.verdict)} {escape(row.reason)}", highlight=False)
        console.print(f"    {row.command}", **plain)


def _table(result: Trials) -> Table:
    """A row for fresh seeds and one for settings."""
    table = Table(*TITLES, box=None, header_style="bold")
    for kind, name in ROWS.items():
        tally = result.tally(kind)
        if tally.runs or tally.missing:
            table.add_row(name, *_cells(tally))
    return table


def _cells(tally: Tally) -> list[str]:
    parts = ("runs", "holds", "fails", "undecided", "out_of_range", "crashed")
    low, high = tally.interval
    rate = f"{tally.holds / tally.runs:.2f}" if tally.runs else ""
    return [*(str(getattr(tally, part)) for part in parts), rate, f"{low:.2f} to {high:.2f}"]


def _map(result: Trials) -> Table:
    """A row for each field of the scope: how many of the settings in each part of its range hold."""
    table = Table("holds where", box=None, header_style="bold", show_header=True)
    for _ in range(max(len(scope_map.regions) for scope_map in result.maps)):
        table.add_column("")
    for scope_map in result.maps:
        cells = [
            f"{region}: {region.tally.holds} of {region.tally.runs}" for region in scope_map.regions
        ]
        table.add_row(scope_map.field, *(escape(cell) for cell in cells))
    return table
