"""What a monitor with a budget of 5 % costs: a training with and without it, and the share of its own clock.

The same torch module is trained twice in one process with the same batches: half of it alone, then all of it watched,
then the other half alone, so that what drifts on the machine falls on both. The cost is the time of the watched epochs
over that of the others, less one; the first measurement, which checks derivatives, belongs to it.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from steepest import Monitor
from steepest.measurement import read_log

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
from mlp_torch import data, mlp


class Training:
    """A network, its optimizer and the time it has taken."""

    def __init__(self, width, watch=lambda step, model: None):
        torch.manual_seed(0)
        self.model = mlp(width)
        self.watch = watch
        self.step = 0
        self.seconds = []
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.shuffle = torch.Generator().manual_seed(0)

    def epoch(self, x, y):
        start = time.perf_counter()
        for rows in torch.randperm(len(x), generator=self.shuffle).split(100):
            self.optimizer.zero_grad()
            cross_entropy(self.model(x[rows]), y[rows]).backward()
            self.optimizer.step()
            self.watch(self.step, self.model)
            self.step += 1
        self.seconds.append(time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=60, help="of training without the monitor, about"
    )
    parser.add_argument("--width", type=int, default=256)
    known = parser.parse_args()
    x, y = data()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.jsonl"
        monitor = Monitor(
            file,
            cross_entropy,
            (x[:500], y[:500]),
            ["risk", "sharpness"],
            every=10,
            budget=0.05,
            lr=0.05,
        )
        alone = Training(known.width)
        watched = Training(known.width, monitor)
        while sum(alone.seconds) < known.seconds / 2:
            alone.epoch(x, y)
        half = len(alone.seconds)
        for training, epochs in ((watched, 2 * half), (alone, half)):
            for _ in range(epochs):
                training.epoch(x, y)
        records = read_log(file)
    cost = sum(watched.seconds) / sum(alone.seconds) - 1
    usual = statistics.median(watched.seconds) / statistics.median(alone.seconds) - 1
    halves = sum(alone.seconds[half:]) / sum(alone.seconds[:half]) - 1
    print(
        f"{alone.step} steps in {sum(alone.seconds):.0f} s; {len(records)} measurements, budget 5 %"
    )
    print(
        f"cost {cost:.1%} of the training time; by the monitor's clock {monitor.spent / sum(alone.seconds):.1%}"
    )
    print(f"an epoch without a measurement costs {usual:.1%} more (median)")
    print(
        f"the second half alone took {halves:.1%} more than the first: what the machine does by itself"
    )
    same = all(
        torch.equal(a, b)
        for a, b in zip(alone.model.parameters(), watched.model.parameters(), strict=True)
    )
    print(f"weights at the end are {'the same' if same else 'DIFFERENT'}")


if __name__ == "__main__":
    main()
