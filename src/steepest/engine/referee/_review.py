"""The whole review: the stored result, every attack on it, and runs at other settings."""

import time
from collections.abc import Callable
from pathlib import Path

from steepest.catalogue import Entry
from steepest.core.words import Verdict
from steepest.engine.referee._bench import Bench, bench_of
from steepest.engine.referee._findings import Finding, Flaw, Review, Severity, in_order
from steepest.engine.referee._laws import attack_laws
from steepest.engine.referee._rankings import attack_rankings
from steepest.engine.referee._record import find_shared, read_record
from steepest.engine.referee._settings import judge_setting, run_settings
from steepest.engine.referee._worlds import attack_worlds
from steepest.engine.results import Result
from steepest.engine.run import answer, execute, ready
from steepest.engine.store import Store, refuse_links

RUNS = 6
"""Runs at other settings, unless told otherwise."""

Watch = Callable[[str], None]


def review(
    target: str | Path | Entry,
    store: Store,
    *,
    runs: int = RUNS,
    watch: Watch = lambda stage: None,
) -> Review:
    """Try what a hostile reader would: wrong arrays before a claim's own judge, and runs at other settings.

    Args:
        target: a claim's name, or the path of a file that holds one.
        store: where its result is read, or kept once it has run; other settings have a folder of their own there.
        runs: how many runs at other settings; with none nothing runs but the claim itself, where it is not stored.
        watch: called with the name of each stage.

    Raises:
        UserError: unknown claim, or a folder that cannot be written.
    """
    asked = ready(target)
    result = answer(asked, store=store, watch=watch)
    start = time.perf_counter()
    case = bench_of(asked, result)
    watch("judging wrong arrays")
    findings = judge_arrays(case)
    findings += find_shared(case, _shared(asked.entry, result, runs, watch))
    refuse_links(store.root, asked.entry.name, "referee")
    aside = Store(store.root / asked.entry.name / "referee")
    tried = tuple(run_settings(asked.entry, asked.claim, aside, runs, watch))
    for run in tried:
        findings += judge_setting(run)
    return Review(
        claim=asked.entry.name,
        says=asked.entry.says,
        verdict=result.verdict,
        preset=result.preset,
        seed=result.seed,
        findings=in_order(findings),
        judged=case.judged,
        runs=tried,
        seconds=round(time.perf_counter() - start, 3),
    )


def judge_arrays(case: Bench) -> list[Finding]:
    """Return what a result gives away without any run."""
    if not case.own:
        numbers = {"verdict": case.result.verdict, "reason": case.result.reason}
        again = f"steepest run {case.target}"
        return [Finding(Flaw.NOTHING_JUDGED, Severity.NOTE, numbers=numbers, reproduce=again)]
    attacks = (attack_laws, attack_worlds, attack_rankings, read_record)
    return [finding for attack in attacks for finding in attack(case)]


def _shared(entry: Entry, result: Result, runs: int, watch: Watch) -> tuple[str, ...]:
    """Return the functions that both sides call: as the result was traced, else as a tiny run is."""
    if result.shared or not runs or result.verdict is Verdict.OUT_OF_RANGE:
        return result.shared
    watch("tracing what both sides call")
    claim = ready(entry).claim
    preset = "tiny" if claim.tiny else "quick"
    return execute(ready(entry, preset)).shared
