"""Wrong calls of the public functions: each by its name, and the call itself."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import torch
from torch import nn

import steepest
from benchmarks.wrong_calls.arrays import OWN, Call, of_arrays
from benchmarks.wrong_calls.arrays import raises as _raises
from steepest import measurement

cross_entropy = nn.functional.cross_entropy
FOLDER = Path(tempfile.mkdtemp())
QUICK = {"what": ["risk", "margins"], "lr": 0.1}


class OwnError(Exception):
    """An error of the reader's own."""


class Custom(nn.Module):
    """A layer, and what is done with its outputs."""

    def __init__(self, act: Callable[[Any], Any], size: int = 4):
        super().__init__()
        self.layer = nn.Linear(size, 3)
        self.act = act

    def forward(self, x):
        return self.act(self.layer(x))


def examples() -> tuple[torch.Tensor, torch.Tensor]:
    """Sixteen inputs of four numbers, in three classes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(16, 4, generator=generator)
    return x, torch.randint(0, 3, (16,), generator=generator)


def _models() -> dict[str, Any]:
    lazy = nn.Sequential(nn.LazyLinear(3))
    infinite = nn.Linear(4, 3)
    infinite.weight.data[0, 0] = np.inf
    troubles = [
        KeyError("x"),
        AttributeError("y"),
        ZeroDivisionError("z"),
        OwnError("w"),
        IndexError(),
    ]
    troubles += [
        StopIteration(),
        AssertionError(),
        RecursionError("deep"),
        MemoryError(),
        KeyError(),
    ]
    return {
        "None": None,
        "text": "model",
        "number": 3,
        "a class": nn.Linear,
        "a function": lambda x: x,
        "a triple": (1, 2, 3),
        "a pair without a function": (1, 2),
        "a pair without weights": (lambda w, x: x, None),
        "a pair with text as weights": (lambda w, x: x, "weights"),
        "a pair with whole weights": (lambda w, x: x @ w, jnp.ones((4, 3), int)),
        "lazy": lazy,
        "without weights": nn.ReLU(),
        "infinite weights": infinite,
        "complex": nn.Linear(4, 3).to(torch.complex64),
        "on meta": nn.Linear(4, 3, device="meta"),
        "wrong width": nn.Linear(5, 3),
        "returns None": Custom(lambda h: None),
        "returns a tuple": Custom(lambda h: (h, h)),
        "returns a dictionary": Custom(lambda h: {"logits": h}),
        "returns a number": Custom(lambda h: 3.0),
        "returns an array of NumPy": Custom(lambda h: h.detach().numpy()),
        "detached": Custom(lambda h: h.detach()),
        "random": Custom(lambda h: h + torch.rand_like(h)),
        "NaN": Custom(lambda h: h * np.nan),
        "dropout": nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)),
        "a state": nn.Linear(4, 3).state_dict(),
        **{f"raises {type(t).__name__} {t}": Custom(_raises(t)) for t in troubles},
    }


def _losses() -> dict[str, Any]:
    return {
        "None": None,
        "text": "cross_entropy",
        "number": 2.0,
        "a class": nn.CrossEntropyLoss,
        "of one argument": lambda f: f.sum(),
        "of none": lambda: 0.0,
        "of three": lambda f, y, z: f.sum(),
        "per example": nn.CrossEntropyLoss(reduction="none"),
        "a sum": nn.CrossEntropyLoss(reduction="sum"),
        "returns a float": lambda f, y: float(cross_entropy(f, y)),
        "returns None": lambda f, y: None,
        "returns a tuple": lambda f, y: (cross_entropy(f, y), 1),
        "returns text": lambda f, y: "loss",
        "NaN": lambda f, y: cross_entropy(f, y) * np.nan,
        "complex": lambda f, y: cross_entropy(f, y) * 1j,
        "without gradients": lambda f, y: cross_entropy(f.detach(), y),
        "of JAX": lambda f, y: jnp.mean(f),
        "raises KeyError": _raises(KeyError("a")),
        "raises its own": _raises(OwnError()),
        "accuracy": lambda f, y: (f.argmax(1) == y).float().mean(),
    }


def _data() -> dict[str, Any]:
    x, y = examples()
    return {
        "None": None,
        "text": "data",
        "number": 7,
        "a generator": ((x, y) for _ in range(2)),
        "an iterator": iter([(x, y)]),
        "empty": [],
        "empty arrays": (x[:0], y[:0]),
        "one array": x,
        "inputs alone": (x,),
        "three parts": [(x, x, y)],
        "other lengths": (x, y[:5]),
        "other targets": (x, torch.randn(16, 2)),
        "text as targets": (x, ["a"] * 16),
        "a list of targets": (x, y.tolist()),
        "classes beyond": (x, y + 7),
        "negative classes": (x, y - 2),
        "real classes": (x, y.float()),
        "NaN": (x * np.nan, y),
        "infinite": (x * np.inf, y),
        "complex": (x + 1j, y),
        "whole": (x.long(), y),
        "text as inputs": (np.array(["a"] * 16), y),
        "objects": (np.array([object()] * 16), y),
        "scalars": (torch.tensor(1.0), torch.tensor(1)),
        "several inputs": [((x, x), y)],
        "several inputs, a pair": ((x, x), y),
        "targets in a tuple": [(x, (y, y))],
        "targets in a dictionary": [(x, {"a": y})],
        "a dictionary": {"x": x, "y": y},
        "an empty dictionary": {},
        "different widths": [(x, y), (x[:, :3], y)],
        "different lengths of sequences": [(x[:, None], y), (x[:, None].repeat(1, 2, 1), y)],
        "batches of None": [None, None],
        "a set": {1, 2},
        "a folder": FOLDER,
        "a pair of texts": ("x", "y"),
        "a function": examples,
        "a mask of other devices": (x.to("meta"), y),
    }


def _options() -> Iterator[tuple[str, dict[str, Any]]]:
    optax_state = optax.adam(0.1).init(jnp.ones(3))
    wrong = {
        "what": ["risk?", "", [], ["nothing"], [3], 5],
        "lr": [-1.0, "0.1", np.nan, np.inf, 0, [0.1], 1j, True],
        "momentum": [-1.0, 2.0, "0.9", np.nan],
        "optimizer": [3, "adam", optax.adam(0.1), optax_state, torch.optim.SGD, [], lambda: 1],
        "weight_decay": [-1.0, "0", np.nan],
        "batch": [0, -3, 2.5, "8", 10**6, np.nan],
        "curvature": ["hess", None, 3],
        "since": [
            "file",
            3,
            {},
            torch.ones(2),
            np.full(15, np.nan),
            nn.Linear(2, 2),
            {"weight": 1},
        ],
        "micro_batch": [0, -1, "8", 2.5, None],
        "features": ["nothing", 3, lambda p, x: x],
        "held_out": [3, [], "data", (torch.ones(3, 5), torch.ones(3).long())],
        "thorough": ["yes"],
        "statistics": ["batches", None, 3],
        "noise": ["free", None, True],
        "descents": [-1, 2.5, "3", True, None],
        "seed": [-1, 1.5, "0", None],
        "watch": [3, "print"],
        "nothing": [1],
    }
    for name, values in wrong.items():
        for value in values:
            yield f"{name}={_said(value)}", {name: value}


def _said(value: Any) -> str:
    said = repr(value).splitlines()[0]
    return said if len(said) < 40 and "0x" not in said else type(value).__name__


def of_measure() -> Iterator[Call]:
    """Calls of ``measure``."""
    good = lambda: nn.Linear(4, 3)
    for name, model in _models().items():
        yield (
            f"measure model {name}",
            lambda m=model: steepest.measure(m, cross_entropy, examples(), **QUICK),
        )
    for name, loss in _losses().items():
        yield (
            f"measure loss {name}",
            lambda f=loss: steepest.measure(good(), f, examples(), **QUICK),
        )
    for name, given in _data().items():
        yield (
            f"measure data {name}",
            lambda d=given: steepest.measure(good(), cross_entropy, d, **QUICK),
        )
    for name, option in _options():
        yield (
            f"measure {name}",
            lambda o=option: steepest.measure(good(), cross_entropy, examples(), **{**QUICK, **o}),
        )


def of_monitor() -> Iterator[Call]:
    """Calls of ``Monitor`` that are refused at once; in a training it never raises."""
    wrong = {
        "file": [None, 3, [], b"log"],
        "what": ["risk?", ["nothing"], 5, [None]],
        "every": [0, -1, 2.5, "10"],
        "per_decade": [0, "10", None],
        "budget": [0, -1, 2, "0.1", np.nan],
        "to": [3, "tensorboard", [3], object()],
        "statistics": ["batches", 3],
        "nothing": [1],
    }
    for name, values in wrong.items():
        for value in values:
            options = {
                "file": FOLDER / "log",
                "loss": cross_entropy,
                "data": examples(),
                name: value,
            }
            yield f"Monitor {name}={_said(value)}", lambda o=options: steepest.Monitor(**o)
    monitor = lambda: steepest.Monitor(FOLDER / "a.jsonl", cross_entropy, examples(), every=1)
    for name, model in _models().items():
        yield f"Monitor call with model {name}", lambda m=model: monitor()(0, m)
    for name, given in _data().items():
        made = lambda d=given: steepest.Monitor(FOLDER / "b.jsonl", cross_entropy, d, every=1)
        yield f"Monitor call with data {name}", lambda f=made: f()(0, nn.Linear(4, 3))
    for step in (None, "a", np.nan, [1]):
        yield f"Monitor call at step {_said(step)}", lambda s=step: monitor()(s, nn.Linear(4, 3))
    for loss in ("a", [], torch.ones(3), torch.tensor([]), np.nan):
        yield (
            f"Monitor call with loss {_said(loss)}",
            lambda v=loss: monitor()(0, nn.Linear(4, 3), loss=v),
        )
    yield (
        "Monitor into a folder",
        lambda: steepest.Monitor(FOLDER, cross_entropy, examples())(0, nn.Linear(4, 3)),
    )


def of_files_and_claims() -> Iterator[Call]:
    """Calls with names of files and claims."""
    text = FOLDER / "text.json"
    text.write_text("no json")
    listed = FOLDER / "list.json"
    listed.write_text("[1, 2]")
    binary = FOLDER / "binary.json"
    binary.write_bytes(bytes(range(256)))
    files = [FOLDER, FOLDER / "none.json", text, listed, binary, None, 3, "", b"x", [], "a\0b"]
    for file in files:
        yield f"read_report {_said(file)}", lambda f=file: steepest.read_report(f)
        yield f"read_log {_said(file)}", lambda f=file: measurement.read_log(f)
        yield f"watch {_said(file)}", lambda f=file: steepest.watch(f)
        yield f"compare {_said(file)}", lambda f=file: steepest.compare(f, f)
        yield f"load_checkpoint {_said(file)}", lambda f=file: measurement.load_checkpoint(f)
        yield f"width_check {_said(file)}", lambda f=file: steepest.width_check(f)
    yield "compare of {}", lambda: steepest.compare({}, {})
    yield (
        "compare of a wrong dictionary",
        lambda: steepest.compare({"quantities": 3}, {"model": []}),
    )
    for claim in ("nothing", "", 3, None, [], FOLDER, "a/b.py", b"x"):
        for function in (
            steepest.run,
            steepest.check,
            steepest.cite,
            steepest.sweep,
            steepest.trials,
        ):
            yield f"{function.__name__} {_said(claim)}", lambda f=function, c=claim: f(c)
    for name, value in {
        "preset": "slow",
        "seed": -1,
        "out": text,
        "nothing": 1,
        "subject": 3,
    }.items():
        yield f"run {name}={_said(value)}", lambda o={name: value}: steepest.run("catapult", **o)
    for name, value in {"seed": "a", "preset": None, "seeds": -1, "width": "wide"}.items():
        yield f"run {name}={_said(value)}", lambda o={name: value}: steepest.run("catapult", **o)
    builders = {
        "returns None": lambda seed=0, width=1.0: None,
        "raises": _raises(OWN),
        "without train": lambda seed=0, width=1.0: (nn.Linear(4, 3), cross_entropy, examples()),
        "a number": 3,
        "None": None,
    }
    for name, builder in builders.items():
        yield f"width_check {name}", lambda b=builder: steepest.width_check(b)
        yield f"step_transfer {name}", lambda b=builder: measurement.step_transfer(b)
    build = builders["without train"]
    for name, values in {
        "widths": [(), (1,), "1,2,3", (1, -1, 2), (np.nan, 1, 2)],
        "seeds": [0, "a"],
        "steps": [0, 1.5],
        "examples": [0],
    }.items():
        for value in values:
            yield (
                f"width_check {name}={_said(value)}",
                lambda o={name: value}: steepest.width_check(build, **o),
            )


def every_call(seed: int) -> list[Call]:
    """Return all of them, in a fixed order; a seed chooses what is random about those of arrays."""
    return [*of_measure(), *of_monitor(), *of_files_and_claims(), *of_arrays(seed)]
