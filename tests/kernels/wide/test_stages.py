"""Kernels behind every layer: against the networks that end there, and loops over positions."""

import dataclasses

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_diagonal, gram_layers, gram_positions
from steepest.kernels.wide._function import nodes_of
from steepest.nn.layers import conv, dense, global_pool, network, serial
from steepest.nn.networks import mlp
from tests.kernels.wide import brute
from tests.kernels.wide.test_positions import (
    C_B,
    C_W,
    NETWORKS,
    SHAPE,
    build,
    images,
    layers_of,
)

SEVERAL = ["pool between", "projected", "normalized after", "encoder"]


@pytest.mark.parametrize("name", SEVERAL)
def test_each_layer_against_loops_over_positions(name):
    steps = NETWORKS[name]
    x = images(2)
    layers = gram_layers(build(steps).limit(), x)
    assert len(layers) == len(steps)
    for count, layer in enumerate(layers, 1):
        for i, j in ((0, 1), (1, 1)):
            k, theta = brute.kernels(steps[:count], x[i], x[j], C_W, C_B)
            np.testing.assert_allclose(layer.nngp[i, j], k, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(layer.ntk[i, j], theta, rtol=2e-7, atol=1e-11)


@pytest.mark.parametrize(("name", "counts"), [("pool between", (7,)), ("attention", (3,))])
def test_each_layer_is_the_output_of_the_network_that_ends_there(name, counts):
    """With its bound of the error, which knows nothing of what comes behind."""
    steps = NETWORKS[name]
    x = images(3)
    layers = gram_layers(build(steps).limit(), x, x[:2])
    for count in counts:
        layer = layers[count - 1]
        ending = build(steps[:count]).limit()
        alone = (gram_positions if ending.spaces[-1] else gram)(ending, x, x[:2])
        np.testing.assert_allclose(layer.nngp, alone.nngp, rtol=1e-12, atol=1e-14)
        # near correlation one a kink knows its angle to √eps only
        np.testing.assert_allclose(layer.ntk, alone.ntk, rtol=2e-7, atol=1e-14)
        assert layer.error == pytest.approx(alone.error, rel=1e-6)


def test_inputs_with_themselves_are_exact():
    limit = build(NETWORKS["global pooling"]).limit()
    x = images(3)
    first, *_, last = gram_layers(limit, x)
    diagonal = gram_diagonal(limit, x)
    np.testing.assert_array_equal(np.diag(last.ntk), diagonal.ntk)
    np.testing.assert_array_equal(np.diag(last.nngp), diagonal.nngp)
    variances = np.einsum("iipqpq->ipq", first.nngp)
    padded = np.pad((x**2).mean(-1), ((0, 0), (1, 1), (1, 1)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    np.testing.assert_allclose(variances, C_B + C_W * patches.mean((3, 4)), rtol=1e-12)


def test_names_are_those_of_the_layers_in_a_chain():
    """Those inside ``serial`` are layers too, those inside branches are not."""
    steps = NETWORKS["projected"]
    net = network(
        serial(*layers_of(steps[:1]), serial("tanh", conv(3))), *layers_of(steps[1:]), shape=SHAPE
    )
    names = [stage.name for stage in net.limit().stages]
    assert names == ["conv(4)", "tanh", "conv(3)", "add", "relu", "global_pool", "dense(4)"]


def test_some_layers_alone():
    limit = build(NETWORKS["global pooling"]).limit()
    x = images(3)
    every = gram_layers(limit, x)
    last, second = gram_layers(limit, x, layers=[-1, 1])
    np.testing.assert_allclose(last.ntk, every[-1].ntk, rtol=1e-12)
    np.testing.assert_allclose(second.ntk, every[1].ntk, rtol=1e-12)
    assert (last.name, second.name) == ("dense(4)", "relu")
    with pytest.raises(UserError, match=r"numbers from -6 to 5.*got \[6\]"):
        gram_layers(limit, x, layers=[6])
    with pytest.raises(UserError, match="numbers from"):
        gram_layers(limit, x, layers=[])


@pytest.mark.parametrize(("activation", "skip"), [("relu", 0.0), ("erf", 0.7)])
def test_fully_connected_networks_layer_by_layer(activation, skip):
    """Against the same network node by node, which evaluates all in another way."""
    options = {"c_w": C_W, "c_b": C_B, "parameterized": "ntk"}
    x = images(4, (7,))
    limit = mlp((7, 9, 9, 1), activation, skip=skip, **options).limit()
    layers = gram_layers(limit, x)
    assert [layer.name for layer in layers] == ["dense"] * 3
    nodes = nodes_of(limit)
    joined = [
        index
        for index, node in enumerate(nodes.nodes)
        if type(node).__name__ == ("Sum" if skip else "Linear")
    ]
    ends = [1, *joined, len(nodes.nodes) - 1] if skip else joined
    for layer, end in zip(layers, ends, strict=True):
        cut = dataclasses.replace(
            nodes, shape=(7,), nodes=nodes.nodes[: end + 1], spaces=nodes.spaces[: end + 1]
        )
        node_by_node = gram(cut, x)
        np.testing.assert_allclose(layer.nngp, node_by_node.nngp, rtol=5e-12, atol=1e-13)
        np.testing.assert_allclose(layer.ntk, node_by_node.ntk, rtol=5e-12, atol=1e-13)
    whole = gram(limit, x)
    np.testing.assert_allclose(layers[-1].ntk, whole.ntk, rtol=1e-12)


def test_signals_before_the_first_weights_have_no_tangent_kernel():
    net = network(global_pool(), dense(3), shape=SHAPE, parameterized="ntk", c_w=C_W)
    x = images(2)
    pooled, output = gram_layers(net.limit(), x)
    means = x.mean((1, 2))
    np.testing.assert_allclose(pooled.nngp, means @ means.T / SHAPE[-1], rtol=1e-12)
    np.testing.assert_array_equal(pooled.ntk, 0)
    np.testing.assert_allclose(output.ntk, 1 + C_W * pooled.nngp, rtol=1e-12)


def test_a_limit_without_layers_is_refused():
    limit = dataclasses.replace(build(NETWORKS["flatten"]).limit(), stages=())
    with pytest.raises(UserError, match="limit that knows its layers"):
        gram_layers(limit, images(2))


def test_more_than_memory_is_refused_before_anything_is_computed():
    """All 4096² pairs of positions, of one image and of many."""
    net = network(conv(2), "relu", global_pool(), dense(1), shape=(64, 64, 1), parameterized="ntk")
    x = images(10, (64, 64, 1))
    with pytest.raises(
        UserError, match=r"16777216 pairs.*10 × 10 pairs of inputs, take 53\.7 GB.*fewer layers"
    ):
        gram_layers(net.limit(), x)
    with pytest.raises(UserError, match="take 26.8 GB"):
        gram_layers(net.limit(), x, layers=[0])
    trunk = network(conv(2), shape=(64, 64, 1), parameterized="ntk")
    with pytest.raises(UserError, match=r"10 × 5 pairs of inputs"):
        gram_positions(trunk.limit(), x, x[:5])
