"""How often `steepest measure --widths` says what theory says: networks on digits, wrong and right, at fresh seeds.

Every run is a check of its own: networks at the widths 0.5, 1, 2 and 4 of 128 hidden units, and five steps.
A wrong parameterization counts as named if all lines that theory asks for are there and no other learning rate is
blamed; µP counts as a false alarm with any line marked `!`. Needs torch.
"""

import argparse
import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax
import jax.numpy as jnp
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import steepest
from steepest.nn.networks import mlp

BASE = 128
X, Y = load_digits(return_X_y=True)
X = X / 16 - (X / 16).mean(0)
FACTORS = {  # of learning rates at width m, from first to last layer
    ("standard", "sgd"): lambda m: (1, 1, 1),
    ("standard", "adam"): lambda m: (1, 1, 1),
    ("mup", "sgd"): lambda m: (m, 1, 1 / m),
    ("mup", "adam"): lambda m: (1, 1 / m, 1 / m),
}


class Case(NamedTuple):
    """A way to build networks, and the lines that theory asks for; none of µP."""

    build: Callable
    lines: tuple[str, ...] = ()


def in_torch(kind: str, optimizer: str, lr: float, zero: bool = False) -> Callable:
    """Two hidden layers of ReLU, batches of 64 and cross-entropy."""

    def build(seed: int = 0, width: float = 1.0) -> dict:
        torch.manual_seed(seed)
        n = int(BASE * width)
        model = nn.Sequential(
            nn.Linear(64, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 10)
        )
        layers: list[Any] = list(model)[::2]
        for layer in layers:
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
            nn.init.zeros_(layer.bias)
        with torch.no_grad():
            layers[-1].weight *= 0 if zero else width**-0.5 if kind == "mup" else 1
        x = torch.as_tensor(X[:512], dtype=torch.float32)
        y = torch.as_tensor(Y[:512])
        factors = FACTORS[kind, optimizer](width)
        groups = [
            {"params": layer.parameters(), "lr": lr * factor}
            for layer, factor in zip(layers, factors, strict=True)
        ]
        descent = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer](groups, lr)

        def train():
            order = torch.Generator().manual_seed(seed)
            while True:
                rows = torch.randint(512, (64,), generator=order)
                descent.zero_grad()
                cross_entropy(model(x[rows]), y[rows]).backward()
                descent.step()
                yield

        return {"model": model, "loss": cross_entropy, "data": (x, y), "train": train}

    return build


def in_jax(parameterized: str, lr: float) -> Callable:
    """Two hidden layers of tanh, the full batch of 200 and squared loss."""

    def build(seed: int = 0, width: float = 1.0) -> dict:
        n = int(BASE * width)
        net = mlp((64, n, n, 10), "tanh", parameterized=parameterized, bias=False)
        start = net.init(jax.random.key(seed))
        x = jnp.asarray(X[:200], jnp.float32)
        y = jnp.asarray(np.eye(10)[Y[:200]], jnp.float32)
        loss = lambda f, t: ((f - t) ** 2).sum(-1).mean() / 2

        @jax.jit
        def step(params):
            slope = jax.grad(lambda params: loss(net.apply(params, x), y))(params)
            return jax.tree.map(lambda w, g: w - lr * g, params, slope)

        def train():
            params = start
            while True:
                params = step(params)
                yield net, params

        return {"model": (net, start), "loss": loss, "data": (x, y), "train": train}

    return build


UNSTABLE = "unstable in wide networks"
LAST = "the last layer's initial weights are too large by width^0.5"
CASES = {
    "standard, SGD": Case(
        in_torch("standard", "sgd", 0.05),
        (
            UNSTABLE,
            LAST,
            "input layer 0: multiply by width",
            "hidden layer 2: right",
            "output layer 4: divide by width",
        ),
    ),
    "standard, Adam": Case(
        in_torch("standard", "adam", 1e-3),
        (UNSTABLE, LAST, "hidden layer 2: divide by width", "output layer 4: divide by width"),
    ),
    "NTK, SGD": Case(
        in_jax("ntk", 0.5),
        ("lazy", LAST, "input layer 0: multiply by width", "hidden layer 1: multiply by width"),
    ),
    "µP, SGD": Case(in_torch("mup", "sgd", 0.05)),
    "µP, Adam": Case(in_torch("mup", "adam", 1e-3)),
    "µP, Adam, zero last layer": Case(in_torch("mup", "adam", 1e-3, zero=True)),
    "µP of the library, SGD": Case(in_jax("mup", 0.1)),
}


def lines(report) -> list[str]:
    """Return what a report says, in the words of the cases."""
    told = []
    for finding in report.findings:
        text = finding.text
        layer = text.partition(":")[0]
        if LAST in text:
            told.append(LAST)
        elif finding.evidence.startswith("own update"):
            advice = text.rpartition("learning rate ")[2].replace("is right", "right")
            way = "multiply " if "multiply" in text else "divide " if "divide" in text else ""
            told.append(f"{layer}: {way}{advice}")
        elif finding.sign == "!":
            told.append(layer)
        else:
            told.append(finding.sign)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3, help="networks of each width in a run")
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--json", help="file for all lines")
    options = parser.parse_args()
    torch.set_num_threads(1)
    told = {}
    for name, case in CASES.items():
        told[name] = []
        for run in range(options.runs):
            report = steepest.width_check(
                case.build, seeds=options.seeds, seed=options.first + 10 * run
            )
            told[name].append(lines(report))
        if case.lines:
            whole = sum(sorted(run) == sorted(case.lines) for run in told[name])
            regime = sum(case.lines[0] in run for run in told[name])
            print(
                f"{name}: regime named {regime}, all lines and no other {whole}, of {options.runs}"
            )
        else:
            alarms = sum(any(line not in "✓?" for line in run) for run in told[name])
            said = sum("✓" in run for run in told[name])
            print(
                f"{name}: ✓ {said}, not decided {options.runs - said - alarms}, alarms {alarms}, of {options.runs}"
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
