"""``steepest exercise``: a notebook in which the reader predicts and the claim's own judge answers."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steepest.app.exercises import Exercise
from steepest.catalogue import Entry
from steepest.core.errors import UserError
from steepest.core.writing import move_where_nothing_is, remove_leftovers_of, temporary
from steepest.engine.run import about, ready
from steepest.engine.store import Store
from steepest.sources import Source, expand

FORMAT = {"nbformat": 4, "nbformat_minor": 5}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
SHOWN = 12
"""Numbers of a prediction that the last part prints; of longer ones the first few and the last."""


def write_exercise(line: Entry, file: Path | None, results: Path) -> Path:
    """Write the notebook of a claim's exercise, and return its path; nothing is run but the claim's theory.

    Args:
        line: the claim's line in the catalogue.
        file: the notebook; None for the claim's name in this folder.
        results: the folder of results that the notebook reads, and keeps its run in.

    Raises:
        UserError: a file that is there already or cannot be written, a name that is no notebook's, a claim without a
            prediction.
    """
    path = Path(f"{line.name}.ipynb") if file is None else file
    if path.suffix != ".ipynb":
        raise UserError(
            f"a notebook is an .ipynb file, got {path}; try {path.with_suffix('.ipynb')}"
        )
    if os.path.lexists(path):
        raise UserError(f"{path} is there already and was not touched; choose another name")
    if not path.absolute().parent.is_dir():
        raise UserError(f"there is no folder {path.parent}; make it first")
    task = Exercise(ready(line), Store(results))
    target = line.name
    if not line.module:
        target = Path(os.path.relpath(line.path, path.absolute().parent)).as_posix()
    where = Path(os.path.relpath(results, path.absolute().parent)).as_posix()
    text = json.dumps(notebook(task, target, where), indent=1, ensure_ascii=False) + "\n"
    try:
        remove_leftovers_of(path)
        with temporary(path) as fresh:
            fresh.write_text(text, "utf-8")
            move_where_nothing_is(fresh, path)
    except FileExistsError:
        raise UserError(
            f"{path} is there already and was not touched; choose another name"
        ) from None
    except OSError as trouble:
        raise UserError(
            f"cannot write {path} ({trouble.strerror}); choose another folder"
        ) from None
    return path


def notebook(task: Exercise, target: str, results: str) -> dict[str, Any]:
    """Return the notebook as data, in nbformat 4.5.

    Args:
        task: the exercise.
        target: what :func:`steepest.exercise` finds the claim by.
        results: the folder of results, as the notebook sees it.
    """
    cells = [
        {"id": f"cell-{place}", "cell_type": kind, "metadata": {}, "source": text.strip()}
        for place, (kind, text) in enumerate(_cells(task, target, results), 1)
    ]
    for cell in cells:
        if cell["cell_type"] == "code":
            cell.update(execution_count=None, outputs=[])
    return {**FORMAT, "metadata": {"kernelspec": KERNEL}, "cells": cells}


def _cells(task: Exercise, target: str, results: str) -> Iterator[tuple[str, str]]:
    """Kind and text of every cell."""
    text = about(task.line, task.kind)
    yield "markdown", _opening(task, text)
    yield "markdown", _asked(task)
    yield "code", _start(target, results)
    yield "code", _predict(task)
    yield (
        "markdown",
        "## The judge\n\nThe claim's own checks, on your prediction and its observation, and which wrong theories you "
        "beat: a check fails for them that holds for you. The experiment is run if no result of it is stored. A bound "
        "holds for weaker bounds too: the column “would notice” says how much room yours leaves.",
    )
    yield "code", "task.judge(predict)"
    yield "markdown", _closing(task, text)
    yield (
        "code",
        "# without the #: the claim's own prediction under the same judge\n# task.judge(task.answer)",
    )


def _opening(task: Exercise, text: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"| `{name}` | {_spelled(value)} | {_in_table(text['meanings'].get(name, ''))} |"
        for name, value in task.settings.items()
    )
    assumed = "\n".join(f"* {hypothesis}" for hypothesis in task.hypotheses) or "* nothing"
    return f"""
# {task.question}

An exercise on the claim `{task.claim}`. Predict before you look: its page, `steepest show {task.claim}` and the last
part of this notebook have the answer.

## The experiment

{text["experiment"]}

| field | value | meaning |
|---|---|---|
{rows}

It is assumed, and true of these settings:

{assumed}
"""


def _asked(task: Exercise) -> str:
    rows = "\n".join(
        f"| `{blank.name}` | {_in_table(str(blank))} |" for blank in task.blank.values()
    )
    return f"""
## What to predict

| name | numbers |
|---|---|
{rows}

One number stands for an array of equal ones. What you cannot say yet may come from the claim:
`task.judge(predict, given=["name"])`.
{_measured(task)}"""


def _measured(task: Exercise) -> str:
    rows = "\n".join(
        f"| `{name}` | {_in_table(str(blank))} |" for name, blank in task.measured.items()
    )
    head = (
        "The experiment, which has been run already, measured:\n\n| name | numbers |\n|---|---|\n"
    )
    return f"\n{head}{rows}\n" if rows else ""


def _start(target: str, results: str) -> str:
    return f"""
import numpy as np
import steepest

task = steepest.exercise({target!r}, out={results!r})
setting = task.setting  # what theory may see: the data, the initial network, if there are any
task
"""


def _predict(task: Exercise) -> str:
    lines = "\n".join(f"        {blank.name!r}: ...,  # {blank}" for blank in task.blank.values())
    return f'''
def predict(setting):
    """Return your theory's numbers; put them in place of the dots."""
    fields = task.settings
    return {{
{lines}
    }}
'''


def _closing(task: Exercise, text: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"| `{name}` | {_in_table(_numbers(values))} |" for name, values in task.answer.items()
    )
    return f"""
<details>
<summary><b>The claim's own answer: open it when you are done</b></summary>

{text["says"]}

$$
{text["statement"]}
$$

{text["explanation"]}

| name | predicted |
|---|---|
{rows}

Source: {"".join(map(_linked, expand(text["source"], known_only=False)))}

</details>
"""


def _linked(piece: str | Source) -> str:
    if isinstance(piece, str):
        return piece
    return f"[{piece.short}]({piece.link})" if piece.link else piece.short


def _numbers(values: np.ndarray) -> str:
    if values.ndim == 0:
        return f"{values.item():.6g}"
    text = np.array2string(values, precision=4, threshold=SHOWN, edgeitems=2, separator=", ")
    return " ".join(text.split())


def _spelled(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _in_table(text: str) -> str:
    return text.replace("|", r"\|")
