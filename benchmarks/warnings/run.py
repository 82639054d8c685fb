"""Whether a monitor warns of trainings before they are lost, and is silent beside stable ones, on kinds it never saw.

Each kind of the list is trained for 200 steps at each seed, with a monitor that has its defaults: loss, 64 of the
examples, optimizer, and the loss of each batch. A training is *lost* where its risk on all examples is not finite or
above ten times that of a constant guess; it ends there. It is lost too if it ends with 0.9 of a constant guess's risk
or more: then at the step from which on it stays above 0.99 of it. It is *announced* if a warning comes at least three
steps before. A warning in a training that is not lost is a false alarm.

Trainings that never were better than a constant guess and do not blow up, and those that are lost within three steps,
cannot be announced, and are counted apart.

    python benchmarks/warnings/run.py [--first 5000] [--seeds 10] [--stable 50] [--list first] [--kinds WORD]
        [--out FILE] [--plain]

With ``--plain`` it trains without a monitor and says what becomes of each training.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from steepest import Monitor
from steepest.measurement import read_log

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import first_list
import second_list
import third_list
from kinds import STEPS, Game, Kind, Pair, shuffled
from lost import DIVERGED, lost

LISTS = {"first": first_list.KINDS, "second": second_list.KINDS, "third": third_list.KINDS}

LEAD = 3  # steps at least before the loss
PROBE = 64  # examples on which the monitor measures
SPOILT = 1e3  # factor of the inputs of a bad batch
AFTER = 20  # steps in which an unforeseeable loss should be named


@dataclass(frozen=True)
class Course:
    """What became of one training.

    Attributes:
        lost: at which step, or None.
        warned: steps at which the monitor warned.
        rules: of these warnings.
    """

    lost: int | None
    warned: tuple[int, ...]
    rules: tuple[str, ...]


def train(kind: Kind, seed: int, file: Path | None) -> Course:
    """Train once, with a monitor where there is a file for its log."""
    torch.manual_seed(seed)
    task = kind.task
    if isinstance(task, Game):
        return play(kind, task, file)
    inputs, targets = task.data()
    rows = torch.randperm(len(inputs))[: task.examples]
    pair = (inputs[rows], targets[rows])
    guess = task.guess(pair[1])
    model = task.network().train()
    optimizer = kind.optimizer(model.parameters())
    largest = optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] = largest * kind.schedule(0)
    monitor = None
    if file is not None:
        probe = (pair[0][:PROBE], pair[1][:PROBE])
        monitor = Monitor(file, task.loss, probe, optimizer=optimizer)
        monitor(0, model)
    risks = [risk(kind, model, pair)]
    batches = shuffled(pair, kind.batch)
    for step in range(STEPS):
        x, y = next(batches)
        x = SPOILT * x if step == kind.spoilt else x
        optimizer.zero_grad()
        loss = task.loss(model(x), y) * kind.scale(step)
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = largest * kind.schedule(step + 1)
        if monitor is not None:
            monitor(step + 1, model, loss=loss)
        risks.append(risk(kind, model, pair))
        if not risks[-1] < DIVERGED * guess:
            break
    return course_of(risks, guess, file)


def play(kind: Kind, game: Game, file: Path | None) -> Course:
    """Train a player once, with a monitor that has no data where there is a file for its log."""
    player = game.begin(kind.optimizer, kind.batch)
    monitor = None
    if file is not None:
        monitor = Monitor(file, optimizer=player.optimizer, stationary=not game.is_said)
        monitor(0, player.model)
    risks = [player.risk()]
    for step in range(STEPS):
        loss = player.step()
        if monitor is not None:
            monitor(step + 1, player.model, loss=loss)
        risks.append(player.risk())
        if not risks[-1] < DIVERGED * player.guess:
            break
    return course_of(risks, player.guess, file)


def course_of(risks: list[float], guess: float, file: Path | None) -> Course:
    """Return what became of a training, by its risks and the log of its monitor."""
    records = [] if file is None else read_log(file)
    warnings = [record for record in records if "warnings" in record]
    steps = tuple(record["step"] for record in warnings)
    rules = tuple(rule for record in warnings for rule in record.get("rules", ()))
    return Course(lost(risks, guess), steps, rules)


def risk(kind: Kind, model: torch.nn.Module, pair: Pair) -> float:
    """Return the risk on all examples, with the statistics of all where batches are normalized by their own."""
    normalizing = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    momenta = [layer.momentum for layer in normalizing]
    for layer in normalizing:
        layer.momentum = 0.0  # running statistics stay
    with torch.no_grad():
        value = float(kind.task.loss(model(pair[0]), pair[1]))
    for layer, momentum in zip(normalizing, momenta, strict=True):
        layer.momentum = momentum
    return value


def outcome(kind: Kind, course: Course) -> str:
    """Return what a training counts as."""
    if course.lost is None:
        return "false alarm" if course.warned else "silent"
    if kind.spoilt is not None:
        named = [step for step in course.warned if step >= kind.spoilt]
        return "named after" if named and named[0] <= course.lost + AFTER else "not named"
    if course.lost < LEAD:
        return "too early"
    if course.warned and course.warned[0] <= course.lost - LEAD:
        return "announced"
    return "late" if course.warned and course.warned[0] < course.lost else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=5000, help="seed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--stable", type=int, default=50, help="seeds of stable kinds")
    parser.add_argument("--list", choices=tuple(LISTS), default="second")
    parser.add_argument("--kinds", default="", help="those whose name contains this")
    parser.add_argument("--out", type=Path, help="one line a training is appended here")
    parser.add_argument("--plain", action="store_true", help="without a monitor")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for name, kind in LISTS[chosen.list].items():
        if chosen.kinds not in name:
            continue
        counts: Counter[str] = Counter()
        leads = []
        for seed in range(
            chosen.first, chosen.first + (chosen.stable if kind.meant == "stable" else chosen.seeds)
        ):
            with tempfile.TemporaryDirectory() as folder:
                course = train(kind, seed, None if chosen.plain else Path(folder) / "run.jsonl")
            what = outcome(kind, course)
            counts[what] += 1
            if course.lost is not None:
                leads.append(course.lost - course.warned[0] if course.warned else np.nan)
            if chosen.out:
                row = {"kind": name, "seed": seed, "outcome": what, **vars(course)}
                with chosen.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            if chosen.plain:
                print(name, seed, course.lost, flush=True)
        print(f"| {name} | {kind.meant} | {dict(counts)} | {leads} |", flush=True)


if __name__ == "__main__":
    main()
