"""Tangent kernels of finite networks against one gradient an example."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from steepest.core.errors import UserError
from steepest.kernels import (
    empirical_nngp,
    empirical_ntk,
    empirical_ntk_diagonal,
    nngp,
    ntk,
    ntk_eigenpairs,
    ntk_product,
    ntk_top,
    taylor_expand,
)
from steepest.kernels.finite._jacobian import jacobian_ntk
from steepest.nn.layers import conv, dense, flatten, network
from steepest.nn.networks import mlp, two_layer
from tests.oracles import dense_hessian, dense_ntk, dense_outputs

X = np.random.default_rng(0).normal(size=(5, 3))


@pytest.mark.parametrize(
    "net",
    [
        mlp((3, 6, 1), "tanh", parameterized="ntk", c_b=0.3),
        mlp((3, 6, 4, 1), "relu", bias=False),
        two_layer(3, 6, power=2),
    ],
    ids=lambda net: net.name,
)
def test_it_is_the_gram_matrix_of_the_gradients(net, key):
    params = net.init(key)
    kernel = jax.jit(lambda p: empirical_ntk(net.apply, p, X))(params)
    np.testing.assert_allclose(kernel, dense_ntk(net.apply, params, X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel, kernel.T, rtol=1e-12)
    assert np.linalg.eigvalsh(kernel)[0] >= -1e-12
    top = jax.jit(lambda p: ntk_top(net.apply, p, X))(params)
    assert top == pytest.approx(np.linalg.eigvalsh(kernel / 5)[-1], rel=1e-10)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_linear_model_has_the_gram_matrix_of_its_inputs(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(5, 3))
    w = rng.normal(size=3)
    linear = lambda w, x: x @ w
    np.testing.assert_allclose(empirical_ntk(linear, w, x), x @ x.T, rtol=1e-10, atol=1e-12)
    assert ntk_top(linear, w, x) == pytest.approx(np.linalg.norm(x, 2) ** 2 / 5, rel=1e-10)


def test_two_linear_layers_in_closed_form(key):
    """f = v·Ux/√(md): Θ(x, x') = (Ux·Ux' + ‖v‖² x·x')/(md)."""
    net = mlp((3, 6, 1), "linear", parameterized="ntk", bias=False)
    params = net.init(key)
    u = np.asarray(params[0]["w"])
    v = np.asarray(params[1]["w"])
    expected = ((X @ u.T) @ (X @ u.T).T + (v**2).sum() * X @ X.T) / 18
    np.testing.assert_allclose(empirical_ntk(net.apply, params, X), expected, rtol=1e-10)


def test_at_interpolation_its_top_is_the_sharpness(key):
    """Where f = y the Hessian of ½ mean (f − y)² is its Gauss-Newton part, whose nonzero spectrum is Θ/n's."""
    net = mlp((3, 6, 1), "tanh", parameterized="ntk")
    params = net.init(key)
    y = net.apply(params, X)
    dense = dense_hessian(lambda p: 0.5 * jnp.mean((net.apply(p, X) - y) ** 2), params)
    assert ntk_top(net.apply, params, X) == pytest.approx(np.linalg.eigvalsh(dense)[-1], rel=1e-10)


def test_an_output_of_shape_n_1_counts_as_scalar(key):
    linear = lambda w, x: x @ w
    w = jax.random.normal(key, (3, 1))
    np.testing.assert_allclose(empirical_ntk(linear, w, X), X @ X.T, rtol=1e-10)


CASES = [
    mlp((3, 6, 1), "tanh", parameterized="ntk", c_b=0.3),
    mlp((3, 6, 6, 6, 2), "gelu", parameterized="mup", c_w=1.5, c_b=0.1, skip=0.7),
    mlp((3, 6, 6, 6, 1), "tanh", parameterized="mean-field", normalize=True, bias=False, skip=0.5),
    mlp((3, 5, 7, 3), "relu", parameterized="ntk", c_w=2.0, normalize=True),
]
MORE = np.random.default_rng(1).normal(size=(4, 3))


@pytest.mark.parametrize("net", CASES, ids=lambda net: net.name)
@pytest.mark.parametrize("method", ["jacobian", "layerwise", "vectors"])
def test_all_ways_give_the_dense_kernel(net, method, key):
    params = net.init(key)
    found = jax.jit(lambda p: empirical_ntk(net, p, X, MORE, method=method, outputs="all"))(params)
    np.testing.assert_allclose(
        found, dense_outputs(net.apply, params, X, MORE), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("method", ["jacobian", "layerwise", "vectors"])
def test_the_trace_sums_over_outputs(method, key):
    net = CASES[1]
    params = net.init(key)
    found = jax.jit(lambda p: empirical_ntk(net, p, X, method=method, outputs="trace"))(params)
    expected = np.einsum("iaja->ij", dense_outputs(net.apply, params, X, X))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("net", [CASES[0], CASES[2]], ids=lambda net: net.name)
def test_a_network_and_its_apply_have_one_kernel(net, key):
    params = net.init(key)
    expected = dense_ntk(net.apply, params, X)
    for subject in (net, net.apply):
        found = jax.jit(lambda p, subject=subject: empirical_ntk(subject, p, X))(params)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("other", [None, MORE], ids=["symmetric", "two sets"])
@pytest.mark.parametrize("examples", [2])
def test_blocks_of_the_jacobian_change_nothing(traced, other, examples, key):
    net = CASES[1]
    params = net.init(key)
    one = (
        2 * ravel_pytree(params)[0].size * 8
    )  # bytes of the two outputs' derivatives at one example
    more = None if other is None else (jnp.asarray(other),)
    blocked = jax.jit(
        lambda p: jacobian_ntk(net.apply, p, (jnp.asarray(X),), more, traced, examples * one)
    )(params)
    expected = dense_outputs(net.apply, params, X, X if other is None else other)
    expected = np.einsum("iaja->ij", expected) if traced else expected
    np.testing.assert_allclose(blocked, expected, rtol=1e-10, atol=1e-10)


def test_blocks_bound_the_memory(key):
    """A block a hundredth of the Jacobian keeps the compiled program's temporary memory far below the Jacobian."""
    net = mlp((3, 100, 100, 1), "tanh")
    x = jnp.ones((300, 3))
    params = net.init(key)
    full = 300 * ravel_pytree(params)[0].nbytes
    run = jax.jit(lambda p: jacobian_ntk(net.apply, p, (x,), None, True, full // 100))
    assert run.lower(params).compile().memory_analysis().temp_size_in_bytes < full / 10


def test_inactive_inputs_do_not_spoil_the_layerwise_kernel(key):
    """No neuron is active at any input: A = 0, and the multiplier must not become 0/0."""
    net = mlp((3, 4, 1), "relu", parameterized="ntk", c_b=0.1)
    first, last = net.init(key)
    params = ({**first, "b": first["b"] - 100}, last)
    np.testing.assert_array_equal(
        empirical_ntk(net, params, X), np.ones((5, 5))
    )  # the bias of the output


@pytest.mark.parametrize("net", CASES[:2], ids=lambda net: net.name)
def test_products_with_vectors(net, key):
    params = net.init(key)
    dense = dense_outputs(net.apply, params, X, MORE)
    times = ntk_product(net, params, X, MORE)
    v = np.random.default_rng(2).normal(size=net.apply(params, MORE).shape)
    expected = np.einsum("iajb,jb->ia", dense, v.reshape(len(MORE), -1))
    np.testing.assert_allclose(np.reshape(times(v), expected.shape), expected, rtol=1e-10)


def test_products_allow_examples_to_interact():
    """Batch normalization without scale: f = Cw with C the centring of the batch, so Θ = C X Xᵀ C."""
    centred = lambda w, x: x @ w - (x @ w).mean()
    c = np.eye(5) - 0.2
    found = empirical_ntk(centred, jnp.ones(3), X, method="vectors")
    np.testing.assert_allclose(found, c @ X @ X.T @ c, rtol=1e-10, atol=1e-12)


def test_eigenpairs_are_those_of_the_matrix(key):
    net = mlp((3, 30, 1), "tanh", parameterized="ntk")
    x = np.random.default_rng(3).normal(size=(40, 3))
    params = net.init(key)
    values, vectors = np.linalg.eigh(empirical_ntk(net, params, x) / 40)
    found = jax.jit(lambda p: ntk_eigenpairs(net, p, x, 3, jax.random.key(1)))(params)
    np.testing.assert_allclose(found.values, values[:-4:-1], rtol=1e-10)
    np.testing.assert_allclose(
        np.abs(np.sum(found.vectors * vectors[:, :-4:-1].T, axis=1)), 1, rtol=1e-8
    )
    assert found.converged.all()
    assert (found.residuals < 1e-6 * values[-1]).all()


def test_residuals_tell_of_too_few_products(key):
    net = mlp((3, 30, 1), "tanh", parameterized="ntk")
    x = np.random.default_rng(3).normal(size=(40, 3))
    params = net.init(key)
    found = ntk_eigenpairs(net, params, x, 2, jax.random.key(1), products=2, tolerance=1e-6)
    exact = np.linalg.eigvalsh(empirical_ntk(net, params, x) / 40)
    assert not found.converged.all()
    for value, residual in zip(found.values, found.residuals, strict=True):
        assert np.abs(exact - value).min() <= residual * (1 + 1e-9)


def test_eigenpairs_of_a_kernel_of_low_rank():
    """A linear model in one dimension: one eigenvalue, then zero, which is seen once, then nothing."""
    x = np.arange(1.0, 6.0)[:, None]
    found = ntk_eigenpairs(lambda w, x: x @ w, jnp.ones(1), x, 4, jax.random.key(0))
    np.testing.assert_allclose(found.values[:2], [11.0, 0.0], atol=1e-12)
    assert np.isnan(found.values[2:]).all()
    assert found.converged.tolist() == [True, True, False, False]


def test_eigenpairs_of_several_outputs(key):
    net = mlp((3, 8, 2), "tanh", parameterized="ntk")
    params = net.init(key)
    dense = dense_outputs(net.apply, params, X, X).reshape(10, 10) / 5
    found = ntk_eigenpairs(net, params, X, 2, jax.random.key(1))
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(dense)[:-3:-1], rtol=1e-8)
    assert found.vectors.shape == (2, 5, 2)


@pytest.mark.parametrize("options", [{}, {"skip": 0.5, "normalize": True}], ids=str)
def test_wide_networks_have_the_kernel_of_the_limit(options):
    """The root mean square distance over twelve networks falls like n^(-1/2) and is small at the end.

    Widths start at 128: with layer normalization the distance at width 32 is five times what the law gives.
    """
    widths = (128, 512)
    distances = []
    for width in widths:
        net = mlp((3, width, width, 1), "tanh", parameterized="ntk", c_w=1.5, c_b=0.2, **options)
        expected = ntk(net.limit(), X)
        draws = jax.random.split(jax.random.key(5), 12)
        kernels = jax.vmap(lambda p, net=net: empirical_ntk(net, p, X))(jax.vmap(net.init)(draws))
        distances.append(float(np.sqrt(np.mean((kernels - expected) ** 2) / np.mean(expected**2))))
    assert distances[-1] < 0.1
    assert np.polyfit(np.log(widths), np.log(distances), 1)[0] == pytest.approx(-0.5, abs=0.2)


def test_mistakes_are_said_in_one_sentence(key):
    net = CASES[1]
    params = net.init(key)
    for wrong, message in (
        ({"method": "jacobain"}, "did you mean 'jacobian'"),
        ({"outputs": "sum"}, "choice of outputs"),
        ({}, "outputs='trace'"),
    ):
        with pytest.raises(UserError, match=message):
            empirical_ntk(net, params, X, **wrong)
    with pytest.raises(UserError, match="not its apply"):
        empirical_ntk(CASES[0].apply, CASES[0].init(key), X, method="layerwise")
    for k, products in ((6, None), (0, None), (3, 2)):
        with pytest.raises(UserError, match="eigenpairs need"):
            ntk_eigenpairs(CASES[0], CASES[0].init(key), X, k, key, products=products)


@pytest.mark.parametrize("kernel", [empirical_ntk, empirical_ntk_diagonal])
def test_empty_inputs_and_whole_parameters_are_refused(kernel):
    linear = lambda w, x: x @ w
    x = np.ones((2, 3))
    for w, rows in ((np.ones((3, 2)), x[:0]), (np.ones((3, 0)), x), (np.ones((3, 2), int), x)):
        with pytest.raises(UserError):
            kernel(linear, w, rows, outputs="each")


def test_products_of_whole_numbers_do_not_overflow():
    same = lambda w, x: x
    small = np.array([[100, 120]], np.int8)
    assert empirical_nngp(same, None, small).tolist() == [[(100**2 + 120**2) / 2]]
    with pytest.raises(UserError):
        empirical_nngp(lambda w, x: (x, x), None, small)
    with pytest.raises(UserError):
        empirical_nngp(lambda w, x: x @ w, np.ones((3, 1)), small)


def batch_normalized(p, x):
    """Normalize over the examples of the batch, as in training mode."""
    h = x @ p["w"]
    h = (h - h.mean(0)) / jnp.sqrt(h.var(0) + 1e-5)
    return (jnp.tanh(h) @ p["v"])[:, 0]


def centred(p, x):
    """Take the mean output of the batch off."""
    out = jnp.tanh(x @ p["w"]) @ p["v"][:, 0]
    return out - out.mean()


def neighbours(p, x):
    """Let each example read the one before it."""
    h = jnp.tanh(x @ p["w"])
    return ((h + 0.1 * jnp.roll(h, 1, 0)) @ p["v"])[:, 0]


@pytest.mark.parametrize("apply", [batch_normalized, centred, neighbours])
@pytest.mark.parametrize("last", [1.0, 0.0], ids=["drawn", "zero"])
def test_examples_that_interact_are_one_batch(apply, last, key):
    one, two = jax.random.split(key)
    params = {
        "w": jax.random.normal(one, (3, 7)),
        "v": last * jax.random.normal(two, (7, 1)),
    }
    jacobian = jax.jacobian(lambda p: apply(p, jnp.asarray(X)))(params)
    rows = jnp.concatenate([leaf.reshape(5, -1) for leaf in jax.tree.leaves(jacobian)], 1)
    np.testing.assert_allclose(empirical_ntk(apply, params, X), rows @ rows.T, atol=1e-12)
    top = np.linalg.eigvalsh(rows @ rows.T / 5)[-1]
    assert ntk_top(apply, params, X) == pytest.approx(top, rel=1e-9)
    with pytest.raises(UserError, match="vectors"):
        empirical_ntk(apply, params, X, method="jacobian")


def two_inputs(w, pair):
    return jnp.tanh(pair[0] @ w["a"]) * (pair[1] @ w["b"])


@pytest.mark.parametrize("outputs", ["trace", "all"])
@pytest.mark.parametrize("method", ["auto", "vectors"])
def test_a_tuple_is_several_inputs_of_each_example(outputs, method):
    w = {"a": jnp.ones((3, 2)), "b": jnp.full((3, 2), 0.3)}
    z = X[:4] + 1
    found = empirical_ntk(two_inputs, w, (X, X), (z, z), outputs=outputs, method=method)
    alone = empirical_ntk(lambda w, x: two_inputs(w, (x, x)), w, X, z, outputs=outputs)
    assert found.shape == ((5, 4) if outputs == "trace" else (5, 2, 4, 2))
    np.testing.assert_allclose(found, alone, rtol=1e-12)


def test_top_and_eigenpairs_of_several_inputs_count_examples(key):
    w = {"a": jnp.ones((3, 1)), "b": jnp.full((3, 1), 0.3)}
    pair = (X, X)
    dense = empirical_ntk(lambda w, x: two_inputs(w, (x, x)), w, X)
    top = np.linalg.eigvalsh(dense / 5)[-1]
    assert ntk_top(two_inputs, w, pair) == pytest.approx(top, rel=1e-9)
    assert ntk_eigenpairs(two_inputs, w, pair, 1, key).values[0] == pytest.approx(top, rel=1e-6)


@pytest.mark.parametrize(
    ("apply", "x", "other"),
    [
        (two_inputs, (X, X[:4]), None),
        (two_inputs, (X, X), X),
        (lambda w, x: (x[:, 0], x.sum()), X, None),
        (lambda w, x: x.sum(), X, None),
    ],
)
def test_what_has_no_row_for_each_example_is_refused(apply, x, other):
    w = {"a": jnp.ones((3, 1)), "b": jnp.ones((3, 1))}
    with pytest.raises(UserError):
        empirical_ntk(apply, w, x, other, outputs="trace")


def test_products_of_many_outputs_tend_to_the_nngp_kernel(key):
    """Given the hidden layer outputs are independent, with the kernel of its features as covariance."""
    net = mlp((3, 400, 4000), "tanh", parameterized="ntk", c_w=1.5, c_b=0.3)
    params = net.init(key)
    kernel = empirical_nngp(net, params, X, X[:2])
    features = np.asarray(net.features(params, X))
    conditional = 0.3 + 1.5 * features @ features[:2].T / 400
    # Var f_a f'_a ≤ 2 K_αα K_ββ; four standard errors
    assert np.abs(kernel - conditional).max() <= 4 * np.sqrt(2 / 4000) * np.asarray(kernel).max()
    assert np.abs(conditional - nngp(net.limit(), X, X[:2])).max() <= 0.1 * conditional.max()


def test_outputs_of_both_sets_have_one_shape():
    with pytest.raises(UserError, match="one shape"):
        empirical_nngp(lambda w, x: x, None, np.ones((2, 3)), np.ones((2, 4)))


def several(w, x):
    """Three outputs of each example, two-layered so that they share weights."""
    return jnp.tanh(x @ w["hidden"]) @ w["readout"]


@pytest.fixture
def weights():
    rng = np.random.default_rng(3)
    return {"hidden": rng.normal(size=(3, 4)), "readout": rng.normal(size=(4, 3))}


@pytest.mark.parametrize("method", ["auto", "jacobian", "vectors"])
@pytest.mark.parametrize("other", [None, X[:2] + 0.5], ids=["alone", "two sets"])
def test_each_output_has_its_part_of_all_pairs(weights, other, method):
    pairs = empirical_ntk(several, weights, X, other, outputs="all")
    each = empirical_ntk(several, weights, X, other, outputs="each", method=method)
    np.testing.assert_allclose(each, np.einsum("iaja->ija", pairs), rtol=1e-12)


def test_each_output_of_a_network_of_layers(key):
    net = network(conv(4), "relu", flatten(), dense(3), shape=(4, 3, 2), parameterized="ntk")
    params = net.init(key)
    x = np.random.default_rng(1).normal(size=(4, 4, 3, 2))
    mask = np.random.default_rng(2).random((4, 4, 3)) < 0.7
    pairs = empirical_ntk(net, params, x, mask=mask, outputs="all")
    each = empirical_ntk(net, params, x, mask=mask, outputs="each")
    np.testing.assert_allclose(each, np.einsum("iaja->ija", pairs), rtol=1e-12, atol=1e-12)
    alone = empirical_ntk_diagonal(net, params, x, mask=mask, outputs="all")
    np.testing.assert_allclose(alone, np.einsum("iaib->iab", pairs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("outputs", "pattern"), [("trace", "iaia->i"), ("each", "iaia->ia"), ("all", "iaib->iab")]
)
def test_an_input_with_itself(weights, outputs, pattern):
    expected = np.einsum(pattern, empirical_ntk(several, weights, X, outputs="all"))
    diagonal = empirical_ntk_diagonal(several, weights, X, outputs=outputs)
    np.testing.assert_allclose(diagonal, expected, rtol=1e-12)


def test_examples_that_interact_have_no_diagonal_of_their_own(weights):
    centred = lambda w, x: several(w, x)[:, 0] - several(w, x)[:, 0].mean()
    with pytest.raises(UserError):
        empirical_ntk_diagonal(centred, weights, X)


def test_every_array_of_a_container_has_its_kernel(weights):
    """And a linear expansion keeps the container."""
    both = lambda w, x: {"f": several(w, x), "g": (several(w, 2 * x)[:, 0],)}
    kernels = empirical_ntk(both, weights, X, outputs="trace")
    parts = {"f": lambda w, x: several(w, x), "g": lambda w, x: several(w, 2 * x)[:, 0]}
    for kernel, part in ((kernels["f"], parts["f"]), (kernels["g"][0], parts["g"])):
        expected = empirical_ntk(part, weights, X, outputs="trace")
        np.testing.assert_allclose(kernel, expected, rtol=1e-12)
    moved = jax.tree.map(lambda a: a + 0.1, weights)
    expanded = taylor_expand(both, weights, 3)(moved, X)
    np.testing.assert_allclose(
        expanded["g"][0], taylor_expand(parts["g"], weights, 3)(moved, X), rtol=1e-12
    )


@pytest.mark.parametrize(("outputs", "pattern"), [("each", "ia,ja->ija"), ("all", "ia,jb->iajb")])
def test_products_of_outputs(weights, outputs, pattern):
    f = several(weights, X)
    products = empirical_nngp(several, weights, X, outputs=outputs)
    np.testing.assert_allclose(products, np.einsum(pattern, f, f), rtol=1e-12)
    with pytest.raises(UserError):
        empirical_nngp(several, weights, X, outputs="some")
