"""Whether a monitor announces a training that is about to be lost, and is silent beside one that is stable.

Small networks of torch on 500 digits, each kind of training at each seed once, for 500 steps. A training is *lost*
where the risk on the 500 examples is not finite or above ten times that of a constant guess; it ends there. It is lost
too if it ends with 0.9 of a constant guess's risk or more: then at the step from which on it stays above 0.99 of it. It
is *announced* if the record of an earlier step has a warning. A warning in a training that is not lost is a false
alarm. Trainings that never were better than a constant guess cannot be announced, and are counted apart. The rule of
the warnings was fixed on seeds 0 to 4; the figures of ``docs/benchmarks.md`` are those of seeds 1000 to 1009, run once.
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from steepest import Monitor
from steepest.measurement import read_log

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
from lost import DIVERGED, lost
from mlp_torch import data

EXAMPLES = 500
STEPS = 500


def mlp():
    return nn.Sequential(
        nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)
    )


def cnn():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def sgd(lr, momentum=0.0):
    return lambda weights: torch.optim.SGD(weights, lr, momentum=momentum)


def adam(lr):
    return lambda weights: torch.optim.Adam(weights, lr)


constant = lambda step: 1.0
"""Of the step size that the optimizer starts with."""
warm_up = lambda step: min(1.0, (step + 1) / 100)
cosine = lambda step: 0.5 * (1 + math.cos(math.pi * step / STEPS))
ramp = lambda step: (step + 1) / STEPS


@dataclass(frozen=True)
class Kind:
    """One kind of training.

    Attributes:
        optimizer: from weights.
        batch: examples in each batch.
        schedule: factor of the step size at each step.
        network: untrained.
        squared: whether the loss is the squared one to one-hot targets, instead of cross-entropy.
        before: steps with all examples before, which are not monitored.
    """

    optimizer: Callable
    batch: int
    schedule: Callable = constant
    network: Callable = mlp
    squared: bool = False
    before: int = 0


KINDS = {
    # meant to be lost
    "SGD of all examples, too large from the start": Kind(sgd(4.0), EXAMPLES),
    "SGD, too large from the start": Kind(sgd(4.0), 64),
    "momentum, too large from the start": Kind(sgd(1.0, 0.9), 32),
    "CNN with momentum, too large from the start": Kind(sgd(1.0, 0.9), 32, constant, cnn),
    "squared loss, too large from the start": Kind(sgd(10.0), 64, squared=True),
    "SGD, a ramp that goes too far": Kind(sgd(5.0), 64, ramp),
    "momentum, a ramp that goes too far": Kind(sgd(2.0, 0.9), 32, ramp),
    "Adam, a ramp that goes too far": Kind(adam(1.0), 32, ramp),
    "squared loss, a ramp that goes too far": Kind(sgd(20.0), 64, ramp, squared=True),
    # all examples descend with every step of these two ramps
    "batches of 4, a ramp that goes too far": Kind(sgd(1.0), 4, ramp),
    "squared loss, batches of 4, a ramp that goes too far": Kind(sgd(6.0), 4, ramp, squared=True),
    "batches of 1, after a training with all examples": Kind(sgd(0.5), 1, before=150),
    # meant to be stable
    "SGD of all examples at the edge": Kind(sgd(0.5), EXAMPLES),
    "squared loss, all examples at the edge": Kind(sgd(4.0), EXAMPLES, squared=True),
    "SGD far below the edge": Kind(sgd(0.05), 32),
    "batches of 8 at their edge": Kind(sgd(0.2), 8),
    "momentum": Kind(sgd(0.05, 0.9), 32),
    "momentum with a warm-up": Kind(sgd(0.1, 0.9), 64, warm_up),
    "momentum with batches of 128": Kind(sgd(0.2, 0.9), 128),
    "momentum of all examples": Kind(sgd(0.2, 0.9), EXAMPLES),
    "momentum with squared loss": Kind(sgd(1.0, 0.9), 32, squared=True),
    "SGD that decays": Kind(sgd(0.3), 64, cosine),
    "Adam": Kind(adam(3e-3), 32),
    "Adam with a warm-up": Kind(adam(1e-2), 32, warm_up),
    "CNN with momentum": Kind(sgd(0.05, 0.9), 32, constant, cnn),
    # about the largest steps that train: some are lost, the others go through catapults
    "on the brink: SGD that decays": Kind(sgd(0.7), 64, cosine),
    "on the brink: momentum of all examples": Kind(sgd(0.3, 0.9), EXAMPLES),
}


def train(kind: Kind, seed: int, file: Path) -> dict:
    """Train once; return the risk at every step and that of a constant guess, with the records of the monitor."""
    torch.manual_seed(seed)
    x, labels = data()
    rows = torch.randperm(len(x))[:EXAMPLES]
    x, y = x[rows], labels[rows]
    shares = torch.bincount(y, minlength=10) / len(y)
    guess = -float((shares * shares.log()).sum())
    loss = cross_entropy
    if kind.squared:
        y = torch.eye(10)[y]
        guess = float((y - y.mean(0)).square().mean())
        loss = mse_loss
    model = kind.network()
    optimizer = kind.optimizer(model.parameters())
    largest = optimizer.param_groups[0]["lr"]
    what = ["risk", "sharpness", "batch-noise"]
    options = {"optimizer": optimizer, "batch": kind.batch, "seed": seed}
    monitor = Monitor(file, loss, (x, y), what, budget=None, **options)
    for _ in range(kind.before):
        descend(optimizer, loss(model(x), y))
    order = iter(())
    risks = []
    for step in range(STEPS + 1):
        optimizer.param_groups[0]["lr"] = largest * kind.schedule(step)
        with torch.no_grad():
            risks.append(float(loss(model(x), y)))
        if not risks[-1] < DIVERGED * guess:
            break
        monitor(step, model)
        batch = next(order, None)
        if batch is None:
            order = iter(torch.randperm(EXAMPLES).split(kind.batch))
            batch = next(order)
        descend(optimizer, loss(model(x[batch]), y[batch]))
    return {"risks": risks, "guess": guess, "lost": lost(risks, guess), "records": read_log(file)}


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Take one step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1000, help="seed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--kinds", default="", help="those whose name contains this")
    parser.add_argument(
        "--logs", type=Path, help="keep all records here, and use those that are here"
    )
    known = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {name: kind for name, kind in KINDS.items() if known.kinds in name}
    print(
        f"| {'kind':58} | lost | of these announced | steps before | never learned | silent | false |"
    )
    for name, kind in chosen.items():
        runs = [
            kept(name, kind, seed, known.logs)
            for seed in range(known.first, known.first + known.seeds)
        ]
        ends = [outcome(run) for run in runs]
        count = lambda what, ends=ends: sum(each[0] == what for each in ends)
        leads = sorted(lead for what, lead in ends if what == "announced")
        before = f"{leads[0]} to {leads[-1]}" if leads else ""
        cells = (
            count("announced") + count("missed"),
            count("announced"),
            before,
            count("never learned"),
            count("silent"),
            count("false alarm"),
        )
        print(f"| {name:58} | " + " | ".join(map(str, cells)) + " |", flush=True)


def kept(name: str, kind: Kind, seed: int, logs: Path | None) -> dict:
    """Train, or read what an earlier call has kept."""
    if logs is None:
        with tempfile.TemporaryDirectory() as folder:
            return train(kind, seed, Path(folder) / "run.jsonl")
    logs.mkdir(parents=True, exist_ok=True)
    file = logs / f"{name.replace(' ', '-')}-{seed}.json"
    if not file.exists():
        run = train(kind, seed, logs / f"{file.stem}.jsonl")
        file.write_text(json.dumps({"kind": name, "seed": seed, **run}))
    return json.loads(file.read_text())


def outcome(run: dict) -> tuple[str, int]:
    """Return what became of a training and its warnings, and how many steps before the loss the first one came."""
    warned = [record["step"] for record in run["records"] if "warnings" in record]
    if run["lost"] is None:
        return ("false alarm", 0) if warned else ("silent", 0)
    if run["lost"] == 0:
        return "never learned", 0
    if warned and warned[0] < run["lost"]:
        return "announced", run["lost"] - warned[0]
    return "missed", 0


if __name__ == "__main__":
    main()
