"""A network of torch with groups of weights: Adam, a small step for the first layer, and another layer left out.

Measure it with ``steepest measure examples/measure/groups_torch.py:build``. The second layer is in no group, as happens
where a layer is added after the optimizer was made; ``:mended`` adds it.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

HELD_OUT = 500


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, epochs: int
) -> None:
    """Shuffled batches of 64."""
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            model.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


def build(lr: float = 1e-3, epochs: int = 20, forgotten: bool = True):
    """The model trained by AdamW, its loss, the examples it has seen, the optimizer, and held-out ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first = nn.Linear(64, 64)
        second = nn.Linear(64, 64)
        last = nn.Linear(64, 10)
        model = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)
        pixels, digits = load_digits(return_X_y=True)
        order = torch.randperm(len(pixels))
        x = torch.as_tensor(pixels / 16, dtype=torch.float32)[order]
        y = torch.as_tensor(digits)[order]
        optimizer = torch.optim.AdamW(first.parameters(), lr / 10, weight_decay=0.01)
        optimizer.add_param_group({"params": list(last.parameters()), "lr": lr})
        if not forgotten:
            optimizer.add_param_group({"params": list(second.parameters()), "lr": lr})
        train(model, optimizer, x[HELD_OUT:], y[HELD_OUT:], epochs)
    training = (x[HELD_OUT:], y[HELD_OUT:])
    return model, cross_entropy, training, optimizer, (x[:HELD_OUT], y[:HELD_OUT])


def mended():
    """The same with all layers in groups."""
    return build(forgotten=False)
