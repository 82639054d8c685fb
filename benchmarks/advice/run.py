"""Follow what ``measure --try`` advises in fifteen trainings, and see what it was worth.

Each training of ``setups.py`` takes thirty steps with its author's step and asks ``measure(…, descents=5)``, once with
held-out examples and once without. Where a report names another step, the training goes on from the same state over the
same batches with both. What counts is the loss on a third part of the examples, which neither saw.

    python benchmarks/advice/run.py [--first 100] [--seeds 3] [--only WORD] [--fixed-on] [--record]
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parent))
from setups import ASKED, FIXED_ON, SETUPS, STEPS

from steepest.measurement import FindingId, measure

RECORD = Path(__file__).with_name("record.json")
WORDS = RECORD.with_name("words.json")
RUNS = RECORD.with_name("runs.jsonl")
TRIES = 5
ANOTHER = (FindingId.STEP_TO_TRY, FindingId.STEP_TO_LOWER)  # findings that name another step
LITTLE = 0.02  # relative difference of two losses that are equal
WAYS = {"given": True, "not given": False}
"""Whether measure has held-out examples, in words."""
COLUMNS = (
    "set-up", "its step", "named", "its loss", "with the named step", "counts as", "named without held-out",
    "loss then", "counts then as",
)  # fmt: skip


def advice(setup: Any, seed: int, held_out: bool) -> float | None:
    """Return the step that a report names after the first steps, if it is another than the author's."""
    training = setup.training(seed)
    training.descend(ASKED)
    report = measure(
        **training.asked(),
        data=training.examples.given,
        held_out=training.examples.held_out if held_out else None,
        what=["risk", "descents"],
        batch=setup.batch,
        descents=TRIES,
        seed=seed,
    )
    named = [finding for finding in report.findings if finding.id in ANOTHER]
    return report["descents"].value if named else None


def loss_after(setup: Any, seed: int, step: float | None) -> float:
    """Return the loss on unseen examples after a training that follows advice, or after its author's own."""
    training = setup.training(seed)
    training.descend(ASKED)
    if step is not None:
        training.scale_step(step / setup.step)
    training.descend(STEPS - ASKED)
    loss = training.loss()
    return loss if math.isfinite(loss) else math.inf


def followed(setup: Any, seed: int) -> dict[str, Any]:
    """Return what advice was given in one training, and what came of it."""
    started = time.process_time()
    own = loss_after(setup, seed, None)
    row: dict[str, Any] = {"setup": setup.name, "seed": seed, "step": setup.step, "loss": own}
    row["seconds"] = round(time.process_time() - started, 2)
    for way, held_out in WAYS.items():
        started = time.process_time()
        step = advice(setup, seed, held_out)
        seconds = round(time.process_time() - started, 2)
        loss = own if step is None else loss_after(setup, seed, step)
        row[way] = {"step": step, "loss": loss, "seconds": seconds}
    return row


def counts_as(rows: Sequence[dict[str, Any]], way: str) -> str:
    """Return better, equal or worse for the seeds of one set-up.

    Equal is a difference of the mean logarithms of two hundredths at most, or within the scatter of the author's own
    trainings over the seeds.
    """
    own = [math.log(row["loss"]) for row in rows]
    with_advice = [math.log(row[way]["loss"]) for row in rows]
    difference = statistics.fmean(with_advice) - statistics.fmean(own)
    scatter = statistics.stdev(own) if len(own) > 1 and all(map(math.isfinite, own)) else 0.0
    return word(difference, max(LITTLE, scatter))


def word(difference: float, little: float) -> str:
    """Return what a difference of logarithms counts as."""
    if abs(difference) <= little:
        return "equal"
    return "better" if difference < 0 else "worse"


def line(rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the line of one set-up."""
    cells: list[Any] = [rows[0]["setup"], f"{rows[0]['step']:g}"]
    own = [row["loss"] for row in rows]
    for way in WAYS:
        steps = [row[way]["step"] for row in rows]
        named = [f"{step:g}" for step in steps if step is not None]
        cells.append(", ".join(named) + f" ({len(named)} of {len(steps)})" if named else "none")
        if way == "given":
            cells.append(mean(own))
        cells.append(mean([row[way]["loss"] for row in rows]) if named else "")
        cells.append(counts_as(rows, way))
    return cells


def mean(losses: Sequence[float]) -> str:
    """Return the geometric mean."""
    return f"{math.exp(statistics.fmean(map(math.log, losses))):.3g}"


def summary(rows: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Return how many set-ups, and how many trainings whose report named a step, came out how."""
    lines = []
    words = ("better", "equal", "worse")
    for way in WAYS:
        setups = {row["setup"]: [r for r in rows if r["setup"] == row["setup"]] for row in rows}
        of_setups = [counts_as(group, way) for group in setups.values()]
        named = [row for row in rows if row[way]["step"] is not None]
        of_trainings = [word(math.log(r[way]["loss"] / r["loss"]), LITTLE) for r in named]
        cost = statistics.median(row[way]["seconds"] / row["seconds"] for row in rows)
        counts = [
            ", ".join(f"{of.count(w)} {w}" for w in words) for of in (of_setups, of_trainings)
        ]
        lines.append([way, counts[0], f"{len(named)} of {len(rows)}", counts[1], f"{cost:.1f}"])
    return lines


SUMMARY = (
    "held-out examples", "set-ups", "trainings with another step named", "of these", "seconds over a training's"
)  # fmt: skip


def tables(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return both tables of the record."""
    names = dict.fromkeys(row["setup"] for row in rows)
    lines = [line([row for row in rows if row["setup"] == name]) for name in names]
    return [
        {"columns": list(SUMMARY), "rows": summary(rows)},
        {"columns": list(COLUMNS), "rows": lines},
    ]


def keep() -> None:
    """Write the record from the runs and the words beside it."""
    rows = [json.loads(line) for line in RUNS.read_text("utf-8").splitlines()]
    words = json.loads(WORDS.read_text("utf-8"))
    record = {
        "title": words["title"],
        "how": words["how"],
        "tables": tables(rows),
        "says": words["says"],
    }
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> None:
    """Print each training and both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="set-ups whose name contains this")
    parser.add_argument(
        "--fixed-on", action="store_true", help="those on which thresholds were fixed"
    )
    parser.add_argument("--record", action="store_true", help="write runs.jsonl and record.json")
    known = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for setup in SETUPS:
        if known.only not in setup.name or (known.fixed_on and setup.name not in FIXED_ON):
            continue
        for seed in range(known.first, known.first + known.seeds):
            rows.append(followed(setup, seed))
            print(json.dumps(rows[-1]), flush=True)
    for table in tables(rows):
        print(*(" | ".join(map(str, cells)) for cells in table["rows"]), "", sep="\n")
    if known.record:
        RUNS.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        keep()


if __name__ == "__main__":
    main()
