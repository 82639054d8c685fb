"""What `steepest measure --widths --best-step` says of five parameterizations, on 1400 digits with 397 held out.

Two hidden layers of ReLU, widths 0.5 to 4 of 64 units, batches of 64 and cross-entropy. Needs torch.
"""

import argparse
import os
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

from steepest.measurement import step_transfer

BASE = 64
GIVEN = 1400
X, Y = load_digits(return_X_y=True)
IMAGES = torch.as_tensor(X / 16 - (X / 16).mean(0), dtype=torch.float32)
DIGITS = torch.as_tensor(Y)
CASES = {  # parameterization, optimizer, step size at width 1
    "standard, Adam": ("standard", "adam", 0.01),
    "µP, Adam": ("mup", "adam", 0.01),
    "standard, SGD": ("standard", "sgd", 1.0),
    "µP, SGD": ("mup", "sgd", 1.0),
    "NTK, SGD": ("ntk", "sgd", 64.0),
}
RATES = {  # of learning rates of µP at width m, from first to last layer
    "sgd": lambda m: (m, 1, 1 / m),
    "adam": lambda m: (1, 1 / m, 1 / m),
}


class Multiplied(nn.Linear):
    """W x times a number, as the NTK parameterization has it."""

    multiplier = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.multiplier * super().forward(x)


def layers_of(kind: str, width: float) -> list[Multiplied]:
    """Return three layers as a parameterization starts them."""
    n = int(BASE * width)
    layers = [Multiplied(64, n), Multiplied(n, n), Multiplied(n, 10)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=1.0 if kind == "ntk" else layer.in_features**-0.5)
        nn.init.zeros_(layer.bias)
        if kind == "ntk":
            layer.multiplier = layer.in_features**-0.5
    if kind == "mup":
        with torch.no_grad():
            layers[-1].weight *= width**-0.5
    return layers


def groups_of(layers: list[Multiplied], kind: str, optimizer: str, lr: float, width: float) -> list:
    """Return groups of weights with their step sizes; µP treats hidden biases like inputs."""
    if kind != "mup":
        return [{"params": [p for layer in layers for p in layer.parameters()], "lr": lr}]
    rates = RATES[optimizer](width)
    matrices = [
        {"params": [layer.weight], "lr": lr * rate}
        for layer, rate in zip(layers, rates, strict=True)
    ]
    hidden = {"params": [layer.bias for layer in layers[:2]], "lr": lr * rates[0]}
    return [*matrices, hidden, {"params": [layers[2].bias], "lr": lr}]


def case(kind: str, optimizer: str, lr: float) -> Callable:
    """Return a function that builds networks of one parameterization."""

    def build(seed: int = 0, width: float = 1.0) -> dict:
        torch.manual_seed(seed)
        layers = layers_of(kind, width)
        groups = groups_of(layers, kind, optimizer, lr, width)
        descent = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer](groups, lr=lr)
        model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])

        def train():
            order = torch.Generator().manual_seed(seed)
            while True:
                rows = torch.randint(GIVEN, (64,), generator=order)
                descent.zero_grad()
                cross_entropy(model(IMAGES[rows]), DIGITS[rows]).backward()
                descent.step()
                yield

        return {
            "model": model,
            "loss": cross_entropy,
            "data": (IMAGES[:GIVEN], DIGITS[:GIVEN]),
            "held_out": (IMAGES[GIVEN:], DIGITS[GIVEN:]),
            "optimizer": descent,
            "train": train,
        }

    return build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="networks of each width")
    parser.add_argument("--first", type=int, default=200, help="first seed")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--case", choices=CASES, nargs="+", default=list(CASES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.case:
        report = step_transfer(
            case(*CASES[name]),
            (0.5, 1, 2, 4),
            seeds=options.seeds,
            steps=options.steps,
            seed=options.first,
        )
        print(f"{name}, {report.seconds:.0f} s")
        for finding in report.findings:
            print(f"  {finding.sign} {finding.text}")
        for reading in report.quantities:
            print(f"  {reading.name}: {reading.value:.3g} {reading.interval}")


if __name__ == "__main__":
    main()
