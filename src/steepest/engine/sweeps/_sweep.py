"""Run a sweep: plan it, compute what is missing, keep every point, and gather the whole."""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from steepest.catalogue import was_imported
from steepest.core.errors import UserError
from steepest.core.reading import read_text
from steepest.core.records import canonical_digest
from steepest.core.words import CRASHED
from steepest.core.writing import move_into_place, remove_leftovers, temporary
from steepest.engine.fingerprint import everything
from steepest.engine.store import DAMAGE, Damaged, Store, refuse_links
from steepest.engine.sweeps._batch import Record, crashed
from steepest.engine.sweeps._pieces import Pieces
from steepest.engine.sweeps._plan import Plan
from steepest.engine.sweeps._points import Points
from steepest.engine.sweeps._table import Sweep
from steepest.engine.workers import KEPT, drive, workers

PLAN = 2**28
"""Bytes beyond which a file is no plan."""
COMPUTE = "steepest.engine.sweeps._batch:compute"
Watch = Callable[[int, int], None]
"""Called with the finished and the total number of points."""
Landed = Callable[[Sequence[int], Sequence[Record]], None]
"""Called with the numbers of points and their records as they are written."""
Planned = TypeVar("Planned", bound=Pieces)


def keep(plan: Pieces, out: Path) -> Path:
    """Write down what is computed, so that its points can be found again; the same plan gives the same file."""
    record = plan.to_json() | {"claim": plan.claim, "version": plan.kind.version}
    path = out / plan.claim / plan.folder / f"{plan.key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent)
    text = json.dumps({"plan": record, "digest": canonical_digest(record)}, indent=1)
    with temporary(path) as fresh:
        fresh.write_text(text, "utf-8")
        return move_into_place(fresh, path)


def stored_plans(out: Path) -> Iterator[Plan]:
    """Yield the plan of every sweep in a folder of results, newest first; damaged and outdated ones are said."""
    paths = sorted(Path(out).glob("*/sweeps/*.json"), key=_newest, reverse=True)
    for path in paths:
        try:
            yield _read_plan(path)
        except DAMAGE as trouble:  # UserError is a ValueError
            reason = (str(trouble).splitlines() or [type(trouble).__name__])[0][:200]
            warnings.warn(f"the sweep in {path} is left out: {reason}", Damaged, stacklevel=2)


def _read_plan(path: Path) -> Plan:
    stored = json.loads(read_text(path, PLAN))
    record = stored["plan"]
    if canonical_digest(record) != stored["digest"]:
        raise ValueError("it does not match its checksum")
    version = record.pop("version")
    claim = record.pop("claim")
    file = str(record["target"])
    if file.endswith(".py") and not was_imported(Path(file)):
        raise ValueError(
            f"its claim is in {file}, which runs only where you name it yourself: steepest run {file}, then again"
        )
    plan = Plan.from_json(record)
    if version != plan.kind.version:
        raise ValueError(
            f"it is of version {version} of the claim, which is now at {plan.kind.version}"
        )
    if claim != plan.claim or path.parent.parent.name != claim or path.stem != plan.key:
        raise ValueError("it is the plan of another sweep")
    return plan


def _newest(path: Path) -> tuple[float, str]:
    try:
        return path.lstat().st_mtime, path.name
    except OSError:
        return 0.0, path.name


def gather(plan: Plan, out: Path) -> Sweep:
    """Return the points of a plan that are in the store."""
    return Sweep(plan, stored_points(plan, out))


def stored_points(plan: Pieces, out: Path) -> tuple[Record | None, ...]:
    """Return the record of each point of a plan; None where nothing is in the store."""
    records = Points(Path(out) / plan.claim / "points").read(dict.fromkeys(plan.keys))
    return tuple(records.get(key) for key in plan.keys)


def stored_sweeps(out: Path) -> Iterator[Sweep]:
    """Every sweep in a folder of results with the points that are there, newest first."""
    for plan in stored_plans(out):
        sweep = gather(plan, out)
        if any(sweep.points):
            yield sweep


@dataclass
class Work(Generic[Planned]):
    """What is left of a plan, for this shard.

    Attributes:
        plan: of the whole.
        out: the folder of results.
        points: where its points are kept.
        tasks: the tasks of this shard that had missing points.
        missing: the missing points of this shard, by number; fewer while it runs.
    """

    plan: Planned
    out: Path
    points: Points
    tasks: tuple[np.ndarray, ...]
    missing: set[int]

    def run(
        self,
        on: Any = None,
        count: int | None = None,
        watch: Watch = lambda done, total: None,
        landed: Landed = lambda numbers, records: None,
    ) -> None:
        """Compute what is missing, wherever ``on`` says, and write each point as it comes."""
        total = len(self.missing)
        watch(0, total)

        def done(request: Mapping[str, Any], records: list[Record]) -> None:
            self.finish(request["numbers"], records)
            landed(request["numbers"], records)
            watch(total - len(self.missing), total)

        tasks = [task for task in self.tasks if not self.missing.isdisjoint(task.tolist())]
        requests = (self.plan.request(task) | {"from": everything()} for task in tasks)
        with workers(on, count, len(tasks)) as crew:
            with self._writing():
                keep(self.plan, self.out)
            drive(COMPUTE, requests, crew, done, _crashed)

    def finish(self, numbers: Sequence[int], records: Sequence[Record]) -> None:
        """Write the points that were missing; a task computes its others again only for the sake of equal bits."""
        with self._writing():
            for point, record in zip(numbers, records, strict=True):
                if point in self.missing:
                    self.points.write(self.plan.keys[point], record)
                    self.missing.discard(point)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A disk that takes no more is said in a sentence."""
        try:
            yield
        except OSError as trouble:
            reason = trouble.strerror or trouble
            folder = self.points.folder.parent
            raise UserError(f"cannot write to {folder} ({reason}); {KEPT}") from None


def work(
    plan: Planned,
    out: Path,
    *,
    shard: tuple[int, int] | None = None,
    force: bool = False,
    retry: bool = False,
) -> Work[Planned]:
    """What is left to compute of a plan: nothing that is in the store already.

    Args:
        plan: of a sweep, or of the trials of a claim.
        out: the folder of results.
        shard: ``(i, n)`` for every n-th task from the i-th on, counted from 1.
        force: recompute stored points too.
        retry: compute again the points that crashed.

    Raises:
        UserError: a shard that is none, a folder that cannot be written.
    """
    i, n = shard or (1, 1)
    if not 1 <= i <= n:
        raise UserError(
            f"shards count from 1 to their number, got {i}/{n}; write --shard 1/{max(n, 1)}"
        )
    Store(out).prepare()
    for folder in ("points", plan.folder):
        refuse_links(out, plan.claim, folder)
    points = Points(out / plan.claim / "points")
    points.sweep_up()
    tasks = plan.tasks[i - 1 :: n]
    mine = [int(point) for task in tasks for point in task]
    sound = {} if force else points.read(plan.keys[point] for point in mine)
    ready = {key for key, record in sound.items() if not (retry and record["verdict"] == CRASHED)}
    missing = {point for point in mine if plan.keys[point] not in ready}
    return Work(
        plan,
        out,
        points,
        tuple(task for task in tasks if not missing.isdisjoint(task.tolist())),
        missing,
    )


def _crashed(request: Mapping[str, Any], reason: str) -> list[Record]:
    """The records of a piece whose worker died again and again."""
    return [crashed(fields, seed, reason, 0.0) for fields, seed in request["points"]]
