"""Losses that are no plain mean over the examples are the same whatever is evaluated at once: the reader's, of all."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.measurement.adapters import subject
from tests.extras import need

torch = need("torch")
F = torch.nn.functional
N = 40
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4))
LABELS = np.sort(RNG.integers(0, 3, N))  # as in a sorted data set
REAL = RNG.standard_normal((N, 3))
SPARSE = np.where(RNG.random(N) < 0.6, -100, LABELS)
PADDED = np.where(np.arange(N) < 17, -100, LABELS)  # whole parts of padding
CLASSES = [0.1, 1.0, 5.0]


def info_nce(outputs, targets):
    return F.cross_entropy(outputs @ outputs.T / 0.5, torch.arange(len(outputs)))


def dice(outputs, targets):
    chosen = outputs.softmax(1)[:, 1]
    hit = (targets == 1).to(chosen.dtype)
    return 1 - 2 * (chosen * hit).sum() / (chosen.sum() + hit.sum() + 1)


def ranked(outputs, targets):
    margins = outputs[:, :1] - outputs[:, :1].T
    order = torch.sign(targets[:, None] - targets[None, :])
    return F.softplus(-margins * order).mean()


def weights_in_targets(outputs, targets):
    weights = targets[:, 0].abs()
    return (weights * (outputs[:, 0] - targets[:, 1]) ** 2).sum() / weights.sum()


WEIGHTS = torch.tensor(CLASSES, dtype=torch.float64)
MEANS = {
    "mean": (F.cross_entropy, LABELS),
    "mean square": (F.mse_loss, REAL),
    "ignored": (F.cross_entropy, SPARSE),
    "ignored parts": (F.cross_entropy, PADDED),
    "weights of classes": (lambda f, y: F.cross_entropy(f, y, WEIGHTS), LABELS),
    "weights, smoothed": (lambda f, y: F.cross_entropy(f, y, WEIGHTS, label_smoothing=0.1), LABELS),
    "weights and ignored": (lambda f, y: F.nll_loss(f.log_softmax(1), y, WEIGHTS), SPARSE),
    "weights of examples": (weights_in_targets, REAL),
}
TOGETHER = {
    "contrastive": (info_nce, LABELS),
    "Dice": (dice, LABELS),
    "ranking": (ranked, LABELS),
    "root of the mean square": (lambda f, y: F.mse_loss(f, y).sqrt(), REAL),
}


def network():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)]
    return torch.nn.Sequential(*layers).double()


def measured(loss, data, size, model=None):
    attached = subject(model or network(), loss, data, micro_batch=size)
    v = np.random.default_rng(1).standard_normal(attached.size)
    kinds = ("hessian", "gauss-newton", "fisher")
    return [attached.risk(), attached.gradient(), *(attached.products(v, kind) for kind in kinds)]


@pytest.mark.parametrize("size", [7, 13])
@pytest.mark.parametrize("name", [*MEANS, *TOGETHER])
def test_all_is_that_of_the_whole(name, size):
    loss, targets = {**MEANS, **TOGETHER}[name]
    data = (torch.tensor(X), torch.tensor(targets))
    model = network()
    whole = float(loss(model(data[0]), data[1]).detach())
    parts = measured(loss, data, size)
    assert parts[0] == pytest.approx(whole, rel=1e-12)
    for one, other in zip(parts, measured(loss, data, N), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_what_compares_examples_is_not_cut_and_refused_where_it_is_much_too_large():
    data = (torch.tensor(X), torch.tensor(LABELS))
    assert subject(network(), info_nce, data, micro_batch=7).batches.size == N
    with pytest.raises(UserError, match="no mean of the losses of their parts"):
        subject(network(), info_nce, data, micro_batch=2)
    # a plain mean is cut as before, to the same bits
    assert not any(
        f != 1 for f in subject(network(), F.cross_entropy, data, micro_batch=7).batches.factors
    )


class TimeFirst(torch.nn.Module):
    """Reads sequences whose first axis is time."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.LSTM(4, 3)

    def forward(self, x):
        return self.cell(x[:, None])[0][:, 0]


class Centred(torch.nn.Linear):
    """Compares each example with the mean of all."""

    def __init__(self):
        super().__init__(4, 3)

    def forward(self, x):
        return super().forward(x - x.mean(0))


class Attending(torch.nn.Module):
    """Lets each example look at all others."""

    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.last((x @ x.T).softmax(1) @ x)


@pytest.mark.parametrize("model", [TimeFirst, Centred, Attending])
def test_a_model_whose_outputs_depend_on_their_company_is_measured_whole(model):
    torch.manual_seed(0)
    mixing = model().double()
    data = (torch.tensor(X), torch.tensor(REAL))
    whole = float(F.mse_loss(mixing(data[0]), data[1]).detach())
    parts = measured(F.mse_loss, data, 13, mixing)
    assert parts[0] == pytest.approx(whole, rel=1e-12)
    for one, other in zip(parts[1:], measured(F.mse_loss, data, N, mixing)[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    for size in (1, 4):
        with pytest.raises(UserError, match="first axis is time"):
            subject(mixing, F.mse_loss, data, micro_batch=size)


def test_batches_of_a_loader_are_the_trainings_own():
    pairs = [(torch.tensor(X[i : i + 20]), torch.tensor(SPARSE[i : i + 20])) for i in (0, 20)]
    model = network()
    mean = np.mean([float(F.cross_entropy(model(x), y).detach()) for x, y in pairs])
    for size in (6, 20, 100):
        assert measured(F.cross_entropy, pairs, size)[0] == pytest.approx(mean, rel=1e-12)


def test_a_loss_of_params_that_is_no_mean_is_measured_whole():
    model = network()
    data = (torch.tensor(X), torch.tensor(SPARSE))

    def loss(params, batch):
        return F.cross_entropy(torch.func.functional_call(model, params, batch[0]), batch[1])

    whole = float(F.cross_entropy(model(data[0]), data[1]).detach())
    assert subject(model, loss, data, micro_batch=8).risk() == pytest.approx(whole, rel=1e-12)


def test_the_fisher_matrix_of_weighted_examples_is_that_of_their_own_gradients():
    model = network()
    x, y = torch.tensor(X), torch.tensor(LABELS)
    rows = []
    for i in range(N):
        share = WEIGHTS[y[i]] / WEIGHTS[y].mean()
        own = share * F.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
        slopes = torch.autograd.grad(own, list(model.parameters()))
        rows.append(torch.cat([slope.flatten() for slope in slopes]).numpy())
    exact = np.transpose(rows) @ rows / N
    loss = MEANS["weights of classes"][0]
    for size in (9, N):
        attached = subject(model, loss, (x, y), micro_batch=size)
        v = np.random.default_rng(2).standard_normal(attached.size)
        np.testing.assert_allclose(attached.products(v, "fisher"), exact @ v, rtol=1e-9)


def weighted_in_jax(outputs, labels):
    weights = jnp.asarray(CLASSES)[labels]
    losses = optax.softmax_cross_entropy_with_integer_labels(outputs, labels)
    return (weights * losses).sum() / weights.sum()


def contrastive_in_jax(outputs, labels):
    scores = outputs @ outputs.T
    return optax.softmax_cross_entropy_with_integer_labels(scores, jnp.arange(len(scores))).mean()


@pytest.mark.parametrize("loss", [weighted_in_jax, contrastive_in_jax])
def test_in_jax(loss):
    key = jax.random.key(0)
    params = {"w": np.asarray(jax.random.normal(key, (4, 3)), float)}
    model = (lambda params, x: jnp.tanh(x @ params["w"]), params)
    whole = measured(loss, (X, LABELS), N, model)
    for one, other in zip(measured(loss, (X, LABELS), 7, model), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
