"""Any loss with a fixed kernel: closed forms, weights that are trained, and the peer's way to say a loss."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.linalg
import scipy.special

from steepest.core.errors import UserError
from steepest.dynamics import descend, kernel_flow
from steepest.kernels import kernel_dynamics, kernel_training
from steepest.kernels.prediction import _training
from steepest.nn.losses import cross_entropy, logistic, squared

N = 12
M = 5
P = 7
C = 3


@pytest.fixture
def model():
    """Features, other features, class numbers and weights of a linear model of three outputs."""
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(N, P))
    other = rng.normal(size=(M, P))
    return phi, other, rng.integers(C, size=N), rng.normal(size=(P, C))


@pytest.mark.parametrize("shape", [(N,), (N, C)])
def test_the_squared_loss_has_its_closed_form(model, shape):
    phi, other, _, _ = model
    rng = np.random.default_rng(1)
    y, start = rng.normal(size=(2, *shape))
    at = rng.normal(size=(M, *shape[1:]))
    kernel = phi @ phi.T
    cross = other @ phi.T
    closed = kernel_dynamics(kernel)
    training = kernel_training(kernel, squared, y, start=start)
    for path, progress, atol in (
        (training.flow([0.5, 20.0, 0.0]), closed.flow([0.5, 20.0, 0.0]), 1e-7),
        (training.descent(0.1, [3, 40, 0], 0.6), closed.descent(0.1, [3, 40, 0], 0.6), 1e-12),
    ):
        train = closed.train(progress, y, start)
        np.testing.assert_allclose(path.train, train, atol=atol)
        np.testing.assert_allclose(
            path.test(cross, at), closed.test(progress, cross, y, start, at), atol=atol
        )
        risk = ((train - y) ** 2).reshape(3, -1).sum(1) / (2 * N)
        np.testing.assert_allclose(path.risk, risk, atol=atol)
        np.testing.assert_allclose(path.train, path.test(kernel, start), atol=1e-11)
        assert np.abs(path.train - train).max() <= path.error + 1e-12


@pytest.mark.parametrize("friction", [0.0, 0.3, 5.0])
def test_the_heavy_ball_has_its_closed_form(model, friction):
    """Residuals r'' + γ r' + Θr/n = 0 from rest: an exponential of a matrix."""
    phi, other, _, _ = model
    y, start = np.random.default_rng(1).normal(size=(2, N))
    kernel = phi @ phi.T
    times = [0.0, 0.7, 6.0]
    path = kernel_training(kernel, squared, y, start=start).flow(times, friction=friction)
    zero, one = np.zeros((N, N)), np.eye(N)
    system = np.block([[zero, one], [-kernel / N, -friction * one]])
    for time, train in zip(times, path.train, strict=True):
        moved = scipy.linalg.expm(time * system)[:N, :N] @ (start - y)
        np.testing.assert_allclose(train, y + moved, atol=1e-6)
    np.testing.assert_allclose(path.train, path.test(kernel, start), atol=1e-10)
    weights = np.linalg.lstsq(phi, (path.train - start).T, rcond=None)[0]
    np.testing.assert_allclose(path.test(other @ phi.T), (other @ weights).T, atol=1e-6)


def test_the_heavy_ball_is_descent_with_small_steps_and_momentum(model):
    phi, _, labels, _ = model
    training = kernel_training(phi @ phi.T, cross_entropy, labels, start=np.zeros((N, C)))
    flow = training.flow([2.0], friction=0.5).train
    apart = []
    for h in (4e-3, 2e-3):  # η = h², β = 1 − γh
        steps = training.descent(h**2, [round(2 / h)], 1 - 0.5 * h)
        apart.append(np.abs(steps.train - flow).max())
    assert apart[1] < 0.01 and apart[1] / apart[0] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("friction", [None, 1.0])
def test_implicit_steps_of_both_flows_are_the_explicit_ones(model, friction, monkeypatch):
    phi, _, labels, _ = model
    training = kernel_training(phi @ phi.T, cross_entropy, labels, start=np.zeros((N, C)))
    explicit = training.flow([3.0], friction=friction)
    monkeypatch.setattr(_training, "FEW", 1)
    implicit = training.flow([3.0], friction=friction)
    np.testing.assert_allclose(implicit.train, explicit.train, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_cross_entropy_by_steps_is_a_linear_model_that_is_trained(model, momentum):
    phi, other, labels, weights = model
    risk = lambda w: cross_entropy(phi @ w, jnp.asarray(labels)).mean()
    path = descend(
        risk,
        jnp.asarray(weights),
        optax.sgd(0.3, momentum=momentum or None),
        100,
        record=[0, 7, 100],
        observe={"train": lambda w: phi @ w, "test": lambda w: other @ w},
    )
    training = kernel_training(phi @ phi.T, cross_entropy, labels, start=phi @ weights)
    trained = training.descent(0.3, [0, 7, 100], momentum)
    np.testing.assert_allclose(trained.train, path.observed["train"], atol=1e-11)
    np.testing.assert_allclose(
        trained.test(other @ phi.T, other @ weights), path.observed["test"], atol=1e-11
    )
    shares = scipy.special.log_softmax(trained.train, axis=2)
    np.testing.assert_allclose(trained.risk, -shares[:, range(N), labels].mean(1), atol=1e-11)


def test_cross_entropy_by_tiny_steps_is_the_flow(model):
    """Steps of the weights of h and h/2, extrapolated to h = 0."""
    phi, other, labels, weights = model
    risk = lambda w: cross_entropy(phi @ w, jnp.asarray(labels)).mean()
    ends = []
    for steps in (2000, 4000):
        end = descend(risk, jnp.asarray(weights), optax.sgd(3.0 / steps), steps, record=steps)
        ends.append(np.asarray(end.params))
    limit = 2 * ends[1] - ends[0]
    training = kernel_training(phi @ phi.T, cross_entropy, np.eye(C)[labels], start=phi @ weights)
    path = training.flow(3.0)
    assert np.abs(path.train[0] - phi @ ends[1]).max() > 1e-5
    np.testing.assert_allclose(path.train[0], phi @ limit, atol=1e-6)
    np.testing.assert_allclose(
        path.test(other @ phi.T, other @ weights)[0], other @ limit, atol=1e-6
    )


def test_coupled_outputs_are_a_model_whose_outputs_share_weights(model):
    _, _, labels, _ = model
    rng = np.random.default_rng(2)
    jacobian, other, weights = (rng.normal(size=shape) for shape in ((N, C, 20), (M, C, 20), (20,)))
    kernel = np.einsum("iap,jbp->iajb", jacobian, jacobian)
    cross = np.einsum("iap,jbp->iajb", other, jacobian)
    risk = lambda w: cross_entropy(jacobian @ w, jnp.asarray(labels)).mean()
    path = descend(risk, jnp.asarray(weights), optax.sgd(0.05), 50, record=50)
    training = kernel_training(kernel, cross_entropy, labels, start=jacobian @ weights)
    trained = training.descent(0.05, [50])
    np.testing.assert_allclose(trained.train[0], jacobian @ path.params, atol=1e-11)
    np.testing.assert_allclose(
        trained.test(cross, other @ weights)[0], other @ path.params, atol=1e-11
    )


def test_the_logistic_loss_is_the_other_integrator(model):
    phi, other, labels, weights = model
    y = 2.0 * (labels > 0) - 1
    start = phi @ weights[:, 0]
    kernel = phi @ phi.T
    cross = other @ phi.T
    slope = lambda f, y: -y * jax.nn.sigmoid(-y * f)
    theirs = kernel_flow(kernel, slope, y, [1.0, 30.0], start=start, cross=cross)
    path = kernel_training(kernel, lambda f, y: logistic(y * f), y, start=start).flow([1.0, 30.0])
    np.testing.assert_allclose(path.train, theirs.train, atol=1e-6)
    np.testing.assert_allclose(path.test(cross), theirs.test, atol=1e-6)


def test_a_loss_that_is_one_number_is_the_risk():
    """As neural-tangents has it: half a mean over all entries, which is slower by the number of outputs."""
    rng = np.random.default_rng(3)
    phi = rng.normal(size=(6, 9))
    y = rng.normal(size=(6, 4))
    kernel = phi @ phi.T
    training = kernel_training(kernel, lambda f, y: 0.5 * jnp.mean((f - y) ** 2), y)
    closed = kernel_dynamics(kernel, loss="mean over outputs", outputs=4)
    np.testing.assert_allclose(
        training.flow(2.0).train, closed.train(closed.flow(2.0), y), atol=1e-7
    )


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_stiff_flow_is_followed_by_implicit_steps(outputs):
    """Eigenvalues from 1e-4 to 1e6, to a time at which the slow one has moved: explicit steps would be too many."""
    eigenvalues = np.array([1e-4, 1.0, 1e6])
    y = np.array([[1.0, 3.0], [-1.0, 0.5], [2.0, -2.0]])[:, :outputs]
    path = kernel_training(np.diag(eigenvalues), squared, y).flow([3.0, 3e4])
    moved = 1 - np.exp(-np.outer([3.0, 3e4], eigenvalues) / 3)
    np.testing.assert_allclose(path.train, y * moved[..., None], atol=1e-6)
    assert path.error < 1e-4


def test_single_precision_around_it_changes_nothing(model):
    phi, _, labels, weights = model
    training = kernel_training(phi @ phi.T, cross_entropy, labels, start=phi @ weights)
    with jax.enable_x64(False):
        same = kernel_training(phi @ phi.T, cross_entropy, labels, start=phi @ weights)
        path = same.descent(0.1, [20])
        assert path.train.dtype == np.float64
    np.testing.assert_allclose(path.train, training.descent(0.1, [20]).train, atol=1e-13)


def test_a_flow_that_takes_too_many_gradients_is_refused(monkeypatch):
    monkeypatch.setattr(_training, "SMALL", 0)
    monkeypatch.setattr(_training, "MOST", 100)
    with pytest.raises(UserError, match="100 gradients"):
        kernel_training(np.eye(2), squared, np.ones(2)).flow(1e4)


def test_steps_that_are_too_large_overflow_without_an_error():
    path = kernel_training(np.eye(2), squared, np.ones(2)).descent(100.0, [0, 400])
    assert not np.isfinite(path.train[1]).all() and np.isfinite(path.train[0]).all()


def of_outputs_only(f):
    return f


def of_each_output(f, y):
    return (f - y) ** 2


def imaginary(f, y):
    return f * 1j


def logarithm(f, y):
    return jnp.log(f)


def unbounded(f, y):
    return -(f**4)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: kernel_training(np.ones((2, 3)), squared, np.ones(2)),
        lambda: kernel_training(np.zeros((0, 0)), squared, np.ones(0)),
        lambda: kernel_training(-np.eye(2), squared, np.ones(2)),
        lambda: kernel_training(np.array([[1.0, 2.0], [2.0, 1.0]]), squared, np.ones(2)),
        lambda: kernel_training(np.eye(2) * 1j, squared, np.ones(2)),
        lambda: kernel_training(np.eye(2), squared, np.ones(3)),
        lambda: kernel_training(np.eye(2), squared, np.ones(2) * 1j),
        lambda: kernel_training(np.eye(2), squared, np.array([1.0, np.nan])),
        lambda: kernel_training(np.eye(2), squared, [1.0, [2.0, 3.0]]),
        lambda: kernel_training(np.eye(2), squared, np.ones(2), start=np.ones(3)),
        lambda: kernel_training(np.eye(2), squared, np.ones(2), start=np.nan),
        lambda: kernel_training(np.eye(2), squared, np.ones(2), start=np.ones((2, 3))),
        lambda: kernel_training(np.eye(2), "squared", np.ones(2)),
        lambda: kernel_training(np.eye(2), of_outputs_only, np.ones(2)),
        lambda: kernel_training(np.eye(2), of_each_output, np.ones((2, 3))),
        lambda: kernel_training(np.eye(2), imaginary, np.ones(2)),
        lambda: kernel_training(np.eye(2), logarithm, np.ones(2), start=-1.0),
        # class numbers without outputs, and beyond them
        lambda: kernel_training(np.eye(2), cross_entropy, np.array([0, 1])),
        lambda: kernel_training(np.eye(2), cross_entropy, np.array([0, 3]), start=np.zeros((2, 3))),
        lambda: kernel_training(np.eye(4).reshape(2, 2, 2, 2), squared, np.ones(2)),
        lambda: kernel_training(np.eye(2), squared, np.ones(2)).flow([np.inf]),
        lambda: kernel_training(np.eye(2), squared, np.ones(2)).flow([-1.0]),
        lambda: kernel_training(np.eye(2), squared, np.ones(2)).flow([1.0], tolerance=0.0),
        lambda: kernel_training(np.eye(2), squared, np.ones(2)).flow([1.0], friction=-1.0),
        lambda: kernel_training(np.eye(2), squared, np.ones(2)).descent(-1.0, [1]),
        lambda: kernel_training(np.eye(2), squared, np.ones(2)).descent(1.0, [0.5]),
        lambda: kernel_training(np.eye(2), squared, np.ones(2)).flow([1.0]).test(np.eye(3)),
        lambda: (
            kernel_training(np.eye(2), squared, np.ones(2)).flow([1.0]).test(np.eye(2), np.ones(3))
        ),
        # unbounded from below: outputs run away at a finite time
        lambda: kernel_training(np.eye(2), unbounded, np.ones(2), start=1.0).flow([9.0]),
    ],
)
def test_bad_inputs_are_refused(wrong):
    with pytest.raises(UserError):
        wrong()
