"""A small residual network with batch normalization on the 8×8 digits of scikit-learn.

Measure it with ``steepest measure examples/measure/resnet_torch.py:build``. Batch normalization is measured as it was
trained, with the statistics of batches of 64, which is why the loader has this size.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    """Two convolutions beside a shortcut, which is itself a convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(b, inputs, h, w)`` to ``(b, outputs, h/stride, w/stride)``."""
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet(width: int = 16) -> nn.Module:
    """Three blocks, the latter two of which halve the image and double the channels."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10),
    )  # fmt: skip


def data(count: int = 1797) -> tuple[Tensor, Tensor]:
    """Images ``(count, 1, 8, 8)`` with pixels between 0 and 1, and the digits ``(count,)`` that they show."""
    x, y = load_digits(return_X_y=True)
    return torch.as_tensor(x[:count] / 16, dtype=torch.float32).reshape(
        -1, 1, 8, 8
    ), torch.as_tensor(y[:count])


def train(model: nn.Module, examples: TensorDataset, epochs: int = 3) -> None:
    """Momentum on shuffled batches."""
    loader = DataLoader(
        examples, batch_size=64, shuffle=True, generator=torch.Generator().manual_seed(0)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()


def build():
    """The trained model, its loss, and a loader of the data."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = resnet()
    examples = TensorDataset(*data())
    train(model, examples)
    return model, cross_entropy, DataLoader(examples, batch_size=64)
