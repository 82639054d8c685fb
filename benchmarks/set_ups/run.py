"""Forty trainings as practitioners write them, each with a monitor and without: on to the end, and the same weights.

    python benchmarks/set_ups/run.py [--kinds WORD] [--record]

A monitor is *on to the end* where its last record is of the last step and has the loss and the updates by layer.
Weights and losses with the monitor are those without, bit for bit.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from steepest import Monitor
from steepest.measurement import read_log

sys.path.insert(0, str(Path(__file__).parent))
from set_ups import BUILDERS, SetUp

STEPS = 30
SEED = 17
PREFIX = "steepest: only what each step has at hand is recorded: "
OF_OTHERS = 20  # the first, on which monitors failed


@dataclass(frozen=True)
class Outcome:
    """What became of a set-up.

    Attributes:
        raised: the error that came out of the training, or the monitor's traceback.
        to_the_end: whether the last record is of the last step, with first-order numbers.
        risk: whether the risk on the data was measured; None where there are no data.
        same: whether weights and losses are those without a monitor.
        said: what the monitor said on standard error.
    """

    raised: str
    to_the_end: bool
    risk: bool | None
    same: bool
    said: str


def trained(name: str, file: Path | None) -> tuple[SetUp, list[float]]:
    """Train a set-up from its seed, with a monitor where there is a file for its log."""
    torch.manual_seed(SEED)
    made = BUILDERS[name]()
    monitor = None
    if file is not None:
        monitor = Monitor(file, made.loss, made.data, budget=None, every=5, **made.options)
    losses = []
    for step in range(1, STEPS + 1):
        value = next(made.steps)
        losses.append(float(value))
        if monitor is not None:
            monitor(step, made.model, loss=value, now=step == STEPS)
    return made, losses


def bits(model: torch.nn.Module) -> list[bytes]:
    """Return parameters and buffers as they lie in memory."""
    tensors = [*model.parameters(), *model.buffers()]
    return [
        tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        for tensor in tensors
    ]


def outcome(name: str) -> Outcome:
    """Train with a monitor and without."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(said):
        file = Path(folder) / "run.jsonl"
        try:
            watched, losses = trained(name, file)
        except Exception:
            return Outcome(traceback.format_exc(limit=-3), False, None, False, said.getvalue())
        records = read_log(file)
    alone, expected = trained(name, None)
    last = records[-1]
    return Outcome(
        "traceback" if "Traceback" in said.getvalue() else "",
        last["step"] == STEPS and "loss of the batch" in last["quantities"] and "updates" in last,
        None if watched.data is None else any(_has_risk(record) for record in records),
        losses == expected and bits(watched.model) == bits(alone.model),
        said.getvalue().strip(),
    )


def _has_risk(record: dict) -> bool:
    return record["quantities"].get("risk", {}).get("value") is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default="", help="those whose name contains this")
    parser.add_argument("--record", action="store_true", help="write record.json")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    refused = []
    for place, name in enumerate(BUILDERS):
        if chosen.kinds not in name:
            continue
        seen = outcome(name)
        measured = "" if seen.risk is None else ("yes" if seen.risk else "no")
        new = "" if place < OF_OTHERS else "new"
        yes = lambda answer: "yes" if answer else "**no**"
        row = [name, new, yes(not seen.raised), yes(seen.to_the_end), measured, yes(seen.same)]
        rows.append(row)
        print(row, seen.said[:400].replace("\n", " | "), seen.raised[-600:], flush=True)
        if seen.risk is False:
            refused.append(f"*{name}*: {seen.said.removeprefix(PREFIX)}")
    if chosen.record:
        write(rows, refused)


def write(rows: list[list[str]], refused: list[str]) -> None:
    """Write ``record.json``."""
    columns = [
        "set-up",
        "list",
        "no traceback",
        "on to the end",
        "risk on the data",
        "weights and losses as without",
    ]
    good = sum(row[2] == row[3] == row[5] == "yes" for row in rows)
    record = {
        "title": "Forty set-ups beside a monitor",
        "how": f"`benchmarks/set_ups`: small trainings of torch as practitioners write them, {STEPS} steps each, with "
        "a monitor that is given loss, data and optimizer as the training has them, and without one. On the first "
        "twenty monitors had gone off, raised, or said what was untrue when others tried them. The twenty *new* ones "
        "were written before any monitor had run on them. *On to the end*: the last record is of the last step and has "
        "the loss and the updates by layer. *Risk on the data* is empty where no data are given.",
        "tables": [{"columns": columns, "rows": rows}],
        "says": [
            f"{good} of {len(rows)} go on to the end with the same weights. Graph networks over all vertices were "
            "refused when this list was run first, as parts of a batch were evaluated; they are measured now.",
            "Where the risk is not measured the monitor says why, once:",
            *refused,
        ],
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (Path(__file__).parent / "record.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
