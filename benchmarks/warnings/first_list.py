"""The first list of trainings on which warnings were judged, by a rule that was fixed on those of ``divergence``.

This list is older than that rule. The second rule has seen it. Step sizes were chosen by trainings without a monitor at
seeds 900 and 901, which showed whether a training is lost.
"""

import sys
from itertools import pairwise
from pathlib import Path

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
import gpt_torch
import lstm_torch
import mlp_torch
import resnet_torch
from kinds import Kind, Pair, Task, adam, doubling, entropy, ramp, sgd, variance, warm_up

DEPTH = 16


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
