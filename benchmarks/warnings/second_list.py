"""The second list of trainings on which warnings are judged; the rule was fixed on the first and on ``divergence``.

This list is older than any run of a monitor on it. Networks and data are others than there. Step sizes were chosen by
trainings without a monitor at seeds 900 and 901, which showed whether a training is lost.
"""

import sys
from itertools import pairwise
from pathlib import Path

import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

sys.path.insert(0, str(Path(__file__).parent))
from kinds import Kind, Pair, Task, adam, cosine, doubling, entropy, ramp, sgd, variance, warm_up


class Rows(nn.Module):
    """A GRU that reads images row by row, ``(b, 64)``."""

    def __init__(self) -> None:
        super().__init__()
        self.recur = nn.GRU(8, 48, batch_first=True)
        self.read = nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Scores ``(b, 10)``."""
        return self.read(self.recur(x.unflatten(1, (8, 8)))[0][:, -1])


class Patches(nn.Module):
    """A transformer of three Post-LN layers over sixteen patches of an image, ``(b, 64)``."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, width, 2, stride=2)
        self.place = nn.Parameter(0.1 * torch.randn(16, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, dropout=0.0)
        self.blocks = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.read = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Scores ``(b, 10)``."""
        patches = self.embed(x.view(-1, 1, 8, 8)).flatten(2).transpose(1, 2)
        return self.read(self.blocks(patches + self.place).mean(1))


def batch_normalized() -> nn.Module:
    """A network of three layers of ReLU, each batch-normalized, for thirteen numbers."""
    return nn.Sequential(
        nn.Linear(13, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 3),
    )


def autoencoder() -> nn.Module:
    """A network of GELU that writes images through eight numbers."""
    return nn.Sequential(
        nn.Linear(64, 64),
        nn.GELU(),
        nn.Linear(64, 8),
        nn.Linear(8, 64),
        nn.GELU(),
        nn.Linear(64, 64),
    )


def binary() -> nn.Module:
    """A network of six layers of ReLU for one score of thirty numbers."""
    sizes = [30, 32, 32, 32, 32, 32]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(32, 1))


def digits() -> Pair:
    """Return images ``(n, 64)`` of mean 0 and variance 1, and the digits that they show."""
    x, y = load_digits(return_X_y=True)
    inputs = torch.as_tensor(x, dtype=torch.float32)
    return (inputs - inputs.mean()) / inputs.std(), torch.as_tensor(y)


def copies() -> Pair:
    """Return images ``(n, 64)`` twice."""
    return digits()[0], digits()[0]


def standard(columns: Tensor) -> Tensor:
    """Return columns of mean 0 and variance 1."""
    return (columns - columns.mean(0)) / columns.std(0)


def wine() -> Pair:
    """Return thirteen measurements of 178 wines, and their kinds."""
    x, y = load_wine(return_X_y=True)
    return standard(torch.as_tensor(x, dtype=torch.float32)), torch.as_tensor(y)


def cancer() -> Pair:
    """Return thirty measurements of 569 tumours, and whether they are benign."""
    x, y = load_breast_cancer(return_X_y=True)
    labels = torch.as_tensor(y, dtype=torch.float32)[:, None]
    return standard(torch.as_tensor(x, dtype=torch.float32)), labels


def binary_entropy(labels: Tensor) -> float:
    """Return the entropy of the share of ones, in nats."""
    return entropy(labels.long())


GRU = Task(Rows, digits, 256, cross_entropy, entropy)
VIT = Task(Patches, digits, 256, cross_entropy, entropy)
NORMED = Task(batch_normalized, wine, 160, cross_entropy, entropy)
COPY = Task(autoencoder, copies, 256, mse_loss, variance)
BINARY = Task(binary, cancer, 320, binary_cross_entropy_with_logits, binary_entropy)

KINDS = {
    # meant to be stable
    "GRU, Adam": Kind(GRU, adam(3e-3), 32, "stable"),
    "GRU, momentum that decays": Kind(GRU, sgd(0.1, 0.9), 32, "stable", cosine),
    "ViT, Adam that warms up": Kind(VIT, adam(3e-3), 32, "stable", warm_up),
    "ViT, momentum": Kind(VIT, sgd(0.03, 0.9), 32, "stable"),
    "batch-normalized, momentum": Kind(NORMED, sgd(0.1, 0.9), 32, "stable"),
    "batch-normalized, Adam": Kind(NORMED, adam(1e-2), 16, "stable"),
    "autoencoder, Adam": Kind(COPY, adam(3e-3), 32, "stable"),
    "autoencoder, SGD, batches of 1": Kind(COPY, sgd(0.2), 1, "stable"),
    "binary, momentum": Kind(BINARY, sgd(0.05, 0.9), 32, "stable"),
    "binary, Adam, batches of 1": Kind(BINARY, adam(1e-3), 1, "stable"),
    # meant to be lost
    "GRU, momentum, too large at once": Kind(GRU, sgd(2.0, 0.9), 32, "lost"),
    "GRU, Adam with β₂ = 0.5, a ramp": Kind(GRU, adam(3.0, 0.5), 32, "lost", ramp),
    "GRU, loss scale": Kind(GRU, sgd(0.1, 0.9), 32, "lost", scale=doubling),
    "ViT, Adam, too large at once": Kind(VIT, adam(0.015), 32, "lost"),
    "ViT, Adam, a ramp": Kind(VIT, adam(0.5), 32, "lost", ramp),
    "ViT, SGD, a ramp": Kind(VIT, sgd(20.0), 32, "lost", ramp),
    "batch-normalized, momentum, too large at once": Kind(NORMED, sgd(4.0, 0.9), 32, "lost"),
    "batch-normalized, momentum, a ramp": Kind(NORMED, sgd(50.0, 0.9), 32, "lost", ramp),
    "autoencoder, SGD, a ramp": Kind(COPY, sgd(50.0), 32, "lost", ramp),
    "autoencoder, Adam, a ramp": Kind(COPY, adam(1.0), 32, "lost", ramp),
    "autoencoder, loss scale": Kind(COPY, sgd(0.2, 0.9), 32, "lost", scale=doubling),
    "binary, SGD, too large at once": Kind(BINARY, sgd(3.0), 32, "lost"),
    "binary, momentum, a ramp": Kind(BINARY, sgd(5.0, 0.9), 32, "lost", ramp),
    "binary, SGD, batches of 1, a ramp": Kind(BINARY, sgd(3.0), 1, "lost", ramp),
    # lost by one step
    "autoencoder, one bad batch": Kind(COPY, sgd(0.2, 0.9), 32, "unforeseeable", spoilt=100),
    "binary, one bad batch": Kind(BINARY, sgd(0.05, 0.9), 32, "unforeseeable", spoilt=100),
}
"""By name; each of the five networks has two stable kinds."""
