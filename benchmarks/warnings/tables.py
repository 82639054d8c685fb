"""Write ``record.json`` from the runs that ``run.py --out`` has kept beside it, one file a list.

``third.jsonl`` and ``again.jsonl`` are of the third rule, on the third list and on kinds of the earlier ones;
``fewer_rules.jsonl`` is of the present one, which is the third without its warning of restless steps.
``first.jsonl`` and ``second.jsonl`` are of the rules before, each on the list that it had not seen.

python benchmarks/warnings/tables.py
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
from steepest.statistics import wilson

HERE = Path(__file__).parent
LEAD = 3  # steps before a loss, in which an announcement comes too late
SEEN = ("announced", "late", "missed")
Row = dict[str, object]


def rows_of(name: str) -> list[Row]:
    """Return the runs of one list."""
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def lost_table(rows: Sequence[Row]) -> list[list[object]]:
    """Return a line for each kind that was meant to be lost, and their sum."""
    lines: list[list[object]] = []
    total: Counter[str] = Counter()
    for kind in dict.fromkeys(str(row["kind"]) for row in rows):
        of_kind = [row for row in rows if row["kind"] == kind]
        counts = Counter(str(row["outcome"]) for row in of_kind)
        if not any(counts[outcome] for outcome in (*SEEN, "too early")):
            continue
        total += counts
        leads = sorted(lead(row) for row in of_kind if row["outcome"] == "announced")
        before = f"{leads[0]} to {leads[-1]}" if leads else ""
        lines.append([kind, *shares(counts), before, counts["late"], counts["too early"]])
    lines.append(["all", *shares(total), "", total["late"], total["too early"]])
    return lines


def lead(row: Row) -> int:
    """Return how many steps before the loss the first warning came."""
    lost = row["lost"]
    warned = row["warned"]
    assert isinstance(lost, int)
    assert isinstance(warned, list)
    return lost - warned[0]


def shares(counts: Counter[str]) -> tuple[int, int]:
    """Return how many can be announced, and how many are."""
    return sum(counts[outcome] for outcome in SEEN), counts["announced"]


def stable_table(rows: Sequence[Row]) -> list[list[object]]:
    """Return a line for each kind in which most trainings end well."""
    lines = []
    for kind in dict.fromkeys(str(row["kind"]) for row in rows):
        counts = Counter(str(row["outcome"]) for row in rows if row["kind"] == kind)
        silent = counts["silent"]
        false = counts["false alarm"]
        if silent + false < sum(counts.values()) / 2 or "bad batch" in kind:
            continue
        low, high = wilson(false, silent + false)
        lines.append([kind, silent + false, false, f"{low:.1%} to {high:.1%}"])
    return lines


def limits_table(well: Sequence[Row], lost: Sequence[Row]) -> list[list[object]]:
    """Return for each number its largest in trainings that end well, and how many lost ones exceed it in time."""
    highs = [sizes(row) for row in well if row["meant"] == "stable" and row["lost"] is None]
    # what is lost earlier cannot be announced; at three steps there is nothing yet that could
    gone = [sizes(row) for row in lost if row["meant"] == "lost" and (row["lost"] or 0) >= LEAD]
    largest = {name: max(numbers[name] for numbers in highs) for name in highs[0]}
    exceeds = lambda numbers, names: any(numbers.get(name, 0) > largest[name] for name in names)
    lines: list[list[object]] = [
        [name, f"{largest[name]:.2g}", len(gone), sum(exceeds(n, [name]) for n in gone)]
        for name in largest
    ]
    lines.append(["any of these", "", len(gone), sum(exceeds(n, list(largest)) for n in gone)])
    return lines


def sizes(row: Row) -> dict[str, float]:
    """Return the largest numbers of a training."""
    largest = row["largest"]
    assert isinstance(largest, dict)
    return largest


def table(columns: Sequence[str], rows: list[list[object]]) -> dict[str, object]:
    """Return a table of a record."""
    return {"columns": list(columns), "rows": rows}


TITLES = {
    "fewer_rules.jsonl": "present rule, fresh seeds",
    "third.jsonl": "third list, third rule",
    "again.jsonl": "earlier lists again, third rule",
    "second.jsonl": "second list, second rule",
    "first.jsonl": "first list, first rule",
}
LOST = ("can be announced", "announced", "steps before", "late", "lost within 2 steps")
STABLE = ("end well", "false alarms", "95 %")


LIMITS = ("largest in trainings that end well", "lost", "above it three steps before")


def main() -> None:
    earlier = rows_of("limits.jsonl")
    words = json.loads((HERE / "words.json").read_text("utf-8"))
    record = {
        "title": words["title"],
        "how": words["how"],
        "tables": [
            made
            for name, title in TITLES.items()
            for made in (
                table((title, *LOST), lost_table(rows_of(name))),
                table((title, *STABLE), stable_table(rows_of(name))),
            )
        ]
        + [
            table((title, *LIMITS), limits_table(earlier, rows_of(name)))
            for name, title in (
                ("limits.jsonl", "first two lists: number of each step"),
                ("limits_third.jsonl", "third list: number of each step"),
            )
        ],
        "says": words["says"],
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (HERE / "record.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
