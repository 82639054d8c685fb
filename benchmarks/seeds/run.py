"""Every claim's quick preset over many seeds, each claim in a process of its own: verdicts, seconds, peak memory.

The question it answers: does a true statement ever get the verdict FAILS by chance?
"""

import argparse
import collections
import json
import multiprocessing
import os
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor

from steepest.catalogue import catalogue


def column(name, seeds):
    """Verdicts of one claim over seeds."""
    import jax

    from steepest.engine.run import execute, ready

    verdicts = []
    for seed in range(seeds):
        result = execute(ready(name, seed=seed))
        jax.clear_caches()  # a compiled program keeps memory maps, which are limited
        verdicts.append(
            {
                "seed": seed,
                "verdict": str(result.verdict),
                "why": result.reason,
                "seconds": result.seconds,
                "rivals": all(r.rejected for r in result.rivals),
            }
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return name, verdicts, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", help="where to write all verdicts")
    parser.add_argument("claims", nargs="*", default=list(catalogue()))
    known = parser.parse_args()
    everything, folder = {}, tempfile.TemporaryDirectory()
    # the seeds of a claim share compiled programs, as repeated runs of the command do
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    print(
        "| claim | holds | inconclusive | fails | rivals all rejected | median seconds | peak memory of all seeds |"
    )
    print("|---|---|---|---|---|---|---|")
    # one claim after the other in a fresh process, so that memory is the claim's own
    for name in known.claims:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            name, verdicts, peak = pool.submit(column, name, known.seeds).result()
        everything[name] = verdicts
        count = collections.Counter(f["verdict"] for f in verdicts)
        seconds = sorted(f["seconds"] for f in verdicts)[len(verdicts) // 2]
        rejected = sum(f["rivals"] for f in verdicts)
        numbers = f"{count['holds']} | {count['inconclusive']} | {count['fails']} | {rejected}/{len(verdicts)}"
        print(f"| {name} | {numbers} | {seconds:.1f} | {peak:.2f} GB |", flush=True)
        for f in verdicts:
            if f["verdict"] != "holds":
                print(f"<!-- {name} seed {f['seed']}: {f['verdict']}: {f['why']} -->", flush=True)
    if known.json:
        with open(known.json, "w") as out:
            json.dump(everything, out, indent=1)


if __name__ == "__main__":
    main()
