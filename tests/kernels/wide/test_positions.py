"""Kernels of any architecture: against loops over positions, fully connected networks, and finite ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_diagonal, gram_positions, sampled_gram
from steepest.kernels.wide import Positions
from steepest.kernels.wide._evaluate import by_all_pairs
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
from tests.kernels.wide import brute

C_W = 1.4
C_B = 0.1
SHAPE = (6, 5, 2)


def layers_of(steps, width=4):
    """Our layers for the steps of the oracle, all of one width."""
    made = []
    for name, *options in steps:
        if name == "conv":
            size, stride, padding = options
            made.append(conv(width, size, stride=stride, padding=padding))
        elif name == "local":
            size, stride, padding = options
            made.append(conv(width, size, stride=stride, padding=padding, shared=False))
        elif name == "up":
            size, stride, padding = options
            made.append(conv(width, size, stride=stride, padding=padding, transposed=True))
        elif name == "mix":
            made.append(aggregate(options[0]))
        elif name == "attend":
            sharpness, tied = options
            made.append(attention(width, heads=2, key=width, sharpness=sharpness, tied=tied))
        elif name == "pool":
            made.append(pool(*options))
        elif name == "beside":
            branches = [
                serial(*layers_of(branch, share * width)) if branch else identity
                for share, branch in options
            ]
            made.append(concatenate(*branches))
        elif name in {"add", "times"}:
            branches = [
                serial(*layers_of(branch, width)) if branch else identity for branch in options
            ]
            made.append(add(*branches) if name == "add" else multiply(*branches))
        else:
            plain = {
                "flatten": flatten,
                "mean": global_pool,
                "norm": layer_norm,
                "dense": lambda: dense(width),
            }
            made.append(plain[name]() if name in plain else name)
    return made


def build(steps, width=4, shape=SHAPE, **options):
    options = {"c_w": C_W, "c_b": C_B, "parameterized": "ntk"} | options
    return network(*layers_of(steps, width), shape=shape, **options)


def images(n=3, shape=SHAPE, seed=0):
    return np.random.default_rng(seed).normal(size=(n, *shape))


CONV = ("conv", 3, 1, "zero")
LOCAL = ("local", 3, 1, "zero")
END = (("mean",), ("dense",))
POSITIONS = SHAPE[0] * SHAPE[1]
RING = 0.5 * np.eye(POSITIONS) + 0.7 * np.roll(np.eye(POSITIONS), 1, 0)
NETWORKS = {
    "flatten": [CONV, ("relu",), CONV, ("relu",), ("flatten",), ("dense",)],
    "global pooling": [CONV, ("relu",), CONV, ("relu",), ("mean",), ("dense",)],
    "pool, then flatten": [CONV, ("relu",), ("pool", 2, 2), ("flatten",), ("dense",)],
    "pool between": [CONV, ("relu",), ("pool", 2, 2), CONV, ("relu",), ("mean",), ("dense",)],
    "pooling of preactivations": [CONV, ("pool", 2, 2), ("relu",), ("flatten",), ("dense",)],
    "overlapping pools": [
        CONV,
        ("relu",),
        ("pool", 3, 2),
        CONV,
        ("relu",),
        ("flatten",),
        ("dense",),
    ],
    "pool 3 by steps of 1": [
        CONV,
        ("relu",),
        ("pool", 3, 1),
        CONV,
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "two pools": [CONV, ("pool", 2, 2), ("relu",), ("pool", 2, 1), ("flatten",), ("dense",)],
    "strides": [
        ("conv", 3, 2, "zero"),
        ("relu",),
        ("conv", 3, 2, "zero"),
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "no padding": [
        ("conv", 3, 1, "none"),
        ("relu",),
        ("conv", 2, 1, "none"),
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "no padding, stride": [
        ("conv", 2, 2, "none"),
        ("relu",),
        CONV,
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "circular": [
        ("conv", 3, 1, "circular"),
        ("relu",),
        ("conv", 3, 1, "circular"),
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "circular after none": [
        ("conv", 2, 1, "none"),
        ("relu",),
        ("conv", 3, 1, "circular"),
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "even windows": [
        ("conv", 2, 1, "zero"),
        ("relu",),
        ("conv", 4, 2, "zero"),
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "two activations": [CONV, ("erf",), CONV, ("relu",), ("mean",), ("dense",)],
    "tanh": [
        ("conv", 3, 2, "zero"),
        ("tanh",),
        ("conv", 3, 1, "zero"),
        ("tanh",),
        ("flatten",),
        ("dense",),
    ],
    "residual": [CONV, ("add", [], [("relu",), CONV]), ("relu",), ("mean",), ("dense",)],
    "projected": [
        CONV,
        ("add", [("conv", 1, 2, "zero")], [("relu",), ("conv", 3, 2, "zero"), ("relu",), CONV]),
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "pool beside a stride": [
        CONV,
        ("add", [("pool", 2, 2), ("conv", 1, 1, "zero")], [("relu",), ("conv", 2, 2, "none")]),
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "normalized": [CONV, ("norm",), ("relu",), CONV, ("norm",), ("relu",), ("mean",), ("dense",)],
    "normalized after": [
        CONV,
        ("relu",),
        ("norm",),
        CONV,
        ("relu",),
        ("flatten",),
        ("norm",),
        ("dense",),
    ],
    "dense at positions": [("dense",), ("relu",), ("dense",), ("relu",), ("mean",), ("dense",)],
    "layers behind": [CONV, ("relu",), ("mean",), ("dense",), ("erf",), ("dense",)],
    "own weights": [LOCAL, ("relu",), LOCAL, ("relu",), ("flatten",), ("dense",)],
    "own weights, pooled": [
        CONV,
        ("relu",),
        LOCAL,
        ("relu",),
        CONV,
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "own weights behind a pool": [
        CONV,
        ("relu",),
        ("pool", 2, 1),
        ("local", 2, 2, "none"),
        ("relu",),
        ("pool", 2, 1),
        ("mean",),
        ("dense",),
    ],
    "branches side by side": [
        CONV,
        ("beside", (1, [("relu",), CONV, ("relu",)]), (3, [("conv", 1, 1, "zero"), ("erf",)])),
        CONV,
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "branches side by side, normalized": [
        CONV,
        ("beside", (1, [("relu",)]), (2, [CONV, ("relu",)])),
        ("norm",),
        ("flatten",),
        ("dense",),
    ],
    "gates": [
        CONV,
        ("times", [("relu",)], [CONV, ("tanh",)], [CONV]),
        CONV,
        ("relu",),
        ("mean",),
        ("dense",),
    ],
    "graph": [("mix", RING), ("dense",), ("relu",), ("mix", RING), ("dense",), ("relu",), *END],
    "graph behind a convolution": [
        CONV,
        ("relu",),
        ("mix", RING),
        ("norm",),
        CONV,
        ("relu",),
        *END,
    ],
    "attention": [CONV, ("relu",), ("attend", 0.7, True), ("relu",), *END],
    "attention, untied": [CONV, ("attend", 0.7, False), CONV, ("relu",), *END],
    "encoder": [
        CONV,
        ("add", [], [("norm",), ("attend", 1.0, True)]),
        ("add", [], [("norm",), ("dense",), ("erf",), ("dense",)]),
        *END,
    ],
    "transposed": [
        ("conv", 3, 2, "zero"),
        ("relu",),
        ("up", 3, 2, "zero"),
        ("relu",),
        ("pool", 2, 2),
        *END,
    ],
    "transposed, without padding": [
        ("conv", 2, 3, "none"),
        ("erf",),
        ("up", 3, 2, "none"),
        ("norm",),
        *END,
    ],
    "transposed, around": [
        ("conv", 3, 2, "circular"),
        ("relu",),
        ("up", 4, 2, "circular"),
        ("relu",),
        *END,
    ],
    "branches of other strides": [
        CONV,
        ("add", [("relu",), ("conv", 4, 1, "none")], [("relu",), ("conv", 2, 2, "none")]),
        ("relu",),
        *END,
    ],
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_node_against_loops_over_positions(name):
    """And all pairs of positions at once against the displacements that the plan thinks are enough."""
    steps = NETWORKS[name]
    x = images(2)
    limit = build(steps).limit()
    kernels = gram(limit, x)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        k, theta = brute.kernels(steps, x[i], x[j], C_W, C_B)
        corner = (
            2e-7 if i == j else 1e-10
        )  # near correlation one a kink knows its angle to √eps only
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-10)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=corner)
    way = Positions.of(limit, x, None, None)
    rows = way.rows(x)
    whole = slice(0, 2)
    with jax.enable_x64(True):
        one, two = way.firsts(rows, whole), way.seconds(rows, whole)
        full = by_all_pairs(way.plan, way.duals, len(limit.nodes) - 1, one, two)
    np.testing.assert_allclose(full.k[0, 1], kernels.nngp[0, 1], rtol=1e-12)
    np.testing.assert_allclose(full.theta[0, 1], kernels.ntk[0, 1], rtol=1e-12)


@pytest.mark.parametrize("name", ["relu", "tanh", "erf", "gelu", "silu"])
def test_a_network_without_positions_is_a_fully_connected_one(name):
    x = images(shape=(7,), n=5)
    layered = network(
        dense(9), name, dense(9), name, dense(1), shape=(7,), c_w=C_W, c_b=C_B, parameterized="ntk"
    )
    flat = mlp((7, 9, 9, 1), name, c_w=C_W, c_b=C_B, parameterized="ntk")
    ours, theirs = gram(layered.limit(), x), gram(flat.limit(), x)
    np.testing.assert_allclose(ours.nngp, theirs.nngp, rtol=5e-12, atol=1e-13)
    np.testing.assert_allclose(ours.ntk, theirs.ntk, rtol=5e-12, atol=1e-13)


def test_one_dimension_and_three():
    """Sequences and volumes are images of height one, and the other way round."""
    x = images(3, (7, 2))
    sequence = network(
        conv(3), "relu", pool(2), conv(3), "relu", global_pool(), dense(1), shape=(7, 2), c_w=C_W
    )
    flat = network(
        conv(3, (1, 3)),
        "relu",
        pool((1, 2)),
        conv(3, (1, 3)),
        "relu",
        global_pool(),
        dense(1),
        shape=(1, 7, 2),
        c_w=C_W,
    )
    volume = network(
        conv(3, (1, 3, 1)),
        "relu",
        pool((1, 2, 1)),
        conv(3, (1, 3, 1)),
        "relu",
        global_pool(),
        dense(1),
        shape=(1, 7, 1, 2),
        c_w=C_W,
    )
    one = gram(sequence.limit(), x)
    np.testing.assert_allclose(gram(flat.limit(), x[:, None]).ntk, one.ntk, rtol=1e-12)
    np.testing.assert_allclose(gram(volume.limit(), x[:, None, :, None]).ntk, one.ntk, rtol=1e-12)


@pytest.mark.parametrize("parameterized", ["standard", "ntk"])
@pytest.mark.parametrize(
    "name",
    [
        "flatten",
        "pool between",
        "projected",
        "normalized after",
        "circular",
        "strides",
        "own weights, pooled",
        "branches side by side",
        "branches side by side, normalized",
        "gates",
        "graph behind a convolution",
    ],
)
def test_finite_networks_have_these_kernels_in_the_mean(name, parameterized):
    """Within four standard errors, and some hundredths for the finite width."""
    layers = [*layers_of(NETWORKS[name][:-1], 64), dense(4)]
    net = network(*layers, shape=SHAPE, c_w=C_W, c_b=C_B, parameterized=parameterized)
    x = images(2, seed=3)
    drawn = sampled_gram(net, x, jax.random.key(0), count=80)
    limit = gram(net.limit(), x)
    for mean, deviation, exact in (
        (drawn.nngp, drawn.nngp_error, limit.nngp),
        (drawn.ntk, drawn.ntk_error, limit.ntk),
    ):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.03 * size).all(), (mean, exact)


@pytest.mark.parametrize(
    "name",
    [
        "flatten",
        "tanh",
        "own weights",
        "branches side by side, normalized",
        "gates",
        "graph behind a convolution",
        "attention",
    ],
)
def test_float32_stays_within_its_bound(name):
    x = images(4)
    limit = build(NETWORKS[name]).limit()
    exact = gram(limit, x)
    single = gram(limit, x.astype(np.float32))
    for k in range(2):
        size = np.sqrt(np.outer(np.diag(exact[k]), np.diag(exact[k])))
        assert (np.abs(single[k] - exact[k]) <= (single.error + exact.error) * size).all()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("parameterized", ["standard", "ntk"])
def test_attention_of_finite_networks(tied, parameterized):
    """Many heads with wide keys, within four standard errors and some hundredths."""
    net = network(
        dense(64),
        attention(64, heads=8, key=64, tied=tied, sharpness=1.5),
        "relu",
        global_pool(),
        dense(4),
        shape=(4, 3),
        c_w=C_W,
        c_b=C_B,
        parameterized=parameterized,
    )
    x = images(2, (4, 3))
    sampled = sampled_gram(net, x, jax.random.key(0), count=60)
    limit = gram(net.limit(), x)
    for mean, deviation, exact in (
        (sampled.nngp, sampled.nngp_error, limit.nngp),
        (sampled.ntk, sampled.ntk_error, limit.ntk),
    ):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.03 * size).all(), (mean, exact)


def test_untied_attention_is_an_average_over_positions():
    """And tied attention to alike positions as well; sharp attention reads the position itself."""
    count = SHAPE[0] * SHAPE[1]
    uniform = aggregate(np.full((count, count), 1 / count))
    x = images()

    def kernels(layer, x):
        layers = (conv(2), "relu", layer, "relu", global_pool(), dense(1))
        return gram(network(*layers, shape=SHAPE, c_w=C_W, parameterized="ntk").limit(), x)

    averaged = kernels(serial(dense(2), uniform, dense(2)), x)
    untied = kernels(attention(2, heads=1, key=2, tied=False), x)
    blunt = kernels(attention(2, heads=1, key=2, sharpness=1e-9), x)
    for k in range(2):
        np.testing.assert_allclose(untied[k], averaged[k], rtol=1e-12)
        np.testing.assert_allclose(blunt[k], averaged[k], rtol=1e-8)
    far_apart = x * 0 + np.eye(count).reshape(count, *SHAPE[:2], 1)[:3] + 1e-3 * x
    assert not np.allclose(untied.nngp, kernels(attention(2, heads=1, key=2), x).nngp, rtol=1e-3)
    assert np.isfinite(kernels(attention(2, heads=1, key=2, sharpness=1e3), far_apart).ntk).all()


def test_a_matrix_may_leave_fewer_dimensions_of_space():
    """One row of an image: a line of positions, whose kernels are among the kernels of the image."""
    row = np.eye(SHAPE[0] * SHAPE[1])[: SHAPE[1]]
    options = {"shape": SHAPE, "c_w": C_W, "bias": False, "parameterized": "ntk"}
    x = images()
    before = gram_positions(network(conv(2), "erf", **options).limit(), x)
    line = network(conv(2), "erf", aggregate(row), global_pool(), dense(1, c_w=1.0), **options)
    kernels = gram(line.limit(), x)
    for k in range(2):
        mean = before[k][:, :, 0, :, 0, :].mean((2, 3))
        expected = mean if k == 0 else mean + before[0][:, :, 0, :, 0, :].mean((2, 3))
        np.testing.assert_allclose(kernels[k], expected, rtol=1e-10)


def test_attention_that_has_no_limit_is_named():
    net = network(
        conv(2),
        attention(2, heads=1, key=2, scale="1/sqrt(d)", tied=True),
        flatten(),
        dense(1),
        shape=SHAPE,
        parameterized="ntk",
    )
    assert net.apply(net.init(jax.random.key(0)), jnp.ones(SHAPE)).shape == ()
    with pytest.raises(UserError, match=r"node 2.*grow like √d.*tied=False.*sampled_gram"):
        net.limit()
    with pytest.raises(UserError, match="scale of attention is one of"):
        attention(2, heads=1, key=2, scale="d")
    with pytest.raises(UserError, match="whole number of heads"):
        attention(2, heads=0, key=2)


def test_empty_patches_have_no_signal():
    """Without biases a patch of zeros stays zero; a finite network agrees, where ReLU's slope at 0 is 0."""
    x = images(2)
    x[:, :, 3:] = 0
    net = network(
        conv(256),
        "relu",
        conv(256),
        "relu",
        flatten(),
        dense(1),
        shape=SHAPE,
        parameterized="ntk",
        c_w=2.0,
    )
    kernels = gram(net.limit(), x)
    assert np.isfinite(kernels.ntk).all()

    drawn = sampled_gram(net, x, jax.random.key(0), count=60)
    error = np.abs(drawn.ntk - kernels.ntk)
    assert (error <= 4 * drawn.ntk_error + 0.02 * kernels.ntk[0, 0]).all()


def test_two_sets_are_a_block_of_one_matrix():
    x = images(5)
    limit = build(NETWORKS["pool between"]).limit()
    whole = gram(limit, x)
    block = gram(limit, x[:2], x[2:])
    np.testing.assert_allclose(block.ntk, whole.ntk[:2, 2:], rtol=1e-12)


def test_the_diagonal_alone():
    x = images(3)
    limit = build(NETWORKS["pool between"]).limit()
    alone, whole = gram_diagonal(limit, x), gram(limit, x)
    np.testing.assert_array_equal(alone.nngp, np.diag(whole.nngp))
    np.testing.assert_array_equal(alone.ntk, np.diag(whole.ntk))


def test_an_activation_acts_on_each_branch_for_itself():
    x = images(3)
    ends = ["relu", global_pool(), dense(1)]
    options = {"shape": SHAPE, "parameterized": "ntk", "c_w": C_W, "c_b": C_B}
    behind = network(conv(4), concatenate(conv(4), conv(8, 1), conv(4, 2)), *ends, **options)
    branches = [serial(conv(4), "relu"), serial(conv(8, 1), "relu"), serial(conv(4, 2), "relu")]
    inside = network(conv(4), concatenate(*branches), *ends[1:], **options)
    np.testing.assert_array_equal(gram(behind.limit(), x).ntk, gram(inside.limit(), x).ntk)


@pytest.mark.parametrize("name", ["strides", "attention", "two pools"])
def test_all_positions_of_the_output(name):
    """Against loops; pooled and flattened they are the kernels of the network that goes on."""
    steps = NETWORKS[name]
    body = steps[: steps.index(("flatten",)) if ("flatten",) in steps else steps.index(("mean",))]
    limit = build(body).limit()
    x = images(3)
    kernels = gram_positions(limit, x, x[:2])
    space = limit.spaces[-1]
    assert kernels.nngp.shape == (3, 2, *space, *space)
    for i, j in ((0, 1), (2, 0), (1, 1)):
        k, theta = brute.kernels(body, x[i], x[j], C_W, C_B)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=2e-7, atol=1e-12)
    pooled = gram(build([*body, ("mean",), ("dense",)]).limit(), x)
    average = kernels.nngp.mean((2, 3, 4, 5))
    np.testing.assert_allclose(C_B + C_W * average, pooled.nngp[:, :2], rtol=1e-10)
    single = gram_positions(limit, x.astype(np.float32))
    size = np.sqrt(np.diagonal(kernels.nngp[0, 0].reshape(np.prod(space), -1)))
    off = np.abs(single.nngp[0, 0] - kernels.nngp[0, 0]).reshape(np.prod(space), -1)
    assert (off <= (single.error + kernels.error) * np.outer(size, size)).all()


def test_positions_of_a_network_without_are_refused():
    with pytest.raises(UserError, match="has no positions"):
        gram_positions(build(NETWORKS["flatten"]).limit(), images())
    with pytest.raises(UserError, match="has no positions"):
        gram_positions(mlp((3, 4, 1), "relu").limit(), np.eye(3))


def test_shifts_leave_kernels_alone_under_circular_padding():
    """Of both inputs always; of one under global pooling."""
    x = images(2)
    steps = NETWORKS["circular"]
    pooled = build(steps).limit()
    flat = build([*steps[:-2], ("flatten",), ("dense",)]).limit()
    moved = np.roll(x, (2, 1), (1, 2))
    np.testing.assert_allclose(gram(flat, moved).ntk, gram(flat, x).ntk, rtol=1e-12)
    np.testing.assert_allclose(gram(pooled, x, moved).nngp, gram(pooled, x).nngp, rtol=1e-12)


def test_matrices_have_no_negative_eigenvalues():
    x = images(12)
    for name in ("global pooling", "two pools"):
        kernels = gram(build(NETWORKS[name]).limit(), x)
        for matrix in kernels[:2]:
            values = np.linalg.eigvalsh(matrix)
            assert values[0] >= -len(x) * kernels.error * values[-1]


PARTS = ("beside", (1, [CONV]), (1, [CONV]))
REFUSED = {
    "an activation twice": ([CONV, ("relu",), ("relu",), ("flatten",), ("dense",)], "relu"),
    "an activation of flattened channels": ([CONV, ("flatten",), ("relu",), ("dense",)], "relu"),
    "an activation of the input": ([("relu",), CONV, ("flatten",), ("dense",)], "relu"),
    "two activations in a sum": (
        [CONV, ("add", [CONV, ("relu",)], [CONV, ("relu",)]), CONV, ("flatten",), ("dense",)],
        "activation",
    ),
    "a product of branches without weights": (
        [CONV, ("times", [], [("relu",)]), ("flatten",), ("dense",)],
        "multiply.*weights",
    ),
    "the input beside others": (
        [("beside", (1, []), (1, [CONV])), ("flatten",), ("dense",)],
        "concatenate.*raw input",
    ),
    "an activation of pooled branches": (
        [
            CONV,
            ("beside", (1, [CONV]), (1, [CONV])),
            ("pool", 2, 2),
            ("relu",),
            ("mean",),
            ("dense",),
        ],
        "several variances",
    ),
    "a residual block beside what it reads": (
        [CONV, ("add", [("add", [], [CONV])], []), ("flatten",), ("dense",)],
        "add.*passes on",
    ),
    "a residual block times what it reads": (
        [CONV, ("times", [("add", [], [CONV])], []), ("flatten",), ("dense",)],
        "multiply.*passes on",
    ),
    "a product of branches side by side": (
        [CONV, ("times", [PARTS], [CONV, PARTS]), ("flatten",), ("dense",)],
        "multiply.*several laws",
    ),
    "a product of flattened branches": (
        [CONV, ("times", [CONV, ("flatten",)], [CONV, ("relu",), ("flatten",)]), ("dense",)],
        "multiply.*several laws",
    ),
    "two branches without weights": ([CONV, ("add", [], []), ("flatten",), ("dense",)], "weights"),
    "the input in a sum": (
        [("add", [], [("conv", 3, 1, "zero")]), ("flatten",), ("dense",)],
        "raw input",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_known_limit_is_named(name):
    steps, word = REFUSED[name]
    net = network(*layers_of(steps, 2), shape=SHAPE, parameterized="ntk")
    net.apply(net.init(jax.random.key(0)), jnp.ones(SHAPE))  # the finite network is fine
    with pytest.raises(UserError, match=rf"(?=.*node \d+).*{word}"):
        net.limit()


def test_other_bad_input_gets_a_sentence():
    flat = build(NETWORKS["flatten"])
    with pytest.raises(UserError, match="has positions of its own"):
        gram(network(conv(2), shape=SHAPE, parameterized="ntk").limit(), images())
    with pytest.raises(UserError, match=r"\(n, 6, 5, 2\).*\(3, 5, 6, 2\)"):
        gram(flat.limit(), images(shape=(5, 6, 2)))
    with pytest.raises(UserError, match="pieces"):
        gram(network(conv(2), "abs_power(1.5)", flatten(), dense(1), shape=SHAPE).limit(), images())
    with pytest.raises(UserError, match="divides by zero"):
        empty = images()
        empty[:, :3] = 0
        gram(build(NETWORKS["normalized"], c_b=0.0).limit(), empty)
    with pytest.raises(UserError, match="no kernel describes"):
        build(NETWORKS["flatten"], parameterized="mean-field").limit()
