"""Whether what `steepest watch` says of a training is so: twenty trainings that learn, ten that do not, torch and JAX.

Each trains with a monitor at its defaults and evaluates its own loss on all of its examples before and after, by code
that shares nothing with the monitor. A training has *learned* if the loss at the end is below 0.9 of the loss of the
best constant outputs (where there are none: of the loss at the start). What `watch` says is read by the ids of its
findings: learned, not learned, or silent.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from torch import nn

from steepest import Monitor, watch

torch.set_num_threads(1)  # threads that share cores with other programs wait for each other
SAYS_LEARNED = {"learned", "risk-above-its-lowest"}
SAYS_NOT = {"nothing-learned", "loss-stands", "risk-risen", "leapt", "forgotten", "diverged"}
LEARNED = 0.9


@dataclass(frozen=True)
class Outcome:
    """What became of a training: the loss on all examples before and after, and that of constant outputs."""

    before: float
    after: float
    guess: float

    @property
    def has_learned(self) -> bool:
        return np.isfinite(self.after) and self.after < LEARNED * self.guess


@dataclass(frozen=True)
class Setup:
    """A training with torch: batches are drawn from examples, and the loss may be handed to the monitor."""

    network: Callable[[], nn.Module]
    data: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    loss: Callable
    optimizer: Callable
    steps: int
    batch: int = 32
    hand_over: bool = True
    monitored: int = 200
    budget: float | None = 0.05
    relabel: bool = False
    schedule: Callable[[int], float] = lambda step: 1.0

    def train(self, log: Path, seed: int) -> Outcome:
        torch.manual_seed(seed)
        model = self.network()
        x, y = self.data()
        optimizer = self.optimizer([w for w in model.parameters() if w.requires_grad])
        lrs = [group["lr"] for group in optimizer.param_groups]
        few = (x[: self.monitored], y[: self.monitored])
        monitor = Monitor(log, self.loss, few, optimizer=optimizer, budget=self.budget, warn=False)
        before = self.evaluated(model, x, y)
        monitor(0, model)
        for step in range(1, self.steps + 1):
            for group, lr in zip(optimizer.param_groups, lrs, strict=True):
                group["lr"] = lr * self.schedule(step)
            rows = torch.randint(len(x), (self.batch,))
            labels = y[rows][torch.randperm(self.batch)] if self.relabel else y[rows]
            loss = self.loss(model(x[rows]), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            monitor(step, model, loss=loss if self.hand_over else None)
        return Outcome(before, self.evaluated(model, x, y), self.constant(model, x, y))

    def evaluated(self, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
        mode = model.training
        with torch.no_grad(), torch.random.fork_rng():
            value = float(self.loss(model.eval()(x), y))
        model.train(mode)
        return value

    def constant(self, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
        """Minimize over outputs that are the same for all examples."""
        with torch.random.fork_rng(), torch.no_grad():
            shape = model(x[:2]).shape[1:]
        outputs = torch.zeros(shape, requires_grad=True)
        optimizer = torch.optim.LBFGS([outputs], max_iter=200)

        def closure():
            optimizer.zero_grad()
            loss = self.loss(outputs.expand(len(x), *shape), y)
            loss.backward()
            return loss

        optimizer.step(closure)
        return float(closure())


def digits():
    x, y = load_digits(return_X_y=True)
    return torch.tensor(x / 16).float(), torch.tensor(y)


def diabetes():
    x, y = load_diabetes(return_X_y=True)
    return torch.tensor(20 * x).float(), torch.tensor((y - y.mean()) / y.std()).float()[:, None]


def cancer():
    x, y = load_breast_cancer(return_X_y=True)
    return torch.tensor((x - x.mean(0)) / x.std(0)).float(), torch.tensor(y).float()[:, None]


def noise():
    drawn = torch.Generator().manual_seed(1)
    return torch.randn(4000, 20, generator=drawn), torch.randn(4000, 1, generator=drawn)


def sentences():
    """Draw walks on 12 letters, each followed by one of three."""
    drawn = np.random.default_rng(0)
    following = drawn.integers(12, size=(12, 3))
    text = [0]
    for _ in range(6000):
        text.append(int(following[text[-1], drawn.integers(3)]))
    windows = torch.tensor([text[i : i + 17] for i in range(0, 5900, 8)])
    return windows[:, :-1], windows[:, 1:]


def images():
    x, _ = digits()
    return x, x


def waves():
    drawn = np.random.default_rng(0)
    phase = drawn.uniform(0, 6.28, size=(600, 1))
    t = np.arange(21) * 0.4
    x = torch.tensor(np.sin(phase + t)).float()
    return x[:, :20, None], x[:, 20:]


class Letters(nn.Module):
    """A small language model: attention over earlier letters."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 24)
        layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(24, 12)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.body(self.embed(x), mask=mask, is_causal=True)).transpose(1, 2)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


def mlp(inputs=64, outputs=10, width=48):
    return lambda: nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, outputs),
    )


def dropping():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10))


def conv():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(288, 10),
    )


def dead():
    model = mlp()()
    nn.init.constant_(model[2].bias, -100.0)
    return model


def frozen():
    model = mlp()()
    for weight in model.parameters():
        weight.requires_grad_(False)
    model[0].bias.requires_grad_(True)
    nn.init.zeros_(model[4].weight)
    return model


def sgd(lr, momentum=0.0):
    return lambda weights: torch.optim.SGD(weights, lr, momentum=momentum)


def adam(lr):
    return lambda weights: torch.optim.AdamW(weights, lr)


def summed(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="sum")


def doubled(outputs, targets):
    return 2.0 * nn.functional.huber_loss(outputs, targets)


def smooth(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, label_smoothing=0.1)


CE, MSE, BCE = (
    nn.functional.cross_entropy,
    nn.functional.mse_loss,
    nn.functional.binary_cross_entropy_with_logits,
)
TORCH: dict[str, Setup] = {
    # learn
    "mlp, 60 steps": Setup(mlp(), digits, CE, sgd(0.5), 60),
    "mlp, 15 steps": Setup(mlp(), digits, CE, adam(1e-2), 15, batch=256),
    "mlp, 3000 steps": Setup(mlp(), digits, CE, adam(1e-3), 3000),
    "convolution and batch norm": Setup(conv, digits, CE, sgd(0.1, 0.9), 200),
    "diabetes": Setup(mlp(10, 1), diabetes, MSE, adam(3e-3), 300),
    "language model": Setup(Letters, sentences, CE, adam(3e-3), 300),
    "LSTM": Setup(Recurrent, waves, MSE, adam(1e-2), 200),
    "logistic regression": Setup(lambda: nn.Linear(30, 1), cancer, BCE, sgd(0.3), 400),
    "autoencoder": Setup(mlp(64, 64), images, MSE, adam(3e-3), 500),
    "single examples": Setup(mlp(), digits, CE, sgd(0.02), 2000, batch=1),
    "dropout": Setup(dropping, digits, CE, adam(3e-3), 400),
    "loss not handed over": Setup(mlp(), digits, CE, sgd(0.5), 300, hand_over=False),
    "loss not handed over, no limit": Setup(mlp(), digits, CE, sgd(0.5), 100, hand_over=False, budget=None),
    "label smoothing": Setup(mlp(), digits, smooth, sgd(0.5), 300),
    "Huber": Setup(mlp(10, 1), diabetes, doubled, adam(3e-3), 300),
    "sum loss": Setup(mlp(), digits, summed, sgd(0.01), 300),
    # do not
    "step 0": Setup(mlp(), digits, CE, sgd(0.0), 300),
    "step far too small": Setup(mlp(), digits, CE, sgd(1e-6), 300),
    "labels exchanged": Setup(mlp(), digits, CE, sgd(0.1), 400, relabel=True),
    "dead": Setup(dead, digits, CE, sgd(0.1), 300),
    "diverges": Setup(mlp(10, 1), diabetes, MSE, sgd(100.0), 100),
    "frozen": Setup(frozen, digits, CE, sgd(0.1), 200),
    "noise for targets": Setup(mlp(20, 1, 8), noise, MSE, sgd(0.01), 300),
    "lost at the end": Setup(
        mlp(), digits, CE, sgd(0.3), 300, schedule=lambda step: 1e4 if 200 < step < 204 else 1.0
    ),
}  # fmt: skip


def with_jax(
    log: Path, seed: int, lr: float, steps: int, hand_over: bool, relabel: bool = False
) -> Outcome:
    """Train a network of two layers on digits by optax."""
    x, y = (jnp.asarray(part.numpy()) for part in digits())
    keys = jax.random.split(jax.random.key(seed), 3)
    params = {
        "in": jax.random.normal(keys[0], (64, 32)) / 8,
        "out": jax.random.normal(keys[1], (32, 10)) / 6,
    }
    apply = lambda params, x: jnp.tanh(x @ params["in"]) @ params["out"]
    loss = lambda outputs, y: optax.softmax_cross_entropy_with_integer_labels(outputs, y).mean()
    optimizer = optax.sgd(lr)
    state = optimizer.init(params)

    @jax.jit
    def step_of(params, state, rows, labels):
        value, slope = jax.value_and_grad(lambda p: loss(apply(p, x[rows]), labels))(params)
        change, state = optimizer.update(slope, state)
        return optax.apply_updates(params, change), state, value

    monitor = Monitor(log, loss, (x[:200], y[:200]), lr=lr, warn=False)
    monitor(0, (apply, params))
    before = float(loss(apply(params, x), y))
    drawn = np.random.default_rng(seed)
    for step in range(1, steps + 1):
        rows = drawn.integers(len(x), size=64)
        labels = y[drawn.permutation(rows)] if relabel else y[rows]
        params, state, value = step_of(params, state, rows, labels)
        monitor(step, (apply, params), loss=value if hand_over else None)
    shares = np.bincount(y) / len(y)
    return Outcome(
        before, float(loss(apply(params, x), y)), -float((shares * np.log(shares)).sum())
    )


JAX: dict[str, tuple] = {
    "JAX, 100 steps": (0.5, 100, True),
    "JAX, 2000 steps": (0.5, 2000, True),
    "JAX, 20 steps": (1.0, 20, True),
    "JAX, loss not handed over": (0.5, 300, False),
    "JAX, step 0": (0.0, 200, True),
    "JAX, labels exchanged": (0.1, 300, True, True),
}


def said(log: Path) -> tuple[str, str]:
    """Return what `watch` says of learning, and the sentence."""
    for finding in watch(log).findings:
        if finding.id in SAYS_LEARNED:
            return "learned", finding.text
        if finding.id in SAYS_NOT:
            return "not learned", finding.text
    return "silent", "; ".join(finding.text for finding in watch(log).findings)


def rows(seed: int, only: str) -> Iterator[dict]:
    """Train each, and yield a row."""
    runs = {name: setup.train for name, setup in TORCH.items()}
    runs |= {
        name: (lambda log, seed, given=given: with_jax(log, seed, *given))
        for name, given in JAX.items()
    }
    for name, run in runs.items():
        if only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "run.jsonl"
            outcome = run(log, seed)
            says, sentence = said(log)
        truth = "learned" if outcome.has_learned else "not learned"
        yield {
            "training": name,
            "before": outcome.before,
            "after": outcome.after,
            "constant": outcome.guess,
            "truth": truth,
            "says": says,
            "false": says not in ("silent", truth),
            "sentence": sentence,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="trainings whose name contains this")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for seed in range(options.first, options.first + options.seeds):
        for row in rows(seed, options.only):
            results.append({"seed": seed, **row})
            mark = "FALSE" if row["false"] else row["says"]
            print(
                f"{seed} {row['training']:32} {row['before']:8.3g} → {row['after']:8.3g} "
                f"({row['constant']:.3g})  {row['truth']:12} {mark:12} {row['sentence'][:110]}",
                file=sys.stderr,
            )
    false = sum(row["false"] for row in results)
    silent = sum(row["says"] == "silent" for row in results)
    print(f"{len(results)} trainings, {false} false sentences, {silent} silent")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
