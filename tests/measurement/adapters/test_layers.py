"""What layers write, the errors that reach them, and derivatives in the inputs, against hand-written ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement.adapters import subject
from steepest.nn.networks import mlp
from tests.extras import need
from tests.measurement.adapters import models

FRAMEWORKS = ["jax", "torch"]


def made(framework, micro_batch=4):
    x, y = models.data()
    options = {"micro_batch": micro_batch, "check": False}
    if framework == "jax":
        return subject(models.of_jax(), models.cross_entropy, (x, y), **options)
    torch = need("torch")
    data = torch.as_tensor(x), torch.as_tensor(y)
    return subject(models.of_torch(), torch.nn.CrossEntropyLoss(), data, **options)


def by_hand(x, y):
    """Pre-activations and errors of the tanh network of the models, by backpropagation in NumPy."""
    params = models.of_jax()[1]
    z = []
    h = x
    for layer in params:
        z.append(h @ layer["w"].T + layer["b"])
        h = np.tanh(z[-1])
    p = np.exp(z[-1])
    errors = [p / p.sum(1, keepdims=True) - np.eye(3)[y]]
    for layer, below in zip(params[:0:-1], z[-2::-1], strict=True):
        errors.insert(0, (errors[0] @ layer["w"]) * (1 - np.tanh(below) ** 2))
    return z, errors


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_layers_and_errors_are_those_of_backpropagation(framework):
    found = made(framework)
    (z, errors) = by_hand(*models.data())
    assert (
        list(found.layers())
        == list(found.errors())
        == {"jax": ["0", "1", "2"], "torch": ["0", "2", "4"]}[framework]
    )
    for one, other in zip(
        [*found.layers().values(), *found.errors().values()], [*z, *errors], strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-13)
    x = models.data(7, seed=1)[0]
    for one, other in zip(found.layers(x).values(), by_hand(x, np.zeros(7, int))[0], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_outputs_and_derivatives_at_given_inputs(framework):
    (network, params) = models.of_jax()
    found = made(framework)
    x = models.data(9, seed=2)[0]
    u = np.random.default_rng(3).standard_normal((9, 3))
    with jax.enable_x64(True):
        apply = lambda x: network.apply(params, x)
        outputs = apply(jnp.asarray(x))
        jacobian = jax.vmap(jax.jacobian(apply))(jnp.asarray(x))
    np.testing.assert_allclose(found.evaluate(x), outputs, atol=1e-13)
    np.testing.assert_allclose(found.pull(x, u), np.einsum("na,nad->nd", u, jacobian), atol=1e-13)
    np.testing.assert_array_equal(found.inputs(), models.data()[0])
    assert found.pull(x, u).dtype == found.inputs().dtype == np.float64


@pytest.mark.parametrize(
    "options", [{"bias": False}, {"skip": 0.7, "normalize": True}, {"parameterized": "ntk"}]
)
def test_errors_of_other_networks_of_ours(options):
    """With the rest of the forward pass written down once more, from each layer's pre-activations."""
    network = mlp((3, 5, 5, 1), "tanh", c_w=1.7, **options)
    with jax.enable_x64(True):
        params = network.init(jax.random.key(0))
        x, y = jax.random.normal(jax.random.key(1), (2, 7, 3))
        y = y[:, 0]
        loss = lambda outputs, y: ((outputs - y) ** 2).mean()
        found = subject((network, params), loss, (x, y), micro_batch=3, check=False)
        skip = options.get("skip", 0.0)
        multiplier = (1.7 / 5) ** 0.5 if "parameterized" in options else 1.0

        def rest(z, after, target):
            for i, layer in enumerate(params[after + 1 :], after + 1):
                h = (
                    (z - z.mean()) / jnp.sqrt(((z - z.mean()) ** 2).mean())
                    if "normalize" in options
                    else z
                )
                linear = multiplier * layer["w"] @ jnp.tanh(h) + layer.get("b", 0.0)
                z = linear + skip * z if i < len(params) - 1 else linear
            return (z[0] - target) ** 2

        for i, (z, errors) in enumerate(
            zip(found.layers().values(), found.errors().values(), strict=True)
        ):
            expected = jax.vmap(lambda z, t, i=i: jax.grad(rest)(z, i, t))(jnp.asarray(z), y)
            np.testing.assert_allclose(errors, expected, rtol=1e-10, atol=1e-13)


def test_a_loss_of_the_parameters_has_the_same_errors():
    network, params = models.of_jax()
    x, y = models.data()
    loss = lambda params, batch: models.cross_entropy(network.apply(params, batch["x"]), batch["y"])
    found = subject((network, params), loss, [{"x": x, "y": y}], check=False)
    for one, other in zip(found.errors().values(), by_hand(x, y)[1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    with pytest.raises(UserError, match="pair"):
        found.layers()


def test_a_layer_reached_twice_keeps_its_last_call_though_it_is_overwritten():
    torch = need("torch")
    nn = torch.nn

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.see = nn.Conv1d(1, 2, 3)
            self.turn = nn.Linear(4, 4)
            self.read = nn.Linear(8, 3)

        def forward(self, x):
            z = self.see(x)
            h = torch.relu_(self.turn(torch.tanh(z)))
            return self.read(torch.relu_(self.turn(h)).flatten(1))

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 1, 6, generator=generator, dtype=torch.float64)
    y = torch.tensor([0, 1, 2, 0, 1])
    torch.manual_seed(0)
    model = Twice().double()
    found = subject(model, nn.CrossEntropyLoss(), (x, y), micro_batch=2, check=False)
    with torch.no_grad():
        first = model.see(x)
        second = model.turn(torch.relu(model.turn(torch.tanh(first))))
    second = second.requires_grad_()
    last = model.read(torch.relu(second).flatten(1))
    loss = nn.functional.cross_entropy(last, y, reduction="sum")
    errors = torch.autograd.grad(loss, [second, last])
    layers = found.layers()
    assert list(layers) == ["see", "turn", "read"]
    for one, other in zip(layers.values(), (first, second, last), strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), atol=1e-13)
    for name, other in zip(["turn", "read"], errors, strict=True):
        np.testing.assert_allclose(found.errors()[name], other.numpy(), atol=1e-13)
    assert found.errors()["see"].shape == (5, 2, 4)
    assert not any(each._forward_hooks for each in model.modules())
    assert all(each.grad is None and each.requires_grad for each in model.parameters())


def test_layers_whose_first_axis_is_not_that_of_the_examples_are_left_out():
    torch = need("torch")
    nn = torch.nn

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.flat = nn.Linear(2, 2)
            self.read = nn.Linear(2, 3)

        def forward(self, x):
            return self.read(self.flat(x.reshape(-1, 2)).reshape(x.shape).mean(1))

    x = torch.ones(4, 5, 2)
    y = torch.tensor([0, 1, 2, 0])
    found = subject(Tokens(), nn.CrossEntropyLoss(), (x, y), check=False)
    assert list(found.layers()) == list(found.errors()) == ["read"]
    assert list(
        subject(nn.Linear(2, 3), nn.CrossEntropyLoss(), (x[:, 0], y), check=False).layers()
    ) == ["Linear"]


def linear(w, x):
    return x @ w


def test_what_cannot_be_had_is_said_in_one_sentence():
    squared = lambda outputs, targets: ((outputs - targets) ** 2).mean()
    plain = subject((linear, np.ones(2)), squared, (np.ones((3, 2)), np.ones(3)), check=False)
    for asked in (plain.layers, plain.errors):
        with pytest.raises(UserError, match="layers cannot be seen"):
            asked()
    counts = subject((linear, np.ones(2)), squared, (np.ones((3, 2), int), np.ones(3)), check=False)
    assert counts.inputs().dtype.kind == "i"
    np.testing.assert_allclose(counts.evaluate(counts.inputs()), 2.0)
    with pytest.raises(UserError, match="needs real inputs"):
        counts.pull(counts.inputs(), np.ones(3))
    ragged = [(np.ones((3, 2)), np.ones(3)), (np.ones((3, 4)), np.ones(3))]
    with pytest.raises(UserError, match="different shapes"):
        subject(
            (lambda w, x: x.sum(1) * w.sum(), np.ones(2)), squared, ragged, check=False
        ).inputs()
    several = subject(
        (lambda w, x: x["a"] @ w, np.ones(2)),
        squared,
        [({"a": np.ones((3, 2))}, np.ones(3))],
        check=False,
    )
    with pytest.raises(UserError, match="one array"):
        several.inputs()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_layers_read_what_the_last_one_gives(framework):
    found = made(framework)
    x, y = models.data()
    z, _ = by_hand(x, y)
    read = found.reads()
    assert list(read) == list(found.layers())
    for one, other in zip(read.values(), [x, *map(np.tanh, z[:-1])], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_outputs_are_differentiated_in_what_layers_write(framework):
    """With the loss's derivative in the outputs these are the errors; otherwise backpropagation of a cotangent."""
    found = made(framework)
    x, y = models.data()
    z, errors = by_hand(x, y)
    outputs, _ = found.outputs()
    p = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    for one, other in zip(found.layer_vjp(p - np.eye(3)[y]).values(), errors, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    u = np.random.default_rng(3).standard_normal(outputs.shape)
    params = models.of_jax()[1]
    expected = (u @ params[2]["w"]) * (1 - np.tanh(z[1]) ** 2)
    np.testing.assert_allclose(list(found.layer_vjp(u).values())[1], expected, atol=1e-13)


def test_convolutions_read_and_are_differentiated():
    """A convolution, batch normalization in evaluation mode, an activation in place: against differences."""
    torch = need("torch")
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(18, 3)
    )
    model = model.double().eval()
    model[1].running_mean.uniform_(-1, 1)
    x, y = torch.randn(5, 1, 3, 3).double(), torch.arange(5) % 3
    found = subject(model, nn.CrossEntropyLoss(), (x, y), micro_batch=2, check=False)
    head = found.reads()["4"]
    np.testing.assert_allclose(head, model[:4](x).detach().numpy(), atol=1e-14)
    u = np.random.default_rng(0).standard_normal((5, 3))
    pulled = found.layer_vjp(u)["0"]
    written = found.layers()["0"]
    assert pulled.shape == written.shape == (5, 2, 3, 3)
    moved = np.random.default_rng(1).standard_normal(written.shape)
    along = lambda h: model[1:](torch.as_tensor(written + h * moved)).detach().numpy()
    slope = (along(1e-5) - along(-1e-5)) / 2e-5
    assert (u * slope).sum() == pytest.approx((pulled * moved).sum(), rel=1e-7)
