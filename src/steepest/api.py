"""What ``import steepest`` offers."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steepest import running, sweeping
from steepest.results import Result
from steepest.store import Store


def run(
    claim: str,
    *,
    preset: str = "quick",
    seed: int = 0,
    out: str | Path | None = None,
    again: bool = False,
    **fields: Any,
) -> Result:
    """Run one claim and return its result, which a notebook shows as a table.

    Args:
        claim: its name, such as ``"edge-of-stability"``; :func:`claims` lists them.
        preset: ``"quick"`` (seconds) or ``"full"`` (minutes).
        seed: seed of every random number.
        out: a folder to keep results in, and to answer from; None keeps nothing.
        again: run even if ``out`` has the result.
        **fields: parameters of the claim that differ from the preset.

    Raises:
        UserError: unknown claim, preset or field, or a value out of its limits.

    >>> result = run("early-alignment", seeds=3)
    >>> result.checks[0].verdict.value
    'holds'
    """
    store = None if out is None else Store(Path(out))
    return running.run(claim, preset=preset, seed=seed, store=store, again=again, **fields)


def sweep(
    claim: str,
    over: Mapping[str, Any] | None = None,
    *,
    sobol: int | None = None,
    preset: str = "quick",
    seed: int = 0,
    out: str | Path | None = None,
    on: Any = None,
    workers: int | None = None,
    shard: tuple[int, int] | None = None,
    again: bool = False,
    retry: bool = False,
    whole: bool = False,
    batch: int = sweeping.BATCH,
    **fields: Any,
) -> sweeping.Sweep:
    """Compute a claim at many points of its fields, and return them as a table and a phase diagram.

    Points that differ only in numbers which the claim declares as ``batched`` run as one compiled computation.

    Args:
        claim: its name.
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
        again: compute every point, there or not.
        retry: compute again the points that failed.
        whole: run the whole claim at each point, even where it has a smaller experiment for sweeps.
        batch: most points computed together.
        **fields: parameters of the claim that differ from the preset.

    Raises:
        UserError: an unknown claim or field, a range that cannot be read, a cluster that does not answer.

    >>> found = sweep("catapult", {"multiple": [1.0, 3.0, 5.0], "width": [64]})
    >>> found.columns["phase measured"].tolist()  # lazy, catapulted, divergent
    [0.0, 1.0, 2.0]
    """
    if out is None:
        with TemporaryDirectory() as folder:
            return sweep(claim, over, sobol=sobol, preset=preset, seed=seed, out=folder, on=on, workers=workers,
                shard=shard, again=again, retry=retry, whole=whole, batch=batch, **fields)  # fmt: skip
    options = {"preset": preset, "seed": seed, "changes": fields, "whole": whole, "batch": batch}
    planned = sweeping.plan(claim, over, sobol=sobol, **options)
    left = sweeping.work(planned, Path(out), shard=shard, again=again, retry=retry)
    if left.missing:
        sweeping.check(planned)
        left.run(on, workers)
    return sweeping.gather(planned, Path(out))
