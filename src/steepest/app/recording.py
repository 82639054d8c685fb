"""``steepest trials --record``: what the trials of our own claims came to, written into the package's record."""

import json
from dataclasses import replace
from pathlib import Path

from steepest import record
from steepest.catalogue import HERE
from steepest.core.errors import UserError
from steepest.core.records import plain
from steepest.core.writing import move_into_place, temporary
from steepest.engine.rates import record_of
from steepest.engine.trials import TrialPlan, TrialRow, Trials

PROJECT = Path(__file__).parents[3]
"""The root of a checkout; of an installed package, the folder of an environment."""


def check_recordable(plan: TrialPlan) -> None:
    """Refuse trials that the package's record has no place for, before anything is computed.

    Raises:
        UserError: a claim of others, an installed package, another preset than the record's, a version without a
            recorded verdict.
    """
    if plan.entry.origin != HERE:
        raise UserError(f"--record is for the claims of Steepest, and {plan.claim} is not one")
    if not (PROJECT / "pyproject.toml").is_file():
        raise UserError("--record writes into a checkout of Steepest, and this one is installed")
    if plan.preset != record.PRESET:
        raise UserError(f"the record is of preset {record.PRESET}, got --preset {plan.preset}")
    if record_of(plan.entry, plan.version) is None:
        raise UserError(
            f"there is no recorded verdict of version {plan.version} of {plan.claim}; "
            "python -m tests.contract.green writes it"
        )


def write_record(trials: Trials) -> tuple[Path, Path]:
    """Write the counts into ``record.json``, and every run into ``benchmarks/trials/CLAIM.jsonl``; return both files.

    A kind of run that was not tried keeps its earlier count.

    Raises:
        UserError: as :func:`check_recordable`; runs that are not computed yet.
    """
    check_recordable(trials.plan)
    if trials.missing:
        raise UserError(
            f"{trials.missing} runs are not computed yet; leave --shard out, or run the others"
        )
    lines = [json.dumps(_line(trials, row), ensure_ascii=False) for row in trials.rows]
    runs = PROJECT / "benchmarks" / "trials" / f"{trials.claim}.jsonl"
    _write(runs, "\n".join([*lines, ""]))
    record.records.cache_clear()  # trials take long, and others may have written since they began
    whole = dict(record.records())
    whole[trials.claim] = _counted(whole[trials.claim], trials)
    _write(record.PATH, record.spelled(whole))
    record.records.cache_clear()
    return record.PATH, runs


def _counted(known: record.Record, trials: Trials) -> record.Record:
    """Return a record with the counts of the trials."""
    seeds = trials.seeds.hold_rate() if trials.seeds.runs else known.seeds
    settings = trials.settings.hold_rate() if trials.settings.runs else known.settings
    return replace(known, seeds=seeds, settings=settings)


def _line(trials: Trials, row: TrialRow) -> dict[str, object]:
    """Return what is kept of one run."""
    return plain(
        {
            "claim": trials.claim,
            "version": trials.version,
            "kind": row.run.kind,
            "seed": row.run.seed,
            "fields": row.run.fields,
            "verdict": row.verdict,
            "reason": row.reason,
        }
    )


def _write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary(path) as fresh:
        fresh.write_text(text, "utf-8")
        move_into_place(fresh, path)
