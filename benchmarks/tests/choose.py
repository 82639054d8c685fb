"""Choose the tests that README's second command leaves to the second step of CI: costly ones that run few lines alone.

    python -m benchmarks.tests.choose COVERAGE SECONDS [--budget 680] [--write]

Every test that is cheap stays, and so do all cases of a function that usually is. Of the others those stay that run
most lines which no test that stays runs, for their CPU-seconds, until the budget is spent or no line is left. What goes
is written to ``tests/thorough.txt``.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Set
from pathlib import Path
from statistics import median

from benchmarks.tests.covered import bits, covered
from benchmarks.tests.run import RECORD
from benchmarks.tests.seconds import read

THOROUGH = Path(__file__).parents[2] / "tests" / "thorough.txt"
COLUMNS = ("by tiers", "quick", "quick, CPU-seconds", "thorough", "thorough, CPU-seconds")
CHEAP = 0.1
"""CPU-seconds of a test that stays in any case."""


def cheap(seconds: Mapping[str, float], most: float) -> set[str]:
    """Return the tests that cost little, or whose function's other cases do: the first one pays for what all share."""
    cases = defaultdict(list)
    for test, spent in seconds.items():
        cases[test.partition("[")[0]].append(spent)
    usual = {function: median(spent) for function, spent in cases.items()}
    return {
        test for test, spent in seconds.items() if min(spent, usual[test.partition("[")[0]]) <= most
    }


def main() -> None:
    """Print what stays and what goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("coverage", type=Path)
    parser.add_argument("seconds", type=Path)
    parser.add_argument("--budget", type=float, default=680.0, help="CPU-seconds of what stays")
    parser.add_argument("--cheap", type=float, default=CHEAP)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    seconds = read(options.seconds)
    lines = bits(covered(options.coverage))
    stays = cheap(seconds, options.cheap)
    total = sum(seconds[test] for test in stays)
    run = 0
    for test in stays:
        run |= lines.get(test, 0)
    left = {test: lines.get(test, 0) for test in seconds if test not in stays}
    print(f"{len(stays)} cheap tests of {total:.0f} CPU-seconds run {run.bit_count()} lines")
    gain = lambda test: (left[test] & ~run).bit_count() / seconds[test]
    while left:
        best = max(left, key=gain)
        if not gain(best) or total + seconds[best] > options.budget:
            break
        stays.add(best)
        total += seconds[best]
        run |= left.pop(best)
    whole = run
    for test in left:
        whole |= left[test]
    print(
        f"{len(stays)} tests of {total:.0f} CPU-seconds stay and run {run.bit_count()} of {whole.bit_count()} lines; "
        f"{len(left)} of {sum(seconds[test] for test in left):.0f} go"
    )
    if options.write:
        THOROUGH.write_text("".join(f"{test}\n" for test in sorted(left)), "utf-8")
        record(seconds, set(left))


def record(seconds: Mapping[str, float], thorough: Set[str]) -> None:
    """Write the CPU-seconds of both tiers by folder into the record, in the place of its own table of before."""
    spent: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0, 0.0])
    for test, cpu in seconds.items():
        parts = test.partition("::")[0].split("/")
        folder = "doctests" if parts[0] != "tests" else "/".join(parts[: min(2, len(parts) - 1)])
        column = 2 * (test in thorough)
        for row in (spent[folder], spent["all"]):
            row[column] += 1
            row[column + 1] += cpu
    order = sorted(spent, key=lambda folder: (folder == "all", -sum(spent[folder][1::2])))
    rows = [[folder, *(f"{number:.0f}" for number in spent[folder])] for folder in order]
    kept = json.loads(RECORD.read_text("utf-8"))
    tables = [table for table in kept["tables"] if table["columns"] != list(COLUMNS)]
    kept["tables"] = [*tables, {"columns": COLUMNS, "rows": rows}]
    RECORD.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
