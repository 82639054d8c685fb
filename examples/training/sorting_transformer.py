"""A small transformer that sorts eight digits, with AdamW, warm-up and gradient clipping, watched while it trains.

``python examples/training/sorting_transformer.py`` trains and writes ``sorting.jsonl``; then

    steepest watch sorting.jsonl --page sorting.html
    steepest measure examples/training/sorting_transformer.py:trained
    steepest run stable-step --subject examples/training/sorting_transformer.py:build
    steepest run edge-of-stability --subject examples/training/sorting_transformer.py:build
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

LENGTH = 8
STEPS = 600
WARM_UP = 60
BATCH = 64


class Sorter(nn.Module):
    """Two layers of attention over eight tokens of ten kinds, each of which is told its place."""

    def __init__(self, width: float = 1.0) -> None:
        super().__init__()
        size = 4 * int(8 * width)
        self.tokens = nn.Embedding(10, size)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, size))
        layer = nn.TransformerEncoderLayer(
            size, nhead=4, dim_feedforward=2 * size, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(size)
        self.read = nn.Linear(size, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits ``(n, 8, 10)`` for tokens ``(n, 8)``."""
        return self.read(self.norm(self.layers(self.tokens(x) + self.places)))


def loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy over all places of all sequences."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


def sequences(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random digits ``(count, 8)``, and the same in order."""
    x = torch.randint(10, (count, LENGTH), generator=torch.Generator().manual_seed(seed))
    return x, x.sort(1).values


def build(seed: int = 0, width: float = 1.0) -> dict:
    """The untrained network with all that trains it."""
    torch.manual_seed(seed)
    model = Sorter(width)
    x, y = sequences(2000, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / WARM_UP, total_iters=WARM_UP)

    def train():
        shuffle = torch.Generator().manual_seed(seed)
        model.train()
        for _ in range(STEPS):
            rows = torch.randint(len(x), (BATCH,), generator=shuffle)
            optimizer.zero_grad()
            loss(model(x[rows]), y[rows]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warm.step()
            yield

    return {
        "model": model,
        "loss": loss,
        "data": (x, y),
        "held_out": sequences(500, seed=2),
        "optimizer": optimizer,
        "train": train,
        "batch": BATCH,
        "length": STEPS,
    }


def trained() -> dict:
    """The same after training, as it is measured."""
    built = build()
    for _ in built["train"]():
        pass
    built["model"].eval()
    return built


def main(log: str = "sorting.jsonl") -> None:
    """Train, and measure along the way."""
    from steepest import Monitor

    built = build()
    model, (x, y) = built["model"], built["data"]
    monitor = Monitor(
        log, loss, (x[:200], y[:200]), ["risk", "sharpness"],
        every=40, budget=None, optimizer=built["optimizer"],
    )  # fmt: skip
    for step, _ in enumerate(built["train"]()):
        monitor(step, model)
    x, y = built["held_out"]
    wrong = (model.eval()(x).argmax(-1) != y).any(1).float().mean()
    print(f"held-out sequences that are not sorted: {wrong:.1%}")


if __name__ == "__main__":
    main()
