"""The full preset of every claim, once for each version of it: does what holds in seconds hold at its full size?

    python benchmarks/full/run.py [CLAIM ...] [--workers 2] [--again]

runs the claims whose version is not in ``runs.json`` yet, the cheapest first, each in a process of its own, and writes
each as it ends, so that it may be stopped at any time. ``record.json`` is what the page of benchmarks says of them.
"""

import argparse
import json
import multiprocessing
import resource
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from steepest.catalogue import built_in, load

HERE = Path(__file__).parent
RUNS = HERE / "runs.json"
RECORD = HERE / "record.json"
COSTS = HERE.parents[1] / "src" / "steepest" / "engine" / "costs.json"
DEAREST = 10  # claims whose seconds are listed
VERDICTS = ("holds", "inconclusive", "out-of-range", "fails")


def main() -> None:
    """Run what is not there, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", nargs="*", help="which; all without any")
    parser.add_argument("--workers", type=int, default=2, help="how many run at a time")
    parser.add_argument(
        "--again", action="store_true", help="also those of a version that is there"
    )
    options = parser.parse_args()
    runs = {} if not RUNS.is_file() else json.loads(RUNS.read_text("utf-8"))
    costs = json.loads(COSTS.read_text("utf-8"))
    wanted = [
        name
        for name in options.claims or built_in()
        if options.again or runs.get(name, {}).get("version") != load(name).version
    ]
    wanted.sort(key=lambda name: costs.get(name, 0.0))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=spawn, max_tasks_per_child=1) as pool:
        for done in as_completed([pool.submit(full, name) for name in wanted]):
            name, run = done.result()
            runs[name] = run
            print(name, run["verdict"], run["CPU-seconds"], run["reason"], flush=True)
            write(runs)


def full(name: str) -> tuple[str, dict[str, Any]]:
    """Run one claim's full preset, and say what it took."""
    import jax

    from steepest.engine.run import execute, ready

    jax.config.update("jax_enable_x64", True)
    started = time.process_time()
    result = execute(ready(name, "full"))
    return name, {
        "version": result.claim_version,
        "verdict": str(result.verdict),
        "reason": "" if str(result.verdict) == "holds" else result.reason,
        "CPU-seconds": round(time.process_time() - started, 1),
        "GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def write(runs: dict[str, dict[str, Any]]) -> None:
    """Write the runs, one to a line, and the record."""
    lines = [
        f" {json.dumps(name)}: {json.dumps(runs[name], ensure_ascii=False)}"
        for name in sorted(runs)
    ]
    RUNS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    RECORD.write_text(json.dumps(record(runs), indent=1, ensure_ascii=False) + "\n", "utf-8")


def record(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what the page says of the runs that are of today's versions."""
    now = {
        name: runs[name]
        for name in built_in()
        if runs.get(name, {}).get("version") == load(name).version
    }
    counts = Counter(run["verdict"] for run in now.values())
    others = [(name, run) for name, run in now.items() if run["verdict"] != "holds"]
    dear = sorted(now, key=lambda name: -now[name]["CPU-seconds"])[:DEAREST]
    spent = sum(run["CPU-seconds"] for run in now.values())
    return {
        "title": "Full presets",
        "how": f"The full preset of {len(now)} of {len(built_in())} claims, once at seed 0 for each version of a claim "
        "(`benchmarks/full/runs.json`), two at a time; CPU-seconds are those of a machine that both keep busy, and "
        f"sum up to {spent:.0f}.",
        "tables": [
            {
                "columns": ["verdict", "claims"],
                "rows": [[word, counts[word]] for word in VERDICTS if counts[word]],
            },
            {
                "columns": ["dearest", "CPU-seconds", "GB"],
                "rows": [[name, now[name]["CPU-seconds"], now[name]["GB"]] for name in dear],
            },
        ],
        "says": [f"{name}: {run['verdict']}. {run['reason']}" for name, run in others],
    }


if __name__ == "__main__":
    main()
