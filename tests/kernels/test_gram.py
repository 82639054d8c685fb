"""Gram matrices of infinite networks: against 50 digits, a dense recursion, finite networks, and themselves."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_diagonal, nngp, ntk, pair_kernels, tabulate
from steepest.kernels.connected._direct import Direct
from steepest.kernels.connected._tabulated import Norms, Tabulated
from steepest.nn.activations import activation
from steepest.nn.networks import mlp
from tests.oracles import dense_kernels, dense_ntk


def network(name="tanh", depth=5, *, c_w=1.5, c_b=0.1, d=3, width=50, **options):
    return mlp((d, *(width,) * depth, 1), name, parameterized="ntk", c_w=c_w, c_b=c_b, **options)


def inputs(n=6, d=3, seed=0, spread=0.5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return (
        x
        / np.linalg.norm(x, axis=1, keepdims=True)
        * np.exp(spread * rng.uniform(-1, 1, (n, 1)))
        * np.sqrt(d)
    )


def exact_relu_ntk(angle, depth):
    """Arc-cosine recursion at C_W = 2 without biases and ‖x‖² = n_0, at 50 digits."""
    with mpmath.workdps(50):
        theta = rho = 2 * mpmath.cos(mpmath.mpf(angle))
        for _ in range(depth):
            a = mpmath.acos(rho / 2)
            theta *= (mpmath.pi - a) / mpmath.pi
            rho = 2 * (mpmath.sin(a) + (mpmath.pi - a) * mpmath.cos(a)) / mpmath.pi
            theta += rho
        return float(rho), float(theta)


@pytest.mark.parametrize("depth", [1, 5, 20])
def test_relu_against_fifty_digits(depth):
    """Table and recursion, at every angle up to nearly parallel and nearly opposite."""
    limit = network("relu", depth, c_w=2.0, bias=False).limit()
    angles = np.array([1e-6, 0.01, 0.7, 1.5, 2.5, 3.1, np.pi - 1e-6])
    exact = np.array([exact_relu_ntk(each, depth) for each in angles])
    zeros = np.zeros(len(angles), int)
    for found in (
        pair_kernels(limit, np.ones(1), zeros, zeros, angles).pairs,
        tabulate(limit, 1.0, 1.0).evaluate(np.ones(1), zeros, zeros, angles),
    ):
        np.testing.assert_allclose(found.nngp, exact[:, 0], rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(found.ntk, exact[:, 1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"skip": 0.7}, {"normalize": True}, {"skip": 1.0, "normalize": True}], ids=str
)
@pytest.mark.parametrize("name", ["tanh", "gelu", "softplus", "erf"])
def test_depth_five_against_the_dense_recursion(name, options):
    """Biases, unequal norms, residual branches, layer normalization: within 1e-8."""
    sigma = activation(name)
    net = network(name, 5, **options)
    x = inputs(4)
    found = gram(net.limit(), x)
    table = Tabulated.of(net.limit(), Norms.of(x), x.dtype)
    tabulated = table.tile(table.rows(x), table.rows(x), same=True)
    for i, j in ((0, 1), (2, 3), (1, 1)):
        a = x[i] @ x[i] / 3
        b = x[j] @ x[j] / 3
        c = x[i] @ x[j] / 3
        if abs(c) > 0.95 * np.sqrt(a * b) and i != j:
            continue
        exact = dense_kernels(
            sigma,
            sigma.slope,
            net.limit().layers,
            a,
            b,
            c,
            options.get("skip", 0.0),
            options.get("normalize", False),
        )
        assert (found.nngp[i, j], found.ntk[i, j]) == pytest.approx(exact, rel=1e-8)
        assert [float(each[i, j]) for each in tabulated] == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("parameterized", ["ntk", "standard"])
@pytest.mark.parametrize("options", [{}, {"skip": 0.8}, {"normalize": True}], ids=str)
def test_wide_networks_have_these_kernels(key, options, parameterized):
    """The mean empirical NTK of finite networks is the limit's up to O(1/n); z ≤ 4 and 3 % for the correction."""
    net = mlp((3, 300, 300, 1), "tanh", parameterized=parameterized, c_w=1.5, c_b=0.1, **options)
    x = jnp.asarray(inputs(3))
    kernels = jax.jit(lambda k: _jacobian_kernel(net, net.init(k), x))
    sampled = np.stack([kernels(k) for k in jax.random.split(key, 40)])
    exact = ntk(net.limit(), np.asarray(x))
    error = sampled.std(0) / np.sqrt(len(sampled))
    assert (np.abs(sampled.mean(0) - exact) <= 4 * error + 0.03 * np.abs(exact)).all()


def _jacobian_kernel(net, params, x):
    leaves = jax.tree.leaves(jax.jacrev(net.apply)(params, x))
    rows = jnp.concatenate([leaf.reshape(len(x), -1) for leaf in leaves], axis=1)
    return rows @ rows.T


def test_the_jacobian_kernel_of_this_file_is_the_dense_one(key):
    net = network(width=5, depth=2)
    params = net.init(key)
    x = inputs(3)
    np.testing.assert_allclose(
        _jacobian_kernel(net, params, x), dense_ntk(net.apply, params, x), rtol=1e-10
    )


def test_outputs_of_wide_networks_have_this_covariance(key):
    net = network("relu", 2, width=200)
    x = inputs(3)
    outputs = np.asarray(jax.vmap(lambda k: net.apply(net.init(k), x))(jax.random.split(key, 2000)))
    exact = nngp(net.limit(), x)
    error = np.sqrt((exact**2 + np.outer(np.diag(exact), np.diag(exact))) / 2000)
    assert (np.abs(outputs.T @ outputs / 2000 - exact) <= 4 * error + 0.02 * exact).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["relu", "tanh", "gelu"])
def test_tiles_halves_and_cross_blocks_agree(name, dtype):
    """However the matrix is cut, its entries are the same; the symmetric one is symmetric, its diagonal exact."""
    limit = network(name, 3).limit()
    x = inputs(37).astype(dtype)
    whole = gram(limit, x)
    cut = gram(limit, x, tile=11)
    crossed = gram(limit, x, x[:5], tile=16)
    close = {"rtol": 1e-12 if dtype == np.float64 else 3e-5}
    for one, other, cross in zip(whole[:2], cut[:2], crossed[:2], strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, one.T)
        np.testing.assert_allclose(one, other, **close)
        off = ~np.eye(37, dtype=bool)[:, :5]
        np.testing.assert_allclose(one[:, :5][off], cross[off], **close)
    singles = pair_kernels(
        limit, np.einsum("nd,nd->n", x, x, dtype=float) / 3, *np.zeros((2, 0), int), np.zeros(0)
    ).singles
    np.testing.assert_allclose(
        np.diag(whole.ntk), singles.ntk, rtol=1e-11 if dtype == np.float64 else 1e-6
    )


@pytest.mark.parametrize("name", ["erf", "gelu", "sin"])
def test_the_direct_way_and_the_table_agree(name):
    limit = network(name, 3).limit()
    x = inputs(30)
    assert Direct.suits(limit, Norms.of(x))
    direct = Direct.of(limit, x)
    table = Tabulated.of(limit, Norms.of(x), x.dtype)
    for one, other in zip(
        direct.tile(*[direct.rows(x)] * 2, same=True),
        table.tile(*[table.rows(x)] * 2, same=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=2e-10)


def test_corners_biases_and_unequal_norms_are_evaluated_directly_at_any_depth():
    """The recursion pair by pair is the reference; near coincident inputs it has a corner that no table has."""
    limit = network("relu", 9).limit()
    x = inputs(12)
    x[1] = 1.001 * x[0]
    squares = np.einsum("nd,nd->n", x, x) / 3
    (i, j) = np.triu_indices(12, 1)
    angles = np.arccos(np.clip((x @ x.T / 3)[i, j] / np.sqrt(squares[i] * squares[j]), -1, 1))
    exact = pair_kernels(limit, squares, i, j, angles).pairs
    np.testing.assert_allclose(gram(limit, x).ntk[i, j], exact.ntk, rtol=1e-8)
    with pytest.raises(UserError, match="could be met"):
        tabulate(network("relu", 2).limit(), 1.0, 2.0)


def test_single_precision_is_double_precision_rounded():
    for name in ("relu", "tanh", "erf"):
        limit = network(name, 3).limit()
        x = inputs(20)
        single = gram(limit, x.astype(np.float32))
        double = gram(limit, x)
        np.testing.assert_allclose(single.ntk, double.ntk, rtol=2e-4)


def test_equal_inputs_have_equal_rows():
    """Duplicates are at angle zero, exactly: no noise of the size of √eps, even for kinks."""
    x = inputs(5)
    x[3] = x[1]
    found = gram(network("relu", 3).limit(), x, x).ntk
    np.testing.assert_allclose(found[3], found[1], rtol=1e-12)
    assert found[1, 3] == pytest.approx(found[1, 1], rel=1e-12)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.1, 10), st.integers(1, 4))
def test_relu_without_biases_is_homogeneous(factor, depth):
    limit = network("relu", depth, c_w=2.0, bias=False).limit()
    x = inputs(4)
    np.testing.assert_allclose(ntk(limit, factor * x), factor**2 * ntk(limit, x), rtol=1e-10)


def test_the_gram_is_positive_semidefinite():
    for name in ("relu", "tanh", "elu"):
        limit = network(name, 2, d=5).limit()
        x = inputs(40, d=5, spread=0.0 if name == "elu" else 0.5)
        eigenvalues = np.linalg.eigvalsh(gram(limit, x).ntk)
        assert eigenvalues[0] > -1e-9 * eigenvalues[-1]


def test_a_jump_has_a_covariance_but_no_tangent_kernel():
    found = gram(network("step", 2).limit(), inputs(4))
    assert np.isfinite(found.nngp).all()
    assert np.isnan(found.ntk).all()


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (np.ones(3), "shape"),
        (np.array([[1.0, np.nan, 0.0], [1.0, 1.0, 1.0]]), "row 0"),
        (np.ones((0, 3)), "shape"),
    ],
)
def test_bad_inputs_get_one_sentence(x, sentence):
    with pytest.raises(UserError, match=sentence):
        gram(network().limit(), x)


def test_sets_of_different_dimension_are_refused():
    with pytest.raises(UserError, match="same dimension"):
        gram(network().limit(), np.ones((2, 3)), np.ones((2, 4)))


@pytest.mark.parametrize(
    ("name", "reason"), [("mup", "move by order one"), ("mean-field", "move by order one")]
)
def test_parameterizations_without_a_limit_kernel_are_refused_with_the_reason(name, reason):
    with pytest.raises(UserError, match=reason):
        mlp((3, 10, 1), "tanh", parameterized=name).limit()


@pytest.mark.parametrize("name", ["relu", "tanh", "step"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_diagonal_alone(name, dtype):
    limit = mlp((5, 9, 9, 1), name, parameterized="ntk", c_w=1.5, c_b=0.1).limit()
    x = np.random.default_rng(0).normal(size=(6, 5)).astype(dtype)
    alone, whole = gram_diagonal(limit, x), gram(limit, x)
    rounding = 1e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(alone.nngp, np.diag(whole.nngp), rtol=rounding)
    np.testing.assert_allclose(alone.ntk, np.diag(whole.ntk), rtol=rounding)
    assert alone.ntk.dtype == dtype
