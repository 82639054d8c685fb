"""Resized images, positions that are taken, and sums along one dimension: by matrices, and by a peer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_diagonal, sampled_gram
from steepest.nn.layers import (
    aggregate,
    conv,
    dense,
    flatten,
    global_pool,
    network,
    resize,
    select,
)
from tests.kernels.wide import masked, peer

SHAPE = (4, 3, 2)
OPTIONS = {"parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
DOWN = np.cos(np.arange(8) ** 2.0).reshape(2, 4)
ACROSS = np.cos(np.arange(9) ** 2.0).reshape(3, 3)


def resized(space, method):
    """The matrix of ``jax.image.resize`` for all positions in one line, one unit after the other."""
    units = jnp.eye(12).reshape(12, *SHAPE[:2])
    columns = jax.image.resize(units, (12, *space), method)
    return np.asarray(columns).reshape(12, -1).T


def resized_across():
    """The matrix of ``jax.image.resize`` from three positions to two."""
    return np.asarray(jax.image.resize(jnp.eye(3), (2, 3), "linear"))


def chosen(*at):
    """Rows of the identity."""
    return np.eye(12).reshape(*SHAPE[:2], 12)[np.ix_(*at)].reshape(-1, 12)


CASES = {
    "linear": (resize((2, 5)), ((2, 5), "linear"), (2, 5), False),
    "cubic": (resize(4, "cubic"), ((4, 4), "cubic"), (4, 4), False),
    "nearest": (resize((7, 3), "nearest"), ((7, 3), "nearest"), (7, 3), False),
    "part": (select(slice(1, 3), slice(None, None, -1)), ([1, 2], [2, 1, 0]), (2, 3), False),
    "all backwards": (select(slice(None, None, -1)), ([3, 2, 1, 0], [0, 1, 2]), (4, 3), False),
    "row": (select(-2), ([2], [0, 1, 2]), (3,), False),
    "down": (aggregate(DOWN, 0), np.kron(DOWN, np.eye(3)), (2, 3), False),
    "across": (aggregate(ACROSS, -1), np.kron(np.eye(4), ACROSS), (4, 3), True),
    "all to five": (aggregate(np.cos(np.arange(60.0)).reshape(5, 12)), None, (5,), False),
}


def rows_of(name):
    layer, given, _, _ = CASES[name]
    if name in ("linear", "cubic", "nearest"):
        with jax.enable_x64(True):
            return resized(*given)
    if isinstance(given, tuple):
        return chosen(*given)
    return np.array(layer.matrix) if given is None else given


def holes(n):
    """Masks in which some positions are missing, of the last input none."""
    mask = np.random.default_rng(1).random((n, *SHAPE[:-1])) > 0.3
    mask[-1] = True
    return mask


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("whole", [False, True])
def test_kernels_by_matrices(name, whole):
    layer, _, space, keeps = CASES[name]
    mask = np.ones((3, *SHAPE[:-1]), bool) if whole else holes(3)
    x = peer.inputs(SHAPE, 3)
    net = network(
        dense(4), "erf", layer, dense(4), "erf", global_pool(), dense(1), shape=SHAPE, **OPTIONS
    )
    lines = ("lines", rows_of(name), space, keeps)
    steps = [("dense",), ("erf",), lines, ("dense",), ("erf",), ("mean",), ("dense",)]
    kernels = gram(net.limit(), x) if whole else gram(net.limit(), x, mask=mask)
    for i, j in ((0, 0), (0, 1), (1, 2)):
        k, theta = masked.kernels(steps, x[i], x[j], (mask[i], mask[j]), 1.4, 0.1)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-9)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=1e-9)
    assert kernels.error < 1e-8


@pytest.mark.parametrize("name", CASES)
def test_finite_layers_are_these_matrices(name):
    layer, _, space, _ = CASES[name]
    net = network(layer, shape=SHAPE)
    x = peer.inputs(SHAPE)
    expected = rows_of(name) @ x.reshape(2, 12, 2)
    given = net.apply(net.init(jax.random.key(0)), x)
    np.testing.assert_allclose(given, expected.reshape(2, *space, 2), atol=1e-5)


def test_kernels_are_those_of_the_peer():
    shape = (6, 5, 2)
    end = (conv(4), "erf", global_pool(), dense(1))
    for name, *layers in (
        ("resize, linear", conv(4), "erf", resize((4, 7)), *end[2:]),
        ("resize, nearest", conv(4), "erf", resize((9, 3), "nearest"), *end[2:]),
        ("select", select(slice(1, 5, 2), slice(None, None, -1)), *end),
        ("select a row", select(2), conv(4), "erf", flatten(), dense(1)),
        ("aggregate", aggregate(peer.COLUMNS, 1), dense(4), *end[1:]),
    ):
        options = {"shape": shape, "parameterized": "ntk", "c_w": peer.C_W, "bias": False}
        net = network(conv(4), "erf", *layers, **options)
        peer.agree(name, gram(net.limit(), peer.inputs(shape)))


def test_the_first_token():
    """A kernel of one position depends on this position only, and an input without it has none."""
    layers = (dense(4), "relu", select(0), dense(1))
    limit = network(*layers, shape=(5, 2), **OPTIONS).limit()
    alone = network(dense(4), "relu", dense(1), shape=(2,), **OPTIONS).limit()
    x = peer.inputs((5, 2), 3)
    kernels = gram(limit, x)
    np.testing.assert_allclose(kernels.ntk, gram(alone, x[:, 0]).ntk, rtol=1e-9)
    np.testing.assert_array_equal(gram_diagonal(limit, x).ntk, np.diag(kernels.ntk))
    with pytest.raises(UserError, match="input 1"):
        gram(limit, x, mask=np.arange(5) >= np.array([[0], [1], [0]]))


def test_finite_networks_have_these_kernels_in_the_mean():
    layers = (conv(64, 3), "relu", resize((2, 4)), dense(64), "relu", select(0), global_pool())
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


def test_whole_numbers_are_mixed_as_these_numbers():
    """Whole numbers of the inputs do not make whole numbers of the weights of positions."""
    net = network(aggregate(DOWN, axis=0), resize((2, 2)), shape=SHAPE)
    params = net.init(jax.random.key(0))
    x = np.random.default_rng(4).integers(0, 9, (2, *SHAPE))
    by_hand = np.einsum("pa,qb,nabc->npqc", DOWN, resized_across(), x)
    np.testing.assert_allclose(net.apply(params, x), by_hand)


@pytest.mark.parametrize(
    "make",
    [
        lambda: resize(4, "quadratic"),
        lambda: network(resize((4, 4, 4)), shape=SHAPE),
        lambda: select(),
        lambda: network(select(0, 1, 2), shape=SHAPE),
        lambda: network(select(4), shape=SHAPE),
        lambda: network(select(slice(3, 1)), shape=SHAPE),
        lambda: select(slice(0, 2.5)),
        lambda: select(slice(None, None, 0)),
        lambda: network(aggregate(DOWN, 1), shape=SHAPE),
        lambda: network(aggregate(DOWN, 2), shape=SHAPE),
        lambda: network(resize(3), shape=(4,)),
    ],
)
def test_wrong_sizes_and_names_are_refused(make):
    with pytest.raises(UserError):
        make()
