"""Where the tests spend their time: seconds by folder, from the reports that pytest writes.

    pytest --junitxml=tests.xml
    python benchmarks/tests/run.py "every commit=tests.xml" ["nightly=nightly.xml" ...] [--record]

The seconds of a test are those on the clock of its worker, with its fixtures; workers run at the same time.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

RECORD = Path(__file__).with_name("record.json")
LEAST = 0.01
"""Folders that take a smaller share of a run than this are counted together."""


class Spent(NamedTuple):
    """What some tests took."""

    tests: int
    seconds: float


def main() -> None:
    """Print a table for each report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", metavar="TITLE=FILE", help="a run, and its report")
    parser.add_argument("--record", action="store_true", help="keep the tables for the page")
    options = parser.parse_args()
    tables = []
    for report in options.reports:
        title, _, path = report.partition("=")
        tables.append(table(title, by_folder(Path(path))))
    for written in tables:
        print(*written["columns"], sep="\t")
        for row in written["rows"]:
            print(*row, sep="\t")
    if options.record:
        keep(tables)


def by_folder(report: Path) -> dict[str, Spent]:
    """Return what the tests of each folder took, the longest first."""
    tests: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        folder = folder_of(case.get("classname", ""))
        tests[folder] += 1
        seconds[folder] += float(case.get("time", 0))
    longest = sorted(seconds, key=lambda folder: -seconds[folder])
    return {folder: Spent(tests[folder], seconds[folder]) for folder in longest}


def folder_of(classname: str) -> str:
    """Return the room of a test by its dotted name: ``tests/kernels``, or ``doctests`` for one of the package."""
    parts = classname.split(".")
    if parts[0] != "tests":
        return "doctests"
    inner = [part for part in parts[1:] if not part.startswith("test_") and part.islower()]
    return "/".join(["tests", *inner[:1]])


def table(title: str, folders: Mapping[str, Spent]) -> dict[str, Sequence[object]]:
    """Return the rows of one run, folders of little weight together."""
    total = sum(spent.seconds for spent in folders.values())
    large = {name: spent for name, spent in folders.items() if spent.seconds >= LEAST * total}
    small = [spent for name, spent in folders.items() if name not in large]
    if small:
        large["others"] = Spent(sum(s.tests for s in small), sum(s.seconds for s in small))
    rows = [
        [name, spent.tests, f"{spent.seconds:.0f}", f"{spent.seconds / total:.0%}"]
        for name, spent in large.items()
    ]
    count = sum(spent.tests for spent in folders.values())
    rows.append(["all", count, f"{total:.0f}", "100%"])
    return {"columns": [title, "tests", "seconds of workers", "share"], "rows": rows}


def keep(tables: Sequence[Mapping[str, object]]) -> None:
    """Write the tables into the record, and leave what the record says of them."""
    record = json.loads(RECORD.read_text("utf-8"))
    record["tables"] = tables
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
