"""Modules of torch: the same numbers as JAX on the same weights, and the module as it was."""

import numpy as np
import pytest

import steepest
from steepest.core.errors import UserError
from steepest.measurement.adapters import subject
from tests.extras import need
from tests.measurement.adapters import models

torch = need("torch")
nn = torch.nn


@pytest.fixture(scope="module", params=[4, 1024], ids=["small batches", "one batch"])
def pair(request):
    x, y = models.data()
    size = {"micro_batch": request.param}
    theirs = subject(
        models.of_torch(), nn.CrossEntropyLoss(), (torch.as_tensor(x), torch.as_tensor(y)), **size
    )
    return subject(models.of_jax(), models.cross_entropy, (x, y), **size), theirs


@pytest.mark.parametrize("kind", ["hessian", "gauss-newton", "fisher"])
def test_curvature_agrees_with_jax(pair, kind):
    ours, theirs = pair
    v = np.random.default_rng(0).standard_normal((3, ours.size))
    turned = np.stack([models.in_torch_order(each) for each in v])
    expected = np.stack([models.in_torch_order(each) for each in ours.products(v, kind)])
    np.testing.assert_allclose(theirs.products(turned, kind), expected, atol=1e-12)


def test_first_derivatives_agree_with_jax(pair):
    ours, theirs = pair
    rng = np.random.default_rng(1)
    v = rng.standard_normal(ours.size)
    u = rng.standard_normal((11, 3))
    assert theirs.risk() == pytest.approx(ours.risk(), rel=1e-12)
    np.testing.assert_allclose(
        theirs.gradient(), models.in_torch_order(ours.gradient()), atol=1e-13
    )
    np.testing.assert_allclose(theirs.jvp(models.in_torch_order(v)), ours.jvp(v), atol=1e-12)
    np.testing.assert_allclose(theirs.vjp(u), models.in_torch_order(ours.vjp(u)), atol=1e-12)
    np.testing.assert_allclose(theirs.outputs()[0], ours.outputs()[0], atol=1e-13)
    np.testing.assert_allclose(theirs.features(), ours.features(), atol=1e-13)
    assert theirs.classifier == ("4.weight", "4.bias")


class Attention(nn.Module):
    """Tied weights, attention and layer normalization: every trap of second derivatives at once."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)

    def forward(self, tokens):
        return self.block(self.embed(tokens)).mean(1) @ self.embed.weight.T


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, batch_first=True)
        self.read = nn.Linear(5, 3)

    def forward(self, x):
        return self.read(self.lstm(x)[0][:, -1])


def convolutional():
    return nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 3),
    )


def cases():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (6,), generator=generator)
    return {
        "attention": (Attention, torch.randint(0, 7, (6, 5), generator=generator), labels),
        "recurrent": (Recurrent, torch.randn(6, 5, 4, generator=generator), labels),
        "convolutional": (convolutional, torch.randn(6, 1, 6, 6, generator=generator), labels),
    }


@pytest.mark.parametrize("name", ["attention", "recurrent", "convolutional"])
def test_products_are_those_of_the_dense_hessian(name):
    make, x, y = cases()[name]
    torch.manual_seed(0)
    model = make().double().eval()
    found = subject(
        model, nn.CrossEntropyLoss(), (x.double() if x.is_floating_point() else x, y), micro_batch=4
    )
    v = np.random.default_rng(0).standard_normal(found.size)
    v /= np.linalg.norm(v)
    ends = [found.at(found.values() + sign * 1e-5 * v).gradient() for sign in (1, -1)]
    exact = np.asarray(found.products(v))
    np.testing.assert_allclose(
        (ends[0] - ends[1]) / 2e-5, exact, atol=1e-7 * np.linalg.norm(exact) + 1e-8
    )
    gauss = found.products(v, "gauss-newton")
    jacobian = found.jvp(v).reshape(len(x), -1)
    p = np.exp(found.outputs()[0])
    p /= p.sum(1, keepdims=True)
    form = (p * jacobian**2).sum(1) - (p * jacobian).sum(1) ** 2
    assert v @ gauss == pytest.approx(form.mean(), rel=1e-9)


def test_the_module_stays_as_it_was():
    make, x, y = cases()["convolutional"]
    model = make().eval()
    model(x).sum().backward()  # the user's own gradients
    model[0].weight.requires_grad_(False)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    grads = {
        name: None if each.grad is None else each.grad.clone()
        for name, each in model.named_parameters()
    }
    modes = [each.training for each in model.modules()]
    state = torch.get_rng_state()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=2, shuffle=True
    )
    found = subject(model, nn.CrossEntropyLoss(), loader)
    found.products(np.ones(found.size))
    found.features()
    assert torch.equal(torch.get_rng_state(), state)
    assert [each.training for each in model.modules()] == modes
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    for name, each in model.named_parameters():
        assert each.grad is None if grads[name] is None else torch.equal(each.grad, grads[name])
        assert each.requires_grad == (name != "0.weight")
    assert not any(each._forward_pre_hooks for each in model.modules())
    assert "0.weight" not in [each.name for each in found.weights]


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(2, 2)

    def forward(self, x):
        out = self.read(x).exp()
        out += out * out
        out[:, 0] = 0
        return out.mul_(out)


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, back):
        return 2 * back * ctx.saved_tensors[0]


class OnceDifferentiable(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(2, 2)

    def forward(self, x):
        return Once.apply(self.read(x))


X = torch.ones(3, 2)
Y = torch.zeros(3, dtype=torch.long)


def with_nan():
    model = nn.Linear(2, 2)
    with torch.no_grad():
        model.weight[0, 0] = torch.nan
    return model


@pytest.mark.parametrize(
    ("make", "given", "sentence"),
    [
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)), (X, Y), r"model.eval\(\)"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), (X, Y), r"model.eval\(\)"),
        (lambda: nn.Linear(2, 2), (X.long(), Y), "int64"),
        (lambda: nn.Linear(2, 2), (X, Y + 7), "out of bounds"),
        (lambda: nn.Linear(2, 2).requires_grad_(False), (X, Y), "no weights"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()), (X, Y), "torch.float64"),
        (lambda: OnceDifferentiable(), (X, Y), "custom autograd function"),
        (lambda: InPlace(), (X, Y), "inplace"),
        (with_nan, (X, Y), "not finite"),
        (lambda: nn.LSTM(2, 2, batch_first=True), (X[None], Y[:1]), "tuple"),
    ],
)
def test_bad_input_gets_one_sentence(make, given, sentence):
    model = make()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    with pytest.raises(UserError, match=sentence) as caught:
        subject(model, nn.CrossEntropyLoss(), given)
    assert "\n" not in str(caught.value)
    assert all(
        torch.equal(before[n], each) or each.isnan().any() for n, each in model.state_dict().items()
    )


def small_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))


class Autocast(nn.Module):
    """Computes in half precision inside of its forward pass, as the Trainer of transformers lets models do."""

    def __init__(self, context):
        super().__init__()
        self.net = small_network()
        self.context = context

    def forward(self, x):
        with self.context:
            return self.net(x)


def test_autocast_is_off_while_measuring_and_on_again_after():
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    context = torch.autocast("cpu", dtype=torch.bfloat16)
    model = Autocast(context)
    v = np.random.default_rng(0).standard_normal(22).astype(np.float32)
    loss = nn.CrossEntropyLoss()
    with torch.autocast("cpu", dtype=torch.bfloat16):  # also where the call itself is inside
        attached = subject(model, loss, (x, Y.repeat(2)))
        products = attached.products(v)
        assert model.net(x).dtype == torch.bfloat16
    np.testing.assert_allclose(
        products, subject(small_network(), loss, (x, Y.repeat(2))).products(v), rtol=1e-5
    )
    assert attached.outputs()[0].dtype == np.float32
    assert model(x).dtype == torch.bfloat16  # the user's own context is as it was


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_weights_in_half_precision_are_measured_in_single(kind):
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    y = Y.repeat(2)
    model = small_network().to(kind)
    single = small_network().to(kind).float()
    loss = nn.CrossEntropyLoss()
    report = steepest.measure(model, loss, (x, y), lr=0.1, since=small_network())
    expected = steepest.measure(single, loss, (x, y), lr=0.1)
    assert report["sharpness"].value == pytest.approx(expected["sharpness"].value, rel=1e-4)
    assert 0 < report["relative change of the weights"].value < 0.01
    assert {weight.dtype for weight in model.parameters()} == {kind}


def test_losses_that_are_no_mean_are_refused():
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    y = torch.arange(6.0)
    with pytest.raises(UserError, match="sum over the examples"):
        subject(nn.Linear(2, 2), nn.CrossEntropyLoss(reduction="sum"), (x, y.long() % 2))
    column = nn.Linear(2, 1)
    with (
        pytest.warns(UserWarning, match="target size"),
        pytest.raises(UserError, match="broadcast"),
    ):
        subject(column, nn.MSELoss(), (x, y))
    for fine in (
        lambda f, y: ((f[:, 0] - y) ** 2).mean(),
        lambda f, y: nn.functional.mse_loss(f, y[:, None]),
    ):
        assert subject(column, fine, (x, y)).risk() > 0
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
    assert subject(nn.Linear(2, 2), weighted, (x, y.long() % 2)).risk() > 0


def test_weights_on_several_devices_are_refused():
    """Meta tensors stand for those of another device."""
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1, device="meta"))
    with pytest.raises(UserError, match="one device, got cpu, meta"):
        subject(model, nn.MSELoss(), (torch.ones(4, 3), torch.ones(4, 1)))


def test_a_device_without_double_precision_is_refused_where_that_is_needed(monkeypatch):
    model = nn.Linear(3, 1)
    attached = subject(model, nn.MSELoss(), (torch.ones(4, 3), torch.ones(4, 1)))
    monkeypatch.setattr(attached, "device", torch.device("mps"))
    with pytest.raises(UserError, match="has no float64"):
        attached.precise()


class Readout(nn.Linear):
    """A last layer that divides by what is written on its weights, as µP's does by its base shape."""

    def forward(self, x):
        return super().forward(x) / self.weight.multiplier


def test_what_a_library_writes_on_its_weights_is_there_in_every_pass():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), Readout(6, 3)).double()
    model[2].weight.multiplier = 2.0
    x = torch.randn(11, 4, dtype=torch.float64)
    y = torch.arange(11) % 3
    attached = subject(model, nn.CrossEntropyLoss(), (x, y))
    assert attached.risk() == pytest.approx(nn.CrossEntropyLoss()(model(x), y).item(), rel=1e-12)
    v = np.random.default_rng(0).standard_normal(attached.size)
    step = 1e-5
    ahead = attached.at(attached.values() + step * v).gradient()
    behind = attached.at(attached.values() - step * v).gradient()
    np.testing.assert_allclose(
        attached.products(v), (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-9
    )
