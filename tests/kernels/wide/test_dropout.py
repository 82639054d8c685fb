"""Dropout in training: kernels by loops, kernels of a peer, and finite networks with units drawn for each input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import (
    gram,
    gram_diagonal,
    gram_layers,
    gram_over_heads,
    gram_positions,
    kernel_function,
    tiled_gram,
)
from steepest.nn.layers import (
    add,
    attention,
    conv,
    dense,
    dropout,
    flatten,
    global_pool,
    identity,
    layer_norm,
    network,
    pool,
    serial,
)
from tests.kernels.wide import brute, peer

SHAPE = (4, 3, 2)
OPTIONS = {"parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
CONV = ("conv", 3, 1, "zero")
DROP = ("drop", 0.3)
END = (("mean",), ("dense",))
NETWORKS = {
    "pools": (
        (conv(4), "erf", dropout(0.3), pool(2, 1), conv(4), "erf", dropout(0.3), global_pool()),
        [CONV, ("erf",), DROP, ("pool", 2, 1), CONV, ("erf",), DROP, *END],
    ),
    "flattened": (
        (conv(4), "erf", dropout(0.3), conv(4, stride=2), "erf", dropout(0.3), flatten()),
        [CONV, ("erf",), DROP, ("conv", 3, 2, "zero"), ("erf",), DROP, ("flatten",), ("dense",)],
    ),
    "normalized residual": (
        (conv(4), add(identity, serial("erf", dropout(0.3), layer_norm(), conv(4))), global_pool()),
        [CONV, ("add", [], [("erf",), DROP, ("norm",), CONV]), *END],
    ),
    "attention": (
        (conv(4), "erf", dropout(0.3), attention(4, heads=2, key=4), "erf", global_pool()),
        [CONV, ("erf",), DROP, ("attend", 1.0, True), ("erf",), *END],
    ),
}


def limit_of(*layers, shape=SHAPE):
    return network(*layers, shape=shape, **OPTIONS).limit()


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_by_loops(name):
    layers, steps = NETWORKS[name]
    x = peer.inputs(SHAPE)
    limit = limit_of(*layers, dense(1))
    kernels = gram(limit, x)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        k, theta = brute.kernels(steps, x[i], x[j], 1.4, 0.1)
        if i == j:  # two equal inputs draw their units apart
            (k, theta, _), _, _ = brute.run(steps, brute.begin(x[i], x[i]), 1.4, 0.1)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-10)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=1e-10)
    np.testing.assert_array_equal(gram_diagonal(limit, x).ntk, np.diag(kernels.ntk))
    assert kernels.error < 1e-9


def test_equal_rows_are_different_inputs():
    layers, steps = NETWORKS["pools"]
    x = peer.inputs(SHAPE)
    limit = limit_of(*layers, dense(1))
    between = brute.kernels(steps, x[0], x[0], 1.4, 0.1)[1]
    twice = gram(limit, x[[0, 0, 1]])
    np.testing.assert_allclose(twice.ntk[0, 1], between, rtol=1e-10)
    assert twice.ntk[0, 0] > 1.05 * between
    np.testing.assert_allclose(gram(limit, x[:1], x[:1]).ntk[0, 0], between, rtol=1e-10)
    with jax.enable_x64(True):
        one = jnp.asarray(x[0])
        np.testing.assert_allclose(kernel_function(limit, x)(one, one).ntk, between, rtol=1e-10)
        traced = jax.jit(lambda inputs: gram(limit, inputs).ntk)(jnp.asarray(x))
    np.testing.assert_allclose(traced, gram(limit, x).ntk, rtol=1e-10)


def test_all_pairs_of_positions_of_an_input_with_itself():
    """Windows that overlap share units, so that different positions of one input are larger too."""
    x = peer.inputs(SHAPE, 3)
    layers = (conv(4), "erf", dropout(0.3), pool(2, 1))
    steps = [CONV, ("erf",), DROP, ("pool", 2, 1)]
    kernels = gram_positions(limit_of(*layers), x)
    (k, theta, _), (k_between, _, _), _ = brute.run(steps, brute.begin(x[2], x[1]), 1.4, 0.1)
    np.testing.assert_allclose(kernels.nngp[2, 2], k, rtol=1e-9)
    np.testing.assert_allclose(kernels.ntk[2, 2], theta, rtol=1e-9)
    np.testing.assert_allclose(kernels.nngp[2, 1], k_between, rtol=1e-9)
    last = gram_layers(limit_of(*layers, flatten(), dense(1)), x)[3]
    np.testing.assert_allclose(last.nngp[2, 2], k, rtol=1e-9)


def test_heads_that_are_drawn_see_the_same_kernels():
    """Blunt heads average over positions, whatever is drawn."""
    heads = attention(4, heads=2, key=4, scale="1/sqrt(d)", tied=False, sharpness=1e-12)
    x = peer.inputs((5, 2), 3)
    before = (conv(4), "erf", dropout(0.3))
    drawn = gram_over_heads(
        limit_of(*before, heads, global_pool(), dense(1), shape=(5, 2)),
        x,
        jax.random.key(0),
        heads=1,
        count=2,
    )
    averaged = limit_of(*before, dense(4), dense(4), global_pool(), dense(1), shape=(5, 2))
    np.testing.assert_allclose(drawn.nngp, gram(averaged, x).nngp, rtol=1e-8)


def test_kernels_are_those_of_the_peer():
    shape = (6, 5, 2)
    end = (global_pool(), dense(1))
    heads = attention(4, heads=2, key=4)
    for name, of_inputs, *layers in (
        ("dropout", shape, dropout(0.2), conv(4), "erf", dropout(0.2), *end),
        ("dropout, pool", shape, dropout(0.3), pool(2), conv(4), "erf", flatten(), dense(1)),
        ("dropout, attention", (6, 2), dropout(0.3), heads, "erf", *end),
    ):
        options = {"shape": of_inputs, "parameterized": "ntk", "c_w": peer.C_W, "bias": False}
        net = network(conv(4), "erf", *layers, **options)
        peer.agree(name, gram(net.limit(), peer.inputs(of_inputs)))


def test_tiles_on_disk(tmp_path):
    limit = limit_of(conv(4), "erf", dropout(0.3), global_pool(), dense(1))
    x = peer.inputs(SHAPE, 5)
    np.testing.assert_allclose(
        tiled_gram(limit, x, tmp_path, tile=2).ntk.toarray(), gram(limit, x).ntk, rtol=1e-12
    )


def test_finite_networks_in_training_have_these_kernels_in_the_mean():
    """Weights and units are drawn again for each draw; one input with itself has the same units on both sides."""
    shape = (6, 2)
    layers = (conv(64), "relu", dropout(0.4), pool(3, 1), conv(64), "relu", dropout(0.4))
    net = network(*layers, global_pool(), dense(1), shape=shape, **OPTIONS)
    x = jnp.asarray(peer.inputs(shape), jnp.float32)

    @jax.jit
    def draw(key):
        of_weights, of_units = jax.random.split(key)
        params = net.init(of_weights)
        outputs = lambda p: net.apply(p, x, key=of_units)
        slopes = jax.tree.leaves(jax.jacrev(outputs)(params))
        f = outputs(params)
        flat = [leaf.reshape(2, -1) for leaf in slopes]
        return jnp.stack([jnp.outer(f, f), sum(leaf @ leaf.T for leaf in flat)])

    draws = np.asarray(jax.lax.map(draw, jax.random.split(jax.random.key(0), 600)))
    limit = gram(net.limit(), np.asarray(x, float))
    error = draws.std(0) / np.sqrt(len(draws))
    for mean, deviation, exact in zip(draws.mean(0), error, limit[:2], strict=True):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.02 * size).all(), (mean, exact)
    plain = gram(
        network(
            *(v for v in layers if v != dropout(0.4)),
            global_pool(),
            dense(1),
            shape=shape,
            **OPTIONS,
        ).limit(),
        np.asarray(x, float),
    )
    gap = np.diag(limit.ntk) - np.diag(plain.ntk)
    assert (gap > 8 * np.diag(error[1])).all()  # what the test can tell apart


def test_units_are_drawn_for_each_row_and_never_without_a_key():
    net = network(dense(500), dropout(0.25), shape=(3,))
    params = net.init(jax.random.key(0))
    x = jnp.ones((2, 3))
    plain = net.apply(params, x)
    drawn = np.asarray(net.apply(params, x, key=jax.random.key(1)))
    kept = drawn != 0
    np.testing.assert_allclose(drawn[kept], np.asarray(plain / 0.75)[kept], rtol=1e-5)
    np.testing.assert_allclose(kept.mean(1), 0.75, atol=4 * np.sqrt(0.75 * 0.25 / 500))
    assert (kept[0] != kept[1]).any()
    again = net.apply(params, x, key=jax.random.key(1))
    np.testing.assert_array_equal(drawn, again)
    both = network(serial(dropout(0.5)), add(dropout(0.5), dropout(0.5)), shape=(200,))
    values = np.unique(
        both.apply(both.init(jax.random.key(0)), jnp.ones((1, 200)), key=jax.random.key(2))
    )
    assert values.tolist() == [0.0, 4.0, 8.0]  # each layer and each branch draws for itself


def test_a_rate_that_is_traced():
    x = peer.inputs(SHAPE)

    def ntk(rate):
        layers = (conv(4), "erf", dropout(rate), global_pool(), dense(1))
        return gram(limit_of(*layers), jnp.asarray(x)).ntk.sum()

    with jax.enable_x64(True):
        slope = jax.grad(ntk)(0.3)
        by_difference = (ntk(jnp.asarray(0.3001)) - ntk(jnp.asarray(0.2999))) / 2e-4
    np.testing.assert_allclose(slope, by_difference, rtol=1e-5)


def test_what_is_refused():
    for rate in (1.0, -0.1, np.nan):
        with pytest.raises(UserError):
            dropout(rate)
    with pytest.raises(UserError):
        network(dropout(0.1), dense(1), shape=(3,)).limit()
    with pytest.raises(UserError):
        network(dense(4), dropout(0.1), "relu", dense(1), shape=(3,)).limit()
