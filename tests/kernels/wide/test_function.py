"""Kernels as functions of JAX: the numbers of gram, and derivatives that are finite and right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, kernel_function
from steepest.nn.layers import (
    add,
    concatenate,
    conv,
    dense,
    flatten,
    layer_norm,
    network,
    select,
    serial,
)
from steepest.nn.networks import mlp
from tests.kernels.wide.test_masks import SHAPE as IMAGE
from tests.kernels.wide.test_masks import STEPS, holes
from tests.kernels.wide.test_positions import NETWORKS, SHAPE, build, images


@pytest.mark.parametrize(
    "name",
    [
        "flatten",
        "pool between",
        "tanh",
        "normalized after",
        "own weights, pooled",
        "branches side by side, normalized",
        "gates",
        "graph behind a convolution",
        "attention",
    ],
)
def test_a_pair_is_an_entry_of_gram(name):
    limit = build(NETWORKS[name]).limit()
    x = images(3)
    kernel = jax.jit(kernel_function(limit, x))
    exact = gram(limit, x)
    for i, j in ((0, 1), (1, 2), (1, 1)):
        pair = kernel(x[i], x[j])
        np.testing.assert_allclose(pair.nngp, exact.nngp[i, j], rtol=1e-6)
        np.testing.assert_allclose(pair.ntk, exact.ntk[i, j], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("relu", {}),
        ("erf", {"skip": 0.7}),
        ("tanh", {"normalize": True}),
        ("relu", {"skip": 0.5, "normalize": True}),
        ("tanh", {"bias": False}),
    ],
)
def test_fully_connected_networks_node_by_node(name, options):
    options = {"c_w": 1.3, "c_b": 0.1, "parameterized": "ntk"} | options
    limit = mlp((5, 8, 8, 8, 1), name, **options).limit()
    x = images(3, (5,))
    kernel = kernel_function(limit, x)
    exact = gram(limit, x)
    many = jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))(jnp.asarray(x), jnp.asarray(x))
    size = np.abs(exact.ntk).max()  # a series is known to 1e-7 of it
    np.testing.assert_allclose(
        many.nngp, exact.nngp, rtol=1e-9, atol=1e-6 * size * (name == "tanh")
    )
    np.testing.assert_allclose(many.ntk, exact.ntk, rtol=3e-7, atol=3e-6 * size * (name == "tanh"))


@pytest.mark.parametrize(("name", "part"), [("relu", "ntk"), ("erf", "ntk"), ("tanh", "nngp")])
def test_gradients_are_those_of_differences(name, part):
    limit = mlp((4, 8, 8, 1), name, c_w=1.6, c_b=0.05, parameterized="ntk").limit()
    one, two, way = images(3, (4,))
    kernel = kernel_function(limit, np.stack([one, two]))
    value = jax.jit(lambda x: getattr(kernel(x, jnp.asarray(two)), part))
    slope = jax.grad(value)(jnp.asarray(one)) @ way
    step = 1e-5
    difference = (value(one + step * way) - value(one - step * way)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("name", ["relu", "leaky_relu(0.2)", "tanh"])
def test_gradients_are_finite_at_equal_and_opposite_inputs(name, sign):
    limit = mlp((4, 8, 8, 1), name, c_w=1.6, bias=False, parameterized="ntk").limit()
    (one,) = jnp.asarray(images(1, (4,)))
    kernel = kernel_function(limit, one[None])
    for part in ("nngp", "ntk"):
        gradient = jax.jit(jax.grad(lambda x, p=part: getattr(kernel(x, sign * one), p)))(one)
        assert jnp.isfinite(gradient).all()
    # K(x, x) is a function of ‖x‖² alone: half of its derivative belongs to each argument
    if sign > 0 and name == "relu":
        gradient = jax.grad(lambda x: kernel(x, one).nngp)(one)
        np.testing.assert_allclose(gradient, kernel(one, one).nngp * one / (one @ one), rtol=1e-6)


def test_a_convolutional_kernel_has_a_gradient():
    limit = build(NETWORKS["pool between"]).limit()
    one, two, way = images(3)
    kernel = kernel_function(limit, images(3))
    value = jax.jit(lambda x: kernel(x, two).nngp)
    slope = (jax.grad(value)(jnp.asarray(one)) * way).sum()
    step = 1e-5
    difference = (value(one + step * way) - value(one - step * way)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-5)


def test_patches_of_zeros_have_a_gradient():
    """By differences along the pixels that are none."""
    net = network(
        conv(4), "relu", flatten(), dense(1), shape=(4, 4, 1), parameterized="ntk", bias=False
    )
    one, two, way = images(3, (4, 4, 1))
    one[1:], two[:, 2:], way[1:] = 0, 0, 0
    kernel = kernel_function(net.limit(), np.stack([one, two]))
    value = jax.jit(jax.value_and_grad(lambda x: kernel(x, two).ntk))
    at, gradient = value(jnp.asarray(one))
    assert at == pytest.approx(gram(net.limit(), np.stack([one, two])).ntk[0, 1], rel=1e-6)
    assert jnp.isfinite(gradient).all()
    step = 1e-5
    difference = (value(one + step * way)[0] - value(one - step * way)[0]) / (2 * step)
    np.testing.assert_allclose((gradient * way).sum(), difference, rtol=1e-6)


def test_second_derivatives_in_the_inputs_are_differences_of_gradients():
    limit = mlp((4, 8, 8, 1), "relu", c_w=1.6, c_b=0.05, parameterized="ntk").limit()
    one, two, way = images(3, (4,))
    kernel = kernel_function(limit, np.stack([one, two]))
    slope = jax.grad(lambda x: kernel(x, two).ntk)
    _, bent = jax.jvp(slope, (jnp.asarray(one),), (jnp.asarray(way),))
    step = 1e-5
    difference = (slope(one + step * way) - slope(one - step * way)) / (2 * step)
    np.testing.assert_allclose(bent, difference, rtol=1e-5, atol=1e-8)


def test_single_precision_stays_single():
    """Also where shares and matrices come from the description."""
    for name in ("branches side by side, normalized", "graph behind a convolution"):
        x = images(2).astype(np.float32)
        pair = kernel_function(build(NETWORKS[name]).limit(), x)(*map(jnp.asarray, x))
        assert pair.nngp.dtype == pair.ntk.dtype == jnp.float32


def test_beyond_the_range_of_a_series_there_is_no_number():
    limit = mlp((4, 8, 1), "tanh", parameterized="ntk").limit()
    one, two = jnp.asarray(images(2, (4,)))
    kernel = kernel_function(limit, np.stack([one, two]))
    assert jnp.isfinite(kernel(one, two).ntk)
    assert jnp.isnan(kernel(10 * one, two).ntk)


MASKED = [
    "pooled",
    "flattened",
    "pool between",
    "no padding",
    "circular",
    "attention",
    "residual, normalized",
]


@pytest.mark.parametrize("name", MASKED)
def test_masked_pairs_are_entries_of_gram(name):
    """With masks of both inputs, of the second alone, and with none, by one function."""
    limit = build(STEPS[name], shape=IMAGE).limit()
    x = images(3, IMAGE)
    mask = holes()
    if name == "no padding":
        mask[:2] = True
        mask[0, 3, 4] = mask[1, 0, 0] = False
    exact = gram(limit, x, mask=mask)
    kernel = jax.jit(kernel_function(limit, x, mask=mask))
    for i, j in ((0, 1), (2, 1), (0, 0)):
        first = None if mask[i].all() else mask[i]
        pair = kernel(x[i], x[j], first, mask[j])
        np.testing.assert_allclose(pair.nngp, exact.nngp[i, j], rtol=1e-6)
        np.testing.assert_allclose(pair.ntk, exact.ntk[i, j], rtol=1e-6)
    whole = gram(limit, x)
    np.testing.assert_allclose(kernel(x[0], x[1]).ntk, whole.ntk[0, 1], rtol=1e-6)


def test_masks_are_mapped_and_what_they_hide_has_no_gradient():
    limit = build(STEPS["pooled"], shape=IMAGE).limit()
    x = images(3, IMAGE)
    mask = holes()
    kernel = kernel_function(limit, x, mask=mask)
    rows = jax.vmap(kernel, (None, 0, None, 0))
    many = jax.jit(jax.vmap(rows, (0, None, 0, None)))(x, x, mask, mask)
    np.testing.assert_allclose(many.ntk, gram(limit, x, mask=mask).ntk, rtol=1e-6)
    gradient = jax.grad(lambda a: kernel(a, x[1], mask[0], mask[1]).ntk)(jnp.asarray(x[0]))
    assert (gradient[~mask[0]] == 0).all()
    assert (gradient[mask[0]] != 0).all()


def test_whole_numbers_with_masks_are_those_numbers():
    """Means over positions that exist are multiplied by no whole numbers."""
    limit = build(STEPS["pooled"], shape=IMAGE).limit()
    x = np.rint(3 * images(2, IMAGE)).astype(int)
    mask = holes(2)
    kernel = kernel_function(limit, x, mask=mask)
    exact = gram(limit, x.astype(float), mask=mask)
    np.testing.assert_allclose(kernel(*x, *mask).ntk, exact.ntk[0, 1], rtol=1e-6)


def test_without_positions_there_is_no_number():
    limit = build(STEPS["pooled"], shape=IMAGE).limit()
    x = images(2, IMAGE)
    kernel = kernel_function(limit, x)
    assert jnp.isnan(kernel(x[0], x[1], np.zeros(IMAGE[:2], bool)).ntk)


def test_without_the_position_that_is_taken_there_is_no_number():
    options = {"shape": (4, 2), "parameterized": "ntk", "c_b": 0.1}
    limit = network(conv(4), "erf", select(0), dense(1), **options).limit()
    x = images(2, (4, 2))
    lacks = np.array([False, True, True, True])
    kernels = kernel_function(limit, x)(x[0], x[1], lacks, ~lacks)
    assert np.isnan(kernels).all()
    inside = jax.jit(lambda c: gram(limit.with_coefficients(c), x, mask=np.stack([lacks, ~lacks])))
    nngp = np.asarray(inside(limit.coefficients).nngp)
    assert np.isnan(nngp).tolist() == [[True, True], [True, False]]


def test_masks_are_those_of_positions():
    connected = mlp((4, 8, 1), "relu", parameterized="ntk").limit()
    x = images(2, (4,))
    with pytest.raises(UserError, match="mlp\\(\\) has none"):
        kernel_function(connected, x, mask=np.ones((2, 4), bool))
    with pytest.raises(UserError, match="mlp\\(\\) has none"):
        kernel_function(connected, x)(x[0], x[1], np.ones(4, bool))
    limit = build(STEPS["pooled"], shape=IMAGE).limit()
    x = images(2, IMAGE)
    with pytest.raises(UserError, match="one True or False for each position"):
        kernel_function(limit, x)(x[0], x[1], np.ones(4, bool))


def test_bad_input_gets_a_sentence():
    with pytest.raises(UserError, match="has positions of its own"):
        kernel_function(network(conv(2), shape=SHAPE, parameterized="ntk").limit(), images())
    with pytest.raises(UserError, match=r"shape \(n, 6, 5, 2\), got \(3, 5, 6, 2\)"):
        kernel_function(build(NETWORKS["flatten"]).limit(), images(shape=(5, 6, 2)))
    with pytest.raises(UserError, match="pieces"):
        net = network(dense(2), "abs_power(1.5)", dense(1), shape=(3,), parameterized="ntk")
        kernel_function(net.limit(), images(2, (3,)))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_branch_that_is_subtracted_takes_its_mean_away(sign):
    """Layer normalization centres by the mean over channels, which two branches have with either sign."""
    relu = serial(dense(8), "relu")
    signal = concatenate(add(relu, dense(8), weights=(sign, 1.0)), relu)
    net = network(signal, layer_norm(), dense(1), shape=(3,), c_w=2.0, parameterized="ntk")
    x = np.random.default_rng(3).standard_normal((4, 3))
    q = 2 * x @ x.T / 3
    size = np.sqrt(np.diag(q))
    angle = np.arccos(np.clip(q / np.outer(size, size), -1, 1))
    of_relu = np.outer(size, size) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    mean = (sign + 1) / 2 * size / np.sqrt(2 * np.pi)  # half of the channels have either branch
    k = of_relu + q / 2 - np.outer(mean, mean)
    expected = 2 * k / np.sqrt(np.outer(np.diag(k), np.diag(k)))
    np.testing.assert_allclose(gram(net.limit(), x).nngp, expected, rtol=1e-9)
    kernel = kernel_function(net.limit(), x)
    np.testing.assert_allclose(kernel(x[0], x[2]).nngp, expected[0, 2], rtol=1e-6)
