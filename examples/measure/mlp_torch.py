"""A plain network of torch on the digits of scikit-learn, with cross-entropy.

Measure it with ``steepest measure examples/measure/mlp_torch.py:build``.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


def mlp(width: int = 64) -> nn.Module:
    """Two hidden layers of ReLU, from 64 pixels to ten classes."""
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )  # fmt: skip


def data(count: int = 1797) -> tuple[Tensor, Tensor]:
    """Images ``(count, 64)`` with pixels between 0 and 1, and the digits ``(count,)`` that they show."""
    x, y = load_digits(return_X_y=True)
    return torch.as_tensor(x[:count] / 16, dtype=torch.float32), torch.as_tensor(y[:count])


def train(model: nn.Module, x: Tensor, y: Tensor, epochs: int = 15) -> None:
    """Adam on shuffled batches of 100."""
    shuffle = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=shuffle).split(100):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


def build():
    """The trained model, its loss, and the data as a pair of arrays."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = mlp()
    x, y = data()
    train(model, x, y)
    return model.eval(), cross_entropy, (x, y)
