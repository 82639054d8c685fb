"""The log of a monitor: its records, also of a file that is still growing, torn, or shared by several trainings."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steepest.core.errors import UserError

Record = dict[str, Any]


def read_log(file: str | Path) -> list[Record]:
    """Read the records of a monitor's log; lines that a kill cut off are left out.

    Raises:
        UserError: if there is no such file, or it cannot be read.
    """
    return _lines(Path(file))[0]


def runs_of(file: str | Path) -> list[list[Record]]:
    """Read a log and split it into the trainings that were appended to it, in their order.

    A training begins where steps start again: where a step is smaller than the one before, or a new monitor has started
    at a step that is there already. One that goes on from a checkpoint at a later step is the same training. Several
    records of one step are one: what the last says counts, beside what the others alone have.

    Raises:
        UserError: no such file, an empty one, one that no monitor has written.
    """
    path = Path(file)
    lines, torn = _lines(path)
    records = [line for line in lines if _is_record(line)]
    if not records:
        if not lines and not torn:
            raise UserError(
                f"the log {path} is empty: no measurement has been written yet; a monitor writes its first one when it "
                "is called"
            )
        raise UserError(
            f"{path} is no log of a monitor: no line of it is an object with a step and quantities; give the file "
            "that Monitor(file, …) writes"
        )
    runs: list[list[Record]] = []
    for record in records:
        last = runs[-1][-1]["step"] if runs else math.inf
        if record["step"] < last or (record["step"] == last and "started" in record):
            runs.append([record])
        elif record["step"] == last:
            runs[-1][-1] = _together(runs[-1][-1], record)
        else:
            runs[-1].append(record)
    return runs


def _together(earlier: Record, later: Record) -> Record:
    """Return one record of two of a step, such as its first-order numbers and its measurement at the end."""
    quantities = {**earlier["quantities"], **later["quantities"]}
    return {**earlier, **later, "quantities": quantities}


def _lines(path: Path) -> tuple[list[Any], int]:
    """Return what the lines of a file hold, and how many of them hold no JSON."""
    if not path.exists():
        raise UserError(f"there is no log {path}")
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as trouble:
        reason = trouble.strerror or trouble
        raise UserError(
            f"cannot read the log {path} ({reason}); give the file of a monitor"
        ) from None
    values = []
    torn = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (json.JSONDecodeError, RecursionError):
            torn += 1
    return values, torn


def _is_record(line: Any) -> bool:
    """Tell whether this is a record as a monitor writes it; files of other programs have JSON lines too."""
    if not isinstance(line, dict) or not isinstance(line.get("quantities"), dict):
        return False
    step = line.get("step")
    return _is_count(step) and all(_is_entry(entry) for entry in line["quantities"].values())


def _is_count(step: Any) -> bool:
    return isinstance(step, int) and not isinstance(step, bool)


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or "value" not in entry:
        return False
    pairs = (entry.get("interval"), entry.get("over_examples"))
    return (
        all(_is_number(entry.get(name)) for name in ("value", "compared"))
        and all(pair is None or _is_pair(pair) for pair in pairs)
        and isinstance(entry.get("theory", ""), str)
    )


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, Sequence) and len(pair) == 2 and all(map(_is_number, pair))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
