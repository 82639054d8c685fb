"""Weight decay in wide networks: kernels against integrals, the limit against its equation, and the judge."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sklearn.kernel_ridge import KernelRidge

from steepest.claims.kernels.decay_leaves_kernel.claim import DecayLeavesKernel
from steepest.claims.kernels.decay_leaves_kernel.experiment import (
    Lanes,
    Setting,
    draw_images,
    train,
)
from steepest.claims.kernels.decay_leaves_kernel.theory import follow, tangent_kernel
from steepest.core.errors import UserError
from steepest.kernels import ntk
from steepest.nn.networks import mlp

RNG = np.random.default_rng(0)


def unit(count, dimension):
    x = RNG.standard_normal((count, dimension))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("power", [1, 2])
def test_tangent_kernels_by_quadrature(power):
    """Means over two correlated normals, in polar coordinates: the angle by a fine grid, the radius by its moments."""
    x = unit(3, 4)
    angles = np.linspace(-np.pi, np.pi, 40_001)[:-1]
    for i, j in ((0, 1), (0, 2), (1, 1)):
        cosine = x[i] @ x[j]
        apart = np.arccos(np.clip(cosine, -1, 1))
        first = np.maximum(np.cos(angles), 0)
        second = np.maximum(np.cos(angles - apart), 0)
        radius = {1: 2.0, 2: 8.0}  # E r^2p of a plane's normal: 2, 8
        features = radius[power] * (first * second) ** power
        slopes = power**2 * (first > 0) * (second > 0)
        slopes = slopes if power == 1 else slopes * radius[1] * first * second
        wanted = features.mean() + cosine * slopes.mean()
        assert tangent_kernel(x, power)[i, j] == pytest.approx(wanted, abs=1e-4)


def test_the_kernel_of_relu_is_the_librarys():
    x = unit(5, 6)
    # weights of variance one at both layers, and inputs that are not divided by their dimension
    net = mlp((6, 8, 1), "relu", parameterized="ntk", bias=False)
    np.testing.assert_allclose(tangent_kernel(x, 1), ntk(net.limit(), x * np.sqrt(6)), rtol=1e-6)


def test_small_steps_are_the_equation():
    x = unit(6, 4)
    y = np.sign(RNG.standard_normal(6))
    kernel = tangent_kernel(x, 2)
    decay = 0.3
    slope = lambda t, f: np.exp(-4 * decay * t) * kernel @ (y - f) / 6 - 3 * decay * f
    end = solve_ivp(slope, (0, 2), np.zeros(6), rtol=1e-10, atol=1e-12).y[:, -1]
    errors = []
    for steps in (200, 400):
        path = follow(kernel, y, rate=2 / steps, decay=decay, shrink=4, fade=3, steps=steps)
        errors.append(np.abs(path[-1] - end).max())
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)


def test_towards_the_start_is_kernel_ridge():
    x = unit(6, 4)
    y = np.sign(RNG.standard_normal(6))
    kernel = tangent_kernel(x, 1)
    path = follow(kernel, y, rate=1.0, decay=0.05, shrink=0, fade=1, steps=800)
    fit = KernelRidge(alpha=6 * 0.05, kernel="precomputed").fit(kernel, y)
    np.testing.assert_allclose(path[-1], fit.predict(kernel), atol=1e-9)


def test_one_step_of_a_network_by_hand():
    """Two copies of opposite sign from zero outputs: weights by the formula of the gradient, at a width of three."""
    x, y = draw_images(jax.random.key(0), (0, 1), 4)
    setting = Setting(x, y, np.array([0.7]), np.array([0.2]))
    lanes = Lanes(np.array([2.0]), np.array([0.7]), np.array([0.2]), np.array([0.0]))
    trained = train(jax.random.key(1), setting, lanes, width=3, records=1, between=1)
    key = jax.random.split(jax.random.key(1), 1)[0]
    for_w, for_v = jax.random.split(key)
    w = np.asarray(jax.random.normal(for_w, (3, x.shape[1])))
    v = np.asarray(jax.random.normal(for_v, (3,)))
    z = np.maximum(w @ x.T, 0)
    scale = 1 / np.sqrt(2 * 3)
    outputs = np.zeros(len(y))
    for sign in (1, -1):
        residual = -sign * scale * y / len(y)
        new_w = 0.86 * w - 0.7 * (2 * v[:, None] * z * residual) @ x
        new_v = 0.86 * v - 0.7 * z**2 @ residual
        outputs += sign * scale * new_v @ np.maximum(new_w @ x.T, 0) ** 2
    np.testing.assert_allclose(trained.outputs[0, 0], outputs, rtol=1e-5)


def test_wrong_theories_fail():
    claim = DecayLeavesKernel(widths=(64, 128, 256), images=6, steps=20, seeds=5)
    setting = claim.setting(jax.random.key(2))
    law = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(3))
    right = {check.id: check.verdict.value for check in claim.checks(law, observed)}
    assert "fails" not in {right["outputs"], right["ridge"], right["distance_relu"]}
    wrong = {
        "kernel": law.replace(kernel=("activation width time", law["kernel"] ** 0.5)),
        "outputs": law.replace(outputs=("activation time", law["ridge"])),
        "ridge": law.replace(ridge=("activation time", law["outputs"])),
        "learned": law.replace(learned=("width", law["learned"] ** 0.3)),
    }
    for id, theory in wrong.items():
        verdicts = {check.id: check.verdict.value for check in claim.checks(theory, observed)}
        assert verdicts[id] == "fails"


def test_fields():
    claim = DecayLeavesKernel(**{**DecayLeavesKernel.tiny, **DecayLeavesKernel.out_of_scope})
    setting = claim.setting(jax.random.key(0))
    assert not all(hypothesis.holds for hypothesis in claim.hypotheses(setting))
    with pytest.raises(UserError, match="multiple of 5"):
        DecayLeavesKernel(steps=51)
    with pytest.raises(UserError, match="two digits"):
        DecayLeavesKernel(classes=(3, 3))
