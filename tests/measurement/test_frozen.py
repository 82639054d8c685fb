"""Weights that stay as they are are named, and those that move are not."""

import jax
import optax
import pytest

from steepest import measure
from steepest.measurement import FindingId
from tests.extras import need

torch = need("torch")
nn = torch.nn
cross_entropy = nn.functional.cross_entropy


def case():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    return model, torch.randn(40, 6), torch.randint(0, 3, (40,))


def about_frozen(model, data, optimizer=None):
    report = measure(model, cross_entropy, data, what=["risk"], optimizer=optimizer)
    kinds = (FindingId.FROZEN, FindingId.NOT_HELD)
    return [finding for finding in report.findings if finding.id in kinds]


def test_weights_without_gradients_are_named_and_counted():
    model, x, y = case()
    assert not about_frozen(model, (x, y))
    model[0].requires_grad_(False)
    (finding,) = about_frozen(model, (x, y))
    assert (finding.sign, finding.id) == ("?", FindingId.FROZEN)  # often meant: no alarm
    total = sum(weight.numel() for weight in model.parameters())
    assert f"56 weights, {56 / total:.0%} of all" in finding.text
    assert "(0.weight, 0.bias)" in finding.text
    model[2].requires_grad_(False)
    assert "(0.weight, 0.bias, 2.weight and 1 other)" in about_frozen(model, (x, y))[0].text


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("steps", [0, 2])
def test_weights_that_the_optimizer_does_not_hold(kind, steps):
    model, x, y = case()
    optimizer = kind([*model[2].parameters(), *model[4].parameters()], 0.01)
    before = model[0].weight.detach().clone()
    for _ in range(steps):
        cross_entropy(model(x), y).backward()
        optimizer.step()
    assert torch.equal(model[0].weight, before)
    (finding,) = about_frozen(model, (x, y), optimizer)
    assert (finding.sign, finding.id) == ("?", FindingId.NOT_HELD)
    assert "does not hold the weights 0.weight, 0.bias, which" in finding.text
    assert not about_frozen(model, (x, y), kind(model.parameters(), 0.01))


def test_weights_that_adam_of_optax_does_not_hold():
    """Masked transforms keep no moments of the others; the limit is that of the weights that Adam moves."""
    jnp = jax.numpy
    x = jax.random.normal(jax.random.key(0), (20, 3))
    apply = lambda params, x: jnp.tanh(x @ params["a"] + params["b"]).sum(1, keepdims=True)
    loss = lambda outputs, targets: ((outputs - targets) ** 2).mean()
    params = {"a": jnp.full((3, 2), 0.1), "b": jnp.full(2, 0.1)}
    optimizer = optax.multi_transform(
        {"moves": optax.adam(0.1), "stays": optax.set_to_zero()}, {"a": "moves", "b": "stays"}
    )
    state = optimizer.init(params)
    slope = jax.grad(lambda params: loss(apply(params, x), x[:, :1]))
    for _ in range(3):
        updates, state = optimizer.update(slope(params), state)
        params = optax.apply_updates(params, updates)
    options = {"lr": 0.1, "what": ["risk", "sharpness"]}
    report = measure((apply, params), loss, (x, x[:, :1]), optimizer=(optimizer, state), **options)
    (finding,) = [line for line in report.findings if line.id == FindingId.NOT_HELD]
    assert "does not hold the weights b, which" in finding.text
    alone = lambda held, x: apply({"a": held["a"], "b": params["b"]}, x)
    adam, *others = state.inner_states["moves"].inner_state
    moments = (adam._replace(mu={"a": adam.mu["a"]}, nu={"a": adam.nu["a"]}), *others)
    part = measure(
        (alone, {"a": params["a"]}),
        loss,
        (x, x[:, :1]),
        optimizer=(optax.adam(0.1), moments),
        **options,
    )
    name = "preconditioned sharpness"
    assert report[name].value == pytest.approx(part[name].value, rel=1e-3)
    assert not any(line.id == FindingId.NOT_HELD for line in part.findings)


def test_an_optimizer_of_another_model():
    model, x, y = case()
    other, _, _ = case()
    (finding,) = about_frozen(model, (x, y), torch.optim.SGD(other.parameters(), 0.01))
    assert "holds none of these weights" in finding.text


def test_tied_weights_are_held():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.second = nn.Linear(6, 6)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(torch.tanh(self.first(x)))

    _, x, y = case()
    model = Tied()
    assert not about_frozen(model, (x, y), torch.optim.SGD(model.parameters(), 0.01))


class Adapted(nn.Module):
    """A linear layer with an adapter, whose base is frozen by design."""

    def __init__(self):
        super().__init__()
        self.base_layer = nn.Linear(6, 3)
        self.lora_A = nn.Linear(6, 2, bias=False)
        self.lora_B = nn.Linear(2, 3, bias=False)
        self.base_layer.requires_grad_(False)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


def test_the_base_of_an_adapter_is_meant_to_stay():
    _, x, y = case()
    torch.manual_seed(0)
    model = nn.Sequential(Adapted())
    assert not about_frozen(model, (x, y))
