"""A network of torch that is trained in bfloat16: weights that are kept in it lose most of their small steps.

Measure it with ``steepest measure examples/measure/bfloat16_torch.py:build``; ``:autocast`` keeps weights in float32
and computes in bfloat16; what is measured is in float32 in both.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

HELD_OUT = 500


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, epochs: int
) -> None:
    """Shuffled batches of 64, under autocast; weights in bfloat16 are not touched by it."""
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()


def build(lr: float = 1e-4, epochs: int = 20, kept: torch.dtype = torch.bfloat16):
    """The model trained by Adam, its loss, the examples it has seen, the optimizer, and held-out ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(kept)
        pixels, digits = load_digits(return_X_y=True)
        order = torch.randperm(len(pixels))
        x = torch.as_tensor(pixels / 16).to(kept)[order]
        y = torch.as_tensor(digits)[order]
        optimizer = torch.optim.Adam(model.parameters(), lr)
        train(model, optimizer, x[HELD_OUT:], y[HELD_OUT:], epochs)
    training = (x[HELD_OUT:], y[HELD_OUT:])
    return model, cross_entropy, training, optimizer, (x[:HELD_OUT], y[:HELD_OUT])


def autocast(lr: float = 1e-4):
    """The same with weights in float32."""
    return build(lr, kept=torch.float32)
