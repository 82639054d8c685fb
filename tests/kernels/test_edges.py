"""Kernels at the edge of their inputs: zeros, norms beyond the precision, other shapes and types."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import (
    empirical_ntk,
    fit,
    gaussian_process,
    gram,
    gram_diagonal,
    gram_layers,
    gram_positions,
    kernel_dynamics,
    kernel_function,
    kernel_ridge,
    open_tiled,
    tabulate,
    tiled_gram,
)
from steepest.kernels.connected import _table
from steepest.kernels.wide import _evaluate
from steepest.kernels.wide._rule import rule_of
from steepest.nn.layers import aggregate, conv, dense, flatten, global_pool, network
from steepest.nn.networks import mlp

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(4, 3)), np.zeros((1, 3))])


def relu_kernels(x, c_w, c_b, t_b, depth=2):
    """Return K and Θ by the arc-cosine recursion, with σ'(0) = 0 as in finite networks; c_w of all layers or each."""
    first, *later = np.broadcast_to(c_w, depth + 1)
    products = x @ x.T / x.shape[1]
    k, theta = c_b + first * products, t_b + first * products
    for c_w in later:
        scale = np.sqrt(np.outer(np.diag(k), np.diag(k)))
        live = scale > 0
        cosine = np.clip(np.divide(k, scale, out=np.zeros_like(k), where=live), -1, 1)
        angle = np.arccos(cosine)
        value = scale * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
        slope = np.where(live, (np.pi - angle) / (2 * np.pi), 0.0)
        k, theta = c_b + c_w * value, t_b + c_w * value + c_w * slope * theta
    return k, theta


@pytest.mark.parametrize(("c_b", "bias"), [(0.5, True), (0.0, True), (0.0, False)])
@pytest.mark.parametrize("unit", [False, True], ids=["norms", "unit"])
def test_a_row_of_zeros_has_the_kernel_of_the_recursion(c_b, bias, unit):
    x = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9) if unit else X
    limit = mlp((3, 8, 8, 1), "relu", parameterized="ntk", c_w=2.0, c_b=c_b, bias=bias).limit()
    k, theta = relu_kernels(x, 2.0, c_b, float(bias))
    both = gram(limit, x)
    np.testing.assert_allclose(both.nngp, k, atol=1e-12)
    np.testing.assert_allclose(both.ntk, theta, atol=1e-11)
    apart = gram(limit, x[4:], x[:4])
    np.testing.assert_allclose(apart.ntk, theta[4:, :4], atol=1e-11)
    np.testing.assert_allclose(gram_diagonal(limit, x).ntk, np.diag(theta), atol=1e-12)


def test_the_kernel_of_zeros_that_two_functions_disagreed_on():
    limit = mlp((3, 8, 8, 1), "relu", parameterized="ntk", c_w=2.0, c_b=0.5).limit()
    function = kernel_function(limit, X)
    both = gram(limit, X)
    for i in range(5):
        one = function(X[i], X[4])
        assert one.nngp == pytest.approx(both.nngp[i, 4], rel=1e-6)
        assert one.ntk == pytest.approx(both.ntk[i, 4], rel=1e-6)


def test_zeros_alone_have_a_kernel():
    limit = mlp((3, 8, 8, 1), "relu", parameterized="ntk", c_w=2.0, c_b=0.5).limit()
    zeros = np.zeros((2, 3))
    np.testing.assert_allclose(gram(limit, zeros).ntk, relu_kernels(zeros, 2.0, 0.5, 1.0)[1])


def test_finite_networks_have_the_kernel_of_zeros(key):
    """Biases that start at zero are trained: Θ(0, x) has no derivative part, as σ'(0) = 0."""
    net = mlp((3, 2000, 1), "relu", parameterized="ntk", c_w=2.0)
    found = empirical_ntk(net, net.init(key), jnp.asarray(X))
    limit = gram(net.limit(), X).ntk
    np.testing.assert_allclose(found[4], limit[4], atol=1e-12)
    np.testing.assert_allclose(found, limit, atol=0.25 * limit.max())


@pytest.mark.parametrize("name", ["tanh", "cos"])
def test_smooth_activations_at_zero_by_quadrature(name):
    """One hidden layer without biases: u of zero is zero, so that E σ(u)σ(v) = σ(0) E σ(v)."""
    sigma, slope = {
        "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
        "cos": (np.cos, lambda z: -np.sin(z)),
    }[name]
    nodes = np.linspace(-12, 12, 4001)  # the trapezoidal rule is exact to rounding
    weights = np.exp(-(nodes**2) / 2)
    weights = weights / weights.sum()
    both = gram(mlp((3, 8, 1), name, parameterized="ntk", c_w=1.5).limit(), X)
    for i in range(5):
        z = np.sqrt(1.5 * (X[i] ** 2).mean()) * nodes
        value = sigma(0.0) * weights @ sigma(z)
        turned = slope(0.0) * weights @ slope(z)
        assert both.nngp[i, 4] == pytest.approx(1.5 * value, abs=1e-10)
        assert both.ntk[i, 4] == pytest.approx(1.0 + 1.5 * value + 1.5 * turned, abs=1e-10)


def test_tiles_of_zeros_are_those_of_memory(tmp_path):
    limit = mlp((3, 8, 1), "erf", parameterized="ntk", c_w=1.5).limit()
    tiled_gram(limit, X, tmp_path / "tiles", tile=2)
    found = open_tiled(tmp_path / "tiles").ntk.toarray()
    np.testing.assert_allclose(found, gram(limit, X).ntk, atol=1e-13)


@pytest.mark.parametrize(("name", "normalize"), [("step", False), ("relu", True)])
def test_zeros_without_a_limit_are_refused_by_their_row(name, normalize):
    net = mlp((3, 8, 1), name, parameterized="ntk", normalize=normalize)
    with pytest.raises(UserError, match="row 4 "):
        gram(net.limit(), X)


def patches(x):
    """Return the 3 × 3 patches of images ``(n, 6, 6)``, zeros beyond the edge, ``(n, 36, 9)``."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = [padded[:, i : i + 6, j : j + 6] for i in range(3) for j in range(3)]
    return np.stack(windows, -1).reshape(len(x), 36, 9)


def test_images_with_empty_and_faint_patches():
    """Tanh behind one convolution: every patch by a Gauss–Hermite rule, variances over six decades and zero."""
    x = np.zeros((3, 6, 6))
    x[0, 0, 0], x[0, 5, 5], x[1, 0, 1], x[1, 5, 4] = 1.0, 1e-3, 0.7, 2e-3
    net = network(
        conv(4), "tanh", flatten(), dense(1), shape=(6, 6, 1), parameterized="ntk", c_w=2.0
    )
    both = gram(net.limit(), x[..., None])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = np.outer(weights, weights) / weights.sum() ** 2
    read = patches(x)
    for i, j in ((0, 0), (0, 1), (1, 2), (2, 2)):
        k = theta = 0.0
        for p in range(36):
            a, b, c = (
                2 * (one * two).sum() / 9
                for one, two in (
                    (read[i, p], read[i, p]),
                    (read[j, p], read[j, p]),
                    (read[i, p], read[j, p]),
                )
            )
            along = c / np.sqrt(a) if a else 0.0
            u = np.sqrt(a) * nodes[:, None]
            v = along * nodes[:, None] + np.sqrt(max(b - along**2, 0.0)) * nodes
            value = (weights * np.tanh(u) * np.tanh(v)).sum()
            slope = (weights / np.cosh(u) ** 2 / np.cosh(v) ** 2).sum()
            k += 2 * value / 36
            theta += (2 * value + 2 * slope * (1 + c)) / 36
        assert both.nngp[i, j] == pytest.approx(k, abs=1e-10)
        assert both.ntk[i, j] == pytest.approx(1 + theta, abs=1e-10)


def test_a_blank_image_without_biases_has_no_kernel():
    net = network(
        conv(4), "relu", flatten(), dense(1), shape=(4, 4, 1), parameterized="ntk", bias=False
    )
    x = np.concatenate([RNG.normal(size=(2, 4, 4, 1)), np.zeros((1, 4, 4, 1))])
    both = gram(net.limit(), x)
    assert not both.nngp[2].any() and not both.ntk[2].any() and np.isfinite(both.error)


def test_the_derivative_of_abs_at_zero_is_that_of_finite_networks():
    x = np.zeros((2, 3))
    x[0] = 1.0
    net = network(dense(8), "abs", dense(1), shape=(3,), parameterized="ntk", c_w=2.0)
    assert gram(net.limit(), x).ntk[1, 1] == pytest.approx(1.0)  # the last biases alone


def test_a_tolerance_that_is_named_is_met():
    net = network(dense(4), "tanh", dense(1), shape=(3,), parameterized="ntk", c_w=2.0)
    x = RNG.normal(size=(3, 3))
    at = lambda variance: x * np.sqrt(variance / 2 / (x**2).mean(1, keepdims=True))
    assert gram(net.limit(), at(7.6)).error < 1e-10
    x = at(60.0)
    with pytest.raises(UserError, match="tolerance=") as refused:
        gram(net.limit(), x)
    named = float(str(refused.value).split("tolerance=")[1].split(",")[0])
    assert gram(net.limit(), x, tolerance=named).error < 100 * named


@pytest.mark.parametrize("shape", [(4, 5), (4, 2), (4,), (0, 3), (4, 0)])
def test_inputs_of_another_shape_are_refused(shape, tmp_path):
    limit = mlp((3, 8, 1), "relu", parameterized="ntk").limit()
    x = np.ones(shape)
    for function in (gram, gram_diagonal, gram_layers, kernel_function):
        with pytest.raises(UserError):
            function(limit, x)
    with pytest.raises(UserError):
        tiled_gram(limit, x, tmp_path / "tiles")
    images = network(conv(2), "relu", conv(2), shape=(4, 4, 1), parameterized="ntk").limit()
    with pytest.raises(UserError):
        gram_positions(images, x)


def test_a_kernel_function_refuses_inputs_of_another_shape():
    kernel = kernel_function(mlp((3, 8, 1), "relu", parameterized="ntk").limit(), X[:4])
    with pytest.raises(UserError):
        kernel(jnp.ones(5), jnp.ones(5))
    with pytest.raises(UserError):
        kernel(jnp.ones((2, 3)), jnp.ones(3))


def test_a_limit_by_hand_reads_inputs_of_any_dimension():
    limit = mlp((3, 8, 1), "relu", parameterized="ntk").limit()
    free = replace(limit, inputs=None)
    assert (limit.inputs, free) == (3, limit)  # and programs and tables are shared
    assert gram(free, np.ones((2, 5))).ntk.shape == (2, 2)


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float32, 1e20), (np.float32, 1e-20), (float, 1e200), (float, 1e-200)]
)
@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_norms_beyond_the_precision_are_refused_by_their_row(dtype, size, name):
    x = X[:4].astype(dtype)
    x[2] *= dtype(size)
    with pytest.raises(UserError, match="row 2 "):
        gram(mlp((3, 8, 8, 1), name, parameterized="ntk").limit(), x)


@pytest.mark.parametrize("dtype", [np.float32, float])
def test_signals_that_grow_from_layer_to_layer_stay_within_the_error(dtype):
    """Eight layers whose weights have variances of 1 to 64: kernels of 1e7."""
    variances = np.arange(1.0, 9.0) ** 2
    layers = [step for c_w in variances for step in (dense(8, c_w=float(c_w)), "relu")]
    net = network(*layers[:-1], shape=(3,), parameterized="ntk", bias=False)
    both = gram(net.limit(), X[:4].astype(dtype))
    k, theta = relu_kernels(X[:4].astype(dtype).astype(float), variances, 0.0, 0.0, depth=7)
    assert k.max() > 1e6
    for found, right in ((both.nngp, k), (both.ntk, theta)):
        assert np.abs(found / right - 1).max() < 100 * np.finfo(dtype).eps
        assert np.abs(found - right).max() < both.error * np.abs(right).max()


def test_signals_that_outgrow_the_precision_are_refused():
    limit = mlp((3, *[8] * 9, 1), "relu", parameterized="ntk", c_w=1e6, bias=False).limit()
    with pytest.raises(UserError):
        gram(limit, X[:4].astype(np.float32))


@pytest.mark.parametrize(
    "x", [X[:4] * 1j, X[:4].astype(str), np.array([[1, None, 2]]), [[1], [1, 2]]]
)
def test_what_are_no_real_numbers_is_refused(x):
    with pytest.raises(UserError):
        gram(mlp((3, 8, 1), "relu", parameterized="ntk").limit(), x)


def test_coefficients_are_traced_or_refused_in_a_sentence():
    def entry(c):
        return gram(mlp((3, 8, 1), "relu", parameterized="ntk", c_b=c).limit(), X).ntk[0, 1]

    difference = (entry(0.3 + 1e-5) - entry(0.3 - 1e-5)) / 2e-5
    assert float(jax.grad(entry)(0.3)) == pytest.approx(difference, rel=1e-6)
    with pytest.raises(UserError):
        mlp((3, 8, 1), "relu", c_w=-1.0)


def test_programs_and_tables_of_old_limits_are_forgotten(monkeypatch):
    assert _evaluate._program.cache_info().maxsize == _evaluate.PROGRAMS
    monkeypatch.setattr(_table, "NETWORKS", 2)
    monkeypatch.setattr(_table, "_TABLES", {})
    for c_w in (1.0, 1.1, 1.2):
        tabulate(mlp((3, 8, 1), "relu", c_w=c_w, bias=False).limit(), 1.0, 1.0)
    assert len(_table._TABLES) == 2


def test_a_graph_that_leads_nowhere_has_kernels_of_zero():
    """Others of the batch have theirs; where no graph leads anywhere the network is to blame."""
    net = network(
        aggregate(),
        dense(8),
        "relu",
        global_pool(),
        dense(1),
        shape=(4, 3),
        parameterized="ntk",
        bias=False,
    )
    x = RNG.normal(size=(3, 4, 3))
    graphs = np.stack([np.eye(4), np.zeros((4, 4)), np.full((4, 4), 0.25)])
    both = gram(net.limit(), x, graphs=graphs)
    alone = gram(net.limit(), x[[0, 2]], graphs=graphs[[0, 2]])
    for kernel, of_others in zip(both[:2], alone[:2], strict=True):
        assert not kernel[1].any() and not kernel[:, 1].any()
        np.testing.assert_allclose(kernel[np.ix_([0, 2], [0, 2])], of_others, rtol=1e-12)
    with pytest.raises(UserError):
        gram(net.limit(), x, graphs=0 * graphs)


def test_a_whole_gram_is_no_kernel():
    both = gram(mlp((3, 8, 1), "erf", parameterized="ntk").limit(), X[:4])
    for use in (kernel_ridge, gaussian_process):
        with pytest.raises(UserError, match="nngp"):
            use(both, X[:4, 0], 0.1)
    with pytest.raises(UserError, match="nngp"):
        kernel_dynamics(both)


@pytest.mark.parametrize("spoil", [float, np.sqrt, lambda c: c if c > 1 else 2 * c])
def test_fit_says_that_hyperparameters_are_traced(spoil):
    limit = lambda c: mlp((3, 8, 1), "erf", parameterized="ntk", c_w=spoil(c)).limit()
    with pytest.raises(UserError, match=r"jax\.numpy"):
        fit(limit, 1.0, X[:4], X[:4, 0])


def test_a_node_without_a_rule_is_named():
    class Unruled:
        pass

    with pytest.raises(UserError, match="Unruled"):
        rule_of(Unruled())
