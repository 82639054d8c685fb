"""Whether a monitor is silent beside batch-normalized trainings that go well, by whose statistics it measures with.

A convolutional network on the digits, momentum 0.9 and batches of 64, at three step sizes and four seeds: 61 steps,
measured in every sixth on 128 images. The same training is watched with the statistics of the batches and with
running ones.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from steepest import Monitor, watch

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
from mlp_torch import data

STEPS = 61
BATCH = 64
STATISTICS = ("batch", "running")


def network():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def train(lr: float, seed: int, folder: Path) -> float:
    """Train once beside both monitors, whose logs are in the folder; return the loss of the last batch."""
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    x, y = data()
    probe = [(x[rows], y[rows]) for rows in torch.randperm(len(x))[: 2 * BATCH].split(BATCH)]
    options = {"optimizer": optimizer, "budget": None, "every": 6}
    monitors = [
        Monitor(folder / name, cross_entropy, probe, statistics=name, **options)
        for name in STATISTICS
    ]
    order = torch.randperm(len(x)).split(BATCH)
    loss = torch.nan
    for step in range(STEPS):
        for monitor in monitors:
            monitor(step, model)
        rows = order[step % (len(order) - 1)]  # the last one is smaller
        optimizer.zero_grad()
        risk = cross_entropy(model(x[rows]), y[rows])
        risk.backward()
        optimizer.step()
        loss = float(risk.detach())
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=31, help="seed")
    parser.add_argument("--seeds", type=int, default=4)
    known = parser.parse_args()
    torch.set_num_threads(1)
    print("| step | seed | last loss | statistics | warnings | largest ratio to the limit |")
    for lr in (0.1, 0.3, 0.5):
        for seed in range(known.first, known.first + known.seeds):
            with tempfile.TemporaryDirectory() as folder:
                loss = train(lr, seed, Path(folder))
                for name in STATISTICS:
                    run = watch(Path(folder) / name)
                    largest = float(run["sharpness"].ratio.max())
                    cells = (lr, seed, f"{loss:.3f}", name, len(run.warnings), f"{largest:.2f}")
                    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
