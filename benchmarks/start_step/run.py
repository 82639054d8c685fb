"""Judge the step to start with: what ``measure`` says before a training, beside what trainings say.

Ten networks of torch on small data, each under momentum and Adam, untrained. Three answers are compared: ``--try 5``
without a step size, three tenths of the largest stable step of the first weights, and a *learning-rate range test*: one
descent whose step grows by the same factor in each of a hundred steps, from which a tenth of the step is taken at which
the smoothed loss was lowest. Each answer is then trained with, and so is every step of a grid.

python benchmarks/start_step/run.py [--first 1300] [--seeds 2] [--steps 300] writes ``runs.jsonl`` and ``record.json``.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "warnings"))
from first_list import DEEP, GPT, LSTM, RESNET, SMOOTH
from kinds import Pair, Task, adam, sgd, shuffled
from second_list import BINARY, COPY, GRU, NORMED, VIT

from steepest.measurement import measure

NETWORKS = {
    "ResNet": RESNET,
    "GPT": GPT,
    "LSTM": LSTM,
    "sixteen layers": DEEP,
    "regression": SMOOTH,
    "GRU": GRU,
    "ViT": VIT,
    "batch-normalized": NORMED,
    "autoencoder": COPY,
    "binary": BINARY,
}
RUNS = Path(__file__).with_name("runs.jsonl")
WORDS = RUNS.with_name("words.json")
COLUMNS = [
    "rule",
    "answer",
    "trainings",
    "nine tenths of the way",
    "median",
    "hardly learn",
    "step over the best",
]
MOMENTUM = 0.9
OPTIMIZERS: dict[str, tuple[Callable, tuple[float, ...]]] = {
    "momentum": (lambda lr: sgd(lr, MOMENTUM), tuple(10 ** (half / 2) for half in range(-8, 3))),
    "Adam": (adam, tuple(10 ** (half / 2) for half in range(-10, 1))),
}
BATCH = 32
TRIES = 5
BELOW = 0.3  # of the largest stable step
SWEEP = 100  # steps of the range test
LEAST = 1e-6
MOST = 10.0
USUAL = 1e-3  # the step of Adam that is there when nobody says one
RISEN = 4.0  # times the lowest smoothed loss: the range test ends
SMOOTH_OVER = 0.9  # how much of the running loss is kept
TENTH = 0.1
ANSWERS = ("short descents", "limit of the first weights", "range test")
LITTLE = 0.01  # of it, below which nothing was learned
NEAR = 0.9  # of the way down that the best step goes, from which an answer is good


def start(task: Task, seed: int) -> tuple[torch.nn.Module, Pair]:
    """Return a network before its training, and its examples."""
    torch.manual_seed(seed)
    inputs, targets = task.data()
    rows = torch.randperm(len(inputs))[: task.examples]
    return task.network().train(), (inputs[rows], targets[rows])


def whole_risk(task: Task, model: torch.nn.Module, pair: Pair) -> float:
    """Return the risk on all examples, with their statistics where a layer normalizes by the batch."""
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        risk = float(task.loss(model(pair[0]), pair[1]))
    model.load_state_dict(kept)
    return risk


def descend(
    task: Task,
    model: torch.nn.Module,
    pair: Pair,
    optimizer: torch.optim.Optimizer,
    steps: int,
    growth: float = 1.0,
) -> list[float]:
    """Train a network with steps that grow by a factor; return the losses of its batches, until one is not finite."""
    batches = shuffled(pair, BATCH)
    losses = []
    for _ in range(steps):
        inputs, targets = next(batches)
        optimizer.zero_grad()
        loss = task.loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= growth
        losses.append(float(loss))
        if not math.isfinite(losses[-1]):
            break
    return losses


def trained(task: Task, seed: int, optimizer: Callable, steps: int) -> float:
    """Return the risk after a training; infinite where a loss was not finite."""
    model, pair = start(task, seed)
    losses = descend(task, model, pair, optimizer(model.parameters()), steps)
    if not math.isfinite(losses[-1]):
        return math.inf
    risk = whole_risk(task, model, pair)
    return risk if math.isfinite(risk) else math.inf


def by_range_test(task: Task, seed: int, rule: Callable) -> float:
    """Return a tenth of the step at which the smoothed loss of one descent with growing steps is lowest."""
    model, pair = start(task, seed)
    growth = (MOST / LEAST) ** (1 / (SWEEP - 1))
    smoothed = 0.0
    lowest = (math.inf, LEAST)
    losses = descend(task, model, pair, rule(LEAST)(model.parameters()), SWEEP, growth)
    for taken, loss in enumerate(losses, 1):
        smoothed = SMOOTH_OVER * smoothed + (1 - SMOOTH_OVER) * loss
        now = smoothed / (1 - SMOOTH_OVER**taken)
        if not now < RISEN * lowest[0]:
            break
        lowest = min(lowest, (now, LEAST * growth ** (taken - 1)))
    return TENTH * lowest[1]


def answers(task: Task, seed: int, rule: Callable) -> dict[str, float | None]:
    """Return the steps that the three ways speak for, or None."""
    model, pair = start(task, seed)
    is_adam = rule is adam
    report = measure(
        model,
        task.loss,
        pair,
        what=["risk", "descents"] if is_adam else ["risk", "sharpness", "descents"],
        momentum=0.0 if is_adam else MOMENTUM,
        optimizer=rule(USUAL)(model.parameters()) if is_adam else None,
        batch=BATCH,
        descents=TRIES,
        seed=seed,
    )
    tried = next(reading.value for reading in report.quantities if reading.id == "descents")
    limit = math.nan
    if not is_adam:
        largest = report["sharpness"].value
        limit = BELOW * 2 * (1 + MOMENTUM) / largest if largest > 0 else math.nan
    steps = dict(zip(ANSWERS, (tried, limit, by_range_test(task, seed, rule)), strict=True))
    return {way: step if math.isfinite(step) else None for way, step in steps.items()}


def judged(name: str, rule: str, seed: int, steps: int) -> dict[str, object]:
    """Return what a network's answers came to, beside the best step of the grid."""
    task = NETWORKS[name]
    make, grid = OPTIMIZERS[rule]
    model, pair = start(task, seed)
    begun = whole_risk(task, model, pair)
    risks = {step: trained(task, seed, make(step), steps) for step in grid}
    best = min(risks, key=risks.__getitem__)
    ways = {}
    for way, step in answers(task, seed, make).items():
        risk = None if step is None else trained(task, seed, make(step), steps)
        ways[way] = {"step": step, "risk": risk}
    return {
        "network": name,
        "rule": rule,
        "seed": seed,
        "start": begun,
        "best": best,
        "risk": risks[best],
        "ways": ways,
    }


def down(row: dict, way: str) -> float | None:
    """Return the share of the best step's way down, in log risk, that an answer goes; None without an answer."""
    risk = row["ways"][way]["risk"]
    if risk is None:
        return None
    if math.isinf(risk):
        return -math.inf
    return math.log(row["start"] / risk) / math.log(row["start"] / row["risk"])


def summary(rows: list[dict]) -> list[list[object]]:
    """Return a line for each rule and way."""
    lines: list[list[object]] = []
    for rule in OPTIMIZERS:
        of_rule = [row for row in rows if row["rule"] == rule]
        for way in ANSWERS:
            answered = [row for row in of_rule if row["ways"][way]["step"] is not None]
            if not answered:
                continue
            shares = [share for row in answered if (share := down(row, way)) is not None]
            factors = [row["ways"][way]["step"] / row["best"] for row in answered]
            near = sum(share >= NEAR for share in shares)
            lost = sum(share <= LITTLE for share in shares)
            middle = f"{statistics.median(shares):.2f}"
            between = f"{statistics.median(factors):.2g} ({min(factors):.1g} to {max(factors):.1g})"
            lines.append([rule, way, len(shares), near, middle, lost, between])
    return lines


def keep(rows: list[dict]) -> None:
    """Write the record from the runs and the words beside it."""
    words = json.loads(WORDS.read_text("utf-8"))
    tables = [{"columns": COLUMNS, "rows": summary(rows)}]
    record = {"title": words["title"], "how": words["how"], "tables": tables, "says": words["says"]}
    RUNS.with_name("record.json").write_text(
        json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    known = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in NETWORKS:
        for rule in OPTIMIZERS:
            for seed in range(known.first, known.first + known.seeds):
                rows.append(judged(name, rule, seed, known.steps))
                print(json.dumps(rows[-1]), flush=True)
    RUNS.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    keep(rows)


if __name__ == "__main__":
    main()
