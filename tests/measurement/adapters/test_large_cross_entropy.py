"""Cross-entropy of many logits is torch's own, with both derivatives, and batches of many outputs are cut."""

import numpy as np
import pytest

from steepest.measurement.adapters import _large_cross_entropy as large
from steepest.measurement.adapters import _weighing, subject
from tests.extras import need

torch = need("torch")
F = torch.nn.functional
GENERATOR = torch.Generator().manual_seed(0)
WEIGHTS = torch.rand(5, generator=GENERATOR, dtype=torch.float64) + 0.1


def targets(*shape):
    return torch.randint(0, 5, shape, generator=torch.Generator().manual_seed(1))


def logits(*shape):
    return 3 * torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def ignored(y):
    return torch.where(torch.arange(y.numel()).reshape(y.shape) % 5 == 0, -100, y)


LOSSES = {
    "mean": (logits(12, 5), targets(12), {}),
    "sum": (logits(12, 5), targets(12), {"reduction": "sum"}),
    "ignored": (logits(12, 5), ignored(targets(12)), {}),
    "ignored by another number": (logits(12, 5), targets(12), {"ignore_index": 2}),
    "weights of classes": (logits(12, 5), targets(12), {"weight": WEIGHTS}),
    "positions": (logits(3, 5, 4), ignored(targets(3, 4)), {"weight": WEIGHTS}),
    "smoothed": (logits(12, 5), targets(12), {"label_smoothing": 0.1}),
    "masked": (
        logits(12, 5).index_fill(1, torch.tensor([4]), -torch.inf),
        targets(12) % 4,
        {},
    ),
}


def derivatives(loss, z, directions):
    """The value, the gradient, and a product with the Hessian, behind a layer that needs each of them."""
    z = z.clone().requires_grad_()
    value = loss(z.tanh() * 2 + z)
    slope = torch.autograd.grad(value, z, create_graph=True)[0]
    return value.detach(), slope.detach(), torch.autograd.grad(slope, z, directions)[0]


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("name", LOSSES)
def test_it_has_value_and_both_derivatives_of_torchs_own(name, rows, monkeypatch):
    monkeypatch.setattr(large, "MANY", 1)
    monkeypatch.setattr(large, "AT_ONCE", 5 * rows)
    z, y, options = LOSSES[name]
    loss = lambda f: F.cross_entropy(f, y, **options)
    directions = torch.randn(z.shape, generator=GENERATOR, dtype=torch.float64)
    if name == "masked":  # what stands at −∞ has no derivative
        z = z[:, :4]
        loss = lambda f: F.cross_entropy(
            torch.cat([f, torch.full_like(f[:, :1], -torch.inf)], 1), y
        )
        directions = directions[:, :4]
    right = derivatives(loss, z, directions)
    with large.LargeCrossEntropy():
        ours = derivatives(loss, z, directions)
    for one, other in zip(ours, right, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


def test_torch_says_what_is_wrong_with_labels(monkeypatch):
    monkeypatch.setattr(large, "MANY", 1)
    with large.LargeCrossEntropy(), pytest.raises(IndexError, match="out of bounds"):
        F.cross_entropy(logits(2, 5), torch.tensor([0, 7]))


class Language(torch.nn.Module):
    """Logits of 5 words at each of 6 positions, with hidden states if asked for."""

    def __init__(self, states=False):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(5, 3)
        self.recurrent = torch.nn.GRU(3, 4, batch_first=True)
        self.head = torch.nn.Linear(4, 5)
        self.states = states

    def forward(self, x, labels=None):
        states, last = self.recurrent(self.embedding(x))
        z = self.head(states)
        if labels is not None:
            return {"loss": of_tokens(z, labels), "logits": z}
        return (z, last) if self.states else z


def of_tokens(z, y):
    return F.cross_entropy(z.flatten(0, 1), y.flatten())


X, Y = targets(9, 6), ignored(targets(9, 6))
FORMS = {
    "logits": (Language(), of_tokens, (X, Y)),
    "states too": (Language(True), lambda out, y: of_tokens(out[0], y), (X, targets(9, 6))),
    "own loss": (Language(), None, {"x": X, "labels": targets(9, 6)}),
    "own loss with ignored ones": (Language(), None, {"x": X, "labels": Y}),
}
CUT = {"logits": 2, "states too": 2, "own loss": 2, "own loss with ignored ones": 1024}
"""Examples at once where 60 outputs are allowed; a loss that hides its outputs and is no plain mean stays whole."""


@pytest.mark.parametrize("name", FORMS)
def test_batches_of_many_outputs_are_cut_and_all_is_that_of_the_whole(name, monkeypatch):
    module, loss, data = FORMS[name]
    monkeypatch.setattr(large, "MANY", 10**9)
    whole = subject(module.double(), loss, data)
    monkeypatch.setattr(large, "MANY", 1)
    monkeypatch.setattr(_weighing, "NUMBERS", 60)
    cut = subject(module, loss, data)
    assert cut.batches.size == CUT[name]
    v = np.random.default_rng(0).standard_normal(whole.size)
    assert cut.risk() == pytest.approx(whole.risk(), rel=1e-12)
    np.testing.assert_allclose(cut.gradient(), whole.gradient(), rtol=1e-9, atol=1e-14)
    for kind in ("hessian", "gauss-newton", "fisher") if loss else ("hessian",):
        if name == "states too" and kind != "hessian":
            continue
        ours, right = cut.products(v, kind), whole.products(v, kind)
        np.testing.assert_allclose(ours, right, rtol=1e-9, atol=1e-13)


def test_a_loss_that_is_no_mean_of_its_parts_stays_whole(monkeypatch):
    monkeypatch.setattr(_weighing, "NUMBERS", 30)
    loss = lambda z, y: F.mse_loss(z, torch.zeros_like(z)).sqrt()
    attached = subject(Language().double(), loss, (X, Y))
    assert attached.batches.size == 1024
