"""Attention whose weights are functions of products: by matrices, loops, a peer, and finite networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import (
    gram,
    gram_diagonal,
    gram_over_heads,
    kernel_function,
    sampled_gram,
    tiled_gram,
)
from steepest.nn.layers import (
    attention,
    conv,
    dense,
    global_pool,
    network,
    pool,
    positional_embedding,
)
from tests.kernels.wide import masked, peer

SHAPE = (5, 2)
OPTIONS = {"parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
WEIGHTS = {
    "identity": ("identity", lambda z: z),
    "relu": ("relu", lambda z: np.maximum(z, 0)),
    "not zero at zero": (jnp.cos, np.cos),
}
ROOT = {"scale": "1/sqrt(d)", "tied": False, "weights": "identity"}


def holes(n):
    """Masks in which some positions are missing, of the last input none."""
    mask = np.random.default_rng(1).random((n, *SHAPE[:-1])) > 0.3
    mask[-1] = True
    return mask


def limit_of(*layers, shape=SHAPE):
    return network(*layers, shape=shape, **OPTIONS).limit()


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("tied", [False, True])
def test_functions_of_products_over_d_by_matrices(name, tied):
    weights, function = WEIGHTS[name]
    x = peer.inputs(SHAPE, 3)
    mask = holes(3)
    heads = attention(4, heads=2, key=4, sharpness=0.7, tied=tied, weights=weights)
    kernels = gram(limit_of(conv(4), heads, "erf", global_pool(), dense(1)), x, mask=mask)
    steps = [
        ("conv", 3, 1, "zero"),
        ("attend", 0.7, tied, function),
        ("erf",),
        ("mean",),
        ("dense",),
    ]
    for i, j in ((0, 0), (0, 1), (1, 2)):
        k, theta = masked.kernels(steps, x[i], x[j], (mask[i], mask[j]), 1.4, 0.1)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-9)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=1e-9)
    assert kernels.error < 1e-6


def test_kernels_are_those_of_the_peer():
    shape = (6, 2)
    for name, options in (
        ("attention, identity", {"weights": "identity"}),
        ("attention, relu", {"weights": "relu"}),
        ("attention, abs", {"weights": jnp.abs}),
        ("attention, identity over the root", ROOT),
    ):
        heads = attention(4, heads=2, key=4, **options)
        plain = {"shape": shape, "parameterized": "ntk", "c_w": peer.C_W, "bias": False}
        net = network(conv(4), heads, "erf", global_pool(), dense(1), **plain)
        peer.agree(name, gram(net.limit(), peer.inputs(shape)))


def test_products_over_the_root_by_draws_of_finite_networks():
    """Four standard errors, and some hundredths for the finite width; with masks."""
    heads = attention(64, heads=8, key=32, sharpness=0.8, **ROOT)
    net = network(conv(64), "relu", heads, global_pool(), dense(4), shape=SHAPE, **OPTIONS)
    x = peer.inputs(SHAPE)
    mask = holes(3)[:2]
    drawn = sampled_gram(net, x, jax.random.key(0), mask=mask, count=80)
    limit = gram(net.limit(), x, mask=mask)
    for mean, deviation, exact in (
        (drawn.nngp, drawn.nngp_error, limit.nngp),
        (drawn.ntk, drawn.ntk_error, limit.ntk),
    ):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.03 * size).all(), (mean, exact)


@pytest.mark.parametrize("name", ["function", "finite"])
def test_functions_of_products_over_the_root_are_means_over_heads(name):
    """Products themselves against their closed form; another function against finite networks."""
    weights = {"function": lambda z: 1.0 * z, "finite": "tanh"}[name]
    x = peer.inputs(SHAPE)
    mask = holes(3)[:2]
    heads = attention(64, heads=8, key=32, sharpness=0.8, **ROOT | {"weights": weights})
    net = network(dense(64), heads, global_pool(), dense(4), shape=SHAPE, **OPTIONS)
    drawn = gram_over_heads(net.limit(), x, jax.random.key(1), mask=mask, heads=64, count=16)
    if name == "function":
        closed = attention(4, heads=2, key=4, sharpness=0.8, **ROOT)
        exact = gram(limit_of(dense(4), closed, global_pool(), dense(1)), x, mask=mask)
        other = (exact.nngp, exact.ntk, 0, 0)
    else:
        finite = sampled_gram(net, x, jax.random.key(0), mask=mask, count=80)
        other = (finite.nngp, finite.ntk, finite.nngp_error, finite.ntk_error)
    for mean, error, exact, too in (
        (drawn.nngp, drawn.nngp_error, other[0], other[2]),
        (drawn.ntk, drawn.ntk_error, other[1], other[3]),
    ):
        size = np.sqrt(np.outer(np.diag(mean), np.diag(mean)))
        room = 0.0 if name == "function" else 0.03
        assert (np.abs(mean - exact) <= 4 * np.hypot(error, too) + room * size).all(), (mean, exact)


def test_finite_layers_by_loops():
    heads = attention(3, heads=2, key=4, sharpness=0.7, weights=jnp.cos, c_b=0.0)
    net = network(heads, shape=SHAPE, **OPTIONS)
    params = net.init(jax.random.key(0))
    ((of_layer),) = params
    x = peer.inputs(SHAPE)
    mask = holes(3)[:2]
    given = net.apply(params, x, mask)
    scale = lambda width: np.sqrt(1.4 / width)
    query, value, output = (np.asarray(of_layer[n]["w"]) for n in ("query", "value", "output"))
    for i in range(2):
        at = np.flatnonzero(mask[i])
        read = {}
        for name, w in (("query", query), ("value", value)):
            read[name] = scale(2) * x[i, at] @ w.T
        mixed = np.zeros((len(at), 8))
        for head in range(2):
            part = slice(4 * head, 4 * head + 4)
            products = read["query"][:, part] @ read["query"][:, part].T
            mixed[:, part] = np.cos(0.7 * products / 4) @ read["value"][:, part]
        np.testing.assert_allclose(given[i, at], scale(8) * mixed @ output.T, atol=1e-4)
        assert not np.asarray(given[i, ~mask[i]]).any()


@pytest.mark.parametrize("options", [{"weights": "relu"}, ROOT])
def test_other_ways_to_the_same_kernels(options, tmp_path):
    """The diagonal, single precision within its bound, a pair as a function of JAX, tiles on disk."""
    heads = attention(4, heads=2, key=4, **options)
    limit = limit_of(conv(4), "relu", heads, "erf", global_pool(), dense(1))
    x = peer.inputs(SHAPE, 4)
    exact = gram(limit, x)
    np.testing.assert_array_equal(gram_diagonal(limit, x).ntk, np.diag(exact.ntk))
    single = gram(limit, x.astype(np.float32))
    for k in range(2):
        size = np.sqrt(np.outer(np.diag(exact[k]), np.diag(exact[k])))
        assert (np.abs(single[k] - exact[k]) <= (single.error + exact.error) * size).all()
    with jax.enable_x64(True):
        pair = kernel_function(limit, x)(jnp.asarray(x[0]), jnp.asarray(x[1]))
    np.testing.assert_allclose(pair.ntk, exact.ntk[0, 1], rtol=1e-9)
    tiles = tiled_gram(limit, x, tmp_path, tile=2)
    np.testing.assert_allclose(tiles.ntk.toarray(), exact.ntk, rtol=1e-12)


def test_what_is_refused():
    with pytest.raises(UserError):
        attention(4, heads=1, key=4, weights="softmin")
    options = ROOT | {"weights": "relu"}
    limit = limit_of(attention(4, heads=1, key=4, **options), global_pool(), dense(1))
    with pytest.raises(UserError, match="gram_over_heads"):
        gram(limit, peer.inputs(SHAPE))


def test_values_do_not_read_what_keys_are_embedded_by():
    """Softmax of the covariance with embeddings, values without them: by matrices over positions."""
    c, sharpness = 0.6, 0.8
    heads = attention(8, heads=2, key=4, sharpness=sharpness, through=positional_embedding(c))
    x = np.random.default_rng(4).normal(size=(3, *SHAPE))
    kernels = gram(limit_of(dense(8), heads, global_pool(), dense(1)), x)
    covariance = 1.4 * np.einsum("apc,bqc->abpq", x, x) / SHAPE[-1] + 0.1
    own = np.array([covariance[i, i] for i in range(len(x))]) + c * np.eye(SHAPE[0])
    logits = sharpness * 1.4 * own
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    values = 1.4 * covariance + 0.1
    mixed = np.einsum("apq,abqr,bsr->abps", weights, values, weights)
    behind = 1.4 * mixed + 0.1
    np.testing.assert_allclose(kernels.nngp, 1.4 * behind.mean((2, 3)) + 0.1, rtol=1e-12)


def test_keys_at_other_positions_are_refused():
    heads = attention(8, heads=2, key=4, through=pool(2))
    with pytest.raises(UserError):
        limit_of(dense(8), heads, global_pool(), dense(1))


def test_finite_networks_read_keys_through_the_layer():
    """With embeddings of keys alone: as wide networks."""
    heads = lambda width: attention(
        width, heads=width, key=8, through=positional_embedding(0.6), tied=False
    )
    shape = (3, 2)
    net = network(dense(16), heads(16), global_pool(), dense(1), shape=shape, **OPTIONS)
    params = net.init(jax.random.key(0))
    assert set(params[1]) == {"through", "query", "key", "value", "output"}
    assert net.apply(params, np.ones((2, *shape))).shape == (2,)
