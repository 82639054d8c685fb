"""What a quick preset costs: CPU-seconds cold and warm, programs, and where the time goes.

Every claim runs in processes of its own: once with an empty compilation cache, once more with what the first left.

    python benchmarks/cold/run.py [CLAIM ...] [--json FILE] [--costs]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


COSTS = Path(__file__).parents[2] / "src" / "steepest" / "engine" / "costs.json"
"""By these figures ``steepest run`` starts the most expensive claims first."""


def main() -> None:
    """Print a line a claim, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", nargs="*", help="which; all without any")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument(
        "--costs", action="store_true", help="keep the CPU-seconds with the package"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    rows = {}
    titles = ("cold", "warm", "programs", "import", "trace", "compile", "rest", "MB")
    print(f"{'claim':24}", *(f"{title:>8}" for title in titles))
    for name in options.claims or names():
        with tempfile.TemporaryDirectory() as cache:
            cold = alone(name, cache)
            warm = alone(name, cache)
        rows[name] = {"cold": cold, "warm": warm}
        trace = cold["trace"] + cold["lower"]
        arithmetic = cold["cpu"] - cold["import"] - trace - cold["compile"]
        seconds = (cold["cpu"], warm["cpu"])
        shares = (cold["import"], trace, cold["compile"], arithmetic)
        line = [f"{value:8.1f}" for value in seconds] + [f"{cold['programs']:8d}"]
        line += [f"{value:8.1f}" for value in shares] + [f"{cold['peak_mb']:8.0f}"]
        print(f"{name:24}", *line, cold["verdict"], flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
    if options.costs:
        costs = {name: round(row["cold"]["cpu"], 1) for name, row in rows.items()}
        kept = json.loads(COSTS.read_text("utf-8")) if COSTS.is_file() else {}
        COSTS.write_text(json.dumps(kept | costs, indent=1, sort_keys=True) + "\n", "utf-8")
    for side in ("cold", "warm"):
        seconds = sorted(row[side]["cpu"] for row in rows.values())
        print(
            f"{side}: {sum(seconds):.0f} CPU-seconds, median {seconds[len(seconds) // 2]:.1f}, most {seconds[-1]:.1f}"
        )


def names() -> list[str]:
    """All claims, without importing JAX here."""
    import steepest.catalogue

    return list(steepest.claims())


def alone(name: str, cache: str) -> dict:
    """The figures of one claim in a fresh process."""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_ENABLE_X64": "1",
    }
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str) -> dict:
    """Run a claim here and count; CPU-seconds are of the whole process, its start included."""
    import resource
    import time

    import jax

    import steepest.catalogue

    sums = dict.fromkeys(EVENTS.values(), 0.0)
    programs = []

    def listen(event: str, seconds: float, **_: object) -> None:
        if event in EVENTS:
            sums[EVENTS[event]] += seconds
        if EVENTS.get(event) == "compile":
            programs.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    steepest.catalogue.load(name)
    start = time.process_time()
    result = steepest.run(name)
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu": own.ru_utime + own.ru_stime,
        "import": start,
        "programs": len(programs),
        "peak_mb": own.ru_maxrss / 1024,
        "verdict": str(result.verdict),
        "checks": {check.id: check.measured for check in result.checks},
        **sums,
    }


if __name__ == "__main__":
    main()
