"""A network on the digits of scikit-learn whose weights are kept in bfloat16, and the same in single precision.

``python examples/training/digits_bfloat16.py`` trains both with two step sizes and prints where they end; then

    steepest measure examples/training/digits_bfloat16.py:trained
    steepest run bf16-stall
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

STEPS = 1500
BATCH = 256


def build(dtype: torch.dtype = torch.bfloat16, lr: float = 1e-4, seed: int = 0) -> dict:
    """The untrained network with all that trains it; weights, gradients and moments have one type."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(dtype)
    images, labels = load_digits(return_X_y=True)
    x = torch.as_tensor(images / 16).to(dtype)
    y = torch.as_tensor(labels)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)

    def train():
        shuffle = torch.Generator().manual_seed(seed)
        for _ in range(STEPS):
            rows = torch.randint(len(x), (BATCH,), generator=shuffle)
            optimizer.zero_grad()
            cross_entropy(model(x[rows]).float(), y[rows]).backward()
            optimizer.step()
            yield

    return {
        "model": model,
        "loss": lambda outputs, targets: cross_entropy(outputs.float(), targets),
        "data": (x, y),
        "optimizer": optimizer,
        "train": train,
        "batch": BATCH,
        "length": STEPS,
    }


def trained(dtype: torch.dtype = torch.bfloat16, lr: float = 1e-4) -> dict:
    """The same after training, as it is measured."""
    built = build(dtype, lr)
    for _ in built["train"]():
        pass
    return built


def compare() -> None:
    """Print the risk at the end of each training."""
    for lr in (1e-3, 1e-4, 3e-5):
        for dtype in (torch.float32, torch.bfloat16):
            built = trained(dtype, lr)
            with torch.no_grad():
                x, y = built["data"]
                risk = built["loss"](built["model"](x), y).item()
            print(f"step {lr:g}, {str(dtype).removeprefix('torch.')}: risk {risk:.4f}")


if __name__ == "__main__":
    compare()
