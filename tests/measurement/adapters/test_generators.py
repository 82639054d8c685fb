"""Passes over data that draw random numbers leave the reader's generators as they are, at every moment."""

import random

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from steepest.measurement import measure
from steepest.measurement.adapters import Batches
from steepest.measurement.adapters._generators import held_by, of_the_process, states_of

X = torch.arange(24.0).reshape(12, 2) / 24
Y = X.sum(1, keepdim=True)


class Drawing(Dataset):
    """Draws from everything when an example is asked for."""

    def __init__(self):
        self.own = np.random.default_rng(0)

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        noise = random.random() + np.random.rand() + self.own.random() + float(torch.rand(()))
        return X[index] + noise, Y[index]


SOURCES = {
    "shuffled": lambda: DataLoader(TensorDataset(X, Y), batch_size=5, shuffle=True),
    "own generator": lambda: DataLoader(
        TensorDataset(X, Y), batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(3)
    ),
    "augmented": lambda: DataLoader(Drawing(), batch_size=5),
}


def states(source):
    return [bits(state) for _, state in states_of([*of_the_process(), *held_by(source)])]


def bits(state):
    if torch.is_tensor(state):
        return state.numpy().tobytes()
    if isinstance(state, np.ndarray):
        return state.tobytes()
    return [bits(part) for part in state] if isinstance(state, tuple) else str(state)


@pytest.mark.parametrize("entire", [False, True])
@pytest.mark.parametrize("name", SOURCES)
def test_generators_are_the_readers_between_batches_and_after_a_pass_that_is_left(name, entire):
    source = SOURCES[name]()
    batches = Batches(source, entire=entire)
    before = states(source)
    passing = iter(batches)
    for _ in range(2):
        next(passing)
        assert states(source) == before
    for generator in of_the_process():  # the reader goes on
        getattr(generator, "random", lambda size=None: torch.rand(3))()
    now = states(source)
    assert now != before
    passing.close()
    assert states(source) == now


@pytest.mark.parametrize("name", SOURCES)
def test_entire_batches_are_the_same_in_every_pass(name):
    source = SOURCES[name]()
    batches = Batches(source, entire=True)
    first = [part[0] for part, _ in batches]
    torch.rand(1)
    random.random()
    assert all(torch.equal(one, part[0]) for one, (part, _) in zip(first, batches, strict=True))


class AsNumbers:
    """A loader of torch that gives arrays of NumPy, for a model of JAX."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return ((x.numpy(), y.numpy()) for x, y in self.loader)


@pytest.mark.parametrize("name", ["shuffled", "own generator"])
def test_a_model_of_jax_on_a_loader_of_torch(name):
    source = AsNumbers(SOURCES[name]())
    before = states(source)
    model = (lambda w, x: x @ w, jnp.zeros((2, 1)))
    report = measure(model, lambda f, y: ((f - y) ** 2).mean(), source, what=["risk"])
    assert report["risk"].value == pytest.approx(float((Y**2).mean()))
    assert states(source) == before
    list(source)
    assert states(source) != before


def test_what_a_function_of_jax_draws_while_it_is_traced_is_put_back():
    def drawing(weights, x):
        np.random.rand()
        random.random()
        return x @ weights

    before = states(None)
    model = (drawing, jnp.zeros((2, 1)))
    data = X.numpy(), Y.numpy()
    measure(model, lambda f, y: ((f - y) ** 2).mean(), data, what=["risk", "sharpness"])
    assert states(None) == before
