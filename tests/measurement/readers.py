"""Models, losses and data as readers have them, with all that a careless measurement would change."""

from collections import Counter, deque
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

cross_entropy = nn.functional.cross_entropy


class Case(NamedTuple):
    """What is measured, how, and what else must stay."""

    model: Any
    loss: Any = cross_entropy
    data: Any = None
    options: Any = {}
    others: Any = ()


def examples(count: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs of four numbers, in three classes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, 4, generator=generator)
    return x, torch.randint(0, 3, (count,), generator=generator)


def words() -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences of whole numbers, in three classes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 7, (16, 5), generator=generator)
    return x, torch.randint(0, 3, (16,), generator=generator)


def network(*first: nn.Module) -> nn.Sequential:
    """A small network behind some layers."""
    return nn.Sequential(*first, nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def around(layer: nn.Module) -> nn.Sequential:
    """A small network that begins with a layer from four numbers to six."""
    return nn.Sequential(layer, nn.Tanh(), nn.Linear(6, 3))


class Meter:
    """Counts and averages, and is no module."""

    def __init__(self):
        self.count = 0
        self.total = torch.zeros(())
        self.values = []

    def __call__(self, *_):
        self.count += 1
        self.total += 1
        self.values.append(self.count)


class Busy(nn.Module):
    """Keeps counters and averages in every way that Python has."""

    def __init__(self):
        super().__init__()
        self.net = network()
        self.register_buffer("average", torch.zeros(3))
        self.calls = 0
        self.rebound = torch.zeros(3)
        self.written = torch.zeros(3)
        self.array = np.zeros(3)
        self.history = []
        self.counter = Counter()
        self.recent = deque(maxlen=3)
        self.seen = set()
        self.nested = {"a": [torch.zeros(3)]}
        self.meter = Meter()

    def forward(self, x, labels=None):
        outputs = self.net(x)
        mean = outputs.detach().mean(0)
        self.average.mul_(0.9).add_(mean)
        self.calls += 1
        self.rebound = 0.9 * self.rebound + mean
        self.written.add_(mean)
        self.array += 1
        self.history.append(outputs.detach())
        self.counter["calls"] += 1
        self.recent.append(1)
        self.seen.add(self.calls)
        self.nested["a"][0] += 1
        self.nested["a"].append(3)
        self.meter()
        return outputs if labels is None else {"loss": cross_entropy(outputs, labels)}


class OwnGenerators(nn.Module):
    """Draws random numbers from generators of its own."""

    def __init__(self, size):
        super().__init__()
        self.net = network()
        self.size = size
        self.of_torch = torch.Generator().manual_seed(1)
        self.of_numpy = np.random.default_rng(1)

    def forward(self, x):
        self.of_numpy.random()
        return self.net(x + self.size * torch.rand(x.shape, generator=self.of_torch))


class InPlace(nn.Module):
    """Normalizes what it is given, in place."""

    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, x):
        return self.net(x.sub_(0.5).mul_(2.0))


class Recurrent(nn.Module):
    """Returns logits and hidden states, and binds the latter."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 4, padding_idx=0)
        self.lstm = nn.LSTM(4, 5, batch_first=True)
        self.head = nn.Linear(5, 3)
        self.hidden = None

    def forward(self, x):
        states, self.hidden = self.lstm(self.embedding(x))
        return self.head(states[:, -1]), self.hidden


class Bounded(nn.Module):
    """Its embedding is renormalized in place by the forward pass."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 4, max_norm=0.5)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.embedding(x).mean(1))


class Checkpointed(nn.Module):
    """Calculates a layer again in the backward pass."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(torch.tanh(checkpoint(self.first, x, use_reentrant=False)))


class Tied(nn.Module):
    """Two layers with one matrix."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


class Averaging(nn.Module):
    """A loss that keeps an average."""

    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(3))
        self.calls = 0

    def forward(self, outputs, targets):
        self.average += outputs.detach().mean(0)
        self.calls += 1
        return cross_entropy(outputs, targets)


def hooked() -> Case:
    """Hooks that record, count, and one that is part of the model."""
    model = network()
    calls = {"forward": 0}
    recorded = []
    count = 0
    meter = Meter()

    def record(layer, given, out):
        calls["forward"] += 1
        recorded.append(out.detach())

    def count_calls(layer, given):
        nonlocal count
        count += 1

    model[0].register_forward_hook(record)
    model[0].register_forward_pre_hook(count_calls)
    model[0].register_full_backward_hook(meter)
    model[2].register_forward_hook(lambda layer, given, out: recorded.append(1) or 2 * out)
    return Case(model, others=(calls, recorded, meter, count_calls))


def counting_loss() -> Case:
    """A function that records its values."""
    values = []

    def loss(outputs, targets):
        values.append(float(outputs.detach().sum()))
        targets.clamp_(max=1)
        return cross_entropy(outputs, targets)

    return Case(network(), loss, others=(values,))


def compiled() -> Case:
    """A module whose compiler counts."""
    compilations = []

    def backend(graph, given):
        compilations.append(1)
        return graph.forward

    model = network()
    return Case(torch.compile(model, backend=backend), others=(model, compilations))


def loaded(kind: str) -> Case:
    """A loader that shuffles by a generator of the reader's, which its samplers may hold."""
    x, y = examples()
    generator = torch.Generator().manual_seed(3)
    data = TensorDataset(x, y)
    sampler = RandomSampler(data, generator=generator)
    loader = {
        "own": lambda: DataLoader(data, batch_size=8, shuffle=True, generator=generator),
        "sampler": lambda: DataLoader(data, batch_size=8, sampler=sampler),
        "batches": lambda: DataLoader(data, batch_sampler=BatchSampler(sampler, 8, False)),
    }[kind]()
    return Case(InPlace(), data=loader, others=(generator, x, y))


def own_loss() -> Case:
    """A module that returns its loss."""
    x, y = examples()
    return Case(Busy(), None, [{"x": x[:8], "labels": y[:8]}, {"x": x[8:], "labels": y[8:]}])


def frozen() -> Case:
    """A layer that takes no gradients."""
    model = network()
    model[0].weight.requires_grad_(False)
    return Case(model)


def of_numpy() -> Case:
    """Arrays of NumPy, which a first layer in place would overwrite."""
    x, y = examples()
    return Case(network(nn.ReLU(inplace=True)), data=(x.numpy(), y.numpy()))


CASES = {
    "in-place": lambda: Case(InPlace()),
    "numpy": of_numpy,
    "batch-norm": lambda: Case(network(nn.BatchNorm1d(4)), options={"batch": 8}),
    "batch-norm-evaluated": lambda: Case(network(nn.BatchNorm1d(4)).eval()),
    "dropout": lambda: Case(network(nn.Dropout(0.3)), options={"noise": "fixed"}),
    "spectral-norm": lambda: Case(around(nn.utils.spectral_norm(nn.Linear(4, 6))).eval()),
    "spectral-norm-trained": lambda: Case(
        around(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 6)))
    ),
    "weight-norm": lambda: Case(around(nn.utils.weight_norm(nn.Linear(4, 6)))),
    "max-norm": lambda: Case(Bounded(), data=words()),
    "own-loss": own_loss,
    "busy": lambda: Case(Busy()),
    "hooks": hooked,
    "recurrent": lambda: Case(
        Recurrent().eval(), lambda returned, targets: cross_entropy(returned[0], targets), words()
    ),
    "checkpoint": lambda: Case(Checkpointed()),
    "tied": lambda: Case(Tied()),
    "frozen": frozen,
    "half": lambda: Case(network().bfloat16()),
    "compiled": compiled,
    "own-generators": lambda: Case(OwnGenerators(0.0)),
    "own-noise": lambda: Case(OwnGenerators(0.1), options={"noise": "fixed"}),
    "own-noise-refused": lambda: Case(OwnGenerators(0.1)),
    "loader": lambda: loaded("own"),
    "sampler": lambda: loaded("sampler"),
    "batch-sampler": lambda: loaded("batches"),
    "loss-module": lambda: Case(network(), Averaging()),
    "counting-loss": counting_loss,
}
REFUSED = ("spectral-norm-trained", "max-norm", "own-noise-refused")
"""Cases that are no function of the weights, or whose second derivative is wrong; the first not at all weights."""
