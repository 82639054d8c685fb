"""Closed forms against recursions, matrix exponentials, trained linear models and sampled initializations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from steepest.core.errors import UserError
from steepest.dynamics import descend
from steepest.kernels import kernel_dynamics, kernel_ridge
from tests.extras import need

COUNTS = [0, 1, 2, 5, 40]


def features(seed, n, p):
    return np.random.default_rng(seed).normal(size=(n, p))


def recursion(kernel, cross, targets, start, at, lr, momentum, counts):
    """Descent with momentum on the outputs, a step at a time, at the recorded steps."""
    f = start.copy()
    g = at.copy()
    n = len(kernel)
    v = np.zeros_like(f)
    w = np.zeros_like(g)
    seen = {0: (f.copy(), g.copy())}
    for t in range(1, max(counts) + 1):
        slope = (f - targets) / n
        v = momentum * v - lr * kernel @ slope
        w = momentum * w - lr * cross @ slope
        f = f + v
        g = g + w
        seen[t] = f.copy(), g.copy()
    return [np.array(each) for each in zip(*(seen[k] for k in counts), strict=True)]


@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 9),
    st.floats(0.05, 1.95),
    st.floats(0, 0.95),
)
@settings(max_examples=60, deadline=None)
def test_descent_is_its_recursion(seed, n, p, multiple, momentum):
    """With fewer features than points the kernel has directions of λ = 0, in which nothing moves."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, p))
    other = rng.normal(size=(3, p))
    kernel = phi @ phi.T
    cross = other @ phi.T
    targets = rng.normal(size=n)
    start = rng.normal(size=n)
    at = rng.normal(size=3)
    dynamics = kernel_dynamics(kernel)
    lr = multiple * dynamics.largest_step() / 2
    progress = dynamics.descent(lr, COUNTS, momentum)
    train, test = recursion(kernel, cross, targets, start, at, lr, momentum, COUNTS)
    np.testing.assert_allclose(dynamics.train(progress, targets, start), train, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        dynamics.test(progress, cross, targets, start, at),
        test,
        rtol=0,
        atol=1e-10 * (1 + np.abs(test).max()),
    )


@pytest.mark.parametrize("shift", [-1e-3, -1e-9, 0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("momentum", [0.2, 0.9, 0.99])
def test_momentum_near_critical_damping(momentum, shift):
    """At ηλ = (1 − √β)² the two roots of the recursion meet and r_t = (1 + t(1 − √β)) √β^t."""
    root = np.sqrt(momentum)
    product = (1 - root) ** 2 * (1 + shift)
    dynamics = kernel_dynamics(np.array([[product]]))
    counts = np.array([0, 1, 10, 100, 1000])
    found = dynamics.descent(1.0, counts, momentum)
    r = [1.0, 1.0]
    for _ in range(counts[-1]):
        r.append((1 + momentum - product) * r[-1] - momentum * r[-2])
    # where the roots meet, rounding 1 + β − ηλ moves r_t by t³ times as much
    error = np.abs(found.left[:, 0] - np.array(r)[counts + 1])
    assert (error <= 1e-14 + 1e-16 * counts**3).all()
    if shift == 0:
        error = np.abs(found.left[:, 0] - (1 + counts * (1 - root)) * root**counts)
        assert (error <= 1e-14 + 1e-16 * counts**3).all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_what_is_gained_keeps_its_digits_where_the_kernel_is_small(momentum):
    """(1 − r_t)/λ against exact fractions, from λ = 0 to λ = 1: a difference of 1 and r_t would lose them."""
    from fractions import Fraction

    eigenvalues = np.array([0.0, 2.0**-60, 2.0**-45, 2.0**-30, 2.0**-10, 1.0])
    found = kernel_dynamics(np.diag(eigenvalues) * len(eigenvalues)).descent(
        0.5, [1, 7, 60], momentum
    )
    beta = Fraction(momentum)
    for k, value in enumerate(eigenvalues):
        g = Fraction(0)
        before = Fraction(0)
        seen = []
        for _ in range(60):
            g, before = (1 + beta - Fraction(value) / 2) * g - beta * before + Fraction(1, 2), g
            seen.append(float(g))
        np.testing.assert_allclose(found.gained[:, k], [seen[0], seen[6], seen[59]], rtol=1e-12)


@pytest.mark.parametrize("p", [3, 12])
def test_the_flow_is_the_matrix_exponential(p):
    n = 8
    phi = features(0, 8, p)
    other = features(1, 4, p)
    kernel = phi @ phi.T
    cross = other @ phi.T
    rng = np.random.default_rng(2)
    targets = rng.normal(size=n)
    start = rng.normal(size=n)
    at = rng.normal(size=4)
    dynamics = kernel_dynamics(kernel)
    times = [0.0, 0.3, 2.0, 50.0]
    progress = dynamics.flow(times)
    whole = np.block([[kernel, np.zeros((n, 4))], [cross, np.zeros((4, 4))]]) / n
    for i, t in enumerate(times):
        # (f − y, g)' = −[[Θ, 0], [Θ(x, X), 0]] (f − y, g)/n
        expected = expm(-t * whole) @ np.concatenate([start - targets, at])
        np.testing.assert_allclose(
            dynamics.train(progress, targets, start)[i], targets + expected[:n], atol=1e-11
        )
        np.testing.assert_allclose(
            dynamics.test(progress, cross, targets, start, at)[i], expected[n:], atol=1e-11
        )


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("p", [4, 30])
def test_a_linear_model_trained_by_descend(p, momentum):
    """Features Φ, kernel ΦΦᵀ: the outputs of real descent on the weights, on both sets of points."""
    n = 10
    counts = np.array([0, 1, 3, 20, 200])
    phi = jnp.asarray(features(3, n, p))
    other = jnp.asarray(features(4, 5, p))
    targets = jnp.asarray(features(5, n, 1)[:, 0])
    weights = jnp.asarray(features(6, p, 1)[:, 0])
    dynamics = kernel_dynamics(phi @ phi.T)
    lr = 0.9 * dynamics.largest_step(momentum)
    path = descend(
        lambda w: 0.5 * jnp.mean((phi @ w - targets) ** 2),
        weights,
        optax.sgd(lr, momentum=momentum),
        int(counts[-1]),
        record=counts,
        observe={"train": lambda w: phi @ w, "test": lambda w: other @ w},
    )
    progress = dynamics.descent(lr, counts, momentum)
    found = dynamics.train(progress, targets, phi @ weights)
    np.testing.assert_allclose(found, path.observed["train"], rtol=0, atol=1e-10)
    found = dynamics.test(progress, other @ phi.T, targets, phi @ weights, other @ weights)
    np.testing.assert_allclose(found, path.observed["test"], rtol=0, atol=1e-10)


def test_above_the_largest_step_it_diverges_and_below_it_converges():
    dynamics = kernel_dynamics(np.diag([1.0, 3.0]))
    for momentum in (0.0, 0.5):
        for factor, settles in ((0.99, True), (1.01, False)):
            left = dynamics.descent(factor * dynamics.largest_step(momentum), [4000], momentum).left
            assert (np.abs(left).max() < 1e-6) == settles
    far = dynamics.descent(100.0, [10_000])  # overflow is a value, not an error
    assert not np.isfinite(far.left).all()


def test_small_steps_are_the_flow():
    dynamics = kernel_dynamics(np.diag([1.0, 3.0]))
    for slow, fast in zip(dynamics.descent(1e-6, [2_000_000]), dynamics.flow([2.0]), strict=True):
        np.testing.assert_allclose(slow, fast, rtol=1e-5)


@pytest.mark.parametrize("kind", ["flow", "descent"])
def test_the_ensemble_is_that_of_sampled_initializations(kind):
    """Mean and covariance over 20 000 Gaussian f_0, every entry within z ≤ 4 of its own standard error."""
    n = 4
    m = 3
    count = 20_000
    phi = features(7, n + m, 5)
    root = features(8, n + m, 9) / 3
    ntk = phi @ phi.T
    nngp = root @ root.T
    dynamics = kernel_dynamics(ntk[:n, :n])
    targets = np.array([1.0, -1.0, 0.5, 2.0])
    step = 0.5 * dynamics.largest_step()
    progress = dynamics.flow([1.0]) if kind == "flow" else dynamics.descent(step, [2], 0.5)
    rng = np.random.default_rng(9)
    draws = rng.normal(size=(count, root.shape[1])) @ root.T
    trained = np.stack([dynamics.train(progress, targets, f[:n])[0] for f in draws])
    other = np.stack(
        [dynamics.test(progress, ntk[n:, :n], targets, f[:n], f[n:])[0] for f in draws]
    )
    for found, sampled in (
        (dynamics.ensemble(progress, targets, nngp[:n, :n]), trained),
        (dynamics.ensemble(progress, targets, nngp, ntk[n:, :n]), other),
    ):
        mean = found.mean[0]
        covariance = found.covariance[0]
        spread = np.sqrt(np.diag(covariance) / count)
        assert np.abs((sampled.mean(0) - mean) / spread).max() < 4
        error = np.sqrt(
            (np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / count
        )
        assert np.abs((np.cov(sampled.T) - covariance) / error).max() < 4


def test_the_ensemble_ends_at_kernel_regression():
    phi = features(10, 7, 12)
    ntk = phi @ phi.T
    targets = np.array([1.0, -1.0, 1.0, 2.0])
    dynamics = kernel_dynamics(ntk[:4, :4])
    end = dynamics.ensemble(dynamics.flow([1e6]), targets, ntk, ntk[4:, :4])
    regression = ntk[4:, :4] @ np.linalg.solve(ntk[:4, :4], targets)
    np.testing.assert_allclose(end.mean[0], regression, rtol=1e-9)
    # a kernel that is also the covariance: Gaussian-process regression without noise
    posterior = ntk[4:, 4:] - ntk[4:, :4] @ np.linalg.solve(ntk[:4, :4], ntk[:4, 4:])
    np.testing.assert_allclose(end.covariance[0], posterior, atol=1e-9)
    onto = dynamics.ensemble(dynamics.flow([1e6]), targets, ntk[:4, :4])
    np.testing.assert_allclose(onto.mean[0], targets, atol=1e-12)
    np.testing.assert_allclose(onto.covariance[0], 0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_flow_ends_at_the_pseudo_inverse_of_a_singular_kernel(dtype):
    """Two equal examples with different targets: their mean is learned, their difference never."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(6, 9))
    features[1] = features[0]
    new = rng.normal(size=(3, 9))
    targets = rng.normal(size=6)
    kernel = (features @ features.T).astype(dtype)
    dynamics = kernel_dynamics(kernel)
    end = dynamics.flow([1.0, np.inf])
    learned = targets.copy()
    learned[:2] = targets[:2].mean()
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(dynamics.train(end, targets)[1], learned, atol=tolerance)
    expected = new @ np.linalg.pinv(features) @ targets
    np.testing.assert_allclose(
        dynamics.test(end, new @ features.T, targets)[1], expected, atol=tolerance
    )
    late = dynamics.test(dynamics.flow([1e4]), new @ features.T, targets)[0]
    np.testing.assert_allclose(late, expected, atol=10 * tolerance)


def test_other_points_that_are_training_points_agree():
    phi = features(11, 5, 3)
    kernel = phi @ phi.T
    targets = np.arange(5.0)
    dynamics = kernel_dynamics(kernel)
    for progress in (dynamics.flow([0.0, 1.0]), dynamics.descent(0.1, [0, 3], 0.3)):
        train = dynamics.train(progress, targets, 0.5)
        np.testing.assert_allclose(
            dynamics.test(progress, kernel, targets, 0.5, 0.5), train, atol=1e-12
        )
        twice = np.block([[kernel, kernel], [kernel, kernel]])
        one = dynamics.ensemble(progress, targets, kernel)
        two = dynamics.ensemble(progress, targets, twice, kernel)
        np.testing.assert_allclose(one.mean, two.mean, atol=1e-11)
        np.testing.assert_allclose(one.covariance, two.covariance, atol=1e-11)


def test_many_networks_are_each_of_them():
    phi = features(12, 5, 7)
    rng = np.random.default_rng(13)
    kernel = phi @ phi.T
    start = rng.normal(size=(2, 3, 5))
    targets = rng.normal(size=3)
    dynamics = kernel_dynamics(kernel[:3, :3])
    progress = dynamics.descent(0.1, [0, 1, 4])
    found = dynamics.outputs(progress, kernel[:, :3], start, targets)
    assert found.shape == (2, 3, 3, 5)
    np.testing.assert_allclose(found[:, :, 0], start, atol=1e-12)
    train, test = recursion(
        kernel[:3, :3],
        kernel[3:, :3],
        targets,
        start[1, 2, :3],
        start[1, 2, 3:],
        0.1,
        0.0,
        [0, 1, 4],
    )
    np.testing.assert_allclose(found[1, 2], np.concatenate([train, test], 1), atol=1e-12)
    with pytest.raises(UserError, match="start"):
        dynamics.outputs(progress, kernel[:, :3], start[..., :4], targets)


def test_a_kernel_of_zero_never_moves():
    dynamics = kernel_dynamics(np.zeros((2, 2)))
    assert dynamics.largest_step() == np.inf
    assert dynamics.train(dynamics.descent(3.0, [9]), np.ones(2)).tolist() == [[0.0, 0.0]]
    assert dynamics.flow([7.0]).gained.tolist() == [[7.0, 7.0]]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (np.ones((2, 3)), "square"),
        (np.ones(3), "square"),
        (np.zeros((0, 0)), "square"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "not finite"),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), "symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "semidefinite"),
        (-np.eye(2), "semidefinite"),
    ],
)
def test_a_bad_kernel_is_refused(kernel, words):
    with pytest.raises(UserError, match=words):
        kernel_dynamics(kernel)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda d: d.descent(0.1, [1], 1.0), "momentum"),
        (lambda d: d.descent(0.1, [1], -0.1), "momentum"),
        (lambda d: d.largest_step(1.5), "momentum"),
        (lambda d: d.descent(0.0, [1]), "step size"),
        (lambda d: d.descent(float("nan"), [1]), "step size"),
        (lambda d: d.descent(0.1, [-1]), "whole"),
        (lambda d: d.descent(0.1, [1.5]), "whole"),
        (lambda d: d.flow([-1.0]), "times"),
        (lambda d: d.flow([float("nan")]), "times"),
        (lambda d: d.train(d.flow([1.0]), np.ones((3, 1))), "targets"),
        (lambda d: d.train(d.flow([1.0]), np.array([1.0, np.nan])), "not finite"),
        (lambda d: d.train(d.flow([1.0]), np.ones(2), np.ones(3)), "start"),
        (lambda d: d.test(d.flow([1.0]), np.ones((2, 3)), np.ones(2)), "cross"),
        (lambda d: d.ensemble(d.flow([1.0]), np.ones(2), np.eye(3)), "covariance"),
        (lambda d: d.ensemble(d.flow([1.0]), np.ones(2), np.eye(2), np.ones((1, 2))), "1 other"),
    ],
)
def test_bad_inputs_are_refused(wrong, words):
    with pytest.raises(UserError, match=words):
        wrong(kernel_dynamics(np.eye(2)))


def test_it_takes_arrays_of_jax():
    dynamics = kernel_dynamics(jnp.eye(2))
    assert dynamics.train(dynamics.flow(jnp.array([0.0])), jax.numpy.ones(2)).tolist() == [
        [0.0, 0.0]
    ]


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_coupled_outputs_are_descent_on_the_mean_of_half_the_squared_norm(momentum):
    """f_a(x_i) = Σ_p J_iap w_p by real steps on (1/n) Σ_i ½‖f(x_i) − y_i‖²."""
    rng = np.random.default_rng(0)
    n, k, p = 5, 3, 20
    jacobian, other = rng.normal(size=(n, k, p)), rng.normal(size=(4, k, p))
    start, targets = rng.normal(size=p), rng.normal(size=(n, k))
    kernel = np.einsum("iap,jbp->iajb", jacobian, jacobian)
    dynamics = kernel_dynamics(kernel)
    assert dynamics.points == n
    lr = 0.9 * dynamics.largest_step(momentum)
    weights, velocity = start.copy(), np.zeros(p)
    for _ in range(25):
        slope = np.einsum("ia,iap->p", jacobian @ weights - targets, jacobian) / n
        velocity = momentum * velocity - lr * slope
        weights = weights + velocity
    progress = dynamics.descent(lr, [25], momentum)
    found = dynamics.train(progress, targets, jacobian @ start)
    np.testing.assert_allclose(found[0], jacobian @ weights, atol=1e-10)
    cross = np.einsum("iap,jbp->iajb", other, jacobian)
    found = dynamics.test(progress, cross, targets, jacobian @ start, other @ start)
    np.testing.assert_allclose(found[0], other @ weights, atol=1e-10)


def test_columns_with_one_kernel_are_each_of_them():
    rng = np.random.default_rng(1)
    phi, targets, start = (rng.normal(size=shape) for shape in ((6, 9), (6, 2), (6, 2)))
    dynamics = kernel_dynamics(phi @ phi.T)
    progress = dynamics.flow([0.1, 1.0, np.inf])
    cross = phi[:2] @ phi.T
    trained = dynamics.train(progress, targets, start)
    tested = dynamics.test(progress, cross, targets, start)
    for column in range(2):
        pair = targets[:, column], start[:, column]
        np.testing.assert_allclose(trained[..., column], dynamics.train(progress, *pair))
        np.testing.assert_allclose(tested[..., column], dynamics.test(progress, cross, *pair))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda d: d.train(d.flow([1.0]), np.ones(2)),
        lambda d: d.train(d.flow([1.0]), np.ones((2, 2))),
        lambda d: d.test(d.flow([1.0]), np.ones((4, 6)), np.ones((2, 3))),
        lambda d: d.ensemble(d.flow([1.0]), np.ones((2, 3)), np.eye(6)),
        lambda d: d.outputs(d.flow([1.0]), np.eye(6), np.ones(6), np.ones((2, 3))),
        lambda d: d.train(1.0, np.ones((2, 3))),
    ],
)
def test_bad_inputs_of_coupled_outputs_are_refused(wrong):
    with pytest.raises(UserError):
        wrong(kernel_dynamics(np.eye(6).reshape(2, 3, 2, 3)))


CONVENTIONS = {
    "sum over outputs": lambda f, y: jnp.mean(jnp.sum(0.5 * (f - y) ** 2, axis=1)),
    "mean over outputs": lambda f, y: 0.5 * jnp.mean((f - y) ** 2),
    "mean squared error": lambda f, y: jnp.mean(optax.squared_error(f, y)),
}


def outputs_problem(k=3):
    rng = np.random.default_rng(2)
    phi = rng.normal(size=(6, 9))
    other = rng.normal(size=(4, 9))
    targets, start = rng.normal(size=(2, 6, k))
    return phi @ phi.T, other @ phi.T, targets, start, rng.normal(size=(4, k))


@pytest.mark.parametrize("loss", CONVENTIONS)
def test_time_is_the_time_of_the_loss_by_its_own_gradient(loss):
    """A matrix exponential of the derivatives that JAX takes of the loss as it is written."""
    kernel, cross, targets, start, at = outputs_problem()
    risk = lambda f: CONVENTIONS[loss](f.reshape(6, 3), targets)
    hessian = jax.hessian(risk)(jnp.ravel(start))
    gradient = np.asarray(jax.grad(risk)(jnp.ravel(start)))
    both = np.kron(np.concatenate([kernel, cross]), np.eye(3))
    drift = -both @ hessian  # (f, g)' = −[Θ; Θ*] (∇R(f_0) + H (f − f_0))
    whole = np.zeros((31, 31))
    whole[:30, :18] = drift
    whole[:30, 30] = -both @ gradient
    dynamics = kernel_dynamics(kernel, loss=loss, outputs=3)
    progress = dynamics.flow([0.7])
    moved = expm(0.7 * whole)[:30, 30]
    expected = np.concatenate([start, at]).ravel() + moved
    train = dynamics.train(progress, targets, start)[0]
    test = dynamics.test(progress, cross, targets, start, at)[0]
    np.testing.assert_allclose(np.concatenate([train, test]).ravel(), expected, atol=1e-11)


@pytest.mark.parametrize("loss", CONVENTIONS)
@pytest.mark.parametrize("coupled", [False, True])
def test_steps_and_the_largest_step_are_those_of_the_loss(loss, coupled):
    """A loop over weights on the gradient of the loss, with momentum, and its divergence."""
    rng = np.random.default_rng(3)
    jacobian = jnp.asarray(rng.normal(size=(5, 2, 40)))
    targets = jnp.asarray(rng.normal(size=(5, 2)))
    kernel = np.einsum("iap,jbp->iajb", jacobian, jacobian)
    if not coupled:
        kernel = kernel[:, 0, :, 0]
        jacobian = jnp.stack([jacobian[:, 0], jnp.zeros_like(jacobian[:, 0])], 1)
        jacobian = jnp.concatenate([jacobian, jacobian[:, ::-1]], 2)
    dynamics = kernel_dynamics(kernel, loss=loss, outputs=2)
    step = jax.jit(jax.grad(lambda w: CONVENTIONS[loss](jacobian @ w, targets)))
    lr = 0.9 * dynamics.largest_step(0.5)
    weights = velocity = jnp.zeros(jacobian.shape[-1])
    for _ in range(30):
        velocity = 0.5 * velocity - lr * step(weights)
        weights = weights + velocity
    reached = dynamics.train(dynamics.descent(lr, [30], 0.5), targets)[0]
    np.testing.assert_allclose(reached, jacobian @ weights, atol=1e-10)
    hessian = jax.hessian(lambda w: CONVENTIONS[loss](jacobian @ w, targets))(weights)
    largest = float(np.linalg.eigvalsh(hessian)[-1])
    assert dynamics.largest_step() == pytest.approx(2 / largest, rel=1e-10)


def test_mean_squared_error_is_that_of_torch():
    need("torch")
    import torch

    kernel, _, targets, start, _ = outputs_problem()
    f = torch.tensor(start, requires_grad=True)
    torch.nn.MSELoss()(f, torch.tensor(targets)).backward()
    dynamics = kernel_dynamics(kernel, loss="mean squared error", outputs=3)
    stepped = dynamics.train(dynamics.descent(0.1, [1]), targets, start)[0]
    np.testing.assert_allclose(stepped, start - 0.1 * kernel @ f.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("relative", [False, True])
def test_a_regularized_kernel_is_that_matrix_in_training_and_ridge_in_the_end(relative):
    kernel, cross, targets, start, at = outputs_problem()
    epsilon = 0.3 * (np.trace(kernel) / 6 if relative else 1.0)
    whole = kernel + epsilon * np.eye(6)
    dynamics = kernel_dynamics(kernel, regularization=0.3, relative=relative)
    progress = dynamics.flow([1.5, np.inf])
    decay = expm(-1.5 * whole / 6)
    reached = dynamics.train(progress, targets, start)
    np.testing.assert_allclose(reached[0], targets + decay @ (start - targets), atol=1e-11)
    np.testing.assert_allclose(reached[1], targets, atol=1e-11)
    reached = dynamics.test(progress, cross, targets, start, at)
    gained = np.linalg.solve(whole, (np.eye(6) - decay) @ (targets - start))
    np.testing.assert_allclose(reached[0], at + cross @ gained, atol=1e-11)
    ridge = kernel_ridge(kernel, targets - start, epsilon).predict(cross)
    np.testing.assert_allclose(reached[1], at + ridge, atol=1e-10)
    # coupled outputs with the same blocks are the same
    coupled = np.einsum("ij,ab->iajb", kernel, np.eye(3))
    same = kernel_dynamics(coupled, regularization=0.3, relative=relative)
    np.testing.assert_allclose(
        same.train(same.flow([1.5]), targets, start)[0],
        dynamics.train(progress, targets, start)[0],
        atol=1e-11,
    )


def test_a_regularization_mends_a_kernel_that_is_not_semidefinite():
    indefinite = np.array([[1.0, 1.01], [1.01, 1.0]])
    with pytest.raises(UserError, match="semidefinite"):
        kernel_dynamics(indefinite)
    assert kernel_dynamics(indefinite, regularization=0.02).eigenvalues[0] > 0


@pytest.mark.parametrize("loss", CONVENTIONS)
def test_every_column_of_ensemble_and_networks_is_the_run_with_this_column(loss):
    kernel, cross, targets, _, _ = outputs_problem()
    root = features(9, 10, 12)
    nngp = root @ root.T
    # a mean over three outputs is slower than one over one output
    pace = {"sum over outputs": 1.0, "mean over outputs": 3.0, "mean squared error": 1.5}[loss]
    dynamics = kernel_dynamics(kernel, loss=loss, outputs=3)
    single = kernel_dynamics(kernel)
    times = np.array([0.0, 0.4, np.inf])
    progress = dynamics.flow(times * pace)
    alone = single.flow(times)
    both = dynamics.ensemble(progress, targets, nngp, cross)
    train = dynamics.ensemble(progress, targets, nngp[:6, :6])
    starts = np.random.default_rng(4).normal(size=(2, 10, 3))
    whole = np.concatenate([kernel, cross])
    paths = dynamics.outputs(progress, whole, starts, targets)
    assert both.mean.shape == (3, 4, 3) and paths.shape == (2, 3, 10, 3)
    for column in range(3):
        of_column = single.ensemble(alone, targets[:, column], nngp, cross)
        np.testing.assert_allclose(both.mean[..., column], of_column.mean, atol=1e-12)
        np.testing.assert_allclose(both.covariance, of_column.covariance, atol=1e-10)
        of_column = single.ensemble(alone, targets[:, column], nngp[:6, :6])
        np.testing.assert_allclose(train.mean[..., column], of_column.mean, atol=1e-12)
        np.testing.assert_allclose(train.covariance, of_column.covariance, atol=1e-10)
        path = single.outputs(alone, whole, starts[..., column], targets[:, column])
        np.testing.assert_allclose(paths[..., column], path, atol=1e-11)


class Flowed:
    """Dynamics of three outputs after a flow, whose methods need no progress."""

    def __init__(self, kernel):
        self.dynamics = kernel_dynamics(kernel, outputs=3)

    def __getattr__(self, name):
        return partial(getattr(self.dynamics, name), self.dynamics.flow([1.0]))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda k: kernel_dynamics(k, loss="mse"),
        lambda k: kernel_dynamics(k, loss=k),
        lambda k: kernel_dynamics(k, loss="mean over outputs"),
        lambda k: kernel_dynamics(k, outputs=0),
        lambda k: kernel_dynamics(k, outputs=1.5),
        lambda k: kernel_dynamics(k.reshape(3, 2, 3, 2), outputs=3),
        lambda k: kernel_dynamics(k, regularization=-1.0),
        lambda k: kernel_dynamics(k, regularization=np.nan),
        lambda k: kernel_dynamics(k, regularization=0.1, relative="yes"),
        lambda k: kernel_dynamics(k * 1j),
        lambda k: kernel_dynamics(np.zeros((0, 2, 0, 2))),
        lambda k: kernel_dynamics(k).flow([]),
        lambda k: kernel_dynamics(k).flow([[1.0]]),
        lambda k: kernel_dynamics(k).flow("late"),
        lambda k: kernel_dynamics(k).descent("fast", [1]),
        lambda k: kernel_dynamics(k).descent(0.1, []),
        lambda k: Flowed(k).train(np.ones((6, 2))),
        lambda k: Flowed(k).train(np.ones(6)),
        lambda k: Flowed(k).train(np.ones((6, 3)) * 1j),
        lambda k: Flowed(k).train(np.ones((6, 3, 1))),
        lambda k: Flowed(k).ensemble(np.ones((6, 3)), np.full((6, 6), np.nan)),
        lambda k: Flowed(k).ensemble(np.ones((6, 3)), np.eye(6) * 1j),
        lambda k: Flowed(k).test(k, np.ones((6, 3)), 0.0, np.full((6, 3), np.nan)),
        lambda k: Flowed(k).outputs(k, np.ones((6, 2)), np.ones((6, 3))),
    ],
)
def test_wrong_losses_and_outputs_are_refused(wrong):
    with pytest.raises(UserError):
        wrong(np.eye(6))
