"""`steepest.width_check` beside the coordinate check of `mup`, the package of the authors of µP, on the same trainings.

Two hidden layers of ReLU on 128 digits, five steps of Adam on all of them, at some widths and seeds, from the same
initial weights: at one learning rate for all layers, in the way of `mup` (`MuReadout` and `MuAdam`), and in that of
`examples/measure/width_torch.py`, which changes initial weights and learning rates by hand. Printed is the power of the
width that each check shows. `mup` has the mean absolute value of what a layer writes, before each step. We have its
root mean square at the start, that of its change, and that of the part of the change that is the layer's own.

    python benchmarks/published/coordinate_check.py

in an environment with steepest and `benchmarks/published/requirements.txt`.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from mup import MuReadout, set_base_shapes
from mup.coord_check import _get_coord_data  # get_coord_data, for optimizers of one's own
from mup.optim import MuAdam
from scipy.stats import t as student
from torch.nn.functional import cross_entropy

import steepest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
import width_torch as example

EXAMPLES = 128
STEPS = 5
LAYERS = {"0": "input layer", "2": "hidden layer", "4": "output layer"}
DATA = example.data()
X = DATA[0][:EXAMPLES]
Y = DATA[1][:EXAMPLES]


class Way(NamedTuple):
    """A parameterization: a network of some seed and width, and the optimizer of a network."""

    model: Callable
    optimizer: Callable


def usual(seed, width):
    """Draw the network of our example."""
    torch.manual_seed(seed)
    return example.mlp(width)


def with_readout(seed, width):
    """Draw the same network, with the last layer of `mup` and the same weights."""
    model = usual(seed, width)
    last = model[-1]
    model[-1] = MuReadout(last.in_features, last.out_features)
    model[-1].load_state_dict(last.state_dict())
    return model


def of_package(seed, width):
    """Draw it in the way of `mup`."""
    model = with_readout(seed, width)
    set_base_shapes(model, with_readout(0, 1), delta=with_readout(0, 2))
    # its multiplier is read off the tensor of weights, and is lost where a check puts another tensor in its place
    multiplier = model[-1].width_mult()
    model[-1].width_mult = lambda: multiplier
    return model


def of_example(seed, width):
    """Draw it with the smaller last layer of our example."""
    model = usual(seed, width)
    with torch.no_grad():
        model[-1].weight /= width**0.5
    return model


def by_layer(model, shared=True):
    """Adam with the learning rates of our example, where biases have that of their layer, or of one for all biases."""
    groups = []
    for place, layer in enumerate(model[::2]):
        rate = example.LR * (example.BASE / layer.in_features if place else 1)
        groups += [
            {"params": [layer.weight], "lr": rate},
            {"params": [layer.bias], "lr": rate if shared else example.LR},
        ]
    return torch.optim.Adam(groups)


PACKAGE = Way(of_package, lambda model: MuAdam(model.parameters(), lr=example.LR))
WAYS = {
    "one learning rate": Way(usual, lambda model: torch.optim.Adam(model.parameters(), example.LR)),
    "mup": PACKAGE,
    "our example": Way(of_example, by_layer),
}
SAME = {
    "our example": WAYS["our example"],
    "our example, biases at the undivided rate": Way(of_example, partial(by_layer, shared=False)),
}


def step(model, optimizer):
    """Take a step on all examples."""
    optimizer.zero_grad()
    cross_entropy(model(X), Y).backward()
    optimizer.step()


def power(widths, sizes):
    """Mean power of the width, and half its 95 % interval over seeds, of sizes ``(seeds, widths)``."""
    slopes = np.polyfit(np.log(widths), np.log(sizes).T, 1)[0]
    half = student.ppf(0.975, len(slopes) - 1) * slopes.std(ddof=1) / len(slopes) ** 0.5
    return float(slopes.mean()), float(half)


def of_mup(way, seeds, widths):
    """Powers that the check of the package shows, before the first step and after the last, by layer."""
    tables = []
    for seed in seeds:
        models = {width: partial(way.model, seed, width) for width in widths}
        tables.append(
            _get_coord_data(
                models,
                [(X, Y)],
                way.optimizer,
                nsteps=STEPS + 1,
                cuda=False,
                show_progress=False,
            )
        )
    powers = {}
    for layer, role in LAYERS.items():
        for when, t in (("start", 1), ("end", STEPS + 1)):
            rows = [table[(table.module == layer) & (table.t == t)] for table in tables]
            sizes = [row.set_index("width").l1.loc[list(widths)].to_numpy() for row in rows]
            powers[f"{role}, {when}"] = power(widths, np.array(sizes))
    return powers


def of_ours(way, seeds, widths):
    """Our report on the same trainings."""

    def build(seed=0, width=1.0):
        model = way.model(seed, width)
        optimizer = way.optimizer(model)

        def train():
            while True:
                step(model, optimizer)
                yield

        return {"model": model, "loss": cross_entropy, "data": (X, Y), "train": train}

    return steepest.width_check(
        build, widths, seeds=len(seeds), seed=seeds[0], steps=STEPS, examples=EXAMPLES
    )


def apart(way, seed, width):
    """How far outputs after the last step are from those of `mup`, over the size of their change."""
    ends = []
    for trained in (PACKAGE, way):
        model = trained.model(seed, width)
        optimizer = trained.optimizer(model)
        start = model(X).detach()
        for _ in range(STEPS):
            step(model, optimizer)
        ends.append(model(X).detach())
    return float((ends[1] - ends[0]).norm() / (ends[1] - start).norm())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=float, nargs="+", default=[1, 2, 4, 8], help="over 64")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--json", help="file for all numbers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(options.first, options.first + options.seeds)
    numbers = {}
    for name, way in WAYS.items():
        print(f"\n{name}")
        theirs = of_mup(way, seeds, options.widths)
        report = of_ours(way, seeds, options.widths)
        ours = {reading.name: (reading.value, reading.interval) for reading in report.quantities}
        for what, (value, half) in theirs.items():
            print(f"  mup: {what}: {value:.2f} ± {half:.2f}")
        for what, (value, interval) in ours.items():
            print(f"  ours: {what}: {value:.2f} ({interval[0]:.2f} to {interval[1]:.2f})")
        for finding in report.findings:
            print(f"  ours: {finding.sign} {finding.text}")
        numbers[name] = {"mup": theirs, "ours": ours}
    for name, way in SAME.items():
        distances = [apart(way, options.first, width) for width in options.widths]
        row = ", ".join(f"{distance:.1e}" for distance in distances)
        print(f"\noutputs of {name} less those of mup, over their change, width by width: {row}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(numbers, file, indent=1)


if __name__ == "__main__":
    main()
