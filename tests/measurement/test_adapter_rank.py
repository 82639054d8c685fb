"""The rank r* of adapters against adapters that are drawn, and adapters found in a model by their usual names."""

import numpy as np
import pytest

from steepest import measure
from steepest.claims.training.lora_rank import theory
from steepest.core.errors import UserError
from steepest.measurement import FindingId
from steepest.measurement._adapter_rank import UNDER_ADAM, UNDER_DESCENT, ranks
from tests.extras import need

torch = need("torch")
nn = torch.nn
cross_entropy = nn.functional.cross_entropy
RNG = np.random.default_rng(0)
X = torch.as_tensor(RNG.standard_normal((40, 12)) / np.arange(1, 13), dtype=torch.float32)
Y = torch.as_tensor(RNG.integers(0, 3, 40))


def squares(x, y, rank, draws, by_sign):
    """Return the mean square change of outputs by the first step of adapters that are drawn."""
    rng = np.random.default_rng(7)
    total = 0.0
    for _ in range(draws):
        a = rng.standard_normal((rank, x.shape[1])) / x.shape[1] ** 0.5
        gradient = y.T @ (x @ a.T)  # of B, (outputs, r)
        step = np.sign(gradient) if by_sign else gradient
        total += ((step @ a @ x.T) ** 2).mean() / draws
    return total


@pytest.mark.parametrize("by_sign", [True, False])
def test_the_change_of_drawn_adapters_turns_from_r_to_its_square_at_that_rank(by_sign):
    x = X.numpy().astype(float)
    y = RNG.standard_normal((40, 5))
    of_layer = ranks(x, y)
    linear = of_layer.adam - 1 if by_sign else of_layer.descent + 1
    law = lambda r: r * linear + r * r  # over the constant of r²
    measured = squares(x, y, 32, 1500, by_sign) / squares(x, y, 1, 6000, by_sign)
    assert measured == pytest.approx(law(32) / law(1), rel=0.1)


def test_it_is_the_ratio_of_the_claims_constants():
    x = X.numpy().astype(float)
    y = RNG.standard_normal((40, 5))
    constants = theory.sizes(theory.Batch(x.T, y.T))
    of_layer = ranks(x, y)
    assert of_layer.descent == pytest.approx(constants.b / constants.a)
    assert of_layer.adam == pytest.approx(constants.c / constants.e)


class Adapted(nn.Module):
    """A frozen layer with an adapter beside it, as libraries write it."""

    def __init__(self, rank):
        super().__init__()
        self.base = nn.Linear(12, 3).requires_grad_(False)
        self.lora_A = nn.ModuleDict({"default": nn.Linear(12, rank, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(rank, 3, bias=False)})
        nn.init.zeros_(self.lora_B["default"].weight)

    def forward(self, x):
        added = self.lora_B["default"](self.lora_A["default"](x))
        return self.base(x) + added


def adapted(rank, **options):
    torch.manual_seed(0)
    model = nn.Sequential(Adapted(rank))
    return measure(model, cross_entropy, (X, Y), what=["risk", "adapter-rank"], **options), model


def test_adapters_are_found_by_their_names():
    report, model = adapted(4)
    outputs = model(X)
    errors = torch.softmax(outputs, 1) - nn.functional.one_hot(Y, 3)
    expected = ranks(X.numpy(), errors.detach().numpy())
    assert report[UNDER_DESCENT].parts == {"0": pytest.approx(expected.descent, rel=1e-4)}
    assert report[UNDER_ADAM].value == pytest.approx(expected.adam, rel=1e-4)


@pytest.mark.parametrize(("rank", "side"), [(64, "well above"), (2, "near")])
def test_the_finding_says_on_which_side_of_it_an_adapter_is(rank, side):
    report, _ = adapted(rank)
    texts = [finding.text for finding in report.findings if finding.id == FindingId.ADAPTERS]
    assert len(texts) == 1
    assert f"rank {rank} is {side} r*" in texts[0]


def test_without_adapters_all_linear_layers_are_looked_at_and_convolutions_are_not():
    torch.manual_seed(0)
    chain = nn.Sequential(nn.Linear(12, 7), nn.ReLU(), nn.Linear(7, 3))
    report = measure(chain, cross_entropy, (X, Y), what=["adapter-rank"])
    assert set(report[UNDER_ADAM].parts) == {"0", "2"}
    assert not report.findings
    images = nn.Sequential(nn.Unflatten(1, (3, 2, 2)), nn.Conv2d(3, 3, 1), nn.Flatten())
    with pytest.raises(UserError, match="beside a linear layer"):
        measure(images, cross_entropy, (X, Y), what=["adapter-rank"])
