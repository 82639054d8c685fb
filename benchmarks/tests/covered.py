"""Which lines of the library each test runs, from the data of coverage with contexts."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from coverage.numbits import numbits_to_nums

Lines = dict[str, dict[str, set[int]]]
"""Lines by file and by test."""
LIBRARY = "src/steepest/"
CLAIMS = "src/steepest/claims/"


def covered(data: Path) -> Lines:
    """Return the lines that each test runs; what is run on import belongs to none.

    Args:
        data: written by ``pytest --cov=steepest --cov-context=test``.
    """
    lines: Lines = defaultdict(lambda: defaultdict(set))
    with sqlite3.connect(data) as base:
        files = {
            number: _in_library(path) for number, path in base.execute("select id, path from file")
        }
        contexts = dict(base.execute("select id, context from context"))
        rows = base.execute("select file_id, context_id, numbits from line_bits")
        for file, context, bits in rows:
            name = files[file]
            test = contexts[context].rpartition("|")[0]
            if name and test:
                lines[name][test] |= set(numbits_to_nums(bits))
    return lines


def _in_library(path: str) -> str | None:
    _, place, rest = path.rpartition(LIBRARY)
    name = place + rest
    return name if place and not name.startswith(CLAIMS) else None


def bits(lines: Lines) -> dict[str, int]:
    """Return of each test the lines of all files as the bits of one number."""
    numbers: dict[str, int] = defaultdict(int)
    start = 0
    for file in sorted(lines):
        for test, of_file in lines[file].items():
            numbers[test] |= _number(of_file) << start
        start += 1 + max(max(of_file) for of_file in lines[file].values())
    return numbers


def _number(places: Iterable[int]) -> int:
    return sum(1 << place for place in places)
