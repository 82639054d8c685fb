"""What first-order numbers cost a training: the mean time of a look over the median time of a step, one thread.

Three networks with Adam: the ResNet of the examples on batches of 64 digits, a GRU on the rows of the same digits, and
a transformer of four layers on 16 sequences of 64 tokens.
"""

import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from steepest.measurement.training._first_order import FirstOrder

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
from resnet_torch import data, resnet

STEPS = 160
WARM = 5  # steps before, which are not timed
BATCH = 64


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.recur = nn.GRU(8, 64, batch_first=True)
        self.read = nn.Linear(64, 10)

    def forward(self, x):
        return self.read(self.recur(x)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, dropout=0)
        self.blocks = nn.TransformerEncoder(layer, 4)
        self.read = nn.Linear(128, 64)

    def forward(self, tokens):
        return self.read(self.blocks(self.embed(tokens)))


def cost(name: str, model: nn.Module, loss) -> None:
    """Train, and print what the looks have taken."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    first_order = FirstOrder()
    steps = []
    looks = []
    for step in range(STEPS):
        begun = time.perf_counter()
        optimizer.zero_grad()
        risk = loss(model)
        risk.backward()
        optimizer.step()
        trained = time.perf_counter()
        first_order.look(step, model, risk)
        steps.append(trained - begun)
        looks.append(time.perf_counter() - trained)
    usual = statistics.median(steps[WARM:])
    look = statistics.mean(looks[WARM:])
    weights = sum(weight.numel() for weight in model.parameters())
    print(
        f"| {name} | {weights} | {1e3 * usual:.1f} ms | {1e3 * look:.2f} ms | {look / usual:.1%} |"
    )


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = data(BATCH)
    tokens = torch.randint(0, 64, (16, 64))
    print("| network | weights | a step | a look | share |")
    cost("ResNet", resnet(), lambda model: cross_entropy(model(x), y))
    cost("GRU", Recurrent(), lambda model: cross_entropy(model(x[:, 0]), y))
    next_token = lambda model: cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    cost("transformer", Transformer(), next_token)


if __name__ == "__main__":
    main()
