"""Networks of torch on the device that CUDA gives: the report beside that of the CPU, and what a look costs a step.

    python -m benchmarks.accelerators.torch_networks [--device cuda]

The three networks of ``examples/measure`` are trained on the CPU, and measured there and, as copies with the same
weights and data, on the device. Numbers of a report are compared where both have them; those that are found by random
probes differ by as much as their intervals say. A second call is timed, since the first one compiles. Then networks are
trained on the device with and without first-order looks, step by step in turns, and the device is waited for before a
clock is read.
"""

import argparse
import copy
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import steepest
from benchmarks.monitor.first_order import Recurrent, Transformer
from steepest.measurement.training._first_order import FirstOrder

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
import gpt_torch
import mlp_torch
import resnet_torch

EXAMPLES = {"MLP": mlp_torch, "ResNet": resnet_torch, "GPT": gpt_torch}
STEPS = 120
WARM = 20  # steps before, which are not timed


def on(device, model, data):
    """Return a copy of a model and its data, a pair or a list of batches, on a device."""
    moved = lambda pair: tuple(part.to(device) for part in pair)
    pairs = moved(data) if isinstance(data, tuple) else [moved(pair) for pair in data]
    return copy.deepcopy(model).to(device), pairs


def numbers(report):
    """Return the readings that are finite numbers, by id and name, each with half of its interval."""
    return {
        f"{reading.id}: {reading.name}": (reading.value, half_width(reading))
        for reading in report.quantities
        if np.isfinite(reading.value)
    }


def half_width(reading):
    """Return half of a reading's interval, zero where it has none."""
    return 0.0 if reading.interval is None else np.ptp(reading.interval) / 2


def reports(device):
    """Print, of each example, seconds of a report on both, and the largest difference of a reading."""
    for name, example in EXAMPLES.items():
        model, loss, data = example.build()
        data = data if isinstance(data, tuple) else list(data)
        values = {}
        seconds = {}
        for place in ("cpu", device):
            twin, moved = on(place, model, data)
            for _ in range(2):
                begun = time.perf_counter()
                report = steepest.measure(twin, loss, moved, lr=0.01)
                seconds[place] = round(time.perf_counter() - begun, 2)
            values[place] = numbers(report)
        apart = {}
        for id in values["cpu"].keys() & values[device].keys():
            of_cpu, room = values["cpu"][id]
            gap = abs(values[device][id][0] - of_cpu)
            apart[id] = (gap / max(abs(of_cpu), 1e-12), gap <= room)
        row = {
            "network": name,
            "seconds": seconds,
            "readings": len(apart),
            "on one alone": sorted(values["cpu"].keys() ^ values[device].keys()),
            "above 1e-3": {id: f"{far:.1e}" for id, (far, _) in apart.items() if far > 1e-3},
            "of these outside the interval": sum(
                far > 1e-3 and not near for far, near in apart.values()
            ),
        }
        print(json.dumps(row, ensure_ascii=False), flush=True)


def looks(device):
    """Print, of three networks, milliseconds of a step alone and with a first-order look."""
    x, y = (part.to(device) for part in resnet_torch.data(512))
    tokens = torch.randint(0, 64, (64, 64), device=device)
    next_token = lambda model: cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    cases = (
        ("ResNet", resnet_torch.resnet(), lambda model: cross_entropy(model(x), y)),
        ("GRU", Recurrent(), lambda model: cross_entropy(model(x[:, 0]), y)),
        ("transformer", Transformer(), next_token),
    )
    for name, model, loss in cases:
        model.to(device).train()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        first_order = FirstOrder()
        spent = {False: [], True: []}
        for step in range(STEPS):
            watched = (
                step // 8 % 2 == 1
            )  # eight steps in turns, as looks are taken at some of eight
            torch.cuda.synchronize()
            begun = time.perf_counter()
            optimizer.zero_grad()
            risk = loss(model)
            risk.backward()
            optimizer.step()
            if watched:
                first_order.look(step, model, risk)
            torch.cuda.synchronize()
            if step >= WARM:
                spent[watched].append(1e3 * (time.perf_counter() - begun))
        alone = statistics.mean(sorted(spent[False])[: len(spent[False]) * 9 // 10])
        with_look = statistics.mean(sorted(spent[True])[: len(spent[True]) * 9 // 10])
        row = {"network": name, "step": round(alone, 3), "with a look": round(with_look, 3)}
        print(json.dumps(row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    torch.set_num_threads(8)
    reports(device)
    if device != "cpu":
        looks(device)


if __name__ == "__main__":
    main()
