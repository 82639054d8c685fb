"""What hooks hear of a step, beside what else a program does with its module: it is neither broken nor misread."""

import gc
import importlib
import weakref

import pytest

from steepest.measurement import Monitor, read_log, watch
from steepest.measurement.training import _names as names
from steepest.measurement.training._faults import Fault
from tests.extras import need

torch = need("torch")
nn = torch.nn
cross_entropy = nn.functional.cross_entropy
mse_loss = nn.functional.mse_loss

X = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
Y = X[:, :1].sin()


class OwnLinear(nn.Linear):
    """A subclass, through which fx traces."""


def network():
    torch.manual_seed(0)
    return nn.Sequential(OwnLinear(6, 16), nn.ReLU(), nn.Linear(16, 1))


def followed(folder, model, step, steps=60, **options):
    """Call a monitor after each step, and listen to each; return what the log shows."""
    monitor = Monitor(folder / "log", every=1, **options)
    monitor.own_step.affords = lambda step: True
    for number in range(steps):
        monitor(number, model, loss=step(number))
    return watch(folder / "log")


def descend(model, optimizer, loss=mse_loss, x=X, y=Y):
    optimizer.zero_grad()
    value = loss(model(x), y)
    value.backward()
    optimizer.step()
    return value


def per_example(model):
    weights = dict(model.named_parameters())
    f = lambda w, x: torch.func.functional_call(model, w, (x[None],)).sum()
    torch.func.vmap(torch.func.grad(f), (None, 0))(weights, X[:4])


OTHERS = {
    "vmap": per_example,
    "jit.trace": lambda model: torch.jit.trace(model, X[:2]),
    "fx": lambda model: torch.fx.symbolic_trace(model),
    "export": lambda model: torch.export.export(model, (X[:2],)),
    "evaluation": lambda model: torch.no_grad()(model)(X[:2]),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_other_passes_through_the_module_are_left_alone(tmp_path, capsys, what):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)

    def step(number):
        if number % 7 == 3:
            OTHERS[what](model)
        value = descend(model, optimizer)
        if number % 7 == 5:
            OTHERS[what](model)
        return value

    run = followed(tmp_path, model, step, 30)
    assert capsys.readouterr().err == ""
    assert {names.SIZE, names.LEFT_OVER} <= set(run.names)
    assert abs(run[names.LEFT_OVER].values[-1]) < 1e-5


def test_a_module_that_is_compiled_later_is_compiled_as_without(tmp_path):
    import torch._dynamo

    counts = []
    for watched in (False, True):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        monitor = Monitor(tmp_path / "log", every=1)
        monitor.own_step.affords = lambda step: True
        called = model
        for number in range(20):
            if number == 10:
                called = torch.compile(model, backend="eager")
            value = descend(called, optimizer)
            if watched:
                monitor(number, called, loss=value)
        counts.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()  # by which a monitor knows that hooks would be compiled
    assert counts[0] == counts[1] == 1


def test_a_monitor_that_was_called_once_leaves_nothing_behind(tmp_path):
    hooks = importlib.import_module("torch.optim.optimizer")._global_optimizer_post_hooks
    gc.collect()
    before = len(hooks)
    monitor = Monitor(tmp_path / "log")
    monitor(0, network())
    assert len(hooks) == before + 1
    del monitor
    gc.collect()
    assert len(hooks) == before


@pytest.mark.parametrize("kind", ["nothing trained", "an empty weight", "lazy", "complex"])
def test_losses_are_recorded_whatever_the_weights_are(tmp_path, capsys, kind):
    model = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 1)) if kind == "lazy" else network()
    if kind == "nothing trained":
        model.requires_grad_(False)
    if kind == "an empty weight":
        model.register_parameter("none", nn.Parameter(torch.empty(0)))
    if kind == "complex":
        model.register_parameter("phase", nn.Parameter(torch.ones(256, dtype=torch.complex64)))
    optimizer = None

    def step(number):
        nonlocal optimizer
        if kind == "nothing trained" or number == 0:
            return torch.tensor(1.0)
        if optimizer is None:
            model(X)
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
        return descend(model, optimizer)

    run = followed(tmp_path, model, step, 12)
    assert len(run.records) == 12 and names.LOSS in run.names
    assert (names.UPDATE in run.names) == (kind != "nothing trained")
    assert capsys.readouterr().err == ""


def healthy(run):
    """Return the ids of what rules of the table say with a ``!``."""
    return {
        finding.id
        for finding in run.findings
        if isinstance(finding.id, Fault) and finding.sign == "!"
    }


def test_gradients_that_are_set_to_zero_before_their_own_pass_do_not_add_up(tmp_path):
    """An adversary, through whom another network's gradients pass before it is trained itself."""
    model = network()
    other = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(number):
        model(other(X)).mean().backward()
        return descend(model, optimizer)

    assert Fault.GRADIENTS_ADD_UP not in {
        finding.id for finding in followed(tmp_path, model, step).findings
    }


def test_several_steps_a_call_do_not_add_up(tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    rows = [slice(8 * i, 8 * i + 8) for i in range(8)]
    step = lambda number: [descend(model, optimizer, x=X[r], y=Y[r]) for r in rows][-1]
    assert Fault.GRADIENTS_ADD_UP not in {
        finding.id for finding in followed(tmp_path, model, step).findings
    }


def test_derivatives_that_are_only_returned_do_not_add_up(tmp_path):
    """Gradients of two tasks, which are combined by hand."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    weights = list(model.parameters())

    def step(number):
        values = [mse_loss(model(X), Y), model(X).square().mean()]
        slopes = [torch.autograd.grad(value, weights) for value in values]
        for weight, slope, other_slope in zip(weights, *slopes, strict=True):
            weight.grad = slope - 0.3 * other_slope
        optimizer.step()
        return values[0]

    assert Fault.GRADIENTS_ADD_UP not in {
        finding.id for finding in followed(tmp_path, model, step).findings
    }


def test_another_loss_of_probabilities_is_none(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.Softmax(1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    entropy = lambda p, y: 40 * -(y * p.clamp_min(1e-9).log()).sum(1).mean()
    step = lambda number: descend(model, optimizer, entropy, y=X.softmax(1))
    assert Fault.PROBABILITIES not in {
        finding.id for finding in followed(tmp_path, model, step).findings
    }


def test_pixels_that_repeat_their_neighbours_are_no_copies(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(4, 8), nn.Linear(8, 4))
    pixels = (torch.rand(32, 50) < 0.03).long().cumsum(1) % 4  # the same colour for thirty places
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    loss = lambda f, y: cross_entropy(f.flatten(0, 1), y.flatten())
    step = lambda number: descend(model, optimizer, loss, pixels[:, :-1], pixels[:, 1:])
    assert Fault.REPEATS_INPUTS not in {
        finding.id for finding in followed(tmp_path, model, step).findings
    }


def test_an_evaluation_that_begins_late_is_compared_since_then(tmp_path):
    monitor = Monitor(tmp_path / "log", every=5)
    model = network()
    for step in range(200):
        loss = 1.0 + 1.3 * 0.95**step
        monitor(step, model, loss=loss + 0.01 * (-1) ** step)
        if step in (60, 120, 180):
            monitor.held_out(step, loss + 0.02)
    assert healthy(watch(tmp_path / "log")) == set()


def test_an_attack_in_evaluation_mode_before_the_step_is_no_fault(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)

    def step(number):
        model.eval()
        x = X.clone().requires_grad_()
        (slope,) = torch.autograd.grad(mse_loss(model(x), Y), x)
        model.train()
        return descend(model, optimizer, x=X + 0.01 * slope.sign())

    ids = {finding.id for finding in followed(tmp_path, model, step).findings}
    assert Fault.EVALUATION_MODE not in ids


def test_outputs_that_are_to_lie_at_their_ends_are_not_saturated(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.Sigmoid())
    with torch.no_grad():
        model[0].weight.mul_(0).add_(30 * torch.eye(6))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    step = lambda number: descend(model, optimizer, y=(X > 0).float())
    assert Fault.SATURATED not in {
        finding.id for finding in followed(tmp_path, model, step).findings
    }


def test_a_part_that_is_called_by_itself_keeps_no_graph(tmp_path):
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    monitor = Monitor(tmp_path / "log", every=1)
    monitor.own_step.affords = lambda step: True
    monitor(0, model)
    hidden = model[1](model[0](X))
    kept = weakref.ref(hidden)
    del hidden
    gc.collect()
    assert kept() is None


def test_a_penalized_optimum_is_no_alarm(tmp_path):
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.3, weight_decay=0.1)
    run = followed(tmp_path, model, lambda number: descend(model, optimizer), 200)
    assert healthy(run) == set()
    assert len(read_log(tmp_path / "log")) == 200
