"""Configurations of neural-tangents and ours on the same inputs: equal, different, or possible with one of them only.

    python -m benchmarks.configurations.run [PYTHON] [--only WORD] [--record]

With the interpreter of an environment with ``../kernels/requirements.txt`` the peer's numbers are computed and kept in
``peer.npz``; without it the kept numbers are read. ``--record`` keeps verdicts in ``verdicts.jsonl``, of those that
``--only`` leaves out the ones that are there, and writes ``record.json`` from all.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.configurations.names import NAMES, uses
from benchmarks.configurations.ours import activations, functions, layers
from benchmarks.configurations.reasons import REASONS
from benchmarks.configurations.third import REFERENCES
from steepest.core.errors import UserError

HERE = Path(__file__).parent
NUMBERS = HERE / "peer.npz"
JUDGED = HERE / "verdicts.jsonl"
EQUAL = 1e-6  # of the largest number
DEVIATIONS = 5.0  # of Monte Carlo, in standard errors of both
OURS = {**layers.CONFIGURATIONS, **activations.CONFIGURATIONS, **functions.CONFIGURATIONS}
HOW = (
    "{count} small networks, predictions and empirical kernels, from the public names of neural-tangents 0.6.5, "
    "and the same of ours, on equal inputs in float64. Equal: all numbers differ by at most {equal:g} "
    "of the largest; kernels of drawn networks by at most {deviations:g} standard errors. Biases are trained as there. "
    "Theirs only: ours refuses, or has no such function. The peer in its own environment (jax 0.4.30)."
)
VERDICTS = ("equal", "differ", "ours only", "theirs only", "neither")
Arrays = dict[str, np.ndarray]


class Answer(NamedTuple):
    """What a library says to one configuration.

    Attributes:
        arrays: its numbers; None where there are none.
        trouble: why there are none.
    """

    arrays: Arrays | None
    trouble: str = ""


class Compared(NamedTuple):
    """The verdict on one configuration.

    Attributes:
        identity: group and name.
        verdict: one of ``VERDICTS``.
        difference: relative to the largest number; None where one library has none.
        trouble: why one of them has none.
        seconds: that ours took.
        errors: of ours and of theirs against a third way, where there is one; None of one that has no numbers.
    """

    identity: str
    verdict: str
    difference: float | None
    trouble: str
    seconds: float
    errors: tuple[float | None, float | None] | None = None

    @property
    def group(self) -> str:
        """Return the part of the identity before the stroke."""
        return self.identity.split("/")[0]


def peers(file: Path = NUMBERS) -> dict[str, Answer]:
    """Return what the peer says to each configuration."""
    by_identity: dict[str, Arrays] = {}
    with np.load(file) as stored:
        for key in stored.files:
            identity, name = key.split("|")
            by_identity.setdefault(identity, {})[name] = stored[key]
    return {identity: as_answer(arrays) for identity, arrays in by_identity.items()}


def as_answer(arrays: Arrays) -> Answer:
    """Tell numbers from what was raised, and from what is no number."""
    if "!" in arrays:
        return Answer(None, str(arrays["!"]))
    if not all(np.isfinite(array).all() for array in arrays.values()):
        return Answer(None, "NaN or infinite")
    return Answer(arrays)


def answer(identity: str) -> Answer:
    """Return what we say to a configuration: numbers, a refusal, or that there is no such function."""
    try:
        return as_answer({name: np.asarray(a, float) for name, a in OURS[identity]().items()})
    except UserError as refusal:
        return Answer(None, str(refusal))
    except (AttributeError, TypeError) as missing:
        return Answer(None, f"not built: {missing}")
    except Exception as crash:  # whatever it is, it is an error of ours
        return Answer(None, f"crash: {type(crash).__name__}: {crash}")


def difference(mine: Arrays, theirs: Arrays) -> float:
    """Return the largest difference of any array, relative to its largest number."""
    apart = [np.inf if mine[n].shape != a.shape else _apart(mine[n], a) for n, a in theirs.items()]
    return max(apart)


def _apart(mine: np.ndarray, theirs: np.ndarray) -> float:
    return float(
        np.abs(mine - theirs).max() / max(np.abs(theirs).max(), np.abs(mine).max(), 1e-300)
    )


def agree(mine: Arrays, theirs: Arrays, distance: float) -> bool:
    """Tell whether numbers are equal, of Monte Carlo up to its errors."""
    if "ntk error" not in mine:
        return distance <= EQUAL
    # both have as many draws, so that the difference of both means has the root of two of these errors
    return all(
        (np.abs(mine[name] - a) <= DEVIATIONS * 2**0.5 * mine[f"{name} error"]).all()
        for name, a in theirs.items()
    )


def compare(identity: str, theirs: Answer) -> Compared:
    """Run one of our configurations and judge it beside the numbers of the peer, and of a third way if they differ."""
    started = time.perf_counter()
    mine = answer(identity)
    seconds = time.perf_counter() - started
    distance = None
    if mine.arrays is None or theirs.arrays is None:
        only = {(True, True): "neither", (True, False): "theirs only", (False, True): "ours only"}
        verdict = only[mine.arrays is None, theirs.arrays is None]
    else:
        distance = difference(mine.arrays, theirs.arrays)
        verdict = "equal" if agree(mine.arrays, theirs.arrays, distance) else "differ"
    errors = None
    if verdict != "equal" and identity in REFERENCES:
        reference = REFERENCES[identity]()
        errors = _off(mine, reference), _off(theirs, reference)
    trouble = mine.trouble or theirs.trouble
    return Compared(identity, verdict, distance, trouble, seconds, errors)


def _off(answered: Answer, reference: Arrays) -> float | None:
    """Return the largest error against a third way, relative to its largest number, where it has numbers."""
    if answered.arrays is None:
        return None
    errors = [
        np.nanmax(np.abs(answered.arrays[name] - exact)) / np.nanmax(np.abs(exact))
        for name, exact in reference.items()
    ]
    return float(max(errors))


def run(only: str = "") -> Iterator[Compared]:
    """Judge all configurations whose identity has this word."""
    for identity, theirs in peers().items():
        if only in identity:
            yield compare(identity, theirs)


def ask_peer(python: str) -> None:
    """Compute the peer's numbers in its own environment."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent), "JAX_PLATFORMS": "cpu"}
    environment.pop("XLA_FLAGS", None)  # another version of XLA has other flags
    command = [python, "-m", "benchmarks.configurations.peer", str(NUMBERS)]
    subprocess.run(command, env=environment, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "peer", nargs="?", help="the interpreter of the environment with neural-tangents"
    )
    parser.add_argument("--only", default="", help="a word of the identity")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if arguments.peer:
        ask_peer(arguments.peer)
    compared = []
    for row in run(arguments.only):
        compared.append(row)
        print(json.dumps(row._asdict(), ensure_ascii=False), flush=True)
    print(counts(compared), file=sys.stderr)
    if arguments.record:
        keep(compared)


def keep(compared: Sequence[Compared]) -> None:
    """Write verdicts beside the kept ones, and the record of all."""
    rows = {row.identity: row for row in (*judged(), *compared)}
    ordered = [rows[identity] for identity in OURS if identity in rows]
    lines = [json.dumps(row._asdict(), ensure_ascii=False) for row in ordered]
    JUDGED.write_text("\n".join(lines) + "\n", "utf-8")
    text = json.dumps(record(ordered), indent=1, ensure_ascii=False)
    (HERE / "record.json").write_text(text + "\n", "utf-8")


def judged() -> list[Compared]:
    """Return the verdicts that are kept."""
    if not JUDGED.exists():
        return []
    return [Compared(**json.loads(line)) for line in JUDGED.read_text("utf-8").splitlines()]


def counts(compared: Sequence[Compared]) -> dict[str, int]:
    """Count each verdict."""
    return {verdict: sum(row.verdict == verdict for row in compared) for verdict in VERDICTS}


def record(compared: Sequence[Compared]) -> dict[str, Any]:
    """Return what the page of benchmarks says of these verdicts."""
    total = counts(compared)
    summary = ", ".join(f"{number} {verdict}" for verdict, number in total.items() if number)
    return {
        "title": "Configurations of neural-tangents, one by one",
        "how": HOW.format(count=len(compared), equal=EQUAL, deviations=DEVIATIONS),
        "tables": [by_group(compared), not_equal(compared), by_name(compared)],
        "says": [
            f"Together: {summary}. Where they differ the third way says whose numbers are right, unless it is a "
            "convention.",
            "Numbers of the peer are kept in `benchmarks/configurations/peer.npz`; a test compares ours with them.",
        ],
    }


def by_group(compared: Sequence[Compared]) -> dict[str, Any]:
    """Count the verdicts of each group."""
    rows = []
    for group in dict.fromkeys(row.group for row in compared):
        of_group = [row for row in compared if row.group == group]
        numbers = [str(number or "") for number in counts(of_group).values()]
        rows.append([group, str(len(of_group)), *numbers])
    return {"columns": ["group", "configurations", *VERDICTS], "rows": rows}


def not_equal(compared: Sequence[Compared]) -> dict[str, Any]:
    """List the configurations that are not equal, and why."""
    rows = [
        [
            row.identity,
            row.verdict,
            "" if row.difference is None else f"{row.difference:.0e}",
            "" if row.errors is None else ", ".join(map(_shown, row.errors)),
            REASONS.get(row.identity, "not built"),
        ]
        for row in compared
        if row.verdict != "equal"
    ]
    columns = [
        "configuration",
        "verdict",
        "difference",
        "errors by a third way, here and there",
        "why",
    ]
    return {"columns": columns, "rows": rows}


def _shown(error: float | None) -> str:
    return "–" if error is None else f"{error:.0e}"


def by_name(compared: Sequence[Compared]) -> dict[str, Any]:
    """List the public names of the peer, and how many of the configurations that use one are equal or ours only."""
    verdicts = {row.identity: row.verdict for row in compared}
    used = uses()
    rows = []
    for name, here in NAMES.items():
        of_name = [verdicts[i] for i, names in used.items() if name in names and i in verdicts]
        here_too = sum(verdict in ("equal", "ours only") for verdict in of_name)
        rows.append([f"`{name}`", here, f"{here_too} of {len(of_name)}" if of_name else ""])
    columns = ["neural-tangents", "Steepest", "equal or ours only, of configurations"]
    return {"columns": columns, "rows": rows}


if __name__ == "__main__":
    main()
