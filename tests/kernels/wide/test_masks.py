"""Inputs some of whose positions do not exist: against shorter inputs, matrices by hand, and finite networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_diagonal, gram_layers, gram_positions, sampled_gram
from steepest.nn.layers import (
    add,
    aggregate,
    attention,
    concatenate,
    conv,
    dense,
    global_pool,
    identity,
    layer_norm,
    multiply,
    network,
    pool,
    serial,
)
from steepest.nn.networks import mlp
from tests.kernels.wide import masked
from tests.kernels.wide.test_positions import C_B, C_W, END, NETWORKS, build, images, layers_of

CONV = ("conv", 3, 1, "zero")
SHAPE = (4, 5, 2)
OPTIONS = {"parameterized": "ntk", "c_w": C_W, "c_b": C_B}


def holes(n=3, space=SHAPE[:2], seed=0):
    """Masks in which about a quarter of the positions is missing."""
    mask = np.random.default_rng(seed).random((n, *space)) > 0.25
    mask[-1] = True
    return mask


STEPS = {
    "pooled": [CONV, ("relu",), CONV, ("relu",), *END],
    "flattened": [CONV, ("relu",), CONV, ("erf",), ("flatten",), ("dense",)],
    "pool between": [CONV, ("relu",), ("pool", 2, 2), CONV, ("relu",), *END],
    "overlapping pools": [CONV, ("pool", 2, 1), ("relu",), ("flatten",), ("dense",)],
    "strides": [("conv", 3, 2, "zero"), ("relu",), CONV, ("relu",), *END],
    "no padding": [("conv", 2, 1, "none"), ("relu",), CONV, ("relu",), *END],
    "circular": [("conv", 3, 1, "circular"), ("tanh",), *END],
    "attention": [CONV, ("attend", 0.7, True), ("relu",), *END],
    "untied attention of the input": [("attend", 0.7, False), ("relu",), *END],
    "residual, normalized": [CONV, ("add", [], [("norm",), ("relu",), CONV]), ("relu",), *END],
}


@pytest.mark.parametrize("name", STEPS)
def test_every_node_against_matrices_of_each_input(name):
    steps = STEPS[name]
    x = images(3, SHAPE)
    mask = holes()
    if name == "no padding":
        mask[0] = True
        mask[0, 3, 4] = False
        mask[1, :2] = True
    kernels = gram(build(steps, shape=SHAPE).limit(), x, mask=mask)
    for i, j in ((0, 0), (0, 1), (1, 2)):
        k, theta = masked.kernels(steps, x[i], x[j], (mask[i], mask[j]), C_W, C_B)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-9)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=2e-7 if i == j else 1e-9)


LONG = 8
SHORT = 5
SEQUENCES = {
    "convolutions": [conv(4), "relu", conv(4, 2), "relu", global_pool(), dense(1)],
    "no padding": [
        conv(4, padding="none"),
        "relu",
        conv(4, 2, padding="none"),
        "tanh",
        global_pool(),
        dense(1),
    ],
    "attention": [
        dense(4),
        add(identity, attention(4, heads=2, key=4)),
        "relu",
        global_pool(),
        dense(1),
    ],
    "untied attention": [
        conv(4),
        attention(4, heads=2, key=4, tied=False),
        "relu",
        global_pool(),
        dense(1),
    ],
    "own weights": [conv(4, shared=False), "relu", global_pool(), dense(1)],
    "branches": [
        conv(4),
        concatenate(conv(4), conv(8, 1)),
        "relu",
        dense(4),
        multiply(identity, serial(conv(4), "erf")),
        layer_norm(),
        global_pool(),
        dense(1),
    ],
    "without padding, transposed": [
        conv(4, 2, stride=3, padding="none", transposed=True),
        global_pool(),
        dense(1),
    ],
    "transposed": [conv(4, 3, stride=2, transposed=True), "relu", global_pool(), dense(1)],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_that_is_filled_up_is_the_shorter_sequence(name):
    """Whatever it is filled up with; kernels with a longer sequence too, by the network of all lengths."""
    layers = SEQUENCES[name]
    x = images(3, (LONG, 2))
    mask = np.ones((3, LONG), bool)
    mask[:2, SHORT:] = False
    x[0, SHORT:] = np.nan
    kernels = gram(network(*layers, shape=(LONG, 2), **OPTIONS).limit(), x, mask=mask)
    short = gram(network(*layers, shape=(SHORT, 2), **OPTIONS).limit(), x[:2, :SHORT])
    np.testing.assert_allclose(kernels.nngp[:2, :2], short.nngp, rtol=1e-10)
    np.testing.assert_allclose(kernels.ntk[:2, :2], short.ntk, rtol=1e-7)
    whole = gram(network(*layers, shape=(LONG, 2), **OPTIONS).limit(), x[2:])
    np.testing.assert_allclose(kernels.ntk[2, 2], whole.ntk[0, 0], rtol=1e-7)
    assert kernels.error < 1e-4


@pytest.mark.parametrize("name", sorted(set(SEQUENCES) - {"own weights"}))
def test_finite_networks_read_the_shorter_sequence_too(name):
    long = network(*SEQUENCES[name], shape=(LONG, 2), **OPTIONS)
    short = network(*SEQUENCES[name], shape=(SHORT, 2), **OPTIONS)
    params = long.init(jax.random.key(0))
    x = images(3, (LONG, 2))
    mask = np.ones((3, LONG), bool)
    mask[:2, SHORT:] = False
    x[0, SHORT:] = np.nan
    y = long.apply(params, x, mask)
    np.testing.assert_allclose(y[:2], short.apply(params, x[:2, :SHORT]), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(y[2], long.apply(params, x[2]), rtol=2e-5, atol=1e-6)
    slopes = jax.grad(lambda p: (long.apply(p, jnp.nan_to_num(x), mask) ** 2).sum())(params)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


def test_strides_are_exact_for_lengths_of_one_remainder():
    """Padding is split by the length's remainder; of another one the windows stand elsewhere."""
    layers = (conv(4, 3, stride=2), "relu", pool(2), conv(4, 3), global_pool(), dense(1))
    x = images(2, (12, 2))
    mask = np.arange(12) < np.array([[8], [12]])
    limit = network(*layers, shape=(12, 2), **OPTIONS).limit()
    short = gram(network(*layers, shape=(8, 2), **OPTIONS).limit(), x[:1, :8])
    np.testing.assert_allclose(gram(limit, x, mask=mask).ntk[:1, :1], short.ntk, rtol=1e-7)


def test_a_mask_of_all_positions_changes_nothing():
    x = images(3)
    steps = NETWORKS["pool between"]
    every = np.ones((3, *x.shape[1:-1]), bool)
    limit = build(steps).limit()
    plain = gram(limit, x)
    kernels = gram(limit, x, mask=every)
    np.testing.assert_allclose(kernels.ntk, plain.ntk, rtol=1e-12)
    assert kernels.error == pytest.approx(plain.error)
    net = build(steps)
    params = net.init(jax.random.key(0))
    np.testing.assert_allclose(net.apply(params, x, every), net.apply(params, x), rtol=1e-5)
    np.testing.assert_allclose(
        net.apply(params, x[0], every[0]), net.apply(params, x[0]), rtol=1e-5
    )


@pytest.mark.parametrize("name", ["pool between", "attention"])
def test_two_sets_diagonals_positions_and_layers_agree(name):
    x = images(3, SHAPE)
    mask = holes()
    limit = build(STEPS[name], shape=SHAPE).limit()
    whole = gram(limit, x, mask=mask)
    block = gram(limit, x[:2], x[2:], mask=mask[:2])
    np.testing.assert_allclose(block.ntk, whole.ntk[:2, 2:], rtol=1e-12)
    other = gram(limit, x[2:], x[:2], other_mask=mask[:2])
    np.testing.assert_allclose(other.ntk, block.ntk.T, rtol=1e-12)
    alone = gram_diagonal(limit, x, mask=mask)
    np.testing.assert_array_equal(alone.ntk, np.diag(whole.ntk))
    layers = gram_layers(limit, x, mask=mask)
    np.testing.assert_allclose(layers[-1].nngp, whole.nngp, rtol=1e-10)
    first = gram_positions(build(STEPS[name][:1], shape=SHAPE).limit(), x, mask=mask)
    np.testing.assert_allclose(first.nngp, layers[0].nngp, rtol=1e-12)
    assert not first.nngp[0, 1][~mask[0]].any() and not first.nngp[0, 1][:, :, ~mask[1]].any()


def test_single_precision_stays_within_its_bound():
    x = images(4, SHAPE)
    mask = holes(4)
    limit = build(STEPS["pool between"], shape=SHAPE).limit()
    exact = gram(limit, x, mask=mask)
    single = gram(limit, x.astype(np.float32), mask=mask)
    for k in range(2):
        size = np.sqrt(np.outer(np.diag(exact[k]), np.diag(exact[k])))
        assert (np.abs(single[k] - exact[k]) <= (single.error + exact.error) * size).all()


def test_a_graph_may_lack_nodes():
    """Nodes that do not exist send nothing, as if their rows and columns were struck out."""
    ring = 0.5 * np.eye(6) + 0.3 * np.roll(np.eye(6), 1, 0) + 0.2 * np.roll(np.eye(6), -1, 0)
    there = np.array([True, True, False, True, True, False])
    layers = lambda matrix: [
        dense(3),
        "relu",
        aggregate(matrix),
        dense(3),
        "relu",
        global_pool(),
        dense(1),
    ]
    x = images(2, (6, 2))
    whole = gram(
        network(*layers(ring), shape=(6, 2), **OPTIONS).limit(), x, mask=np.stack([there] * 2)
    )
    part = network(*layers(ring[there][:, there]), shape=(4, 2), **OPTIONS)
    np.testing.assert_allclose(whole.ntk, gram(part.limit(), x[:, there]).ntk, rtol=1e-7)


@pytest.mark.parametrize("name", ["pool between", "strides", "attention", "residual, normalized"])
def test_finite_networks_have_these_kernels_in_the_mean(name):
    """Within four standard errors, and some hundredths for the finite width."""
    layers = [*layers_of(STEPS[name][:-1], 64), dense(4)]
    net = network(*layers, shape=SHAPE, **OPTIONS)
    x = images(2, SHAPE, seed=3)
    mask = holes(3)[:2]
    drawn = sampled_gram(net, x, jax.random.key(0), mask=mask, count=60)
    limit = gram(net.limit(), x, mask=mask)
    for mean, deviation, exact in (
        (drawn.nngp, drawn.nngp_error, limit.nngp),
        (drawn.ntk, drawn.ntk_error, limit.ntk),
    ):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.03 * size).all(), (mean, exact)


def test_bad_masks_get_a_sentence():
    x = images(3, SHAPE)
    net = build(STEPS["pooled"], shape=SHAPE)
    limit = net.limit()
    with pytest.raises(UserError, match=r"shape \(3, 4, 5\), got bool of shape \(2, 4, 5\)"):
        gram(limit, x, mask=holes(2))
    with pytest.raises(UserError, match="got float64"):
        gram(limit, x, mask=holes().astype(float))
    with pytest.raises(UserError, match="got float64"):
        net.apply(net.init(jax.random.key(0)), x, holes().astype(float))
    with pytest.raises(UserError, match="give other too"):
        gram(limit, x, other_mask=holes())
    with pytest.raises(UserError, match=r"mlp\(\) has none"):
        gram(mlp((3, 4, 1), "relu").limit(), np.eye(3), mask=np.ones((3, 3), bool))
    with pytest.raises(UserError, match="input 1 has no position left in its mask"):
        gram(limit, x, mask=holes() & (np.arange(3) != 1)[:, None, None])
    with pytest.raises(UserError, match="input 0 has no position left behind node 1"):
        gram(
            build(STEPS["no padding"], shape=SHAPE).limit(),
            x,
            mask=np.indices((3, 4, 5)).sum(0) % 2 == 0,
        )
