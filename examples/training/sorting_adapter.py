"""Adapters of low rank beside a transformer that sorts, which learn to sort the other way.

``python examples/training/sorting_adapter.py`` trains adapters of several ranks with both usual factors; then

    steepest measure examples/training/sorting_adapter.py:started

says from which rank on the first steps of an adapter grow like its rank, and so which factor keeps them the same.
"""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache

import torch
from sorting_transformer import BATCH, Sorter, loss, sequences
from torch import Tensor, nn

PRETRAINING = 300
STEPS = 100
ALPHA = 8.0
torch.backends.mha.set_fastpath_enabled(False)  # which reads weights past what stands beside them


class Adapter(nn.Module):
    """A frozen linear layer with a term of rank r beside it."""

    def __init__(self, base: nn.Linear, rank: int, factor: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        self.factor = factor
        nn.init.normal_(self.lora_A.weight, std=base.in_features**-0.5)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the layer gives, and the adapter's term."""
        return self.base(x) + self.factor * self.lora_B(self.lora_A(x))


@cache
def pretrained() -> Sorter:
    """A network that sorts digits upwards."""
    torch.manual_seed(0)
    model = Sorter()
    x, y = sequences(2000, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    shuffle = torch.Generator().manual_seed(0)
    for _ in range(PRETRAINING):
        rows = torch.randint(len(x), (BATCH,), generator=shuffle)
        optimizer.zero_grad()
        loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return model.requires_grad_(False)


def adapted(model: Sorter, rank: int, factor: float) -> Sorter:
    """Put adapters beside the feed-forward layers and the last one."""
    torch.manual_seed(1)
    for layer in model.layers.layers:
        layer.linear1 = Adapter(layer.linear1, rank, factor)
        layer.linear2 = Adapter(layer.linear2, rank, factor)
    model.read = Adapter(model.read, rank, factor)
    return model


def build(rank: int = 8, factor: float = ALPHA / 8, lr: float = 1e-3) -> dict:
    """The network with adapters, before it learns the other task."""
    model = adapted(deepcopy(pretrained()), rank, factor)
    x, y = sequences(1000, seed=3)
    y = y.flip(1)
    moving = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(moving, lr=lr, weight_decay=0.0)

    def train():
        shuffle = torch.Generator().manual_seed(2)
        model.train()
        for _ in range(STEPS):
            rows = torch.randint(len(x), (BATCH,), generator=shuffle)
            optimizer.zero_grad()
            loss(model(x[rows]), y[rows]).backward()
            optimizer.step()
            yield

    return {
        "model": model,
        "loss": loss,
        "data": (x, y),
        "optimizer": optimizer,
        "train": train,
        "batch": BATCH,
        "length": STEPS,
    }


def started() -> dict:
    """The same after ten steps, as it is measured."""
    built = build()
    steps = built["train"]()
    for _ in range(10):
        next(steps)
    built["model"].eval()
    return built


def first_change(built: dict, steps: Iterator[None]) -> float:
    """Take the first step, and return the root mean square change of the outputs."""
    model = built["model"]
    x, _ = built["data"]
    with torch.no_grad():
        before = model(x)
    next(steps)
    with torch.no_grad():
        return (model(x) - before).square().mean().sqrt().item()


def compare() -> None:
    """Print by how much outputs change in the first step, and the risk at the end, for ranks and factors."""
    for name, power in (("α/√r", 0.5), ("α/r", 1.0)):
        for rank in (2, 8, 32):
            built = build(rank, ALPHA / 8 * (8 / rank) ** power)
            x, y = built["data"]
            steps = built["train"]()
            change = first_change(built, steps)
            for _ in steps:
                pass
            with torch.no_grad():
                risk = loss(built["model"](x), y).item()
            print(f"{name}, rank {rank:2}: first change {change:.4f}, risk {risk:.3f}")


if __name__ == "__main__":
    compare()
