"""A training of one process ends with the same bits with a monitor and without, whatever its module is made of."""

import importlib

import pytest

from steepest.measurement import Monitor, measure, read_log
from steepest.measurement.adapters import unwrapped
from tests.extras import need

torch = need("torch")
nn = torch.nn
prune = importlib.import_module("torch.nn.utils.prune")
X = torch.randn(48, 8, generator=torch.Generator().manual_seed(0))
Y = torch.arange(48) % 5


class Tagged(torch.Tensor):
    """A subclass that stays what it is through every operation."""


def mlp():
    return nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 5))


def subclassed():
    model = mlp()
    model[0].weight = nn.Parameter(model[0].weight.detach().as_subclass(Tagged))
    return model


def parametrized(of):
    def build():
        model = mlp()
        of(model[0])
        return model

    return build


class Halved(nn.Module):
    """A parametrization with a state that each forward pass changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, weight):
        self.calls += 1
        return weight / 2


def halve(weight):
    weight.grad.mul_(0.5)


def hooked():
    """Change outputs by hooks of somebody else."""
    model = mlp()
    model[0].register_forward_pre_hook(lambda module, given: (given[0] * 1.5,))
    model[3].register_forward_hook(lambda module, given, out: out - out.mean())
    model[0].weight.register_hook(lambda slope: 2 * slope)
    model[3].weight.register_post_accumulate_grad_hook(halve)
    return model


def compiled():
    model = mlp()
    model.compile(backend="eager")
    return model


def part_compiled():
    model = mlp()
    model[0] = torch.compile(model[0], backend="eager")
    return model


BUILDS = {
    "plain": mlp,
    "tensor subclass": subclassed,
    "spectral": parametrized(nn.utils.parametrizations.spectral_norm),
    "weight norm": parametrized(nn.utils.parametrizations.weight_norm),
    "orthogonal": parametrized(nn.utils.parametrizations.orthogonal),
    "own parametrization": parametrized(
        lambda layer: nn.utils.parametrize.register_parametrization(layer, "weight", Halved())
    ),
    "spectral by hooks": parametrized(nn.utils.spectral_norm),
    "weight norm by hooks": parametrized(nn.utils.weight_norm),
    "pruned": parametrized(lambda layer: prune.random_unstructured(layer, "weight", 0.4)),
    "hooks": hooked,
    "data parallel": lambda: nn.DataParallel(mlp()),
    "averaged": lambda: torch.optim.swa_utils.AveragedModel(mlp()),
    "compiled": lambda: torch.compile(mlp(), backend="eager"),
    "compiled in place": compiled,
    "part compiled": part_compiled,
}


def trained(build, log=None):
    """Train, and return what the training has changed: weights, buffers, moments, random state."""
    torch.manual_seed(0)
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    monitor = None
    if log is not None:
        monitor = Monitor(
            log, nn.functional.cross_entropy, (X, Y), every=2, budget=None, optimizer=optimizer
        )
        monitor(0, model)
    for step in range(1, 7):
        rows = torch.randint(48, (16,))
        loss = nn.functional.cross_entropy(model(X[rows]), Y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if monitor is not None:
            monitor(step, model, loss=loss)
    moments = [m for state in optimizer.state.values() for m in state.values()]
    state = [tensor.detach() for tensor in model.state_dict().values()]
    return [*state, *moments, torch.get_rng_state()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BUILDS)
def test_a_monitor_changes_no_bit(tmp_path, name):
    alone = trained(BUILDS[name])
    watched = trained(BUILDS[name], tmp_path / "log")
    assert all(torch.equal(one, other) for one, other in zip(alone, watched, strict=True))
    records = read_log(tmp_path / "log")
    assert [record["step"] for record in records] == [0, 2, 4, 6]
    assert not any("trouble" in record for record in records)
    assert "sharpness" in records[-1]["quantities"]
    assert "gradient norm of the batch" in records[-1]["quantities"]


@pytest.mark.filterwarnings("ignore")
def test_what_is_inside_of_wrappers_is_measured():
    torch.manual_seed(0)
    model = mlp().eval()
    what = ["risk", "sharpness"]
    plain = measure(model, nn.functional.cross_entropy, (X, Y), what=what)
    both = torch.compile(nn.DataParallel(model), backend="eager")
    assert unwrapped(both) is model and unwrapped("a network") == "a network"
    inside = measure(both, nn.functional.cross_entropy, (X, Y), what=what)
    assert [inside[name].value for name in what] == [plain[name].value for name in what]


@pytest.mark.filterwarnings("ignore")
def test_the_cache_of_a_compiler_is_the_same():
    compiled = []

    def backend(graph, example_inputs):
        compiled.append(graph)
        return graph.forward

    torch.manual_seed(0)
    model = torch.compile(mlp().eval(), backend=backend)
    model(X[:16])
    before = len(compiled)
    measure(model, nn.functional.cross_entropy, (X, Y), what=["risk", "sharpness"])
    assert len(compiled) == before
    model(X[:16])
    assert len(compiled) == before
