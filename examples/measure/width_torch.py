"""Is a network of torch parameterized so that its learning rate holds at every width? Two answers on the digits.

``steepest measure examples/measure/width_torch.py:standard --widths 1 2 4 8`` finds what is usual, one learning rate of
Adam for all layers, unstable in wide networks, and says what to change; ``...:mup`` is changed so.
"""

from collections.abc import Iterator

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

BASE = 64  # hidden units at width 1, where both are the same
LR = 1e-3


def mlp(width: float) -> nn.Sequential:
    """Two hidden layers of ReLU, from 64 pixels to ten classes, with weights of variance 1/fan-in."""
    n = int(BASE * width)
    model = nn.Sequential(nn.Linear(64, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 10))
    for layer in model[::2]:
        nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        nn.init.zeros_(layer.bias)
    return model


def data() -> tuple[Tensor, Tensor]:
    """Images ``(n, 64)`` with pixels between 0 and 1, and the digits ``(n,)`` that they show."""
    x, y = load_digits(return_X_y=True)
    return torch.as_tensor(x / 16, dtype=torch.float32), torch.as_tensor(y)


def parts(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> dict:
    """What ``steepest`` needs: the untrained model, its loss and data, and the steps of its training."""
    x, y = data()

    def train() -> Iterator[None]:
        order = torch.Generator().manual_seed(seed)
        while True:
            rows = torch.randint(len(x), (64,), generator=order)
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
            yield

    return {
        "model": model,
        "loss": cross_entropy,
        "data": (x, y),
        "optimizer": optimizer,
        "train": train,
    }


def standard(seed: int = 0, width: float = 1.0) -> dict:
    """One learning rate for all layers."""
    torch.manual_seed(seed)
    model = mlp(width)
    return parts(model, torch.optim.Adam(model.parameters(), LR), seed)


def mup(seed: int = 0, width: float = 1.0) -> dict:
    """µP: a last layer that starts smaller, and learning rates of matrices behind the first divided by the width."""
    torch.manual_seed(seed)
    model = mlp(width)
    first, hidden, last = model[::2]
    with torch.no_grad():
        last.weight /= width**0.5
    matrices = [hidden.weight, last.weight]
    like_inputs = [*first.parameters(), hidden.bias, last.bias]
    groups = [{"params": like_inputs, "lr": LR}, {"params": matrices, "lr": LR / width}]
    return parts(model, torch.optim.Adam(groups), seed)
