"""Tangent kernels of finite networks of layers, layer by layer, against one gradient an example."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import empirical_ntk
from steepest.kernels.finite import _structured
from steepest.kernels.finite._structured import Way, structured_ntk
from steepest.nn.layers import (
    add,
    aggregate,
    attention,
    concatenate,
    conv,
    dense,
    flatten,
    global_pool,
    identity,
    layer_norm,
    multiply,
    network,
    pool,
    serial,
)
from steepest.nn.networks import mlp
from tests.oracles import dense_outputs

IMAGE = (5, 4, 2)
SEQUENCE = (6, 3)
HEADS = attention(4, heads=2, key=3, scale="1/sqrt(d)", tied=False)
NETWORKS = {
    "pooled": (IMAGE, [conv(3), "relu", conv(4), "tanh", global_pool(), dense(2)]),
    "flattened": (IMAGE, [conv(3, stride=2), "relu", conv(3), "relu", flatten(), dense(3)]),
    "no padding, rectangular": (
        IMAGE,
        [conv(3, (2, 3), padding="none"), "relu", pool(2, 1), conv(2), global_pool(), dense(1)],
    ),
    "circular, strides": (
        IMAGE,
        [conv(3, 3, stride=(1, 2), padding="circular"), "erf", conv(2, 2), flatten(), dense(1)],
    ),
    "transposed": (IMAGE, [conv(2, 3, stride=2, transposed=True), "relu", global_pool(), dense(2)]),
    "own weights": (IMAGE, [conv(3, shared=False), "relu", conv(2), global_pool(), dense(2)]),
    "sequence": (SEQUENCE, [conv(4, 3), "relu", conv(4, 2), global_pool(), dense(1)]),
    "transformer": (
        SEQUENCE,
        [
            dense(4),
            add(identity, serial(layer_norm(), HEADS)),
            add(identity, serial(layer_norm(), dense(8), "gelu", dense(4))),
            global_pool(),
            dense(2),
        ],
    ),
    "tied attention, branches": (
        SEQUENCE,
        [
            conv(4),
            concatenate(conv(2), serial(conv(3, 1), attention(3, heads=1, key=2))),
            dense(3),
            multiply(identity, serial(conv(3), "tanh")),
            aggregate(np.ones((2, 6)) / 6),
            flatten(),
            dense(1),
        ],
    ),
    "plain vectors": ((4,), [dense(5), "relu", dense(6), "tanh", dense(2)]),
}
FORMS = {"parameterized": "ntk", "c_w": 1.5, "c_b": 0.1}


def build(name, **options):
    shape, layers = NETWORKS[name]
    return network(*layers, shape=shape, **(FORMS | options))


def inputs(shape, n=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, *shape))


def jitted(net, params, *sets, method="layerwise", **masks):
    run = lambda p: empirical_ntk(net, p, *sets, outputs="all", method=method, **masks)
    return jax.jit(run)(params)


def in_small_parts(monkeypatch):
    """Two inputs, and a channel, at a time."""
    monkeypatch.setattr(_structured, "IN_CACHE", 1)
    monkeypatch.setattr(_structured, "PIECE", 1)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer_against_one_gradient_an_example(name, key):
    """Of all pairs of outputs, between two sets of inputs."""
    net = build(name)
    params = jax.jit(net.init)(key)
    x = inputs(net.shape)
    other = inputs(net.shape, 3, 1)
    kernel = jitted(net, params, x, other)
    np.testing.assert_allclose(
        kernel, dense_outputs(net.apply, params, x, other), rtol=1e-9, atol=1e-11
    )


KINDS = [conv(3), "relu", dense(4), "tanh", conv(2, (2, 3)), global_pool(), dense(2)]
OWN = [conv(3, shared=False), "relu", global_pool(), dense(2)]


@pytest.mark.parametrize("way", Way)
def test_each_way_gives_the_same_kernel(way, key, monkeypatch):
    """In parts as small as can be, summed over outputs and not; weights of each position have a way of their own."""
    in_small_parts(monkeypatch)
    if way is not Way.EQUAL:
        monkeypatch.setattr(_structured.Place, "way", lambda place, *_, **__: way)
    layers = OWN if way is Way.EQUAL else KINDS
    net = network(*layers, shape=IMAGE, bias=False, c_w=2.0)
    params = jax.jit(net.init)(key)
    x = inputs(net.shape, 3)

    @jax.jit
    def both(params):
        kernels = [
            structured_ntk.__wrapped__(net.apply, params, (jnp.asarray(x),), None, traced)
            for traced in (True, False)
        ]
        return tuple(kernels)

    summed, whole = both(params)
    exact = dense_outputs(net.apply, params, x, x)
    np.testing.assert_allclose(whole, exact, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(summed, np.einsum("iaja->ij", exact), rtol=1e-9, atol=1e-11)


def test_each_way_is_chosen_where_it_is_cheapest():
    """Few positions and many channels; many positions and few channels; in between; own weights."""
    places = {
        Way.PAIRS: ((3,), [dense(200), "relu", dense(200)]),
        Way.FORMED: ((30, 30, 2), [conv(3)]),
        Way.PIECES: ((16, 40), [dense(60)]),
        Way.EQUAL: ((5, 2), [conv(3, shared=False)]),
    }
    for way, (shape, layers) in places.items():
        net = network(*layers, shape=shape)
        params = net.init(jax.random.key(0))
        found, _ = _structured._places(net.apply, params, (jnp.ones((20, *shape)),))
        assert found[-1].way(20, 20, 1, same=True, traced=True) is way


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("count", [None, 4], ids=["symmetric", "two sets"])
def test_blocks_of_inputs_change_nothing(traced, count, key):
    net = build("sequence")
    params = jax.jit(net.init)(key)
    x = (jnp.asarray(inputs(net.shape, 5)),)
    other = None if count is None else (jnp.asarray(inputs(net.shape, count, 1)),)
    whole = structured_ntk(net.apply, params, x, other, traced)
    blocked = structured_ntk(net.apply, params, x, other, traced, 2 * 8 * 90)
    np.testing.assert_allclose(blocked, whole, rtol=1e-10)


@pytest.mark.parametrize("method", ["layerwise", "jacobian", "vectors"])
def test_a_mask_goes_with_each_input(method, key):
    """One second set, of other masks than the first."""
    net = network(conv(3), "relu", global_pool(), dense(2), shape=SEQUENCE, **FORMS)
    params = jax.jit(net.init)(key)
    x = inputs(SEQUENCE, 3)
    mask = np.arange(6) < np.array([[4], [5], [6]])
    exact = dense_outputs(net.apply, params, (x, mask), (x, mask))
    kernel = jitted(net, params, x, mask=mask, method=method)
    np.testing.assert_allclose(kernel, exact, rtol=1e-9)
    block = jitted(net, params, x[2:], x[:2], other_mask=mask[:2], method=method)
    np.testing.assert_allclose(block, exact[2:, :, :2], rtol=1e-9)


def test_it_holds_far_less_than_the_jacobian(key):
    """Seven hundred thousand weights at 20 images: the Jacobian has 56 MB, this takes a tenth."""
    net = network(
        *[layer for _ in range(3) for layer in (conv(160), "relu")],
        global_pool(),
        dense(1),
        shape=(4, 4, 3),
    )
    params = jax.jit(net.init)(key)
    x = jnp.ones((20, 4, 4, 3))
    run = jax.jit(lambda p: empirical_ntk(net, p, x))
    jacobian = 20 * sum(leaf.nbytes for leaf in jax.tree.leaves(params))
    assert run.lower(params).compile().memory_analysis().temp_size_in_bytes < jacobian / 5


def test_weights_that_another_apply_reads_are_not_watched(key):
    """With its apply replaced a network is any function: the sum of squares of weights would be lost."""
    net = build("pooled")
    reads = lambda p, x: net.apply(p, x) * (1 + (p[0]["w"] ** 2).sum())
    other = replace(net, apply=reads)
    params = jax.jit(net.init)(key)
    x = inputs(IMAGE, 2)
    kernel = jitted(other, params, x, method="auto")
    np.testing.assert_allclose(kernel, dense_outputs(reads, params, x, x), rtol=1e-9)
    with pytest.raises(UserError, match="not its apply"):
        empirical_ntk(other, params, x, outputs="all", method="layerwise")


def test_bad_masks_get_the_sentences_of_gram(key):
    net = build("pooled")
    params = jax.jit(net.init)(key)
    x = inputs(IMAGE, 3)
    every = np.ones((3, 5, 4), bool)
    with pytest.raises(UserError, match=r"shape \(3, 5, 4\), got bool of shape \(2, 5, 4\)"):
        empirical_ntk(net, params, x, mask=every[:2], outputs="trace")
    with pytest.raises(UserError, match="give other too"):
        empirical_ntk(net, params, x, other_mask=every, outputs="trace")
    connected = mlp((3, 4, 1), "relu")
    with pytest.raises(UserError, match=r"mlp\(\) has none"):
        empirical_ntk(connected, connected.init(key), np.eye(3), mask=np.ones((3, 3), bool))
