"""Weights that stay as they are are named, and those that move are not."""

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
    assert "does not hold 0.weight, 0.bias, which" in finding.text
    assert not about_frozen(model, (x, y), kind(model.parameters(), 0.01))


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
