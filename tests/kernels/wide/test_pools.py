"""Pools with edges, and sums: kernels by matrices, kernels of a peer, and finite networks by loops."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_diagonal, kernel_function, sampled_gram
from steepest.kernels.wide import Positions
from steepest.kernels.wide._evaluate import by_all_pairs
from steepest.nn.layers import (
    Beside,
    conv,
    dense,
    flatten,
    global_pool,
    global_sum_pool,
    max_pool,
    network,
    pool,
    sum_pool,
)
from tests.kernels.wide import masked, peer

SHAPE = (7, 2)
PLANE = (5, 4, 2)
OPTIONS = {"parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
CONV = ("conv", 3, 1, "zero")
POOLS = {
    "edges left out": (pool(3, 2, "zero", count_edges=False), (3, 2, "zero", "existing")),
    "edges counted": (pool(3, 2, "zero"), (3, 2, "zero", "volume")),
    "even window": (pool(2, 1, "zero", count_edges=False), (2, 1, "zero", "existing")),
    "around": (pool(3, 1, "circular"), (3, 1, "circular", "existing")),
    "around with strides": (pool(3, 2, "circular"), (3, 2, "circular", "existing")),
    "strides beyond the window": (pool(1, 2, "zero"), (1, 2, "zero", "volume")),
    "plane": (pool(2, 2, "zero", count_edges=False), (2, 2, "zero", "existing")),
    "sums": (sum_pool(2, 1), (2, 1, "none", "one")),
    "sums with edges": (sum_pool(3, 2, "zero"), (3, 2, "zero", "one")),
    "sums around": (sum_pool(3, 1, "circular"), (3, 1, "circular", "one")),
}


def holes(n, space=SHAPE[:-1]):
    """Masks in which about a quarter of the positions is missing, of the last input none."""
    mask = np.random.default_rng(1).random((n, *space)) > 0.25
    mask[-1] = True
    return mask


def limit_of(*layers, shape=SHAPE):
    return network(*layers, shape=shape, **OPTIONS).limit()


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("whole", [False, True])
def test_kernels_by_matrices(name, whole):
    """With and without masks, along displacements and for all pairs of positions at once."""
    layer, step = POOLS[name]
    shape = PLANE if name.startswith("plane") else SHAPE
    mask = np.ones((3, *shape[:-1]), bool) if whole else holes(3, shape[:-1])
    x = np.where(mask[..., None], peer.inputs(shape, 3), 0)
    end = (conv(4), "erf", global_pool(), dense(1))
    limit = limit_of(conv(4), "erf", layer, *end, shape=shape)
    steps = [CONV, ("erf",), ("pool", *step), CONV, ("erf",), ("mean",), ("dense",)]
    kernels = gram(limit, x) if whole else gram(limit, x, mask=mask)
    for i, j in ((0, 0), (0, 1), (1, 2), (2, 2)):
        k, theta = masked.kernels(steps, x[i], x[j], (mask[i], mask[j]), 1.4, 0.1)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-9)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=1e-9)
    way = Positions.of(limit, x, None, None, besides=(Beside(None if whole else mask), Beside()))
    rows = way.rows(way.surveyed[0])  # of zeros where no position exists
    block = slice(0, 3)
    with jax.enable_x64(True):
        one, two = way.firsts(rows, block), way.seconds(rows, block)
        full = by_all_pairs(way.plan, way.duals, len(limit.nodes) - 1, one, two)
    np.testing.assert_allclose(full.theta[0, 1], kernels.ntk[0, 1], rtol=1e-12)


def test_the_sum_over_all_positions():
    x = peer.inputs(SHAPE, 3)
    mask = holes(3)
    limit = limit_of(conv(4), "relu", global_sum_pool(), dense(1))
    steps = [CONV, ("relu",), ("pool", None, None, "none", "one"), ("dense",)]
    kernels = gram(limit, x, mask=mask)
    for i, j in ((0, 1), (1, 2)):
        k, theta = masked.kernels(steps, x[i], x[j], (mask[i], mask[j]), 1.4, 0.1)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-9)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=1e-9)


def test_kernels_are_those_of_the_peer():
    shape = (6, 5, 2)
    options = {"shape": shape, "parameterized": "ntk", "c_w": peer.C_W, "bias": False}
    end = (global_pool(), dense(1))
    for name, layer, behind in (
        ("pool, edges left out", pool((3, 2), 2, "zero", count_edges=False), end),
        ("pool, edges counted", pool((3, 2), 2, "zero"), end),
        ("pool, around", pool((3, 2), 1, "circular"), end),
        ("sum pools", sum_pool((2, 3), (1, 2), "zero"), (global_sum_pool(), dense(1))),
    ):
        net = network(conv(4), "erf", layer, conv(4), "erf", *behind, **options)
        peer.agree(name, gram(net.limit(), peer.inputs(shape)))


def reads(n, size, stride, padding, output):
    """The positions that an output reads, of those inside."""
    outputs = -(-n // stride)
    edge = 0 if padding == "none" else max((outputs - 1) * stride + size - n, 0) // 2
    at = [output * stride - edge + tap for tap in range(size)]
    if padding == "circular":
        return [p % n for p in at]
    return [p for p in at if 0 <= p < n]


@pytest.mark.parametrize("padding", ["none", "zero", "circular"])
@pytest.mark.parametrize("masks", [False, True])
def test_finite_layers_by_loops(padding, masks):
    x = peer.inputs(PLANE, 2) - 2  # negative, so that a zero would be the largest
    mask = holes(3, PLANE[:-1])[:2] if masks else np.ones((2, *PLANE[:-1]), bool)
    layers = {
        "sum": sum_pool(2, 2, padding),
        "max": max_pool(2, 2, padding),
        "mean": pool(2, 2, padding, count_edges=False),
        "counted": pool(2, 2, padding),
    }
    for name, layer in layers.items():
        net = network(layer, shape=PLANE)
        given = net.apply(net.init(jax.random.key(0)), x, mask if masks else None)
        for i, p, q in np.ndindex(given.shape[:3]):
            at = [
                (a, b)
                for a in reads(5, 2, 2, padding, p)
                for b in reads(4, 2, 2, padding, q)
                if mask[i, a, b]
            ]
            values = np.array([x[i, a, b] for a, b in at]).reshape(len(at), 2)
            counts = {"sum": 1, "mean": len(at), "counted": 4 if padding == "zero" else len(at)}
            stands = padding == "none" or mask[i, 2 * p : 2 * p + 2, 2 * q : 2 * q + 2].any()
            expected = np.zeros(2)
            if len(at) and stands:
                expected = values.max(0) if name == "max" else values.sum(0) / counts[name]
            np.testing.assert_allclose(given[i, p, q], expected, rtol=1e-6, atol=1e-6)


def test_finite_networks_have_these_kernels_in_the_mean():
    net = network(
        conv(64),
        "relu",
        pool(3, 2, "zero", count_edges=False),
        conv(64),
        "relu",
        sum_pool(2, 1, "zero"),
        global_sum_pool(),
        dense(4),
        shape=SHAPE,
        **OPTIONS,
    )
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


def test_other_ways_to_the_same_kernels():
    """The diagonal, a pair as a function of JAX, single precision, and a filled up sequence."""
    limit = limit_of(conv(4), "relu", pool(3, 2, "zero", count_edges=False), flatten(), dense(1))
    x = peer.inputs(SHAPE, 3)
    kernels = gram(limit, x)
    np.testing.assert_array_equal(gram_diagonal(limit, x).ntk, np.diag(kernels.ntk))
    pair = kernel_function(limit, x)(x[0], x[1])
    np.testing.assert_allclose(pair.ntk, kernels.ntk[0, 1], rtol=1e-5)
    single = gram(limit, x.astype(np.float32))
    size = np.sqrt(np.outer(np.diag(kernels.ntk), np.diag(kernels.ntk)))
    assert (np.abs(single.ntk - kernels.ntk) <= (single.error + kernels.error) * size).all()
    assert single.error < 0.02


@pytest.mark.parametrize("count_edges", [False, True])
def test_a_sequence_that_is_filled_up_is_the_shorter_sequence(count_edges):
    layers = [
        conv(4),
        "relu",
        pool(3, 1, "zero", count_edges=count_edges),
        conv(4),
        "relu",
        sum_pool(3, 1, "zero"),
        global_sum_pool(),
        dense(1),
    ]
    x = np.random.default_rng(0).normal(size=(2, 8, 2))
    mask = np.arange(8) < np.array([[5], [8]])
    whole = gram(network(*layers, shape=(8, 2), **OPTIONS).limit(), x, mask=mask)
    short = gram(network(*layers, shape=(5, 2), **OPTIONS).limit(), x[:1, :5])
    np.testing.assert_allclose(whole.nngp[0, 0], short.nngp[0, 0], rtol=1e-10)
    np.testing.assert_allclose(whole.ntk[0, 0], short.ntk[0, 0], rtol=1e-7)


def test_what_has_no_limit_and_what_is_no_padding():
    net = network(conv(4), "relu", max_pool(2), flatten(), dense(1), shape=SHAPE, **OPTIONS)
    with pytest.raises(UserError, match="sampled_gram"):
        net.limit()
    drawn = sampled_gram(net, peer.inputs(SHAPE), jax.random.key(0), count=3)
    assert np.isfinite(drawn.ntk).all()
    for make in (pool, sum_pool, max_pool):
        with pytest.raises(UserError):
            make(2, 1, "same")
