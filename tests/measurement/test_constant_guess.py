"""The least risk of constant outputs, of losses with and without a closed form of it."""

import numpy as np
import pytest

from steepest.measurement import measure
from steepest.measurement._cross_entropy import is_this_loss, mean_cross_entropy
from tests.extras import need

torch = need("torch")
nn = torch.nn
functional = nn.functional


def entropy(share):
    return -share * np.log(share) - (1 - share) * np.log(1 - share)


@pytest.fixture(scope="module")
def data():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(60, 3, generator=draw)
    return x, x[:, 0] + 0.3 * torch.randn(60, generator=draw) > 0.4


def guess_of(loss, x, y, outputs):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, outputs)).double()
    return measure(model, loss, (x.double(), y), what=["risk"])["risk"].compared


LOSSES = {
    "logistic": (
        lambda out, y: functional.binary_cross_entropy_with_logits(out[:, 0], y.double()),
        1,
    ),
    "weights of classes": (
        lambda out, y: functional.cross_entropy(out, y.long(), torch.tensor([1.0, 5.0]).double()),
        2,
    ),
    "label smoothing": (
        lambda out, y: functional.cross_entropy(out, y.long(), label_smoothing=0.1),
        2,
    ),
    "cross-entropy": (lambda out, y: functional.cross_entropy(out, y.long()), 2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_constants_of_two_classes_have_an_entropy(name, data):
    x, y = data
    share = float(y.double().mean())
    weighted = 5 * share / (4 * share + 1)
    right = {
        "weights of classes": entropy(weighted),
        "label smoothing": entropy(0.9 * share + 0.05),
    }.get(name, entropy(share))
    assert guess_of(LOSSES[name][0], x, y.long(), LOSSES[name][1]) == pytest.approx(right, rel=1e-6)


def test_constants_of_an_absolute_loss_are_the_median(data):
    x, _ = data
    y = 3 * x[:, 1].double()
    loss = lambda out, target: functional.l1_loss(out[:, 0], target)
    # a median of an even number is any number between two: descent may stop a little off
    right = float((y - y.median()).abs().mean())
    assert guess_of(loss, x, y, 1) in (None, pytest.approx(right, rel=1e-3))


def test_small_residuals_do_not_make_a_robust_loss_a_squared_one(data):
    """Within its threshold Huber's loss is half of the square; beyond it constants cost less."""
    x, _ = data
    y = torch.zeros(60).double()
    y[0] = 100.0
    loss = lambda out, target: functional.huber_loss(out[:, 0], target)
    # fifty-nine pull with c each, one with 1: c = 1/59
    right = (59 * (1 / 59) ** 2 / 2 + (100 - 1 / 59 - 0.5)) / 60
    assert guess_of(loss, x, y, 1) == pytest.approx(right, rel=1e-6)


def test_a_loss_without_a_least_value_has_no_guess_and_the_search_ends(data):
    """As that of a critic, or of a policy gradient."""
    x, y = data
    calls = []

    def loss(out, target):
        calls.append(None)
        return (out[:, 0] * target).mean()

    assert guess_of(loss, x, y.double(), 1) is None
    assert len(calls) < 1000


def test_a_loss_is_asked_for_few_outputs_where_examples_have_many():
    """As a language model's logits have a hundred times the size of its weights."""

    class Asked:
        name, dtype, most = "a language model", np.dtype(np.float32), 0

        def risk(self):
            return float(np.log(40_000))

        def loss_at(self, outputs, targets):
            self.most = max(self.most, outputs.size)
            return mean_cross_entropy(outputs, targets)

    asked = Asked()
    logits, labels = np.zeros((8, 20, 40_000), np.float32), np.zeros((8, 20), int)
    assert is_this_loss(asked, logits, labels, mean_cross_entropy)
    assert 0 < asked.most <= 2**20
