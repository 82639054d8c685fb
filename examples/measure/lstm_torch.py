"""An LSTM of torch that reads the digits of scikit-learn row by row, eight rows of eight pixels.

Measure it with ``steepest measure examples/measure/lstm_torch.py:build``.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn


class Reader(nn.Module):
    """Classes from the state after the last row."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, width, batch_first=True)
        self.read = nn.Linear(width, 10)

    def forward(self, rows: Tensor) -> Tensor:
        """Scores ``(b, 10)`` of images ``(b, 8, 8)``."""
        states, _ = self.lstm(rows)  # (b, 8, width)
        return self.read(states[:, -1])


def data(count: int = 1797) -> tuple[Tensor, Tensor]:
    """Images ``(count, 8, 8)`` with pixels between 0 and 1, and the digits ``(count,)`` that they show."""
    x, y = load_digits(return_X_y=True)
    return torch.as_tensor(x[:count] / 16, dtype=torch.float32).reshape(-1, 8, 8), torch.as_tensor(
        y[:count]
    )


def train(model: nn.Module, loss: nn.Module, x: Tensor, y: Tensor, epochs: int = 20) -> None:
    """Adam on batches of 50 in their order."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for images, digits in zip(x.split(50), y.split(50), strict=True):
            optimizer.zero_grad()
            loss(model(images), digits).backward()
            optimizer.step()


def build():
    """The trained model, its loss, and the data as a list of batches."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Reader()
    loss = nn.CrossEntropyLoss()
    (x, y) = data()
    train(model, loss, x, y)
    return model.eval(), loss, list(zip(x.split(600), y.split(600), strict=True))
