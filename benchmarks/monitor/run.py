"""What a monitor costs a training, everything on by default, its first measurement included.

Each network is trained twice in one process from the same start on the same batches, once alone and once with a
monitor that is given loss, data, optimizer, and in each call the loss of the batch and the norm of its gradient. The
trainings take turns of some steps, each as often before the other as after it, so that what drifts on the machine falls
on both. The cost is the processor time of all watched turns over the other ones, less one; its interval comes from the
turns' differences. Weights at the end must be the same, bit by bit.

    python benchmarks/monitor/run.py [--seconds 20] [--networks WORD] [--record]
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from steepest import Monitor
from steepest.measurement import read_log

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
from resnet_torch import data, resnet

RECORD = Path(__file__).with_name("record.json")
TURN = 20  # steps
PROBE = 64  # examples on which risk and sharpness are measured


class Training(NamedTuple):
    """A step that trains and returns model and loss, and what a monitor is given."""

    step: Callable[[int], tuple[Any, Any, Any]]  # to model, loss, gradient norm
    given: dict[str, Any]
    weights: Callable[[], list[Any]]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recur = nn.GRU(8, 64, batch_first=True)
        self.read = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.read(self.recur(x)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, dropout=0)
        self.blocks = nn.TransformerEncoder(layer, 4)
        self.read = nn.Linear(128, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.read(self.blocks(self.embed(tokens), mask=mask))


def of_torch(
    build: Callable[[], nn.Module], loss: Callable, x: Any, y: Any, batch: int
) -> Training:
    """Train with AdamW on batches drawn at random, with the gradient clipped at one."""
    torch.manual_seed(0)
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(number: int) -> tuple[Any, Any, Any]:
        rows = torch.randint(0, len(x), (batch,), generator=torch.Generator().manual_seed(number))
        optimizer.zero_grad()
        value = loss(model(x[rows]), y[rows])
        value.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return model, value, norm

    given = {"loss": loss, "data": (x[:PROBE], y[:PROBE]), "optimizer": optimizer}
    return Training(step, given, lambda: [w.detach().numpy() for w in model.parameters()])


def of_flax() -> Training:
    """Train a network of flax on digits with a compiled step of optax, whose state is handed over."""
    import flax.linen as linen
    import jax
    import optax

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(3):
                x = linen.relu(linen.Dense(512)(x))
            return linen.Dense(10)(x)

    x, y = (np.asarray(part) for part in data(1500))
    x = x.reshape(len(x), -1)
    network = Network()
    loss = lambda f, y: optax.softmax_cross_entropy_with_integer_labels(f, y).mean()
    adam = optax.adam(1e-3)
    held = {"params": network.init(jax.random.key(0), x[:2])}
    held["state"] = adam.init(held["params"])

    @jax.jit
    def descend(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, slopes = jax.value_and_grad(lambda params: loss(network.apply(params, x), y))(params)
        updates, state = adam.update(slopes, state)
        return optax.apply_updates(params, updates), state, value

    def step(number: int) -> tuple[Any, Any, Any]:
        rows = np.random.default_rng(number).integers(0, len(x), 256)
        held["params"], held["state"], value = descend(*held.values(), x[rows], y[rows])
        jax.block_until_ready(held["params"])
        return (network.apply, held["params"]), value, None

    given = {"loss": loss, "data": (x[:PROBE], y[:PROBE]), "lr": 1e-3}
    return Training(step, given, lambda: jax.tree.leaves(held["params"]))


def networks() -> dict[str, Callable[[], Training]]:
    """Return how each training begins."""
    x, y = data(1500)
    tokens = torch.randint(0, 64, (512, 65), generator=torch.Generator().manual_seed(0))
    next_token = lambda f, y: cross_entropy(f.flatten(0, 1), y.flatten())
    table = torch.randn(4000, 30, generator=torch.Generator().manual_seed(1))
    target = (table[:, :5].sum(1, keepdim=True)).sin()
    mlp = lambda inputs, width, outputs: (
        lambda: nn.Sequential(
            nn.Linear(inputs, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, outputs),
        )
    )
    return {
        "ResNet, digits": lambda: of_torch(resnet, cross_entropy, x, y, 64),
        "GRU, digits": lambda: of_torch(Recurrent, cross_entropy, x[:, 0], y, 256),
        "GPT, tokens": lambda: of_torch(Transformer, next_token, tokens[:, :-1], tokens[:, 1:], 16),
        "policy, short steps": lambda: of_torch(mlp(30, 64, 1), mse_loss, table, target, 64),
        "table, long batches": lambda: of_torch(mlp(30, 512, 1), mse_loss, table, target, 2048),
        "flax, digits": of_flax,
    }


def turns(name: str, begin: Callable[[], Training], seconds: float) -> dict[str, Any]:
    """Train twice in turns, for so many seconds of training alone; return what the watched one took more."""
    alone, watched = begin(), begin()
    times = np.zeros((0, 2))
    with tempfile.TemporaryDirectory() as folder:
        monitor = Monitor(Path(folder) / "run.jsonl", **watched.given)
        for number in range(3):  # what both compile
            alone.step(number)
            watched.step(number)
        number = 3
        for _ in _until(seconds):
            row = [0.0, 0.0]
            # each is the first of a pair of turns as often as the other
            for place in (0, 1) if number // TURN % 2 else (1, 0):
                training, watch = ((alone, None), (watched, monitor))[place]
                begun = time.process_time()
                for step in range(number, number + TURN):
                    model, loss, norm = training.step(step)
                    if watch is not None:
                        watch(step, model, loss=loss, grad_norm=norm)
                row[place] = time.process_time() - begun
            times = np.vstack([times, row])
            number += TURN
        records = read_log(Path(folder) / "run.jsonl")
    same = all(
        np.array_equal(np.asarray(a), np.asarray(b))
        for a, b in zip(alone.weights(), watched.weights(), strict=True)
    )
    more = times[:, 1] - times[:, 0]
    total = times[:, 0].sum()
    error = 1.96 * more.std(ddof=1) * math.sqrt(len(more)) / total
    measured = sum("risk" in record["quantities"] for record in records)
    return {
        "network": name,
        "step, ms": round(1e3 * float(np.median(times[:, 0])) / TURN, 2),
        "steps": number,
        "cost, %": round(100 * float(more.sum() / total), 2),
        "95 %, ±": round(100 * error, 2),
        "of later turns, %": round(100 * float(np.median(more) / np.median(times[:, 0])), 2),
        "records": len(records),
        "with risk": measured,
        "same weights": same,
    }


def _until(seconds: float) -> Iterator[None]:
    """Yield until half of the processor time of two trainings is spent."""
    begun = time.process_time()
    while time.process_time() - begun < 2 * seconds:
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each training alone, about")
    parser.add_argument("--networks", default="", help="part of a name")
    parser.add_argument("--record", action="store_true", help="write record.json")
    known = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name, begin in networks().items():
        if known.networks in name:
            rows.append(turns(name, begin, known.seconds))
            print(rows[-1], flush=True)
    if known.record:
        table = {"columns": list(rows[0]), "rows": [list(row.values()) for row in rows]}
        record = json.loads(RECORD.read_text("utf-8")) | {"tables": [table]}
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
