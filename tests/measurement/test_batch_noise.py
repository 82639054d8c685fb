"""Batch sharpness and noise scale: against all batches, against moments, and before a training that they foretell."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import measure
from steepest.core.errors import UserError
from steepest.dynamics import descend, minibatch
from steepest.measurement import _batch_noise
from steepest.nn.data import digits
from steepest.nn.losses import squared
from steepest.nn.networks import mlp
from steepest.noise import gradient_moments
from tests.extras import need

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 3))
Y = RNG.normal(size=8)
W = np.array([0.5, -1.0, 2.0])
MODEL = (lambda w, x: x @ w, jnp.asarray(W))
LOSS = lambda f, y: ((f - y) ** 2).mean() / 2


def exact(size, decay=0.0):
    """Return batch sharpness and noise share over all batches of a linear model."""
    forms = []
    squares = []
    for members in combinations(range(len(X)), size):
        x = X[list(members)]
        gradient = x.T @ (x @ W - Y[list(members)]) / size + decay * W
        forms.append(gradient @ (x.T @ x / size + decay * np.eye(3)) @ gradient)
        squares.append(gradient @ gradient)
    return np.mean(forms) / np.mean(squares)


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(_batch_noise, "BATCHES", 1000)


@pytest.mark.parametrize("decay", [0.0, 0.7])
def test_batch_sharpness_is_that_of_all_batches(many, decay):
    report = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=3, lr=0.1, weight_decay=decay)
    reading = report["batch sharpness"]
    low, high = reading.interval
    assert low < exact(3, decay) < high
    assert high - low < 0.2 * reading.value
    assert reading.compared == 20.0


def test_noise_scale_is_that_of_the_covariance(many):
    gradients = (X @ W - Y)[:, None] * X
    mean = gradients.mean(0)
    spread = np.trace(np.cov(gradients.T, bias=True))
    reading = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=3)["gradient-noise scale"]
    low, high = reading.interval
    assert low < spread / (mean @ mean) < high
    moments = gradient_moments(gradients, 3, "fixed")
    share = np.trace(moments.covariance) / np.trace(moments.second)
    assert abs(float(reading.interpretation.split(", ")[-1].split("%")[0]) / 100 - share) < 0.03


def test_intervals_of_a_ratio_cover_it():
    """The interval of the mean of few batches holds the mean of all nineteen times of twenty."""
    truth = exact(2)
    inside = 0
    for seed in range(24):
        report = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=2, seed=seed)
        low, high = report["batch sharpness"].interval
        inside += low < truth < high
    assert inside >= 20  # 23 are due; fewer than 20 have a chance of 1 %


def test_a_full_batch_has_no_noise():
    report = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=8)
    gradient = X.T @ (X @ W - Y) / 8
    hessian = X.T @ X / 8
    expected = gradient @ hessian @ gradient / (gradient @ gradient)
    assert np.isclose(report["batch sharpness"].value, expected)
    assert report["batch sharpness"].interval is None
    assert np.isnan(report["gradient-noise scale"].value)


def relu():
    data = digits(n=500, key=jax.random.key(1))
    x = np.asarray(data.x - data.x.mean(0))
    net = mlp((64, 64, 10), "relu", c_w=2.0)
    return net, net.init(jax.random.key(0)), x, np.asarray(data.y)


def test_a_divergence_is_said_before_it_happens():
    """At a step that the full batch allows, single examples diverge: 2/λ_max is silent, batch sharpness is not."""
    net, params, x, y = relu()
    loss = lambda f, t: squared(f, t).mean()
    lr = 0.12
    report = measure(
        (net.apply, params), loss, (x, y), what=["sharpness", "batch-noise"], batch=1, lr=lr
    )
    assert lr < 0.7 * 2 / report["sharpness"].value
    assert "0.59 of the stable limit" in report["sharpness"].interpretation
    reading = report["batch sharpness"]
    assert reading.interval[0] > 1.5 * 2 / lr
    assert "your batches bind" in reading.interpretation
    assert "a step raises the loss of its own batch on average" in reading.interpretation
    assert (lr / 2) * reading.value > 3

    losses = lambda params, x, y: squared(net.apply(params, x), y)
    risk = lambda params: losses(params, x, y).mean()
    full = descend(risk, params, optax.sgd(lr), 60, record=20)
    assert not full.diverged
    assert full.risk[-1] < 0.2 * full.risk[0]
    single = minibatch(losses, jnp.asarray(x), jnp.asarray(y), 1)
    runs = jax.vmap(
        lambda key: (
            descend(risk, params, optax.sgd(lr), 60, record=20, stochastic=single, key=key).diverged
        )
    )(jax.random.split(jax.random.key(7), 3))
    assert bool(jnp.all(runs))


def test_large_batches_leave_the_full_one_to_bind():
    net, params, x, y = relu()
    loss = lambda f, t: squared(f, t).mean()
    reading = measure((net.apply, params), loss, (x, y), what=["batch-noise"], batch=100)[
        "batch sharpness"
    ]
    assert "the full batch binds" in reading.interpretation


def test_momentum_is_not_compared():
    reading = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=2, lr=0.1, momentum=0.9)[
        "batch sharpness"
    ]
    assert reading.compared is None
    assert "not compared here" in reading.interpretation


def test_batches_of_a_loader_are_its_own():
    batches = [(X[:4], Y[:4]), (X[4:], Y[4:])]
    reading = measure(MODEL, LOSS, batches, what=["batch-noise"])["batch sharpness"]
    assert "with batches of 4" in reading.interpretation


def test_batches_of_a_loader_are_not_cut():
    """A loader's batches may be larger than what is evaluated at once."""
    batches = [(X[:4], Y[:4]), (X[4:], Y[4:])]
    reading = measure(MODEL, LOSS, batches, what=["batch-noise"], micro_batch=2)["batch sharpness"]
    assert "with batches of 4" in reading.interpretation


def test_another_curvature_is_not_compared():
    """Batch sharpness is of the Hessian: the largest eigenvalue of another matrix is no limit beside it."""
    reading = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=2, curvature="fisher")[
        "batch sharpness"
    ]
    assert "full batch" not in reading.interpretation


def test_decay_is_said():
    readings = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=2, lr=9.0, weight_decay=0.5)
    assert "with its decay" in readings["batch sharpness"].interpretation
    unsaid = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=2)["batch sharpness"]
    assert ("weight decay" in unsaid.assumes[-1][0]) and unsaid.assumes[-1][1] is None


def test_limits_that_few_batches_cannot_tell():
    """Where the interval holds λ_max and the estimate is not near it, neither limit is said to bind."""
    said = set()
    for seed in range(12):
        reading = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=4, seed=seed)[
            "batch sharpness"
        ]
        largest = float(np.linalg.eigvalsh(X.T @ X / 8)[-1])
        inside = reading.interval[0] <= largest <= reading.interval[1]
        near = abs(largest / reading.value - 1) < 0.1
        if "cannot tell" in reading.interpretation:
            assert inside and not near
        if "bind" in reading.interpretation and "cannot" not in reading.interpretation:
            assert not inside
        said.add(inside)
    assert said


def test_at_a_minimum_all_is_noise():
    best = np.linalg.lstsq(X, Y, rcond=None)[0]
    report = measure((MODEL[0], jnp.asarray(best)), LOSS, (X, Y), what=["batch-noise"], batch=2)
    reading = report["gradient-noise scale"]
    assert np.isnan(reading.value)
    assert "vanishes up to rounding" in reading.interpretation


def test_bad_sizes_in_one_sentence():
    with pytest.raises(UserError, match="pass batch=32"):
        measure(MODEL, LOSS, (X, Y), what=["batch-noise"])
    with pytest.raises(UserError, match="between 1 and the 8.*batch=9"):
        measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=9)
    with pytest.raises(UserError, match="a whole number"):
        measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=2.5)
    note = measure(MODEL, LOSS, (X, Y), what=["risk", "batch-noise"])["batch-noise"]
    assert "not measured" in note.interpretation


def test_torch_gives_the_same():
    torch = need("torch")
    model = torch.nn.Linear(3, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor(W[None]))
    loss = lambda f, y: ((f[:, 0] - y) ** 2).mean() / 2
    data = (torch.tensor(X), torch.tensor(Y))
    theirs = measure(model, loss, data, what=["batch-noise"], batch=3)
    ours = measure(MODEL, LOSS, (X, Y), what=["batch-noise"], batch=3)
    for name in ("batch sharpness", "gradient-noise scale"):
        assert np.isclose(theirs[name].value, ours[name].value, rtol=1e-5)


def test_batches_of_four_go_on_beyond_their_limit():
    """Batch sharpness beyond 2/η is no proof of divergence: here batches of 4 at 1.8 times the limit go on."""
    net, params, x, y = relu()
    loss = lambda f, t: squared(f, t).mean()
    sharpest = measure((net.apply, params), loss, (x, y), what=["sharpness"])["sharpness"].value
    lr = 0.9 * 2 / sharpest
    report = measure((net.apply, params), loss, (x, y), what=["batch-noise"], batch=4, lr=lr)
    assert 1.6 < report["batch sharpness"].value * lr / 2 < 2.0

    losses = lambda params, x, y: squared(net.apply(params, x), y)
    risk = lambda params: losses(params, x, y).mean()
    fours = minibatch(losses, jnp.asarray(x), jnp.asarray(y), 4)
    run = descend(
        risk, params, optax.sgd(lr), 300, record=60, stochastic=fours, key=jax.random.key(7)
    )
    assert not run.diverged
