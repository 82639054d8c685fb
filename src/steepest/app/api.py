"""What ``import steepest`` offers."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steepest import catalogue, measurement
from steepest.app.authoring import inspected
from steepest.app.citing import Citation, citation
from steepest.app.exercises import Exercise
from steepest.app.notebook import (
    ShownResult,
    ShownSweep,
    ShownTraining,
    ShownTrials,
    shown,
    shown_sweep,
)
from steepest.core.errors import UserError
from steepest.engine import run as engine
from steepest.engine import sweeps
from steepest.engine.run import ready
from steepest.engine.store import Store
from steepest.engine.trials import TrialPlan
from steepest.kit import Claim


def run(
    claim: str | Path | Claim,
    /,
    *,
    preset: str = "quick",
    seed: int = 0,
    out: str | Path | None = None,
    force: bool = False,
    subject: Any = None,
    **fields: Any,
) -> ShownResult:
    """Run one claim and return its result, which a notebook shows as a table with its picture.

    Args:
        claim: its name, such as ``"edge-of-stability"``; the path of a file that holds one; or a claim with its fields.
        preset: ``"quick"`` (seconds), ``"full"`` (minutes) or ``"tiny"`` (a test of the pipeline).
        seed: seed of every random number.
        out: a folder to keep results in, and to answer from; None keeps nothing.
        force: run even if ``out`` has the result.
        subject: your own network, for claims that can be put to it: a function that builds it, or
            ``"my_model.py:build"``; see ``docs/subjects.md``. Such results are not kept in ``out``.
        **fields: parameters of the claim that differ from the preset.

    Raises:
        UserError: unknown claim, preset or field, or a value that the field does not take; a subject that the claim
            cannot be put to.

    >>> result = run("early-alignment", seeds=3)
    >>> result.checks[0].verdict.value
    'holds'
    """
    if subject is not None:
        return _on_subject(claim, subject, preset, seed, fields)
    store = None if out is None else Store(Path(out))
    result = engine.run(claim, preset=preset, seed=seed, store=store, force=force, **fields)
    return shown(result)


def sweep(
    claim: str | Path,
    /,
    over: Mapping[str, Any] | None = None,
    *,
    sobol: int | None = None,
    preset: str = "quick",
    seed: int = 0,
    out: str | Path | None = None,
    on: Any = None,
    workers: int | None = None,
    shard: tuple[int, int] | None = None,
    force: bool = False,
    retry: bool = False,
    whole: bool = False,
    batch: int = sweeps.BATCH,
    **fields: Any,
) -> ShownSweep:
    """Compute a claim at many points of its fields, and return them as a table and a phase diagram.

    Points that differ only in numbers which the claim declares as ``batched`` run as one compiled computation.

    Args:
        claim: its name, or the path of a file that holds it.
        over: for each field, or ``"seed"``, its values: a sequence, or a range in words such as ``"log:0.01:1:20"``,
            ``"linear:0:1:5"``, ``"64,256"``, ``"0:8"``; None for the claim's own phase diagram.
        sobol: how many Sobol points to draw in ranges without a number of points, such as ``"log:0.01:1"``.
        preset: ``"quick"`` or ``"full"``, for all other fields.
        seed: seed of every random number, unless it is swept.
        out: a folder that keeps every point, and from which a sweep that was interrupted goes on; None keeps nothing.
        on: where: None for this process, ``"local"`` for a pool of processes (then call it under ``if __name__ ==
            "__main__":``), ``"dask:ADDRESS"`` for a running cluster, or anything with ``submit``.
        workers: processes of a local pool; None for one a core.
        shard: ``(i, n)`` for the i-th of n parts, counted from 1.
        force: recompute stored points too.
        retry: compute again the points that crashed.
        whole: run the whole claim at each point, even where it has a smaller experiment for sweeps.
        batch: most points computed together.
        **fields: parameters of the claim that differ from the preset.

    Raises:
        UserError: an unknown claim or field, a range that cannot be read, a cluster that does not answer.

    >>> phases = sweep("catapult", {"multiple": [1.0, 3.0, 5.0], "width": [64]})
    >>> phases.columns["phase_measured"].tolist()  # lazy, catapulted, divergent
    [0.0, 1.0, 2.0]
    """
    options = {"preset": preset, "seed": seed, "changes": fields, "whole": whole, "batch": batch}
    plan = sweeps.plan(claim, over, sobol=sobol, **options)
    if out is None:
        with TemporaryDirectory() as folder:
            return _swept(plan, Path(folder), on, workers, shard, force, retry)
    return _swept(plan, Path(out), on, workers, shard, force, retry)


def trials(
    claim: str | Path,
    /,
    *,
    seeds: int = 20,
    settings: int = 20,
    preset: str = "quick",
    out: str | Path | None = None,
    on: Any = None,
    workers: int | None = None,
    shard: tuple[int, int] | None = None,
    force: bool = False,
    retry: bool = False,
) -> ShownTrials:
    """Try a claim at fresh seeds and at random settings of its scope, and return how often it holds.

    Args:
        claim: its name, or the path of a file that holds it.
        seeds: runs at fresh seeds, at the preset's own fields.
        settings: runs at settings drawn from the scope of the claim's fields, each with a fresh seed; none for a claim
            that states no scope.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        out: a folder that keeps every run, and from which trials that were interrupted go on; None keeps nothing.
        on: where: None for this process, ``"local"`` for a pool of processes, ``"dask:ADDRESS"`` for a running
            cluster, or anything with ``submit``.
        workers: processes of a local pool; None for one a core.
        shard: ``(i, n)`` for the i-th of n parts, counted from 1.
        force: recompute stored runs too.
        retry: compute again the runs that crashed.

    Returns:
        trials with ``seeds`` and ``settings`` (how many runs hold, fail, are undecided, out of range; ``interval``),
        ``exceptions`` (runs that do not hold, each with its reason and command) and ``maps`` (where in the scope).

    Raises:
        UserError: an unknown claim or preset, more runs than a version has seeds, a cluster that does not answer.

    >>> found = trials("catapult", seeds=2, settings=0, preset="tiny")
    >>> found.seeds.runs, found.rows[0].run.seed == 1000 * found.version
    (2, True)
    """
    plan = TrialPlan(str(claim), seeds, settings, preset)
    with TemporaryDirectory() as folder:
        kept = Path(folder) if out is None else Path(out)
        left = sweeps.work(plan, kept, shard=shard, force=force, retry=retry)
        if left.missing:
            left.run(on, workers)
        return ShownTrials(plan, sweeps.stored_points(plan, kept))


def exercise(
    claim: str | Path | Claim,
    /,
    *,
    preset: str = "quick",
    seed: int = 0,
    out: str | Path | None = None,
    **fields: Any,
) -> Exercise:
    """Return a claim as an exercise: you predict, and the claim's own judge compares with its observation.

    Args:
        claim: its name, such as ``"edge-of-stability"``; the path of a file that holds one; or a claim with its fields.
        preset: ``"quick"`` (seconds), ``"full"`` (minutes) or ``"tiny"`` (a test of the pipeline).
        seed: seed of every random number.
        out: a folder to keep the claim's result in, and to read it from; None keeps nothing.
        **fields: parameters of the claim that differ from the preset.

    Returns:
        an exercise with ``question``, ``settings``, ``blank`` (what to predict: names, dimensions, shapes), ``setting``
        (what theory may see) and ``judge``.

    Raises:
        UserError: unknown claim, preset or field, or a value that the field does not take.

    >>> task = exercise("parity-margins", preset="tiny")
    >>> task.question
    'Which margins do parities of k bits have, over all ReLU neurons and over frozen tangent features?'
    >>> str(task.blank["first"])
    'numbers, 2 (bits) × 3 (dimension)'
    >>> task.judge({name: 0.5 for name in task.blank}).agrees
    False
    """
    store = None if out is None else Store(Path(out))
    return Exercise(ready(claim, preset, seed, fields), store)


def watch(log: str | Path, /, training: int | None = None) -> ShownTraining:
    """Read the log of a ``Monitor``, complete or still growing, and return the training that it shows.

    Args:
        log: the file that the monitor writes. Lines that a kill cut off are left out.
        training: which of the trainings in it, counted from 1; None for the last. One begins where steps start again.

    Returns:
        a training with ``findings``, ``steps``, ``columns`` (each quantity as an array), ``to_pandas()`` and
        ``figure()``.

    Raises:
        UserError: no such file, an empty one, one of another program; a training that it does not hold.

    >>> import json
    >>> risk = lambda value: {"risk": {"value": value, "compared": 2.3, "theory": "2.3 for a constant guess"}}
    >>> records = [{"step": step, "quantities": risk(2.3 / step)} for step in (1, 10)]
    >>> with TemporaryDirectory() as folder:
    ...     log = Path(folder) / "run.jsonl"
    ...     size = log.write_text(chr(10).join(json.dumps(record) for record in records))
    ...     run = watch(log)
    >>> run.columns["risk"], run.findings[0].sign
    (array([2.3 , 0.23]), '✓')
    """
    run = measurement.watch(log, training)
    return ShownTraining(run.file, run.records, run.number, run.total, run.left_out)


def cite(
    claim: str | Path,
    /,
    *,
    results: str | Path = "results",
    preset: str = "quick",
    seed: int = 0,
) -> Citation:
    """Say how to cite a claim's verdict and the works that it rests on; nothing is run, and nothing written.

    Args:
        claim: its name, such as ``"edge-of-stability"``, or the path of a file that holds one.
        results: the folder of results that has the verdict.
        preset: of the verdict: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: of the verdict.

    Returns:
        a citation with ``sentence``, ``bibtex``, ``works``, ``result`` and, where there is no verdict, ``missing``.

    Raises:
        UserError: unknown claim or preset.

    >>> works = cite("edge-of-stability", results="no-such-folder").works
    >>> "cohen2021" in [work.key for work in works]
    True
    """
    return citation(catalogue.entry(claim), Path(results), preset, seed)


def check(claim: str | Path, /) -> list[str]:
    """Return what a claim still lacks, in plain words, after a tiny and a quick run; nothing for one that is complete.

    Args:
        claim: the path of a file that holds one, or its name.

    Raises:
        UserError: unknown claim, or a file that cannot be imported.
    """
    return [
        f"{title}: {problem}"
        for title, problems in inspected(catalogue.entry(claim))
        for problem in problems
    ]


def _swept(
    plan: sweeps.Plan,
    out: Path,
    on: Any,
    workers: int | None,
    shard: tuple[int, int] | None,
    force: bool,
    retry: bool,
) -> ShownSweep:
    left = sweeps.work(plan, out, shard=shard, force=force, retry=retry)
    if left.missing:
        left.run(on, workers)
    return shown_sweep(sweeps.gather(plan, out))


def _on_subject(
    claim: str | Path | Claim, subject: Any, preset: str, seed: int, fields: Mapping[str, Any]
) -> ShownResult:
    """Put a claim to a reader's own network."""
    from steepest.engine.subjects import run_on

    if isinstance(claim, Claim) or preset != "quick":
        raise UserError(
            "on your own network give a claim's name, and its fields one by one, without a preset"
        )
    result = run_on(catalogue.entry(claim), subject, seed=seed, changes=fields)
    assert result is not None  # nobody was asked
    return shown(result)
