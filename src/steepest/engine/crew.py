"""Run several claims at once, each in a process of its own; nothing here imports JAX.

Workers write their results to the store themselves, whole or not at all, and answer with the folder. The most expensive
claims start first. Every worker has the settings of a single run, so that the bits are those of one after the other.
"""

import json
import math
import os
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steepest import catalogue
from steepest.catalogue import Entry
from steepest.core.devices import NoDeviceError
from steepest.core.writing import shared
from steepest.engine.fingerprint import current, sources_now
from steepest.engine.records import Records
from steepest.engine.results import Result
from steepest.engine.store import Store, UnwritableError
from steepest.engine.workers import drive, pool

if TYPE_CHECKING:
    from steepest.engine.run import Ready

FUNCTION = "steepest.engine.crew:work"
"""What a worker does with a request, unless it is told otherwise."""
UNKNOWN = 15.0
"""CPU-seconds that a claim without a recorded cost is taken to need."""
ROOM = 3 * 2**30
"""Bytes of memory that a worker may need."""
AROUND = 1.2
"""A worker's time over the seconds of its results: it loads, stores and draws too (1.24 and 1.20 of two runs)."""
PROGRAMS = 8
"""Claims after which a worker frees its compiled programs: each holds memory maps, and a process has 65 530 of them."""


@dataclass(frozen=True)
class Outcome:
    """What became of one claim.

    Attributes:
        name: the claim.
        result: its result; None where it crashed.
        crash: the last line of the error; empty where there is a result.
        trace: the whole error, for authors.
    """

    name: str
    result: Result | None
    crash: str = ""
    trace: str = ""


Done = Callable[[Outcome], None]
"""Called with each outcome as it lands."""


def run_all(
    entries: Sequence[Entry],
    store: Store,
    *,
    preset: str = "quick",
    seed: int = 0,
    force: bool = False,
    workers: int | None = None,
    function: str = FUNCTION,
    first: Sequence[str] = (),
    done: Done = lambda outcome: None,
    begun: Callable[[str], None] = lambda name: None,
) -> list[Outcome]:
    """Run claims, as many at once as there are cores and memory, and return their outcomes in the order given.

    Args:
        entries: the claims.
        store: where results are kept, and found.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: seed of every random number.
        force: run even what is in the store.
        workers: processes; None for as many as fit.
        function: what a worker does with a request, as ``"module:function"``.
        first: names of claims to start with, in this order; the most expensive of the others follow.
        done: called with each outcome as it lands.
        begun: called with the name of each claim as it starts.
    """
    store.prepare()
    outcomes: dict[str, Outcome] = {}

    def land(outcome: Outcome) -> None:
        outcomes[outcome.name] = outcome
        done(outcome)

    missing = []
    sources = sources_now()
    records = Records(store.root)
    for entry in entries:
        result = (
            None if force else stored(entry, store, preset, seed, records=records, sources=sources)
        )
        if result is None:
            missing.append(entry)
        else:
            land(Outcome(entry.name, result))
    records.keep()
    requests = [
        {
            "name": entry.name,
            "target": entry.target,
            "preset": preset,
            "seed": seed,
            "force": force,
            "out": str(store.root),
        }
        for entry in in_order(missing, first)
    ]

    def answered(request: Mapping[str, Any], answer: Mapping[str, str]) -> None:
        land(_outcome(request["name"], answer, store))

    size = min(workers or processes(), len(requests))
    died = lambda request, reason: {"crash": reason}
    starts = lambda request: begun(request["name"])
    if size <= 1:
        drive(function, requests, None, answered, died, starts)
    else:
        with (
            shared(*(store.root / request["name"] for request in requests)),
            pool(size, ahead=1) as crew,
        ):
            drive(function, requests, crew, answered, died, starts)
    return [outcomes[entry.name] for entry in entries]


def in_order(entries: Sequence[Entry], first: Sequence[str]) -> list[Entry]:
    """Return claims in the order in which they start: some first, as given, then the most expensive ones."""
    costs = recorded_costs()
    place = {name: rank for rank, name in enumerate(first)}
    last = len(place)
    return sorted(
        entries,
        key=lambda entry: (place.get(entry.name, last), -costs.get(entry.name, UNKNOWN)),
    )


def stored(
    entry: Entry,
    store: Store,
    preset: str,
    seed: int,
    *,
    records: Records | None = None,
    sources: str = "",
) -> Result | None:
    """Return the stored result of a claim at a preset, if no code has changed since; no class is loaded for it.

    It comes without its arrays: what is shown of a result are its checks and panels.

    Args:
        entry: the claim.
        store: where results are kept.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: seed of every random number.
        records: those of the store, read anew where left out.
        sources: as of :func:`steepest.engine.fingerprint.stamp`.
    """
    readable = records or Records(store.root)
    for folder, record in readable.of_claim(entry.name):
        if record.answers(preset, seed) and current(entry, record, sources=sources):
            result = store.read(folder, arrays=False)
            if result is not None:
                return replace(result, how="stored")
    return None


def unanswered(entries: Sequence[Entry], store: Store, preset: str, seed: int) -> list[Entry]:
    """Return the claims that a run would compute: no sound result of the code that is here is stored of them."""
    sources, records = sources_now(), Records(store.root)
    missing = [
        entry
        for entry in entries
        if stored(entry, store, preset, seed, records=records, sources=sources) is None
    ]
    records.keep()
    return missing


def expected_seconds(timed: Sequence[Result], missing: Sequence[Entry], workers: int) -> float:
    """Estimate how long claims take at their quick presets, by what others have taken on the same machine.

    The others' seconds over their recorded costs are the pace of a worker beside which others work. The claims share
    the workers, and the run does not end before the most expensive claim has.

    Args:
        timed: results that were computed here, side by side.
        missing: the claims that are left.
        workers: how many of them run at once.

    Returns:
        Wall-clock seconds; NaN where no result has a recorded cost.
    """
    costs = recorded_costs()
    paced = [result for result in timed if costs.get(result.claim, 0.0) > 0]
    if not paced:
        return math.nan
    pace = sum(result.seconds for result in paced) / sum(costs[result.claim] for result in paced)
    needed = [AROUND * pace * costs.get(entry.name, UNKNOWN) for entry in missing]
    return max([sum(needed) / workers, *needed])


def processes() -> int:
    """Return how many workers this machine has cores and memory for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        memory = ROOM
    return max(1, min(cores or 1, memory // ROOM))


def recorded_costs() -> dict[str, float]:
    """Return the CPU-seconds that each claim's quick preset took in a process of its own, as written down."""
    path = resources.files("steepest.engine") / "costs.json"
    try:
        costs = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(costs, dict):
        return {}
    number = lambda cost: type(cost) in (int, float) and 0 <= cost < 1e12
    return {name: float(cost) for name, cost in costs.items() if number(cost)}


def _outcome(name: str, answer: Mapping[str, str], store: Store) -> Outcome:
    if "crash" in answer:
        return Outcome(name, None, answer["crash"], answer.get("trace", ""))
    result = store.read(Path(answer["folder"]))
    if result is None:
        return Outcome(name, None, "its result could not be read back from the disk")
    return Outcome(name, replace(result, how=answer["how"]))


_DONE = 0


def work(request: Mapping[str, Any]) -> dict[str, str]:
    """Run one claim in this process and return the folder of its result, or how it crashed."""
    global _DONE
    import jax  # a worker's business: the process that hands out work needs none

    from steepest.engine.run import ready

    _DONE += 1
    entry = catalogue.entry(request["target"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = ready(entry, request["preset"], request["seed"])
            return _answered(asked, Store(Path(request["out"])), force=request["force"])
    finally:
        if _DONE % PROGRAMS == 0:
            jax.clear_caches()


def _answered(asked: "Ready", store: Store, *, force: bool) -> dict[str, str]:
    from steepest.engine.run import answer

    try:
        result = answer(asked, store=store, force=force)
        folder = store.root / asked.question.claim / asked.question.key
        return {"folder": str(folder), "how": result.how}
    except NoDeviceError:
        raise
    except UnwritableError as trouble:
        trouble.result = None  # it is not sent to the process that asked
        raise
    except Exception as trouble:
        # a defect of one claim must not cost the user the others, also where a part of the library refuses its numbers
        # in a sentence: what the user chose is sound by now
        text = f"{type(trouble).__name__}: {trouble}".splitlines()[0][:300]
        return {"crash": text, "trace": traceback.format_exc()}
