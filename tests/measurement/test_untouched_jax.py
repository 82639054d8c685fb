"""Measuring changes nothing of a reader's in JAX: models, keys, arrays of NumPy, and what the process is set to."""

import importlib
import random
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

import steepest
from steepest.measurement import Monitor, compare, measure
from steepest.measurement.adapters import in_evaluation
from steepest.measurement.widths import step_transfer, width_check
from steepest.nn.networks import mlp
from tests.extras import need
from tests.measurement import state
from tests.measurement.adapters import test_jax_models as models

X = models.X
Y = models.Y


def plain():
    first, last = np.ones((3, 4), jnp.zeros(0).dtype), jnp.linspace(-1, 1, 8).reshape(4, 2)
    params = {"first": first, "last": last}
    return lambda params, x: jnp.tanh(x @ params["first"]) @ params["last"], params


def ours():
    network = mlp((3, 4, 2), "tanh")
    return network, network.init(jax.random.key(0))


def linen():
    net, variables = models.linen_module()
    return (lambda v, x: net.apply(v, x, False)), variables


def nnx():
    return models.nnx_module()


def equinox():
    import equinox as eqx

    return eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))


def haiku():
    hk = need("haiku")
    net = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([4, 2])(x)))
    return net, net.init(jax.random.key(0), X)


MODELS = {each.__name__: each for each in (plain, ours, linen, nnx, equinox, haiku)}


def loss(outputs, targets):
    return models.loss(outputs, targets)


def by_measure(model, data, optimizer, folder):
    quantities = ("risk", "sharpness", "norms")
    measure(model, loss, data, what=quantities, optimizer=optimizer, since=None, descents=1)


def by_gauss_newton(model, data, optimizer, folder):
    for curvature in ("gauss-newton", "fisher"):
        measure(model, loss, data, what=("sharpness",), curvature=curvature)


def by_monitor(model, data, optimizer, folder):
    monitor = Monitor(folder / "run.jsonl", loss, data, every=1, budget=None, lr=0.1)
    for step in range(2):
        assert "trouble" not in monitor(step, model, loss=jnp.float32(1.0))


def by_thorough(model, data, optimizer, folder):
    measure(model, loss, data, thorough=True, held_out=data, lr=0.1)


def by_compare(model, data, optimizer, folder):
    reports = [measure(model, loss, data, what=("risk", "norms"), seed=seed) for seed in (0, 1)]
    compare(*reports)


def seeded():
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)


def changes(way, held):
    """What a call changes of the things held, and of the process."""
    seeded()
    seen = {}
    before = state.of(held, seen=seen), state.around()
    way()
    after = state.of(held), state.around()
    return [*state.changes(before[0], after[0]), *state.changes(before[1], after[1])]


def changes_by(way, name, folder, single=False):
    with jax.enable_x64(False) if single else nullcontext():
        model = MODELS[name]()
        data = X.copy(), Y.copy()
        params = model[1] if isinstance(model, tuple) else None
        optimizer = None
        if name == "plain":
            rule = optax.adam(1e-3)
            moments = rule.init(params)
            optimizer = rule, rule.update(params, moments, params)[1]
        key = jax.random.key(3)
        held = [model, data, optimizer, key]
        with in_evaluation(model):
            return changes(lambda: way(model, data, optimizer, folder), held)


@pytest.fixture(scope="module", autouse=True)
def everything_loaded(tmp_path_factory):
    importlib.import_module("torch._dynamo")
    folder = tmp_path_factory.mktemp("loaded")
    for way in (by_measure, by_monitor):
        way(plain(), (X, Y), None, folder)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", [by_measure, by_gauss_newton, by_monitor, by_compare])
def test_nothing_of_a_model_of_jax_changes(way, name, tmp_path):
    assert changes_by(way, name, tmp_path) == []


@pytest.mark.parametrize("name", MODELS)
def test_nothing_of_a_model_of_jax_changes_by_all_quantities(name, tmp_path):
    assert changes_by(by_thorough, name, tmp_path) == []


@pytest.mark.parametrize("way", [by_measure, by_monitor])
def test_nothing_changes_where_jax_is_in_single_precision(way, tmp_path):
    assert changes_by(way, "plain", tmp_path, single=True) == []


def built(seed=0, width=1.0):
    """A network as a file of a reader's builds it, with its training."""
    generator = torch.Generator().manual_seed(seed)
    size = round(4 * width)
    model = torch.nn.Sequential(torch.nn.Linear(3, size), torch.nn.Tanh(), torch.nn.Linear(size, 2))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) / weight.shape[-1] ** 0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    objective = torch.nn.functional.cross_entropy

    def train():
        while True:
            optimizer.zero_grad()
            objective(model(DATA[0]), DATA[1]).backward()
            optimizer.step()
            yield

    return {"model": model, "loss": objective, "data": DATA, "optimizer": optimizer, "train": train}


DATA = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)


@pytest.mark.parametrize("name", ["widths", "steps", "claim"])
def test_nothing_of_a_readers_file_changes_by_what_trains_its_networks(name):
    ways = {
        "widths": lambda: width_check(built, (1.0, 2.0, 4.0), seeds=2, steps=2),
        "steps": lambda: step_transfer(built, (1.0, 2.0, 4.0), seeds=2, steps=2),
        "claim": lambda: steepest.run(
            "stable-step", subject=built, seeds=3, halvings=3, examples=6
        ),
    }
    assert changes(ways[name], [DATA, built]) == []
