"""A plain network of torch with sixteen hidden layers, which torch's first weights keep from learning.

Measure it with ``steepest measure examples/measure/deep_torch.py:build``, and ``:cured``, which starts as it says.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

HELD_OUT = 500


def network(depth: int = 16, width: int = 64) -> nn.Sequential:
    """Hidden layers of ReLU, without normalization or shortcuts."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(64 if not layers else width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, epochs: int
) -> None:
    """Shuffled batches of 64."""
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


def build(lr: float = 0.01, epochs: int = 10, critical: bool = False):
    """The model trained with momentum, its loss, the examples it has seen, the optimizer, and held-out ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = network()
        for layer in model if critical else ():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=(2 / layer.in_features) ** 0.5)
                nn.init.zeros_(layer.bias)
        pixels, digits = load_digits(return_X_y=True)
        order = torch.randperm(len(pixels))
        x = torch.as_tensor(pixels / 16, dtype=torch.float32)[order]
        y = torch.as_tensor(digits)[order]
        optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
        train(model, optimizer, x[HELD_OUT:], y[HELD_OUT:], epochs)
    training = (x[HELD_OUT:], y[HELD_OUT:])
    return model, cross_entropy, training, optimizer, (x[:HELD_OUT], y[:HELD_OUT])


def cured():
    """The same from weights of variance 2/fan-in."""
    return build(critical=True)
