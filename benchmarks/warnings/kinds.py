"""Trainings on which the warnings of a monitor are judged; the rule was fixed on others, those of ``divergence``.

This list is older than the rule that is judged on it. Step sizes were chosen by trainings without a monitor at seeds
900 and 901, which showed whether a training is lost.

A kind is *stable*, or it is *lost* and should be announced, or its loss cannot be foreseen, as one bad batch: then the
monitor should say afterwards what happened.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import torch
from sklearn.datasets import load_diabetes
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
import gpt_torch
import lstm_torch
import mlp_torch
import resnet_torch

STEPS = 200
DEPTH = 16
Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Task:
    """A network and what it learns.

    Attributes:
        network: untrained.
        data: all examples.
        examples: how many of them are trained on.
        loss: of outputs and targets.
        guess: the risk of the best constant guess for these targets.
    """

    network: Callable[[], nn.Module]
    data: Callable[[], Pair]
    examples: int
    loss: Callable[[Tensor, Tensor], Tensor]
    guess: Callable[[Tensor], float]


@dataclass(frozen=True)
class Kind:
    """One kind of training.

    Attributes:
        task: what is learned.
        optimizer: from weights.
        batch: examples in each batch.
        meant: what should become of it.
        schedule: factor of the step size at each step.
        scale: factor of the loss at each step, which nobody divides out again.
        spoilt: the step whose batch has inputs a thousand times too large.
    """

    task: Task
    optimizer: Callable
    batch: int
    meant: Literal["stable", "lost", "unforeseeable"]
    schedule: Callable[[int], float] = lambda step: 1.0
    scale: Callable[[int], float] = lambda step: 1.0
    spoilt: int | None = None


def entropy(labels: Tensor) -> float:
    """Return the entropy of the frequencies of labels, in nats."""
    shares = torch.bincount(labels.flatten()) / labels.numel()
    shares = shares[shares > 0]
    return -float((shares * shares.log()).sum())


def variance(targets: Tensor) -> float:
    """Return the mean square of targets about their mean."""
    return float((targets - targets.mean(0)).square().mean())


def deep() -> nn.Module:
    """A network of sixteen layers of ReLU with He's initialization, and nothing that normalizes."""
    sizes = [64] + [32] * (DEPTH - 1)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    layers.append(nn.Linear(32, 10))
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return nn.Sequential(*layers)


def smooth() -> nn.Module:
    """A network of two hidden layers of tanh for one number."""
    return nn.Sequential(
        nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )


def progression() -> Pair:
    """Return the diabetes data, each column with mean 0 and variance 1."""
    x, y = load_diabetes(return_X_y=True)
    inputs = torch.as_tensor(x, dtype=torch.float32)
    targets = torch.as_tensor(y, dtype=torch.float32)[:, None]
    standard = lambda columns: (columns - columns.mean(0)) / columns.std(0)
    return standard(inputs), standard(targets)


RESNET = Task(lambda: resnet_torch.resnet(8), resnet_torch.data, 256, cross_entropy, entropy)
GPT = Task(gpt_torch.Gpt, gpt_torch.data, 100, gpt_torch.next_character, entropy)
LSTM = Task(lstm_torch.Reader, lstm_torch.data, 256, cross_entropy, entropy)
DEEP = Task(deep, mlp_torch.data, 256, cross_entropy, entropy)
SMOOTH = Task(smooth, progression, 256, mse_loss, variance)


def sgd(lr: float, momentum: float = 0.0) -> Callable:
    return lambda weights: torch.optim.SGD(weights, lr, momentum=momentum)


def adam(lr: float, second: float = 0.999) -> Callable:
    return lambda weights: torch.optim.Adam(weights, lr, betas=(0.9, second))


ramp = lambda step: (step + 1) / STEPS
warm_up = lambda step: min(1.0, (step + 1) / 40)
cosine = lambda step: 0.5 * (1 + math.cos(math.pi * step / STEPS))
doubling = lambda step: 2.0 ** (step // 10)

KINDS = {
    # meant to be stable
    "ResNet, momentum": Kind(RESNET, sgd(0.1, 0.9), 64, "stable"),
    "ResNet, Adam": Kind(RESNET, adam(3e-3), 64, "stable"),
    "GPT, Adam": Kind(GPT, adam(3e-3), 16, "stable"),
    "GPT, Adam that warms up": Kind(GPT, adam(1e-2), 16, "stable", warm_up),
    "LSTM, Adam": Kind(LSTM, adam(1e-2), 50, "stable"),
    "LSTM, momentum": Kind(LSTM, sgd(0.2, 0.9), 50, "stable"),
    "sixteen layers, Adam": Kind(DEEP, adam(1e-3), 64, "stable"),
    "sixteen layers, SGD": Kind(DEEP, sgd(0.01), 64, "stable"),
    "regression, momentum": Kind(SMOOTH, sgd(0.05, 0.9), 32, "stable"),
    "regression, batches of 1": Kind(SMOOTH, sgd(0.01), 1, "stable"),
    # meant to be lost
    "ResNet, momentum, too large at once": Kind(RESNET, sgd(6.0, 0.9), 64, "lost"),
    "ResNet, momentum, a ramp": Kind(RESNET, sgd(50.0, 0.9), 64, "lost", ramp),
    "GPT, Adam, too large at once": Kind(GPT, adam(0.05), 16, "lost"),
    "GPT, Adam, a ramp": Kind(GPT, adam(1.0), 16, "lost", ramp),
    "GPT, momentum, a ramp": Kind(GPT, sgd(10.0, 0.9), 16, "lost", ramp),
    "GPT, loss scale": Kind(GPT, sgd(0.1, 0.9), 16, "lost", scale=doubling),
    "LSTM, momentum, too large at once": Kind(LSTM, sgd(10.0, 0.9), 50, "lost"),
    "LSTM, SGD, a ramp": Kind(LSTM, sgd(100.0), 50, "lost", ramp),
    "LSTM, Adam, a ramp": Kind(LSTM, adam(5.0), 50, "lost", ramp),
    "sixteen layers, SGD, too large at once": Kind(DEEP, sgd(1.0), 64, "lost"),
    "sixteen layers, SGD, a ramp": Kind(DEEP, sgd(3.0), 64, "lost", ramp),
    "sixteen layers, Adam with β₂ = 0.5": Kind(DEEP, adam(0.03, 0.5), 64, "lost"),
    "regression, SGD, a ramp": Kind(SMOOTH, sgd(3.0), 32, "lost", ramp),
    "regression, loss scale": Kind(SMOOTH, sgd(0.02), 32, "lost", scale=doubling),
    "regression, batches of 1, too large at once": Kind(SMOOTH, sgd(0.3), 1, "lost"),
    # lost by one step
    "sixteen layers, Adam, one bad batch": Kind(DEEP, adam(1e-2), 64, "unforeseeable", spoilt=100),
    "sixteen layers, one bad batch": Kind(DEEP, sgd(0.01), 64, "unforeseeable", spoilt=100),
}
"""By name; each of the five networks has two stable kinds."""
