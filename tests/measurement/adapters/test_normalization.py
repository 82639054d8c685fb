"""Batch normalization as it is trained: fixed batches, their own statistics, and a module that stays as it was."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.core.errors import UserError
from steepest.measurement import Monitor
from steepest.measurement.adapters import normalizing_layers, subject
from tests.extras import need

torch = need("torch")
nn = torch.nn

WIDTHS = (4, 6, 3)
EPSILON = 1e-5  # torch's own, in the variance


def make(seed=0, momentum=0.1):
    """A hidden layer with batch normalization, whose gains are not one."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(4, 6), nn.BatchNorm1d(6, momentum=momentum), nn.Tanh(), nn.Linear(6, 3)
    ).double()
    with torch.no_grad():
        model[1].weight.uniform_(0.5, 1.5)
        model[1].bias.normal_()
    return model


def examples(n=24, seed=0):
    rng = np.random.default_rng(seed)
    return torch.as_tensor(3 * rng.standard_normal((n, 4)) + 1), torch.as_tensor(
        rng.integers(0, 3, n)
    )


def loader(x, y, size=8, shuffle=False, generator=None):
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), size, shuffle=shuffle, generator=generator
    )


def convolution(inputs, outputs):
    """A normalized layer of a convolutional network."""
    layer = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return layer, nn.BatchNorm2d(outputs), nn.ReLU()


def descend(model, optimizer, batches):
    """One epoch."""
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def state_of(model):
    modes = [part.training for part in model.modules()]
    return modes, {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same_state(model, before):
    modes, tensors = before
    assert [part.training for part in model.modules()] == modes
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, tensors[name]), name


def by_hand(model, x, y, size):
    """The mean over batches of the cross-entropy, as a function of the flat weights, by JAX."""
    shapes = [tuple(weight.shape) for weight in model.parameters()]
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
    x = jnp.asarray(x.numpy())
    y = jnp.asarray(y.numpy())

    def batch_loss(w, rows):
        matrix, bias, gain, shift, last, offset = (
            w[start:stop].reshape(shape)
            for start, stop, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
        )
        z = x[rows] @ matrix.T + bias
        z = (z - z.mean(0)) / jnp.sqrt(((z - z.mean(0)) ** 2).mean(0) + EPSILON)
        out = jnp.tanh(gain * z + shift) @ last.T + offset
        return -jnp.take_along_axis(jax.nn.log_softmax(out), y[rows][:, None], 1).mean()

    batches = [slice(start, start + size) for start in range(0, len(x), size)]
    return lambda w: sum(batch_loss(w, rows) for rows in batches) / len(batches)


@pytest.mark.parametrize("of_arrays", [True, False], ids=["arrays", "loader"])
@pytest.mark.parametrize("training", [True, False])
def test_derivatives_are_those_of_the_loss_with_each_batchs_statistics(of_arrays, training):
    model = make().train(training)
    x, y = examples()
    before = state_of(model)
    data = (x, y) if of_arrays else loader(x, y)
    attached = subject(
        model, nn.CrossEntropyLoss(), data, normalizing=normalizing_layers(model), batch=8
    )
    with jax.enable_x64(True):
        loss = by_hand(model, x, y, 8)
        w = jnp.asarray(attached.values())
        v = np.random.default_rng(1).standard_normal(attached.size)
        assert attached.risk() == pytest.approx(float(loss(w)), rel=1e-12)
        np.testing.assert_allclose(attached.gradient(), jax.grad(loss)(w), atol=1e-12)
        np.testing.assert_allclose(attached.products(v), jax.hessian(loss)(w) @ v, atol=1e-11)
    assert_same_state(model, before)


def test_losses_that_call_the_module_themselves_have_the_statistics_of_the_batch_too():
    model = make().train()
    x, y = examples()
    names = normalizing_layers(model)
    before = state_of(model)
    entropy = nn.CrossEntropyLoss()

    def of_params(params, batch):
        return entropy(torch.func.functional_call(model, params, (batch[0],)), batch[1])

    v = np.random.default_rng(1).standard_normal(6 * 4 + 6 + 12 + 3 * 6 + 3)
    products = [
        subject(model, loss, loader(x, y), normalizing=names).products(v)
        for loss in (of_params, entropy)
    ]
    np.testing.assert_allclose(products[0], products[1], atol=1e-12)
    assert_same_state(model, before)


class OwnLoss(nn.Module):
    """Returns its loss, as models of transformers do."""

    def __init__(self):
        super().__init__()
        self.net = make()

    def forward(self, inputs, labels):
        return {"loss": nn.functional.cross_entropy(self.net(inputs), labels)}


def test_models_with_their_own_loss_have_the_statistics_of_the_batch_too():
    model = OwnLoss().train()
    x, y = examples()
    batches = [{"inputs": x[i : i + 8], "labels": y[i : i + 8]} for i in (0, 8, 16)]
    before = state_of(model)
    names = normalizing_layers(model)
    attached = subject(model, None, batches, normalizing=names)
    names = normalizing_layers(model.net)
    net = subject(model.net, nn.CrossEntropyLoss(), loader(x, y), normalizing=names)
    assert attached.risk() == pytest.approx(net.risk(), rel=1e-12)
    assert_same_state(model, before)


def test_layers_that_are_frozen_in_training_stay_so():
    model = nn.Sequential(make(), nn.BatchNorm1d(3)).double().train()
    model[0][1].eval()
    assert normalizing_layers(model) == ("1",)
    model[1].eval()
    assert normalizing_layers(model) == ()
    model.eval()  # nothing tells how it was trained
    assert normalizing_layers(model) == ("0.1", "1")


@pytest.mark.parametrize("own_generator", [True, False])
def test_a_loader_that_shuffles_gives_the_same_batches_in_every_pass(own_generator):
    x, y = examples()
    generator = torch.Generator().manual_seed(3) if own_generator else None
    data = loader(x, y, shuffle=True, generator=generator)
    model = make().train()
    attached = subject(model, nn.CrossEntropyLoss(), data, normalizing=normalizing_layers(model))
    state = torch.get_rng_state(), generator.get_state() if generator else None
    first = attached.risk()
    torch.manual_seed(11)
    again = attached.at(attached.values()).risk()
    assert first == again
    torch.set_rng_state(state[0])
    attached.risk()
    assert torch.equal(torch.get_rng_state(), state[0])
    if generator:
        assert torch.equal(generator.get_state(), state[1])


def test_a_last_batch_of_few_examples_is_left_out():
    x, y = examples(25)  # three batches of eight, and one example, which has no variance
    model = make().train()
    attached = subject(
        model, nn.CrossEntropyLoss(), loader(x, y), normalizing=normalizing_layers(model)
    )
    assert [count for _, count in attached.batches] == [8, 8, 8]
    assert len(attached.outputs()[0]) == len(attached.inputs()) == 24


def test_alone_it_is_the_network_of_evaluation_mode():
    model = make().train()
    x, y = examples()
    for _ in range(30):
        model(x)
    before = state_of(model)
    attached = subject(
        model, nn.CrossEntropyLoss(), (x, y), normalizing=normalizing_layers(model), batch=8
    )
    with torch.no_grad():
        expected = copy.deepcopy(model).eval()(x).numpy()
    np.testing.assert_allclose(attached.alone().outputs()[0], expected, atol=1e-12)
    np.testing.assert_allclose(attached.evaluate(x.numpy()), expected, atol=1e-12)
    assert np.abs(attached.outputs()[0] - expected).max() > 1e-3
    assert_same_state(model, before)


def test_a_report_says_whose_statistics_it_has():
    model = make().train()
    x, y = examples()
    given = (model, nn.CrossEntropyLoss(), loader(x, y))
    options = {"what": ["risk", "sharpness"], "lr": 0.1}
    report = steepest.measure(*given, **options)
    running = steepest.measure(*given, **options, statistics="running")
    assert report["risk with running statistics"].value == pytest.approx(running["risk"].value)
    assert report["sharpness"].value != pytest.approx(running["sharpness"].value, rel=0.01)
    said = dict(report["sharpness"].assumes)
    assert said[
        "batch normalization takes the statistics of batches of 8 examples, as your training does"
    ]
    assert not any("normalization" in what for what, _ in running["sharpness"].assumes)
    arrays = steepest.measure(model, nn.CrossEntropyLoss(), (x, y), what=["sharpness"], lr=0.1)
    assert (
        "batch normalization takes the statistics of batches of 24 examples, as your training does",
        None,
    ) in arrays["sharpness"].assumes
    with pytest.raises(UserError, match="statistics 'batches'"):
        steepest.measure(model, nn.CrossEntropyLoss(), (x, y), statistics="batches")


@pytest.mark.parametrize("momentum", [0.1, 0.001])
def test_running_statistics_that_lag_behind_are_a_finding(momentum):
    model = make(momentum=momentum).train()
    x, _ = examples(48)
    y = (x[:, 0] > 1).long()
    x = x + 20  # far from the mean of zero from which running statistics start
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    for _ in range(100):
        descend(model, optimizer, loader(x, y, 16))
    options = {"what": ["risk"], "optimizer": optimizer, "held_out": (x, y)}
    report = steepest.measure(model, nn.CrossEntropyLoss(), loader(x, y, 16), **options)
    evidence = [finding.evidence for finding in report.findings]
    assert ("risk with running statistics" in evidence) == (momentum == 0.001)
    assert report["risk on held-out examples"].value == pytest.approx(
        report["risk with running statistics"].value
    )


def test_a_monitor_measures_what_is_descended_and_changes_nothing(tmp_path):
    x, y = examples(48)
    data = loader(x, y, 16)

    def trained(watched):
        model = make().train()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        options = {"optimizer": optimizer, "budget": None, "every": 5}
        monitor = Monitor(tmp_path / "run.jsonl", nn.CrossEntropyLoss(), data, **options)
        records = []
        for step in range(11):
            if watched:
                records.append(monitor(step, model))
            descend(model, optimizer, data)
        if watched:
            records.append(monitor(11, model, now=True))
        return model, optimizer, [record for record in records if record]

    model, optimizer, records = trained(True)
    assert_same_state(model, state_of(trained(False)[0]))
    report = steepest.measure(model, nn.CrossEntropyLoss(), data, optimizer=optimizer)
    last = records[-1]["quantities"]["sharpness"]
    assert last["value"] == pytest.approx(report["sharpness"].value, rel=1e-6)
    assert last["compared"] == pytest.approx(38.0)


def test_a_training_that_goes_well_at_a_large_step_is_not_warned_of(tmp_path):
    """In evaluation mode, which was measured before, the same records announce its divergence."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    x = torch.as_tensor(pixels / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    y = torch.as_tensor(labels)
    torch.manual_seed(34)
    model = nn.Sequential(*convolution(1, 8), nn.MaxPool2d(2), *convolution(8, 16))
    model.extend([nn.Flatten(), nn.Linear(256, 10)])
    optimizer = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9)
    probe = [(x[rows], y[rows]) for rows in torch.randperm(len(x))[:128].split(64)]
    options = {"optimizer": optimizer, "budget": None, "every": 10}
    monitors = {
        statistics: Monitor(
            tmp_path / statistics, nn.CrossEntropyLoss(), probe, statistics=statistics, **options
        )
        for statistics in ("batch", "running")
    }
    warned = dict.fromkeys(monitors, 0)
    order = torch.randperm(len(x)).split(64)
    for step in range(61):
        for statistics, monitor in monitors.items():
            record = monitor(step, model) or {}
            warned[statistics] += len(record.get("warnings", ()))
        rows = order[step % 28]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 1.0
    assert warned["batch"] == 0 and warned["running"] > 0
