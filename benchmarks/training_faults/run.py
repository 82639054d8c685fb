"""Whether ``steepest watch`` finds faults that were planted in trainings, from what a monitor has without data.

The five networks of ``benchmarks/faults`` are trained with AdamW at each seed, once in order and once with each fault.
The monitor is ``Monitor("run.jsonl")``; it is given the loss of each batch, the gradient's norm, and a held-out loss at
nine steps.

A fault is *named* by a finding whose id it should have, *hinted* at by another finding to act on or to know that the
same training in order does not have, and *silent* otherwise. It *does harm* where the loss on held-out examples, by
the network in order, ends a quarter above the one of the training in order (for a language model that learned to copy:
the loss of its right task). A *false alarm* is a finding ``!`` of a training in order.

Beside it stands what curves tell that people look at: *curves* says that something is wrong where the loss of the
batches has not fallen by a third, where the held-out loss ends a quarter above its lowest, or where either is not
finite.

The faults, what they should have, and the seeds were in the repository before any of this had run.

    python benchmarks/training_faults/run.py [--first 3000] [--seeds 3] [--faults WORD] [--networks WORD] [--record]
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steepest import Monitor, watch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.faults.run import NETWORKS, Case

RECORD = Path(__file__).with_name("record.json")
WORSE = 1.25
LR = 2e-3
STEPS = 240


@dataclass
class Training:
    """A training that a fault may change before it begins, or in each step."""

    case: Case
    model: nn.Module
    lr: float = LR
    decay: float = 0.01
    clip: float = 5.0
    zero: bool = True
    evaluation: bool = False
    relabel: Callable[[Tensor], Tensor] = lambda y: y
    target: Callable[[Tensor, Tensor], Tensor] = lambda x, y: y
    schedule: Callable[[int], float] = lambda step: 1 - step / STEPS
    slow: list[Any] = field(default_factory=list)  # arrays with a step a thousand times smaller
    frozen: list[Any] = field(default_factory=list)  # arrays that no optimizer holds


Plant = Callable[[Training], bool]


def labels(training: Training) -> bool:
    """Give each example the label of another one."""
    order = torch.randperm(len(training.case.given[1]), generator=torch.Generator().manual_seed(5))
    training.relabel = lambda y: y[order]
    return True


def probabilities(training: Training) -> bool:
    """Apply a softmax before the cross-entropy, inside of the module."""
    if training.case.loss.__name__ != "cross_entropy":
        return False
    training.model = nn.Sequential(training.model, nn.Softmax(1))
    return True


def evaluation_mode(training: Training) -> bool:
    training.evaluation = True
    kinds = (nn.modules.batchnorm._BatchNorm, nn.Dropout)
    return any(isinstance(part, kinds) for part in training.model.modules())


def gradients_add_up(training: Training) -> bool:
    training.zero = False
    return True


def decay(training: Training) -> bool:
    """A thousand times too large."""
    training.decay = 10.0
    return True


def restart(training: Training) -> bool:
    """Begin the schedule again, at thirty times the step, for the last fifth."""
    usual = training.schedule
    training.schedule = lambda step: 30.0 if step > 0.8 * STEPS else usual(step)
    return True


def copies(training: Training) -> bool:
    """Let a language model learn its own input."""
    training.target = lambda x, y: x
    return not training.case.given[0].dtype.is_floating_point and training.case.given[1].ndim > 1


def clipped_away(training: Training) -> bool:
    """Clip to a ten-thousandth, with steps of SGD, which Adam's would undo."""
    training.clip = 1e-4
    return True


def slow_layer(training: Training) -> bool:
    """Train the first matrix with a step a thousand times smaller."""
    training.slow = [next(w for w in training.model.parameters() if w.ndim > 1)]
    return True


def no_optimizer(training: Training) -> bool:
    """Leave the last matrix out of the optimizer."""
    training.frozen = [[w for w in training.model.parameters() if w.ndim > 1][-1]]
    return True


def dead(training: Training) -> bool:
    """Shut most units before a ReLU."""
    layers = list(training.model.modules())
    pairs = [
        (a, b)
        for a, b in pairwise(layers)
        if isinstance(b, nn.ReLU) and getattr(a, "bias", None) is not None
    ]
    with torch.no_grad():
        for a, _ in pairs:
            a.bias[: int(0.7 * len(a.bias))] = -100.0
    return bool(pairs)


def small_step(training: Training) -> bool:
    training.lr = 1e-8
    return True


FAULTS: dict[str, tuple[set[str], Plant]] = {
    "labels of other examples": ({"does-not-carry-over", "memorizes"}, labels),
    "probabilities into cross-entropy": ({"probabilities"}, probabilities),
    "trained in evaluation mode": ({"evaluation-mode"}, evaluation_mode),
    "gradients never set to zero": ({"gradients-add-up"}, gradients_add_up),
    "decay a thousand times too large": ({"decay-dominates"}, decay),
    "schedule begins again": ({"step-raised"}, restart),
    "targets are the inputs": ({"repeats-inputs"}, copies),
    "clipped to nothing": ({"clipped-away", "hardly-moves"}, clipped_away),
    "a layer a thousand times too slow": ({"layer-apart"}, slow_layer),
    "a layer in no optimizer": ({"does-not-move"}, no_optimizer),
    "most units dead": ({"dead-units"}, dead),
    "step far too small": ({"hardly-moves"}, small_step),
}


def trained(network: str, plant: Plant | None, seed: int) -> tuple[Any, float, list] | None:
    """Return the run that watch reads, the held-out loss at the end and the curves; None without such a fault."""
    torch.manual_seed(seed)
    case = NETWORKS[network]()
    training = Training(case, case.build())
    if plant is not None and not plant(training):
        return None
    model, loss = training.model, case.loss
    held = [w for w in model.parameters() if not any(w is f for f in training.frozen)]
    slow = [w for w in held if any(w is s for s in training.slow)]
    fast = [w for w in held if not any(w is s for s in training.slow)]
    groups = [{"params": fast, "factor": 1.0}] + [{"params": slow, "factor": 1e-3}] * bool(slow)
    if plant is clipped_away:
        optimizer: torch.optim.Optimizer = torch.optim.SGD(groups, 0.05)
    else:
        optimizer = torch.optim.AdamW(groups, training.lr, weight_decay=training.decay)
    first = optimizer.param_groups[0]["lr"]
    x, y = case.given
    y = training.relabel(y)
    hx, hy = case.held_out
    batches = torch.Generator().manual_seed(seed)
    curve, beside = [], []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        monitor = Monitor(log)
        for step in range(STEPS):
            for group in optimizer.param_groups:
                group["lr"] = first * group["factor"] * training.schedule(step)
            rows = torch.randint(0, len(x), (case.batch,), generator=batches)
            model.train(not training.evaluation)
            if training.zero:
                optimizer.zero_grad()
            value = loss(model(x[rows]), training.target(x[rows], y[rows]))
            value.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), training.clip)
            optimizer.step()
            monitor(step, model, loss=value, grad_norm=norm)
            curve.append(float(value.detach()))
            if step % (STEPS // 8) == 0 or step == STEPS - 1:
                model.eval()
                with torch.no_grad():
                    beside.append(float(loss(model(hx), training.target(hx, hy))))
                    right = float(case.loss(model(hx), hy))
                monitor.held_out(step, beside[-1])
        run = watch(log)
        run.findings  # noqa: B018  # read before the log is gone
    return run, right, [curve, beside]


def curves_alarm(curves: list) -> bool:
    """Tell whether somebody who looks at the two curves sees that something is wrong."""
    losses, beside = (torch.tensor(part) for part in curves)
    if not (losses.isfinite().all() and beside.isfinite().all()):
        return True
    start, end = losses[:10].median(), losses[-10:].median()
    return bool(end > 2 / 3 * start or beside[-1] > WORSE * beside.min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--faults", default="")
    parser.add_argument("--networks", default="")
    parser.add_argument("--record", action="store_true")
    known = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(known.first, known.first + known.seeds)
    networks = [name for name in NETWORKS if known.networks in name]
    whole, order = {}, []
    for name in networks:
        for seed in seeds:
            run, risk, curves = trained(name, None, seed)  # type: ignore[misc]
            ids = {str(one.id): one.sign for one in run.findings if one.sign != "✓"}
            whole[name, seed] = (risk, set(ids))
            order.append([name, seed, risk, ids, curves_alarm(curves)])
            print("in order", *order[-1], flush=True)
    rows, lines = [], []
    for what, (should, plant) in FAULTS.items():
        if known.faults not in what:
            continue
        counts = dict.fromkeys(("runs", "named", "hinted", "silent", "harm", "harm named"), 0)
        counts |= {"harm hinted": 0, "curves": 0}
        for name in networks:
            for seed in seeds:
                got = trained(name, plant, seed)
                if got is None:
                    continue
                run, risk, curves = got
                usual, known_ids = whole[name, seed]
                ids = {str(one.id): one.sign for one in run.findings if one.sign != "✓"}
                named = bool(should & set(ids))
                hinted = not named and bool(set(ids) - known_ids)
                harm = not risk <= WORSE * usual
                counts["runs"] += 1
                counts["named"] += named
                counts["hinted"] += hinted
                counts["silent"] += not (named or hinted)
                counts["harm"] += harm
                counts["harm named"] += harm and named
                counts["harm hinted"] += harm and hinted
                counts["curves"] += curves_alarm(curves)
                lines.append([what, name, seed, round(risk / usual, 2), ids])
                print(*lines[-1], flush=True)
        rows.append([what, *counts.values()])
        print(what, counts, flush=True)
    if known.record:
        false = sum(sign == "!" for one in order for sign in one[3].values())
        total = ["all", *(sum(row[place] for row in rows) for place in range(1, len(rows[0])))]
        table = {"columns": ["fault", *counts], "rows": [*rows, total]}
        alarms = f"{false} alarms `!` in {len(order)} trainings in order."
        record = json.loads(RECORD.read_text("utf-8")) | {"tables": [table], "says": [alarms]}
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
