"""A network of torch that learns the diabetes data of scikit-learn, with a squared loss: many weights, few examples.

Measure it with ``steepest measure examples/measure/regression_torch.py:build``.
"""

import torch
from sklearn.datasets import load_diabetes
from torch import Tensor, nn
from torch.nn.functional import mse_loss

HELD_OUT = 142


def data() -> tuple[Tensor, Tensor]:
    """Ten standardized measurements of 442 patients, and the standardized progression, ``(442, 1)``, shuffled."""
    x, y = load_diabetes(return_X_y=True, scaled=False)
    rows = torch.as_tensor(x, dtype=torch.float32)
    target = torch.as_tensor(y, dtype=torch.float32)[:, None]
    order = torch.randperm(len(rows))
    rows = (rows - rows.mean(0)) / rows.std(0)
    target = (target - target.mean()) / target.std()
    return rows[order], target[order]


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, epochs: int
) -> None:
    """Shuffled batches of 50."""
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            mse_loss(model(x[rows]), y[rows]).backward()
            optimizer.step()


def build(lr: float = 0.03, epochs: int = 200, width: int = 100):
    """The model trained with momentum, its loss, the examples given, the optimizer, and held-out examples."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(10, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        x, y = data()
        optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
        train(model, optimizer, x[HELD_OUT:], y[HELD_OUT:], epochs)
    return model, mse_loss, (x[HELD_OUT:], y[HELD_OUT:]), optimizer, (x[:HELD_OUT], y[:HELD_OUT])
