"""Whether ``measure`` finds faults that were planted, and is silent beside networks that are in order.

Five networks of torch learn small data, at each seed once in order and once with each fault. A *hit* is a finding whose
id is one that the fault should have, with another sign than ✓. A *false alarm* is a finding with the sign ``!`` of a
network that is in order, as it starts or after its training. The faults, and what they should have, were written down
before anything ran; rules were made on seeds 0 and 1. The figures of ``docs/benchmarks.md`` are of seeds 1010 and 1011.

A fault of the start may do no harm. So the network is trained with it and in order, from the same seed on the same
batches; it *trains worse* where the risk on held-out examples ends more than a quarter above that of the one in order.
The same is asked of the classifier with other activations and first weights, as people take them (``STARTS``).

Beside it stand two tests that people make by hand: a *learning-rate range test*, which says that a step is too large
where the loss of a few steps ends above its start, and *gradient histograms*, which say that something is wrong where
the root mean squares of two layers' gradients differ by a factor of a thousand, or one of them is zero.

    python benchmarks/faults/run.py [--first 1010] [--seeds 2] [--faults WORD] [--json FILE] [--record]

With ``--record`` the counts go into ``record.json`` beside this file; all faults and networks must have run for that.
"""

import argparse
import copy
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import DataLoader, TensorDataset

from steepest import measure
from steepest.measurement import FindingId

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
import gpt_torch
import lstm_torch
import mlp_torch
import resnet_torch

RECORD = Path(__file__).with_name("record.json")
WAYS = ("measure", "range test", "histograms")
HELD_OUT = 300
WORSE = 1.25  # held-out risk over that of the network in order, from which it trains worse
RANGE = 5  # steps of the range test
APART = 1e3  # factor between the gradients of two layers
Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Case:
    """A network and how it is trained.

    Attributes:
        build: the untrained network.
        loss: of outputs and targets.
        given: examples to train on.
        held_out: others.
        lr: a step that trains well.
        momentum: of descent.
        batch: examples of a batch.
        epochs: passes over the examples.
    """

    build: Callable[[], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    given: Pair
    held_out: Pair
    lr: float
    momentum: float
    batch: int
    epochs: int


def split(pair: Pair, n: int) -> tuple[Pair, Pair]:
    """Draw n examples to train on, and others that are held out."""
    x, y = pair
    order = torch.randperm(len(x))
    first, second = order[:n], order[n : n + HELD_OUT]
    return (x[first], y[first]), (x[second], y[second])


def classifier() -> Case:
    given, held_out = split(mlp_torch.data(), 600)
    return Case(mlp_torch.mlp, cross_entropy, given, held_out, 0.1, 0.9, 64, 15)


def residual() -> Case:
    given, held_out = split(resnet_torch.data(), 600)
    build = lambda: resnet_torch.resnet(8)
    return Case(build, cross_entropy, given, held_out, 0.05, 0.9, 64, 5)


def recurrent() -> Case:
    given, held_out = split(lstm_torch.data(), 600)
    return Case(lstm_torch.Reader, cross_entropy, given, held_out, 0.2, 0.9, 64, 20)


def language() -> Case:
    given, held_out = split(gpt_torch.data(), 70)
    return Case(gpt_torch.Gpt, gpt_torch.next_character, given, held_out, 0.1, 0.9, 16, 20)


def regression() -> Case:
    """A deep network of tanh that learns a smooth function of eight numbers."""
    x = torch.randn(1000, 8)
    y = torch.sin(x[:, :1] + x[:, 1:2] * x[:, 2:3])
    given, held_out = split((x, y), 600)
    return Case(deep, mse_loss, given, held_out, 0.02, 0.9, 64, 20)


def deep() -> nn.Module:
    sizes = [8, 32, 32, 32, 32]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(32, 1))


NETWORKS = {
    "classifier": classifier,
    "residual network": residual,
    "LSTM": recurrent,
    "GPT": language,
    "tanh regression": regression,
}


def train(case: Case, model: nn.Module) -> torch.optim.Optimizer:
    """Descend with momentum on shuffled batches."""
    optimizer = torch.optim.SGD(
        [p for p in model.parameters() if p.requires_grad], case.lr, momentum=case.momentum
    )
    x, y = case.given
    for _ in range(case.epochs):
        for rows in torch.randperm(len(x)).split(case.batch):
            if len(rows) < case.batch:
                continue
            optimizer.zero_grad()
            case.loss(model(x[rows]), y[rows]).backward()
            optimizer.step()
    return optimizer


@dataclass(frozen=True)
class Fault:
    """A fault, and what should be found.

    Attributes:
        should: ids of which one must be found.
        plant: makes a case, its network and whether it is to be trained; returns None where there is no such fault.
        of_the_start: whether it is there before the training, so that trainings with and without it are compared.
    """

    should: tuple[FindingId, ...]
    plant: Callable[[Case, nn.Module], tuple[Case, nn.Module, bool] | None]
    of_the_start: bool = False


def too_large(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool]:
    """Take thirty times the step that trains well, at a network that has been trained with it."""
    train(case, model)
    return replace(case, lr=30 * case.lr), model, False


def shuffled(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool]:
    """Learn labels of other examples by heart."""
    x, y = case.given
    return replace(case, given=(x, y[torch.randperm(len(y))]), epochs=4 * case.epochs), model, True


def leaking(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool]:
    """Hold out a tenth of the examples that are given, among others."""
    n = len(case.given[0]) // 10
    both = zip(case.held_out, case.given, strict=True)
    x, y = (torch.cat([held[n:], given[:n]]) for held, given in both)
    return replace(case, held_out=(x, y)), model, True


def dead(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool] | None:
    """Shut half of the units of a hidden layer before a ReLU."""
    if case.build is not mlp_torch.mlp:
        return None
    with torch.no_grad():
        model[2].bias[::2] = -100.0
    return case, model, True


def initialized(factor: float) -> Callable[[Case, nn.Module], tuple[Case, nn.Module, bool]]:
    """Multiply the first weights of all matrices and filters."""

    def plant(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool]:
        with torch.no_grad():
            for weights in model.parameters():
                if weights.ndim > 1:
                    weights *= factor
        return case, model, False

    return plant


def unscaled(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool] | None:
    """Give inputs a hundred times too large."""
    if not case.given[0].is_floating_point():
        return None
    larger = [(100 * x, y) for x, y in (case.given, case.held_out)]
    return replace(case, given=larger[0], held_out=larger[1]), model, False


def lagging(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool] | None:
    """Let running statistics follow a hundred times too slowly."""
    norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    if not norms:
        return None
    for norm in norms:
        norm.momentum = 0.001
    return case, model, True


def frozen(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool]:
    """Leave the first matrix where it is."""
    next(weights for weights in model.parameters() if weights.ndim > 1).requires_grad_(False)
    return case, model, True


def halved(case: Case, model: nn.Module) -> tuple[Case, nn.Module, bool]:
    """Train weights in bfloat16 with a step a hundred times too small, most of which rounding swallows."""
    slow = replace(case, lr=0.01 * case.lr)
    low = model.to(torch.bfloat16)
    as_low = lambda pair: tuple(
        part.bfloat16() if part.is_floating_point() else part for part in pair
    )
    train(replace(slow, given=as_low(case.given)), low)
    return slow, low.float(), False


STEP = (FindingId.STEP_TOO_LARGE,)
START = (FindingId.SIGNALS, FindingId.SATURATED, FindingId.DEAD)
LARGE = (*START, FindingId.START_TOO_LARGE, *STEP)
FAULTS = {
    "step thirty times too large": Fault(STEP, too_large),
    "labels of other examples": Fault((FindingId.MEMORIZED, FindingId.OVERFITS), shuffled),
    "held-out examples among those given": Fault((FindingId.LEAKING,), leaking),
    "half of a layer dead": Fault((FindingId.DEAD_UNITS,), dead),
    "first weights four times too large": Fault(LARGE, initialized(4.0), True),
    "first weights four times too small": Fault(START, initialized(0.25), True),
    "inputs not scaled": Fault(LARGE, unscaled, True),
    "running statistics that lag": Fault((FindingId.RUNNING_STATISTICS,), lagging),
    "first layer frozen": Fault((FindingId.FROZEN,), frozen, True),
    "weights in bfloat16, small steps": Fault((FindingId.NOTHING_LEARNED,), halved),
}
STARTED = (FindingId.SIGNALS, FindingId.SATURATED, FindingId.START_TOO_LARGE)
ACTIVATIONS = {"ReLU": nn.ReLU, "tanh": nn.Tanh, "GELU": nn.GELU, "sigmoid": nn.Sigmoid}
DEPTHS = (2, 3)  # hidden layers


def as_torch_does(weights: Tensor) -> None:
    """Leave them."""


STARTS: dict[str, Callable[[Tensor], object]] = {
    "He": nn.init.kaiming_normal_,
    "torch's default": as_torch_does,
    "Glorot": nn.init.xavier_normal_,
    "orthogonal": nn.init.orthogonal_,
    "N(0, 0.02²)": lambda weights: nn.init.normal_(weights, std=0.02),
}


def found(case: Case, model: nn.Module, optimizer: torch.optim.Optimizer) -> list:
    """Return what ``measure`` finds with its defaults."""
    loader = DataLoader(TensorDataset(*case.given), batch_size=case.batch)
    report = measure(model, case.loss, loader, held_out=case.held_out, optimizer=optimizer)
    return list(report.findings)


def range_test(case: Case, model: nn.Module) -> bool:
    """Tell whether a few steps of the case's size end above the loss that they start from."""
    model = copy.deepcopy(model).train()
    optimizer = torch.optim.SGD(model.parameters(), case.lr)
    x, y = (part[: case.batch] for part in case.given)
    losses = []
    for _ in range(RANGE + 1):
        optimizer.zero_grad()
        loss = case.loss(model(x), y)
        losses.append(float(loss.detach()))
        loss.backward()
        optimizer.step()
    return not losses[-1] < losses[0]


def histograms(case: Case, model: nn.Module) -> bool:
    """Tell whether gradients of layers are of sizes far apart, or zero."""
    model = copy.deepcopy(model).train()
    x, y = (part[: case.batch] for part in case.given)
    case.loss(model(x), y).backward()
    matrices = [weights for weights in model.parameters() if weights.ndim > 1]
    sizes = [0.0 if w.grad is None else float(w.grad.square().mean()) ** 0.5 for w in matrices]
    return not min(sizes) > 0 or max(sizes) > APART * min(sizes)


def in_order(name: str, seed: int) -> dict[str, list[str]]:
    """Return the alarms of a network that is in order, at its start and after its training, by who gives them."""
    torch.manual_seed(seed)
    case = NETWORKS[name]()
    model = case.build()
    alarms: dict[str, list[str]] = {"measure": [], "range test": [], "histograms": []}
    for trained in (False, True):
        optimizer = train(case if trained else replace(case, epochs=0), model)
        alarms["measure"] += [f.id for f in found(case, model, optimizer) if f.sign == "!"]
        alarms["range test"] += ["step"] * range_test(case, model)
        alarms["histograms"] += ["layers"] * histograms(case, model)
    return alarms


def planted(name: str, fault: Fault, seed: int) -> dict[str, Any] | None:
    """Return who finds a fault, and all that ``measure`` finds; None where the network cannot have it."""
    torch.manual_seed(seed)
    case = NETWORKS[name]()
    worse = fault.plant(case, case.build())
    if worse is None:
        return None
    case, model, trains = worse
    optimizer = train(case if trains else replace(case, epochs=0), model)
    ids = [finding.id for finding in found(case, model, optimizer) if finding.sign != "✓"]
    risks = (
        [held_out_risk(name, plant, seed) for plant in (fault, None)]
        if fault.of_the_start
        else None
    )
    return {
        "measure": any(id in fault.should for id in ids),
        "range test": range_test(case, model),
        "histograms": histograms(case, model),
        "ids": ids,
        "risks": risks,
    }


def held_out_risk(name: str, fault: Fault | None, seed: int) -> float:
    """Return the risk on held-out examples after a training, with a fault of the start or in order."""
    torch.manual_seed(seed)
    case = NETWORKS[name]()
    model = case.build()
    if fault is not None:
        planted_ = fault.plant(case, model)
        assert planted_ is not None
        case, model, _ = planted_
    return after_training(case, model)


def after_training(case: Case, model: nn.Module) -> float:
    """Return the risk on held-out examples after a training, in evaluation mode."""
    train(case, model)
    model.eval()
    with torch.no_grad():
        return float(case.loss(model(case.held_out[0]), case.held_out[1]))


def started(activation: str, depth: int, start: str, seed: int) -> dict[str, bool | float]:
    """Return whether the start of a classifier is warned of, and the held-out risk after its training."""
    torch.manual_seed(seed)
    case = classifier()
    model = hidden_layers(activation, depth)
    for layer in model:
        if isinstance(layer, nn.Linear) and start != "torch's default":
            STARTS[start](layer.weight)
            nn.init.zeros_(layer.bias)
    optimizer = train(replace(case, epochs=0), model)
    what = ("risk", "signal-propagation")
    report = measure(model, case.loss, case.given, what=what, optimizer=optimizer)
    warned = any(finding.sign == "!" and finding.id in STARTED for finding in report.findings)
    return {"warned": warned, "risk": after_training(case, model)}


def hidden_layers(activation: str, depth: int) -> nn.Sequential:
    """Return a classifier of the digits with some hidden layers of 64 units."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(64, 64), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers, nn.Linear(64, 10))


def main() -> None:
    """Print a line for each fault, and one for networks in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1010, help="seed")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--faults", default="", help="those whose name contains this")
    parser.add_argument("--json", type=Path, help="also write all that was found here")
    parser.add_argument("--record", action="store_true", help="write the counts into the record")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(options.first, options.first + options.seeds)
    whole: dict[str, dict] = {}
    for what, fault in FAULTS.items():
        if options.faults not in what:
            continue
        whole[what] = {
            f"{name}, {seed}": run
            for name in options.networks
            for seed in seeds
            if (run := planted(name, fault, seed)) is not None
        }
        print(*row(what, whole[what]), *harm(whole[what]), flush=True)
    for name in options.networks:
        what = f"in order: {name}"
        whole[what] = {f"{name}, {seed}": in_order(name, seed) for seed in seeds}
        print(*row(what, whole[what]), flush=True)
    starts = [start_row(activation, depth, seeds) for activation in ACTIVATIONS for depth in DEPTHS]
    for line in starts:
        print(*line, flush=True)
    if options.json:
        options.json.write_text(json.dumps(whole, indent=1))
    if options.record:
        keep(whole, starts)


def row(what: str, runs: dict[str, dict]) -> list[str | int]:
    """Return a line of the table: what was planted, in how many networks, and in how many each way says so."""
    return [what, len(runs), *(sum(bool(run[who]) for run in runs.values()) for who in WAYS)]


def harm(runs: dict[str, dict]) -> list[str | int]:
    """Return in how many networks a fault of the start costs held-out risk, and in how many of these it is found."""
    if any(run["risks"] is None for run in runs.values()):
        return ["", ""]
    worse = [run for run in runs.values() if trains_worse(*run["risks"])]
    return [len(worse), sum(run["measure"] for run in worse)]


def trains_worse(with_fault: float, in_order_: float) -> bool:
    """Tell whether a held-out risk, which may be no number, is far above that of the network in order."""
    return not with_fault <= WORSE * in_order_


def start_row(activation: str, depth: int, seeds: range) -> list[str | int]:
    """Return a line of the table of starts: of each, how many are warned of and the held-out risks."""
    cells = []
    for start in STARTS:
        runs = [started(activation, depth, start, seed) for seed in seeds]
        risks = ", ".join(f"{run['risk']:.2f}" for run in runs)
        warned = sum(bool(run["warned"]) for run in runs)
        cells.append(f"{risks}{f' ({warned} warned)' if warned else ''}")
    return [activation, depth, *cells]


def keep(whole: dict[str, dict], starts: list[list[str | int]]) -> None:
    """Write the counts into the record, whose words stay."""
    if missing := [what for what in FAULTS if what not in whole]:
        raise SystemExit(f"--record wants all faults, and {', '.join(missing)} did not run")
    record = json.loads(RECORD.read_text("utf-8"))
    planted_, alarms, started_ = record["tables"]
    planted_["rows"] = [[*row(what, whole[what]), *harm(whole[what])] for what in FAULTS]
    started_["rows"] = starts
    alarms["rows"] = [
        [name, *row("", whole[f"in order: {name}"])[1:]]
        for name in NETWORKS
        if f"in order: {name}" in whole
    ]
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
