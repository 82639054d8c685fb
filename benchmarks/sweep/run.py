"""What a sweep costs: 256 points of the catapult network together and one by one, plans and stores of 10⁵ points.

The points differ in γλ₀ only (width 64, ten networks each, 300 steps). Four ways to compute them, in one process:

* `sweep`: `steepest.sweep` as a user calls it, with its compilation, its judgements and its files;
* `again`: the same with the program compiled already (another seed, so that every point is computed);
* `ideal`: the compiled program of 64 points, four times, on inputs that lie ready: nothing else;
* `single, warm`: one point after the other with one program that is compiled already, judged and written;
* `single, cold`: one point after the other, each compiling its program, as single runs of a claim do. A few are run and
  scaled to 256.

Contestants that are compared take turns in each repetition; medians are compared. Plans and stores are measured in a
process of their own, with its peak memory.
"""

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp

import steepest
from steepest.engine.sweeps import _batch, plan
from steepest.engine.sweeps._points import Points

POINTS = 256
WIDTH = 64
COLD = 8
OVER = {"multiple": f"linear:0.5:5:{POINTS}"}
MANY = 100_000


def sweep(seed, **options):
    """Seconds of one sweep into an empty folder."""
    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        found = steepest.sweep("catapult", OVER, width=WIDTH, seed=seed, out=out, **options)
        seconds = time.perf_counter() - start
    assert sum(found.counts.values()) == POINTS
    return seconds


def cold(seed):
    """Seconds of 256 single runs that each compile, from a few of them."""
    start = time.perf_counter()
    for i in range(COLD):
        _batch._program.cache_clear()
        jax.clear_caches()
        with tempfile.TemporaryDirectory() as out:
            steepest.sweep(
                "catapult", {"multiple": [1 + i / COLD]}, width=WIDTH, seed=seed, out=out
            )
    return (time.perf_counter() - start) * POINTS / COLD


def ideal():
    """The compiled program and its inputs, to be called as often as the sweep calls it."""
    planned = plan("catapult", OVER, changes={"width": WIDTH})
    claim = _batch.build(planned.kind, "quick", planned.fixed)
    program = _batch.program_of(_batch.experiment_at(claim), ["multiple"]).run
    inputs = []
    for task in planned.tasks:
        _, keys = _batch.seeded_keys([0] * len(task))
        multiples = jnp.asarray([planned.at(i)[0]["multiple"] for i in task])
        inputs.append(({"multiple": multiples}, None, keys))
    jax.block_until_ready(program(*inputs[0]))

    def run():
        start = time.perf_counter()
        for each in inputs:
            jax.block_until_ready(program(*each))
        return time.perf_counter() - start

    return run


def planning(tell):
    """A plan of 10⁵ points: seconds and peak memory of this process."""
    start = time.perf_counter()
    found = plan("catapult", {"multiple": "linear:0.5:5:1000", "width": "16:116"})
    sizes = len(found), len(found.keys), len(found.tasks)
    seconds = time.perf_counter() - start
    tell.put({"points": sizes[0], "seconds": seconds, "peak_gb": _peak()})


def listing(tell):
    """A store of 10⁵ points, ten of them damaged: seconds to write and to list."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        (record,) = steepest.sweep("catapult", {"multiple": [3.0]}, width=WIDTH, out=out).points
        points = Points(out / "many")
        keys = [f"{i:016x}" for i in range(MANY)]
        start = time.perf_counter()
        for key in keys:
            points.write(key, record)
        writing = time.perf_counter() - start
        for key in keys[:: MANY // 10]:
            path = points.folder / key / "point.json"
            path.write_bytes(path.read_bytes()[:-5])
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = points.read(sorted(points.there()))
        seconds = time.perf_counter() - start
    reported = str(said[0].message).split(" in ")[0]
    told = {
        "sound": len(found),
        "reported": reported,
        "writing_ms_a_point": 1000 * writing / MANY,
        "seconds": seconds,
    }
    tell.put(told | {"peak_gb": _peak()})


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def alone(task):
    """What a task tells from a fresh process."""
    context = multiprocessing.get_context("spawn")
    tell = context.Queue()
    process = context.Process(target=task, args=(tell,))
    process.start()
    found = tell.get()
    process.join()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    known = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    first = sweep(0)
    program = ideal()
    sweep(0, batch=1)
    ways = {
        "again": sweep,
        "ideal": lambda seed: program(),
        "single, warm": lambda seed: sweep(seed, batch=1),
    }
    seconds = {name: [] for name in ways}
    for seed in range(1, known.repetitions + 1):
        for name, way in ways.items():
            seconds[name].append(way(seed))
    found = {"sweep": first, **{name: statistics.median(each) for name, each in seconds.items()}}
    found["single, cold"] = cold(99)
    print(json.dumps({"seconds": found}, indent=1))
    ratio = lambda a, b: found[a] / found[b]
    print(f"single, cold / sweep: {ratio('single, cold', 'sweep'):.0f}")
    print(f"single, warm / again: {ratio('single, warm', 'again'):.1f}")
    print(
        f"ideal / again: {ratio('ideal', 'again'):.2f}; ideal / sweep: {ratio('ideal', 'sweep'):.2f}"
    )
    print(f"overhead a point: {1000 * (found['again'] - found['ideal']) / POINTS:.2f} ms")
    print(f"plan: {alone(planning)}")
    print(f"store: {alone(listing)}")


if __name__ == "__main__":
    main()
