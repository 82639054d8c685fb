"""Layer normalization of several positions together: by loops, matrices, a peer, and finite networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_diagonal, kernel_function, sampled_gram
from steepest.nn.layers import (
    conv,
    dense,
    flatten,
    global_pool,
    layer_norm,
    network,
    pool,
)
from tests.kernels.wide import brute, masked, peer

SHAPE = (4, 3, 2)
OPTIONS = {"parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
AXES = {"all": (0, 1), 0: (0,), (-1,): (1,)}


def holes(n):
    """Masks in which some positions are missing, of the first input a whole row, of the last input none."""
    mask = np.random.default_rng(1).random((n, *SHAPE[:-1])) > 0.3
    mask[0, 1] = False
    mask[-1] = True
    return mask


@pytest.mark.parametrize("space", AXES)
def test_channels_whose_means_differ_by_loops(space):
    x = peer.inputs(SHAPE, 2)
    layers = (conv(4), "relu", layer_norm(space), conv(4, 1), "relu", global_pool(), dense(1))
    steps = [
        ("conv", 3, 1, "zero"),
        ("relu",),
        ("together", AXES[space]),
        ("conv", 1, 1, "zero"),
        ("relu",),
        ("mean",),
        ("dense",),
    ]
    kernels = gram(network(*layers, shape=SHAPE, **OPTIONS).limit(), x)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        k, theta = brute.kernels(steps, x[i], x[j], 1.4, 0.1)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-10)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=2e-7 if i == j else 1e-10)


def test_means_go_on_to_the_next_normalization():
    """Positions keep their means behind a joint one, which a pool averages and another one subtracts."""
    x = peer.inputs(SHAPE, 2)
    layers = (dense(4), "relu", layer_norm("all"), pool(2, 1), layer_norm(0), flatten(), dense(1))
    steps = [
        ("dense",),
        ("relu",),
        ("together", (0, 1)),
        ("pool", 2, 1),
        ("together", (0,)),
        ("flatten",),
        ("dense",),
    ]
    kernels = gram(network(*layers, shape=SHAPE, **OPTIONS).limit(), x)
    for i, j in ((0, 0), (0, 1)):
        k, theta = brute.kernels(steps, x[i], x[j], 1.4, 0.1)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-10)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=2e-7 if i == j else 1e-10)


@pytest.mark.parametrize("space", AXES)
def test_masks_by_matrices(space):
    x = peer.inputs(SHAPE, 3)
    mask = holes(3)
    layers = (conv(4), layer_norm(space), "erf", conv(4), layer_norm(space), "erf", global_pool())
    one = ("conv", 3, 1, "zero")
    norm = ("together", AXES[space])
    steps = [one, norm, ("erf",), one, norm, ("erf",), ("mean",), ("dense",)]
    kernels = gram(network(*layers, dense(1), shape=SHAPE, **OPTIONS).limit(), x, mask=mask)
    for i, j in ((0, 0), (0, 1), (1, 2)):
        k, theta = masked.kernels(steps, x[i], x[j], (mask[i], mask[j]), 1.4, 0.1)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-9)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=1e-9)


def test_kernels_are_those_of_the_peer():
    shape = (6, 5, 2)
    end = ("erf", global_pool(), dense(1))
    for name, *layers in (
        ("layer norm, all", layer_norm("all"), "erf", conv(4), layer_norm("all"), *end),
        ("layer norm, columns", layer_norm(1), *end),
    ):
        options = {"shape": shape, "parameterized": "ntk", "c_w": peer.C_W, "bias": False}
        peer.agree(name, gram(network(conv(4), *layers, **options).limit(), peer.inputs(shape)))


def test_finite_layers_by_numpy():
    x = peer.inputs(SHAPE, 3)
    mask = holes(3)
    for space, axes in AXES.items():
        net = network(layer_norm(space), shape=SHAPE)
        params = net.init(jax.random.key(0))
        channels_too = (*(a + 1 for a in axes), 3)
        deviation = x.std(channels_too, keepdims=True)
        expected = (x - x.mean(channels_too, keepdims=True)) / deviation
        np.testing.assert_allclose(net.apply(params, x), expected, atol=1e-5)
        given = np.asarray(net.apply(params, x, mask))
        where = np.broadcast_to(mask[..., None], x.shape)
        sums = (given * where).sum(channels_too)
        squares = (given**2 * where).sum(channels_too)
        np.testing.assert_allclose(sums, 0, atol=1e-4)
        np.testing.assert_allclose(squares, where.sum(channels_too), rtol=1e-4)
        assert not given[~where].any()


def test_finite_networks_have_these_kernels_in_the_mean():
    layers = (conv(64), "relu", layer_norm("all"), conv(64), layer_norm(0), "relu", global_pool())
    net = network(*layers, dense(4), shape=SHAPE, **OPTIONS)
    x = peer.inputs(SHAPE)
    mask = holes(3)[:2]
    drawn = sampled_gram(net, x, jax.random.key(0), mask=mask, count=60)
    limit = gram(net.limit(), x, mask=mask)
    for mean, deviation, exact in (
        (drawn.nngp, drawn.nngp_error, limit.nngp),
        (drawn.ntk, drawn.ntk_error, limit.ntk),
    ):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.03 * size).all(), (mean, exact)


def test_single_precision_stays_within_its_bound_and_a_pair_is_an_entry():
    layers = (conv(4), "relu", pool(2, 1), layer_norm("all"), conv(4), "relu", global_pool())
    limit = network(*layers, dense(1), shape=SHAPE, **OPTIONS).limit()
    x = peer.inputs(SHAPE, 4)
    exact = gram(limit, x)
    single = gram(limit, x.astype(np.float32))
    for k in range(2):
        size = np.sqrt(np.outer(np.diag(exact[k]), np.diag(exact[k])))
        assert (np.abs(single[k] - exact[k]) <= (single.error + exact.error) * size).all()
    np.testing.assert_array_equal(gram_diagonal(limit, x).ntk, np.diag(exact.ntk))
    with jax.enable_x64(True):
        pair = kernel_function(limit, x)(jnp.asarray(x[0]), jnp.asarray(x[1]))
    np.testing.assert_allclose(pair.ntk, exact.ntk[0, 1], rtol=1e-9)


def test_what_cannot_be_normalized_is_refused():
    with pytest.raises(UserError):
        network(layer_norm(2), shape=SHAPE)
    with pytest.raises(UserError):
        network(layer_norm("all"), shape=(3,))
    with pytest.raises(UserError):
        layer_norm("some")
    limit = network(layer_norm("all"), flatten(), dense(1), shape=SHAPE, **OPTIONS).limit()
    with pytest.raises(UserError):
        gram(limit, np.ones((2, *SHAPE)))
