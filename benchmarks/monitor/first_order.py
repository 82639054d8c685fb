"""What a monitor without data costs a training: the mean time of its calls over the median time of a step, one thread.

The first five steps do not count. The monitor has its default schedule, and is given the loss of each batch.

Three networks of torch with Adam: the ResNet of the examples on batches of 64 digits, a GRU on the rows of the same
digits, and a transformer of four layers on 16 sequences of 64 tokens; a network of JAX on batches of 512 digits, whose
step donates its weights.
"""

import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from steepest import Monitor

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
from resnet_torch import data, resnet

STEPS = 800
SHORT = 200  # steps of a short training, which has 21 records
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
    folder = tempfile.TemporaryDirectory()
    monitor = Monitor(Path(folder.name) / "run.jsonl")
    steps = []
    looks = []
    for step in range(STEPS):
        begun = time.perf_counter()
        optimizer.zero_grad()
        risk = loss(model)
        risk.backward()
        optimizer.step()
        trained = time.perf_counter()
        monitor(step, model, loss=risk)
        steps.append(trained - begun)
        looks.append(time.perf_counter() - trained)
    printed(name, sum(weight.numel() for weight in model.parameters()), steps, looks)


def cost_of_jax(x: np.ndarray, y: np.ndarray) -> None:
    """Train a network of three hidden layers by a compiled step, and print the same."""
    widths = (x.shape[1], 512, 512, 512, 10)
    keys = jax.random.split(jax.random.key(0), len(widths))
    params = [
        {"w": jax.random.normal(key, (m, n)) * (2 / m) ** 0.5, "b": jnp.zeros(n)}
        for key, m, n in zip(keys, widths, widths[1:], strict=False)
    ]
    labels = jax.nn.one_hot(y, 10)

    def apply(params, x):
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        return x @ params[-1]["w"] + params[-1]["b"]

    @partial(jax.jit, donate_argnums=0)
    def descend(params):
        risk = lambda params: -(jax.nn.log_softmax(apply(params, x)) * labels).sum(1).mean()
        loss, slopes = jax.value_and_grad(risk)(params)
        return jax.tree.map(lambda w, g: w - 0.01 * g, params, slopes), loss

    folder = tempfile.TemporaryDirectory()
    monitor = Monitor(Path(folder.name) / "run.jsonl")
    steps = []
    looks = []
    for step in range(STEPS):
        begun = time.perf_counter()
        params, loss = descend(params)
        jax.block_until_ready(params)
        trained = time.perf_counter()
        monitor(step, (apply, params), loss=loss)
        jax.block_until_ready(params)
        steps.append(trained - begun)
        looks.append(time.perf_counter() - trained)
    printed("JAX", sum(leaf.size for leaf in jax.tree.leaves(params)), steps, looks)


def printed(name: str, weights: int, steps: list[float], looks: list[float]) -> None:
    """Print a row of the table."""
    usual = statistics.median(steps[WARM:])
    early = statistics.mean(looks[WARM:SHORT])
    later = statistics.mean(looks[SHORT:])
    times = f"{1e3 * usual:.1f} ms | {1e3 * early:.3f} ms | {1e3 * later:.3f} ms"
    print(f"| {name} | {weights} | {times} | {early / usual:.1%} | {later / usual:.1%} |")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = data(BATCH)
    tokens = torch.randint(0, 64, (16, 64))
    print("| network | weights | a step | a call in the first 200 | a later one | share | share |")
    cost("ResNet", resnet(), lambda model: cross_entropy(model(x), y))
    cost("GRU", Recurrent(), lambda model: cross_entropy(model(x[:, 0]), y))
    next_token = lambda model: cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    cost("transformer", Transformer(), next_token)
    more, labels = data(512)
    cost_of_jax(more.flatten(1).numpy(), labels.numpy())


if __name__ == "__main__":
    main()
