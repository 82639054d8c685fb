"""A convolutional network with batch normalization and AdamW on the digits of scikit-learn, watched while it trains.

``python examples/training/digits_conv.py`` trains and writes ``digits_conv.jsonl``; then

    steepest watch digits_conv.jsonl --page digits_conv.html
    steepest measure examples/training/digits_conv.py:trained
    steepest run edge-of-stability --subject examples/training/digits_conv.py:build
    steepest run three-level-hessian --subject examples/training/digits_conv.py:build
    steepest run rotational-equilibrium --subject examples/training/digits_conv.py:decaying
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

EPOCHS = 15
LONGER = 80
BATCH = 64


def network(width: float = 1.0) -> nn.Module:
    """Two convolutions with batch normalization, from images of 8×8 pixels to ten classes."""
    first, second = int(16 * width), int(32 * width)
    return nn.Sequential(
        nn.Conv2d(1, first, 3, padding=1), nn.BatchNorm2d(first), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(first, second, 3, padding=1), nn.BatchNorm2d(second), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * second, 10),
    )  # fmt: skip


def digits() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Images ``(n, 1, 8, 8)`` and the digits that they show: 1437 to train on, 360 held out."""
    x, y = load_digits(return_X_y=True)
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x = torch.as_tensor(x / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)[shuffle]
    y = torch.as_tensor(y)[shuffle]
    return (x[:1437], y[:1437]), (x[1437:], y[1437:])


def build(seed: int = 0, width: float = 1.0) -> dict:
    """The untrained network with all that trains it, one step at each ``next`` of ``train()``."""
    torch.manual_seed(seed)
    model = network(width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    return parts(model, optimizer, seed, EPOCHS)


def decaying(seed: int = 0) -> dict:
    """The same for longer, with a weight decay that is felt and a shorter memory of second moments."""
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99), weight_decay=1.0)
    return parts(model, optimizer, seed, LONGER)


def decaying_by_descent(seed: int = 0) -> dict:
    """The same with momentum."""
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.02)
    return parts(model, optimizer, seed, LONGER)


def parts(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int, epochs: int) -> dict:
    """What ``steepest`` needs: the model, its loss and data, its optimizer and the steps of its training."""
    (x, y), held_out = digits()

    def train():
        shuffle = torch.Generator().manual_seed(seed)
        model.train()
        for _ in range(epochs):
            for rows in torch.randperm(len(x), generator=shuffle).split(BATCH):
                optimizer.zero_grad()
                cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
                yield

    return {
        "model": model,
        "loss": cross_entropy,
        "data": (x, y),
        "held_out": held_out,
        "optimizer": optimizer,
        "train": train,
        "batch": BATCH,
        "length": epochs * -(-len(x) // BATCH),
    }


def trained() -> dict:
    """The same after training, as it is measured."""
    built = build()
    for _ in built["train"]():
        pass
    built["model"].eval()
    return built


def main(log: str = "digits_conv.jsonl") -> None:
    """Train, and measure along the way."""
    from steepest import Monitor

    built = build()
    model, (x, y) = built["model"], built["data"]
    monitor = Monitor(
        log, cross_entropy, (x[:300], y[:300]), ["risk", "sharpness"],
        every=30, budget=None, optimizer=built["optimizer"],
    )  # fmt: skip
    for step, _ in enumerate(built["train"]()):
        monitor(step, model)
    x, y = built["held_out"]
    print(f"held-out error: {(model.eval()(x).argmax(1) != y).float().mean():.1%}")


if __name__ == "__main__":
    main()
