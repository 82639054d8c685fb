"""Write ``docs/benchmarks.md`` and its plot from the records: nothing on that page is typed by hand.

    python benchmarks/page.py

reads ``benchmarks/NAME/record.json`` (what a benchmark measured, in what circumstances, which goals it missed), the
verdicts and hold rates that the package carries, what each claim costs, and how its full preset fared. A test compares
the page with them.
"""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from steepest.catalogue import built_in, chapter_title
from steepest.record import HoldRate, Record, records

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
COSTS = HERE.parent / "src" / "steepest" / "engine" / "costs.json"
FULL = HERE / "full" / "runs.json"
PLOT = "benchmarks_costs.svg"
GOAL = 10.0
"""CPU-seconds that a quick preset may cost, with nothing compiled before."""
ORDER = (
    "first_command",
    "commands",
    "tests",
    "book",
    "descent",
    "kernels",
    "architectures",
    "configurations",
    "accelerators",
    "empirical_ntk",
    "curvature",
    "largest",
    "learning_coefficient",
    "attribution",
    "digits",
    "implicit_bias",
    "regions",
    "sweep",
    "monitor",
    "faults",
    "training_faults",
    "examples",
    "set_ups",
    "start_step",
    "advice",
    "normalization",
    "watch",
    "warnings",
    "divergence",
    "wrong_calls",
    "signals",
    "damage",
    "mutants",
    "forms",
)
"""The records in the order of the page."""
HEAD = """# Benchmarks

This page is written by `python benchmarks/page.py` from records: a file `record.json` in each folder of
`benchmarks`, the runs of `steepest trials`, and the record of verdicts that the package carries. How to run each
benchmark again is in `benchmarks/README.md`.

Two cores, CPU only, unless a record says otherwise. Times beside other programs are ratios of medians within one
run, since machines differ.
"""


def page() -> str:
    """Return the whole page."""
    sections = [HEAD, claims_section(), *map(section, ORDER)]
    return "\n".join(sections)


def section(name: str) -> str:
    """Return one benchmark's section."""
    record = json.loads((HERE / name / "record.json").read_text("utf-8"))
    parts = [f"## {record['title']}", record["how"]]
    parts += [table(part["columns"], part["rows"]) for part in record["tables"]]
    parts += record["says"]
    return "\n\n".join(parts) + "\n"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def claims_section() -> str:
    """Return how often each claim holds, and what it costs."""
    costs = json.loads(COSTS.read_text("utf-8"))
    spent = {name: costs[name] for name in built_in() if name in costs}
    dear = [name for name, cost in spent.items() if cost > GOAL]
    head = (
        "## Claims: how often they hold, and what they cost\n\n"
        "Verdicts of the quick preset at seed 0, at fresh seeds of the version, and at random settings of its scope. "
        "Where the runs themselves are stored (`benchmarks/trials/`) the counts are theirs; the others were counted "
        "when the version was made. CPU-seconds are measured in a process of its own with nothing compiled before, "
        f"start and imports included, on {costs['measured']}: in the median "
        f"{statistics.median(spent.values()):.1f}, and {len(dear)} of {len(spent)} above the goal of {GOAL:g}. "
        f"{full_presets()}\n\n"
        f"![CPU-seconds of each claim's quick preset, sorted, with the goal]({PLOT})\n\n"
    )
    return head + "\n\n".join(chapters(costs)) + "\n"


def chapters(costs: Mapping[str, float]) -> Iterator[str]:
    """Yield a table for each chapter."""
    lines = built_in()
    runs = full_runs()
    for chapter in dict.fromkeys(line.chapter for line in lines.values()):
        rows = [
            row(name, records().get(name), costs.get(name), runs.get(name))
            for name, line in lines.items()
            if line.chapter == chapter
        ]
        title = chapter_title(chapter)
        columns = (
            "claim",
            "version",
            "seed 0",
            "fresh seeds",
            "settings",
            "CPU-seconds",
            "full preset",
            "its CPU-seconds",
        )
        yield f"### {title[:1].upper()}{title[1:]}\n\n{table(columns, rows)}"


def full_presets() -> str:
    """Say how the full presets fared that were run, and which did not hold, with the reason."""
    runs = full_runs()
    left = [f"`{name}`, {run['reason']}" for name, run in runs.items() if run["verdict"] != "holds"]
    others = f"; the others: {'; '.join(left)}" if left else ""
    return (
        f"Of {len(runs)} claims whose full preset was run, at seed 0, {len(runs) - len(left)} hold{others}. "
        "Their CPU-seconds are of a machine that ran two at a time."
    )


def full_runs() -> dict[str, Any]:
    """Return the runs of full presets, of the versions that the claims have now."""
    runs = json.loads(FULL.read_text("utf-8"))
    now = {name: record.version for name, record in records().items()}
    return {name: run for name, run in runs.items() if run["version"] == now.get(name)}


def row(
    name: str, record: Record | None, cost: float | None, full: Mapping[str, Any] | None
) -> tuple[object, ...]:
    """Return the line of one claim."""
    costs = "" if cost is None else f"{cost:.1f}"
    if record is None:
        return name, "", "", "", "", costs, "", ""
    seeds = "" if record.seeds is None else said(record.seeds)
    settings = "" if record.settings is None else said(record.settings)
    at_full = ("", "")
    if full is not None:
        at_full = (full["verdict"], f"{full['CPU-seconds']:.0f}")
    return name, record.version, record.verdict, seeds, settings, costs, *at_full


def said(rate: HoldRate) -> str:
    """Return counts in words, such as ``18 hold, 2 undecided``; of all runs only how many where all hold."""
    if rate.holds == rate.runs:
        return f"{rate.holds} of {rate.runs}"
    words = ("hold", "fail", "undecided", "out of range")
    counts = (rate.holds, rate.fails, rate.undecided, rate.out_of_range)
    return ", ".join(f"{count} {word}" for count, word in zip(counts, words, strict=True) if count)


def draw(path: Path) -> None:
    """Draw what the claims cost, sorted."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    costs = json.loads(COSTS.read_text("utf-8"))
    ours = sorted(costs[name] for name in built_in() if name in costs)
    with pyplot.rc_context({"svg.hashsalt": "steepest", "font.size": 11}):
        figure, axes = pyplot.subplots(figsize=(7, 3), layout="constrained")
        axes.step(range(1, len(ours) + 1), ours, where="mid", color="#1f5fa8")
        axes.axhline(GOAL, color="#b3541e", linestyle="--")
        axes.text(1, GOAL, "goal", color="#b3541e", va="bottom")
        axes.set_xlabel("claims, cheapest first")
        axes.set_ylabel("CPU-seconds, cold")
        axes.set_ylim(bottom=0)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)


if __name__ == "__main__":
    (DOCS / "benchmarks.md").write_text(page(), "utf-8")
    draw(DOCS / PLOT)
