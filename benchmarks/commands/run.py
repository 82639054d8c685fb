"""What the commands of every day cost: CPU-seconds of list, show, cite and a repeated run, with N stored results.

A few quick claims are run once, or taken from --templates; copies of their results stand for those of all claims. Every
command is then timed in processes of its own.

    python benchmarks/commands/run.py [--stored 150] [--repeats 3] [--templates FOLDER] [--only WORD]
"""

import argparse
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

TEMPLATES = ("edge-of-stability", "catapult", "early-alignment", "imbalance-conserved")
"""Quick claims whose results differ in size: from 50 kB to 2 MB."""
CLAIM = "catapult"
YARDSTICK = (sys.executable, "-c", "import numpy")
"""What ratios refer to: the start of an interpreter that imports NumPy."""


def main() -> None:
    """Print a line a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=150, help="results in the store")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each command")
    parser.add_argument("--templates", type=Path, help="a folder of results to copy from")
    parser.add_argument("--only", default="", help="only commands that contain this word")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        templates = options.templates or folder / "templates"
        if options.templates is None:
            steepest("run", *TEMPLATES, "--out", templates, folder=folder)
        fill(folder / "results", templates, options.stored)
        steepest(
            "run", "--all", "--atlas", "atlas", folder=folder
        )  # draws every figure, which is kept
        report(folder, options)


def report(folder: Path, options: argparse.Namespace) -> None:
    """Time the commands on a filled store and print them."""
    start = median(YARDSTICK, folder, options.repeats)
    print(
        f"{options.stored} stored results; an interpreter with NumPy takes {start:.2f} CPU-seconds"
    )
    print(f"{'command':28} {'CPU-seconds':>12} {'ratio':>7}")
    for words in commands():
        if options.only in " ".join(words):
            line = (sys.executable, "-m", "steepest", *words)
            seconds = median(line, folder, options.repeats)
            print(f"{' '.join(words):28} {seconds:12.2f} {seconds / start:7.1f}", flush=True)


def commands() -> list[tuple[str, ...]]:
    """Return the commands that are timed; none of them runs an experiment."""
    return [
        ("--help",),
        ("list", "--results", "nowhere"),
        ("list",),
        ("show", CLAIM),
        ("cite", CLAIM),
        ("run", CLAIM),
        ("run", "--all"),
    ]


def fill(root: Path, templates: Path, stored: int) -> None:
    """Write results of all claims, seed after seed, with the arrays, checks and panels of the templates."""
    from steepest.engine.store import Question, Store

    store = Store(root)
    kinds = [result for _, result in Store(templates)]
    for (line, seed), template in zip(questions(stored), itertools.cycle(kinds), strict=False):
        result = disguised(template, line, seed)
        store.save(result, Question.of(result))


def questions(stored: int) -> Iterator[tuple]:
    """Yield claims with seeds: all claims at seed 0, then at seed 1, and so on."""
    from steepest.catalogue import catalogue

    every = ((line, seed) for seed in itertools.count() for line in catalogue().values())
    return itertools.islice(every, stored)


def disguised(template, line, seed: int):
    """Return a result as if it were another claim's at its quick preset."""
    from steepest.engine.fingerprint import stamp
    from steepest.engine.run import about, command, ready

    asked = ready(line, seed=seed)
    return replace(
        template,
        claim=line.name,
        claim_version=asked.claim.version,
        params=asdict(asked.claim),
        changes={},
        seed=seed,
        command=command(asked),
        about=about(line, type(asked.claim)),
        stamp=stamp(line).to_json(),
    )


def median(command: Sequence[str], folder: Path, repeats: int) -> float:
    """Return the median of the CPU-seconds of a command, after one that fills caches."""
    cpu_seconds(command, folder)
    return statistics.median(cpu_seconds(command, folder) for _ in range(repeats))


def cpu_seconds(command: Sequence[str], folder: Path) -> float:
    """Return the CPU-seconds, user and system, of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):  # codes of verdicts
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def steepest(*words: str | Path, folder: Path) -> None:
    """Run a command of steepest whose time does not count."""
    cpu_seconds((sys.executable, "-m", "steepest", *map(str, words)), folder)


if __name__ == "__main__":
    main()
