"""What ``measure`` says of ten kinds of networks, whether it is so, and how long it takes beside an epoch.

The networks are the files of ``examples/measure``. Of each the findings are written down, and what they say is tried:

* the largest stable step, by descending on all examples from the weights that were measured, with half of it and twice;
* the step to try, by training anew with it;
* a cure, by training anew with it;
* the risk with fixed noise, by a hundred other draws.

An epoch is the losses and gradients of all examples in batches of 64, without the data's preparation; in JAX compiled.

    python benchmarks/examples/run.py [--only WORD] [--record]
"""

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import torch

from steepest import measure
from steepest.measurement import FindingId, Report

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
RECORD = Path(__file__).with_name("record.json")
BATCH = 64
STEPS = 40  # of descent with half of the largest stable step, and with twice
DRAWS = 100
EPOCHS = 3  # timed, of which the fastest counts


@dataclass(frozen=True)
class Network:
    """A kind of networks.

    Attributes:
        kind: in words.
        file: of ``examples/measure``, without its ending.
        options: of ``measure`` besides what ``build`` returns.
        check: tries what is said, and returns what came of it in words.
        build: which function of the file.
    """

    kind: str
    file: str
    check: Callable[["Network", Report], str]
    options: dict[str, Any] = field(default_factory=dict)
    build: str = "build"

    def made(self, **knobs: Any) -> tuple[Any, ...]:
        """Return model, loss, data, optimizer and held-out data; None for what is not there."""
        parts = getattr(importlib.import_module(self.file), self.build)(**knobs)
        return (*parts, None, None)[:5]


def batches_of(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield batches: those of a loader or of a list, or of 64 examples of a pair of arrays."""
    if not isinstance(data, tuple):
        yield from data
        return
    x, y = data
    for start in range(0, len(x), BATCH):
        yield x[start : start + BATCH], y[start : start + BATCH]


def risk_of(network: Network, part: int = -1, **knobs: Any) -> float:
    """Build it anew and return the risk on its held-out examples, or on those given with part 2."""
    made = network.made(**knobs)
    model, loss = made[:2]
    x, y = made[part]
    if isinstance(model, tuple):
        return float(loss(model[0](model[1], x), y))
    with torch.no_grad():
        return float(loss(model(x), y))


# -------------------------------------------------------------------------------------- what is tried


def limit_holds(network: Network, report: Report) -> str:
    """Descend on all examples with half of the largest stable step, and with twice."""
    momentum = network.options["momentum"]
    limit = 2 * (1 + momentum) / report["sharpness"].value
    below = descend(network, limit / 2, momentum)
    above = descend(network, 2 * limit, momentum)
    start = report["risk"].value
    return (
        f"{STEPS} steps on all examples: from {start:.3g} to {below[-1]:.3g} with half of it, at most {max(below):.3g}"
        f"; up to {max(above):.3g} with twice"
    )


def descend(network: Network, lr: float, momentum: float) -> list[float]:
    """Return the risks along descent with momentum on all examples, first that of the weights that are measured."""
    model, loss, data, _, _ = network.made()
    if isinstance(model, tuple):
        return _descend_jax(model, loss, data, lr, momentum)
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum=momentum)
    risks = []
    for _ in range(STEPS + 1):
        optimizer.zero_grad()
        total = 0.0
        count = sum(len(x) for x, _ in batches_of(data))
        for x, y in batches_of(data):
            part = loss(model(x), y) * len(x) / count
            part.backward()
            total += part.item()
        risks.append(total)
        optimizer.step()
    return risks


def _descend_jax(model: Any, loss: Any, data: Any, lr: float, momentum: float) -> list[float]:
    """Return the same of a pair of JAX."""
    apply, params = model
    slope = jax.jit(jax.value_and_grad(lambda params: loss(apply(params, data[0]), data[1])))
    velocity = jax.tree.map(np.zeros_like, params)
    risks = []
    for _ in range(STEPS + 1):
        risk, gradient = slope(params)
        risks.append(float(risk))
        velocity = jax.tree.map(lambda v, g: momentum * v + g, velocity, gradient)
        params = jax.tree.map(lambda w, v: w - lr * v, params, velocity)
    return risks


def step_to_try(network: Network, report: Report) -> str:
    """Train anew with the step that short descents name."""
    if not any(finding.id == FindingId.STEP_TO_TRY for finding in report.findings):
        return "no other step is named"
    step = report["descents"].value
    tried = [risk_of(network, part, lr=step) for part in (2, -1)]
    before = [risk_of(network, part) for part in (2, -1)]
    return (
        f"trained anew with {step:g}: {tried[0]:.3g} on the examples given instead of {before[0]:.3g}, {tried[1]:.3g} "
        f"on held-out ones instead of {before[1]:.3g}"
    )


def cured_by(build: str, network: Network, report: Report) -> str:
    """Train anew with what is advised."""
    cured = Network(network.kind, network.file, network.check, build=build)
    return (
        f"`:{build}` does what is advised: {risk_of(cured):.3g} on held-out examples instead of "
        f"{risk_of(network):.3g}"
    )


def stop_earlier(network: Network, report: Report) -> str:
    """Train for fewer epochs."""
    risks = {epochs: risk_of(network, epochs=epochs) for epochs in (5, 10, 20, 50, 200)}
    said = ", ".join(f"{risk:.3g} after {epochs}" for epochs, risk in risks.items())
    return f"risk on held-out examples by epochs: {said}"


def other_draws(network: Network, report: Report) -> str:
    """Evaluate the loss with other random numbers."""
    model, loss, (x, y), _, _ = network.made()
    torch.manual_seed(1)
    with torch.no_grad():
        risks = np.array([loss(model(x), y).item() for _ in range(DRAWS)])
    return (
        f"risk {report['risk'].value:.4g} with fixed noise, {risks.mean():.4g} ± {risks.std():.2g} over {DRAWS} other "
        "draws"
    )


# -------------------------------------------------------------------------------------------- networks

WITH_MOMENTUM = {"momentum": 0.9}
NETWORKS = (
    Network("plain network", "mlp_torch", limit_holds, {"lr": 0.1, **WITH_MOMENTUM}),
    Network(
        "residual network, batch norm", "resnet_torch", limit_holds, {"lr": 0.05, **WITH_MOMENTUM}
    ),
    Network("LSTM", "lstm_torch", limit_holds, {"lr": 0.1, **WITH_MOMENTUM}),
    Network("GPT", "gpt_torch", limit_holds, {"lr": 0.1, **WITH_MOMENTUM}),
    Network("variational autoencoder, Adam", "vae_torch", other_draws, {"noise": "fixed"}),
    Network("regression on 300 examples", "regression_torch", stop_earlier),
    Network("equinox", "mlp_equinox", limit_holds, {"lr": 0.1, **WITH_MOMENTUM}),
    Network("pair of JAX, optax's Adam", "pair_jax", step_to_try, {"descents": 5}),
    Network("sixteen hidden layers", "deep_torch", partial(cured_by, "cured")),
    Network("weights in bfloat16, Adam", "bfloat16_torch", partial(cured_by, "autocast")),
    Network(
        "the same under autocast", "bfloat16_torch", step_to_try, {"descents": 5}, build="autocast"
    ),
    Network("groups of weights, AdamW", "groups_torch", partial(cured_by, "mended")),
)


def epoch_seconds(network: Network) -> float:
    """Time losses and gradients of all examples in batches; the fastest of some epochs."""
    model, loss, data, _, _ = network.made()
    passes = partial(_pass_torch, model, loss, data)
    if isinstance(model, tuple):
        slope = jax.jit(jax.grad(lambda params, x, y: loss(model[0](params, x), y)))
        passes = partial(_pass_jax, slope, model[1], data)
        passes()  # compiles
    times = []
    for _ in range(EPOCHS):
        started = time.perf_counter()
        passes()
        times.append(time.perf_counter() - started)
    return min(times)


def _pass_torch(model: Any, loss: Any, data: Any) -> None:
    for x, y in batches_of(data):
        model.zero_grad()
        loss(model(x), y).backward()


def _pass_jax(slope: Any, params: Any, data: Any) -> None:
    for x, y in batches_of(data):
        jax.block_until_ready(slope(params, x, y))


def measured(network: Network) -> Report:
    """Measure with the defaults, and batches of 64 where the data do not tell."""
    model, loss, data, optimizer, held_out = network.made()
    batch = BATCH if isinstance(data, tuple) else None
    return measure(
        model, loss, data, optimizer=optimizer, held_out=held_out, batch=batch, **network.options
    )


def row(network: Network) -> list[str]:
    """Return a line of the table."""
    measured(network)  # once before, so that nothing is compiled or imported while it is timed
    started = time.perf_counter()
    report = measured(network)
    seconds = time.perf_counter() - started
    epoch = epoch_seconds(network)
    said = ", ".join(f"{finding.sign} {finding.id}" for finding in report.findings)
    return [
        network.kind,
        f"`{network.file}`",
        said,
        network.check(network, report),
        f"{seconds / epoch:.2g}",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="those whose kind contains this")
    parser.add_argument("--record", action="store_true", help="write the lines into the record")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = []
    for network in NETWORKS:
        if options.only in network.kind:
            rows.append(row(network))
            print(*rows[-1], sep=" | ", flush=True)
    if options.record:
        record = json.loads(RECORD.read_text("utf-8"))
        (table,) = record["tables"]
        lines = {line[0]: line for line in [*table["rows"], *rows]}  # others stay as they are
        kinds = [network.kind for network in NETWORKS]
        table["rows"] = [lines[kind] for kind in kinds if kind in lines]
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
