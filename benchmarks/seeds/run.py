"""Every claim's quick preset over the seed block of its version, each claim in a process of its own.

The questions it answers: does a true statement ever get the verdict FAILS by chance, and how often is a run undecided?
Version v of a claim has the seeds 1000·v, 1000·v + 1, …, which nobody ran before the version was raised.

    python benchmarks/seeds/run.py [CLAIM ...] [--seeds 20] [--from SEED] [--json FILE] [--record]

With ``--json`` every claim is written as it ends. Seeds that are there already, of the same version, are not run again.
With ``--record`` the counts go into ``record.json`` beside this file, and from there into the package's record, for
every claim whose version they are of and whose trials are not recorded (``steepest trials --record``).
"""

import argparse
import collections
import dataclasses
import json
import multiprocessing
import os
import resource
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from steepest import record
from steepest.catalogue import catalogue, load

RECORD = Path(__file__).with_name("record.json")
VERDICTS = ("holds", "inconclusive", "out-of-range", "fails")

TITLES = (
    "claim",
    "version",
    "holds",
    "inconclusive",
    "out of range",
    "fails",
    "median seconds",
    "GB",
)


def main() -> None:
    """Print a line of the table for every claim, and what every run that does not hold says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "claims", nargs="*", default=list(catalogue()), help="which; all without any"
    )
    parser.add_argument("--seeds", type=int, default=20, help="how many of the block")
    parser.add_argument("--from", type=int, dest="first", help="another first seed than 1000·v")
    parser.add_argument("--json", type=Path, help="where to write all verdicts")
    parser.add_argument("--record", action="store_true", help="write the counts into the records")
    options = parser.parse_args()
    columns: dict[str, Any] = {}
    if options.json and options.json.is_file():
        columns = json.loads(options.json.read_text("utf-8"))
    print("|", " | ".join(TITLES), "|")
    print("|---" * len(TITLES) + "|")
    with tempfile.TemporaryDirectory() as folder:
        # the seeds of a claim share compiled programs, as repeated runs of the command do
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
        for name in options.claims:
            columns[name] = extended(columns.get(name), name, options.first, options.seeds)
            if options.json:
                options.json.write_text(json.dumps(columns, indent=1, ensure_ascii=False), "utf-8")
            show(name, columns[name])
    if options.record:
        counted = json.loads(RECORD.read_text("utf-8"))
        counted |= {name: counts(columns[name]) for name in options.claims}
        write(counted)
        carry(counted)


def counts(column: dict[str, Any]) -> dict[str, Any]:
    """Return how often each verdict came, with the version that it is of."""
    verdicts = collections.Counter(run["verdict"] for run in column["runs"])
    return {"version": column["version"], "counts": {word: verdicts[word] for word in VERDICTS}}


def write(counted: dict[str, Any]) -> None:
    """Write the counts of all claims, one to a line."""
    lines = [f" {json.dumps(name)}: {json.dumps(counted[name])}" for name in sorted(counted)]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def carry(columns: dict[str, Any]) -> None:
    """Write counts into the package's record, where they are of its version and no trial has given others."""
    blocks = dict(record.records())
    for name, column in columns.items():
        block = blocks.get(name)
        if block is None or block.version != column["version"] or block.seeds is not None:
            continue
        counted = column["counts"]
        rate = record.HoldRate(
            holds=counted["holds"],
            fails=counted["fails"],
            undecided=counted["inconclusive"],
            out_of_range=counted["out-of-range"],
        )
        blocks[name] = dataclasses.replace(block, seeds=rate)
    record.PATH.write_text(record.spelled(blocks), "utf-8")


def extended(stored: dict[str, Any] | None, name: str, first: int | None, seeds: int) -> dict:
    """Return the column of a claim with as many seeds as are asked; those stored of this version are kept."""
    version = load(name).version
    start = 1000 * version if first is None else first
    wanted = range(start, start + seeds)
    kept = stored["runs"] if stored and stored["version"] == version else []
    missing = sorted(set(wanted) - {run["seed"] for run in kept})
    if not missing:
        return stored or {}
    added = alone(name, missing)
    runs = sorted([*kept, *added["runs"]], key=lambda run: run["seed"])
    return {"version": version, "runs": runs, "peak_gb": added["peak_gb"]}


def alone(name: str, seeds: list[int]) -> dict[str, Any]:
    """Run the seeds of one claim in a fresh process, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(column, name, seeds).result()


def column(name: str, seeds: list[int]) -> dict[str, Any]:
    """Return the verdicts of one claim over seeds, with what was not as it should be."""
    import jax

    from steepest.engine.run import execute, ready

    runs = []
    for seed in seeds:
        result = execute(ready(name, seed=seed))
        jax.clear_caches()  # a compiled program keeps memory maps, which are limited
        runs.append(
            {
                "seed": seed,
                "verdict": str(result.verdict),
                "why": result.reason,
                "seconds": result.seconds,
            }
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"runs": runs, "peak_gb": round(peak, 2)}


def show(name: str, column: dict[str, Any]) -> None:
    """Print one line of the table, and in comments what the runs say that do not hold."""
    runs = column["runs"]
    count = collections.Counter(run["verdict"] for run in runs)
    verdicts = [count[word] for word in VERDICTS]
    seconds = statistics.median(run["seconds"] for run in runs)
    cells = (name, column["version"], *verdicts, f"{seconds:.1f}", column["peak_gb"])
    print("|", " | ".join(map(str, cells)), "|", flush=True)
    for run in runs:
        if run["verdict"] != "holds":
            print(f"<!-- {name} seed {run['seed']}: {run['verdict']}: {run['why']} -->", flush=True)


if __name__ == "__main__":
    main()
