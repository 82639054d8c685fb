"""Tanh networks on the digits of scikit-learn, as the theory has them; nothing trains them but the claims.

steepest run edge-of-stability --subject examples/training/digits_tanh.py:build
steepest run lazy-or-rich --subject examples/training/digits_tanh.py:build --widths 16 32 64 --seeds 6 --yes
steepest run critical-tuning --subject examples/training/digits_tanh.py:deep
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import one_hot


def digits(count: int = 300) -> tuple[Tensor, Tensor]:
    """Centred images ``(count, 64)``, and rows ``(count, 10)`` with a one for the digit that they show."""
    x, y = load_digits(return_X_y=True)
    x = torch.as_tensor(x[:count] / 16, dtype=torch.float32)
    return x - x.mean(0), one_hot(torch.as_tensor(y[:count]), 10).float()


def half_square(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half of the squared distance, summed over the outputs and averaged over the images."""
    return 0.5 * ((outputs - targets) ** 2).sum(-1).mean()


def network(*widths: int) -> nn.Module:
    """Layers of tanh between these widths, from 64 pixels to ten outputs."""
    layers = []
    for before, after in zip((64, *widths), widths, strict=False):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 10))


def build(seed: int = 0, width: float = 1.0):
    """Two hidden layers of 64 neurons times the width."""
    torch.manual_seed(seed)
    return network(*[int(64 * width)] * 2), half_square, digits()


def deep(seed: int = 0):
    """Five hidden layers of 100 neurons."""
    torch.manual_seed(seed)
    return network(*[100] * 5), half_square, digits()
