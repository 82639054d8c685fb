"""How many losses of trainings first-order numbers can announce at all, if each step is looked at.

Of trainings of a list, without a monitor, it takes the loss of the batch, the norm of its gradient, and the update over
the weights, both by their norms. The largest number of trainings that end well is a threshold: a rule with a lower one
warns of one of them. A lost training could have been announced if one of its numbers was above
this threshold three steps before the loss, or earlier.

    python benchmarks/warnings/limits.py [--list second] [--kinds WORD] [--first 6000] [--seeds 4] [--out FILE]
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from kinds import STEPS, Game, Kind, shuffled
from lost import DIVERGED, lost
from run import LEAD, LISTS, risk

FIRST = 5  # steps, in which small weights may move by much of their size
Row = dict[str, object]


def largest(
    losses: ArrayLike, gradients: ArrayLike, updates: ArrayLike, guess: float
) -> dict[str, float]:
    """Return the largest of each number over some steps, beside what it is compared with.

    Args:
        losses: of the batches.
        gradients: their norms.
        updates: norms of steps over the norms of the weights.
        guess: the risk of a constant guess.
    """
    losses, gradients, updates = (
        np.nan_to_num(np.asarray(numbers, float), nan=1e9, posinf=1e9)
        for numbers in (losses, gradients, updates)
    )
    return {
        "loss / constant guess, or first loss": losses.max() / max(losses[0], guess),
        "loss / largest before": _leap(losses),
        "gradient / first gradient": gradients.max() / gradients[0],
        "gradient / largest before": _leap(gradients),
        f"update / weights, first {FIRST} steps": updates[:FIRST].max(),
        "update / weights, later": updates[FIRST:].max(initial=0.0),
        "update / weights, over its least": float(
            (updates / np.minimum.accumulate(updates + 1e-12)).max()
        ),
    }


def _leap(numbers: np.ndarray) -> float:
    """Return the largest ratio of a number to the largest before, from the fourth on."""
    before = np.maximum.accumulate(numbers)[:-1]
    return float((numbers[1:] / before)[2:].max(initial=0.0))


def norm(arrays: Iterable[torch.Tensor]) -> float:
    """Return the norm of all arrays together."""
    return math.sqrt(sum(float(array.detach().square().sum()) for array in arrays))


def row(kind: Kind, name: str, seed: int) -> Row:
    """Train once, and return what became of it and the largest numbers, of a lost training until three steps before."""
    torch.manual_seed(seed)
    task = kind.task
    assert not isinstance(task, Game)
    inputs, targets = task.data()
    rows = torch.randperm(len(inputs))[: task.examples]
    pair = (inputs[rows], targets[rows])
    guess = task.guess(pair[1])
    model = task.network().train()
    weights = list(model.parameters())
    optimizer = kind.optimizer(weights)
    peak = optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] = peak * kind.schedule(0)
    risks = [risk(kind, model, pair)]
    numbers: list[tuple[float, float, float]] = []
    batches = shuffled(pair, kind.batch)
    for step in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        loss = task.loss(model(x), y) * kind.scale(step)
        loss.backward()
        before = [weight.detach().clone() for weight in weights]
        gradient = norm(weight.grad for weight in weights)
        optimizer.step()
        moved = norm(now - then for now, then in zip(weights, before, strict=True))
        numbers.append((float(loss.detach()), gradient, moved / norm(weights)))
        optimizer.param_groups[0]["lr"] = peak * kind.schedule(step + 1)
        risks.append(risk(kind, model, pair))
        if not risks[-1] < DIVERGED * guess:
            break
    end = lost(risks, guess)
    return {"kind": name, "meant": kind.meant, "seed": seed} | summed_up(end, numbers, guess)


def summed_up(end: int | None, numbers: Sequence[Sequence[float]], guess: float) -> Row:
    """Return what became of a training, and the largest of its numbers, until three steps before its loss."""
    until = len(numbers) if end is None else end - LEAD
    seen = numbers[: max(until, 0)]
    sizes = largest(*zip(*seen, strict=True), guess) if seen else {}
    return {"lost": end, "largest": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", choices=tuple(LISTS), default="second")
    parser.add_argument("--kinds", default="", help="those whose name contains this")
    parser.add_argument("--first", type=int, default=6000, help="seed")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, help="one line a training is appended here")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for name, kind in LISTS[chosen.list].items():
        is_game = isinstance(kind.task, Game)
        if chosen.kinds not in name or kind.meant == "unforeseeable" or is_game:
            continue
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            text = json.dumps(row(kind, name, seed), ensure_ascii=False)
            print(text, flush=True)
            if chosen.out:
                with chosen.out.open("a") as file:
                    file.write(text + "\n")


if __name__ == "__main__":
    main()
