"""The full preset of every claim, once for each version of it: does what holds in seconds hold at its full size?

    python -m benchmarks.full.run [CLAIM ...] [--workers 2] [--again] [--in-turn]

runs the claims whose version is not in ``runs.json`` yet, the cheapest first, each in a process of its own, and writes
each as it ends, so that it may be stopped at any time. With ``--in-turn`` it runs those of this week, a quarter of all,
whether they are there or not. It exits with 1 where a claim fails or crashes.
"""

import argparse
import datetime
import json
import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from steepest.catalogue import built_in, load
from steepest.core.words import CRASHED

HERE = Path(__file__).parent
RUNS = HERE / "runs.json"
COSTS = HERE.parents[1] / "src" / "steepest" / "engine" / "costs.json"
TURNS = 4
"""Weeks in which every claim has its turn."""


def main() -> None:
    """Run what is not there, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", nargs="*", help="which; all without any")
    parser.add_argument("--workers", type=int, default=2, help="how many run at a time")
    parser.add_argument(
        "--again", action="store_true", help="also those of a version that is there"
    )
    parser.add_argument("--in-turn", action="store_true", help="those of this week, all of them")
    options = parser.parse_args()
    again = options.again or options.in_turn
    runs = {} if not RUNS.is_file() else json.loads(RUNS.read_text("utf-8"))
    costs = json.loads(COSTS.read_text("utf-8"))
    wanted = [
        name
        for name in options.claims or (in_turn() if options.in_turn else built_in())
        if again or runs.get(name, {}).get("version") != load(name).version
    ]
    wanted.sort(key=lambda name: costs.get(name, 0.0))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=spawn, max_tasks_per_child=1) as pool:
        for done in as_completed([pool.submit(full, name) for name in wanted]):
            name, run = done.result()
            runs[name] = run
            print(name, run["verdict"], run["CPU-seconds"], run["reason"], flush=True)
            write(runs)
    sys.exit(int(any(runs[name]["verdict"] in ("fails", CRASHED) for name in wanted)))


def in_turn() -> list[str]:
    """Return the claims of this week: every fourth, from another one on each week."""
    week = datetime.date.today().isocalendar().week
    return list(built_in())[week % TURNS :: TURNS]


def full(name: str) -> tuple[str, dict[str, Any]]:
    """Run one claim's full preset, and say what it took; one that crashes does not cost the others."""
    import jax

    from steepest.engine.run import execute, ready

    jax.config.update("jax_enable_x64", True)
    started = time.process_time()
    try:
        result = execute(ready(name, "full"))
    except Exception as trouble:
        verdict, reason = CRASHED, f"{type(trouble).__name__}: {trouble}".splitlines()[0]
    else:
        verdict = str(result.verdict)
        reason = "" if verdict == "holds" else result.reason
    return name, {
        "version": load(name).version,
        "verdict": verdict,
        "reason": reason,
        "CPU-seconds": round(time.process_time() - started, 1),
        "GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def write(runs: dict[str, dict[str, Any]]) -> None:
    """Write the runs, one to a line."""
    lines = [f" {json.dumps(name)}: {json.dumps(runs[name])}" for name in sorted(runs)]
    RUNS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
