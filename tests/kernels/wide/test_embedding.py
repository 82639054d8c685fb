"""Embeddings of positions: kernels by matrices, kernels of a peer, and finite networks that share them among inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import empirical_ntk, gram, sampled_gram
from steepest.kernels.wide import Positions
from steepest.kernels.wide._evaluate import by_all_pairs
from steepest.nn.layers import (
    attention,
    conv,
    dense,
    flatten,
    global_pool,
    network,
    positional_embedding,
)
from tests.kernels.wide import peer
from tests.kernels.wide.brute import DUALS

SHAPE = (4, 3, 2)
OPTIONS = {"parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
CHANNELS = {"joined": "channels", "share": 0.25}
LAYERS = {
    "plain": positional_embedding(0.7),
    "decay": positional_embedding(0.7, lambda d: np.exp(-d / 2)),
    "channels": positional_embedding(0.7, lambda d: np.exp(-d / 2), **CHANNELS),
}


def covariance(decays):
    """R between all positions, one pair after the other."""
    at = list(np.ndindex(*SHAPE[:-1]))
    distance = lambda p, q: np.hypot(p[0] - q[0], p[1] - q[1])
    return np.array([[np.exp(-distance(p, q) / 2) if decays else p == q for q in at] for p in at])


def expected(name, x, y, mask, other_mask):
    """Both kernels of dense, embedding, erf, mean, dense for two inputs, by matrices over their positions."""
    flat = [x.reshape(12, 2), y.reshape(12, 2)]
    masks = [mask.ravel(), other_mask.ravel()]
    r = covariance(name != "plain")
    pairs = {}
    for i, j in ((0, 0), (0, 1), (1, 1)):
        products = flat[i] @ flat[j].T / 2
        branches = [(0.1 + 1.4 * products, 1 + 1.4 * products), (0.7 * r, 0.7 * r)]
        pairs[i, j] = branches
    shares = [1.0, 1.0]
    if name == "channels":
        shares = [0.75, 0.25]
    else:
        pairs = {ij: [tuple(map(sum, zip(*both, strict=True)))] for ij, both in pairs.items()}
    total = np.zeros(2)
    where = np.outer(*masks)
    for branch in range(len(pairs[0, 1])):
        k, theta = pairs[0, 1][branch]
        first = np.diag(pairs[0, 0][branch][0])
        second = np.diag(pairs[1, 1][branch][0])
        for p, q in np.argwhere(where):
            value, slope = DUALS["erf"](first[p], second[q], k[p, q])
            total += shares[branch] * np.array([value, slope * theta[p, q]]) / where.sum()
    return 0.1 + 1.4 * total[0], 1 + 1.4 * total.sum()


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("whole", [False, True])
def test_kernels_by_matrices(name, whole):
    x = peer.inputs(SHAPE, 2)
    mask = np.ones((2, *SHAPE[:-1]), bool)
    if not whole:
        mask = np.random.default_rng(1).random(mask.shape) > 0.3
    net = network(dense(4), LAYERS[name], "erf", global_pool(), dense(1), shape=SHAPE, **OPTIONS)
    kernels = gram(net.limit(), x) if whole else gram(net.limit(), x, mask=mask)
    for i, j in ((0, 0), (0, 1)):
        k, theta = expected(name, x[i], x[j], mask[i], mask[j])
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-10)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=1e-10)


def test_displacements_and_all_pairs_of_positions_agree():
    """Where positions are filled up to a multiple of the stride, too."""
    layers = (conv(4, 2, stride=3), LAYERS["decay"], "erf", conv(4, stride=2), "erf", flatten())
    limit = network(*layers, dense(1), shape=(7, 4, 2), **OPTIONS).limit()
    x = peer.inputs((7, 4, 2), 2)
    kernels = gram(limit, x)
    way = Positions.of(limit, x, None, None)
    assert way.plan.apart
    assert way.plan.sizes[1] != limit.spaces[1]
    rows = way.rows(x)
    block = slice(0, 2)
    with jax.enable_x64(True):
        one, two = way.firsts(rows, block), way.seconds(rows, block)
        full = by_all_pairs(way.plan, way.duals, len(limit.nodes) - 1, one, two)
    np.testing.assert_allclose(full.theta[0, 1], kernels.ntk[0, 1], rtol=1e-12)
    np.testing.assert_allclose(full.k[0, 1], kernels.nngp[0, 1], rtol=1e-12)


def test_kernels_are_those_of_the_peer():
    shape = (6, 2)
    squared = positional_embedding(0.36, lambda d: np.exp(-0.3 * d**2))
    for name, layer in (
        ("embedding", positional_embedding(0.36)),
        ("embedding, decay", squared),
    ):
        layers = (conv(4), layer, attention(4, heads=2, key=2), "erf", global_pool(), dense(1))
        options = {"shape": shape, "parameterized": "ntk", "c_w": peer.C_W, "bias": False}
        peer.agree(name, gram(network(*layers, **options).limit(), peer.inputs(shape)))


@pytest.mark.parametrize("name", LAYERS)
def test_finite_networks_have_these_kernels_in_the_mean(name):
    layers = (conv(60), LAYERS[name], "erf", conv(60), "erf", global_pool(), dense(4))
    net = network(*layers, shape=SHAPE, **OPTIONS)
    x = peer.inputs(SHAPE)
    drawn = sampled_gram(net, x, jax.random.key(0), count=60)
    limit = gram(net.limit(), x)
    for mean, deviation, exact in (
        (drawn.nngp, drawn.nngp_error, limit.nngp),
        (drawn.ntk, drawn.ntk_error, limit.ntk),
    ):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.03 * size).all(), (mean, exact)


def test_the_tangent_kernel_of_a_finite_network_counts_the_embeddings():
    net = network(
        dense(8), LAYERS["channels"], "erf", global_pool(), dense(1), shape=SHAPE, **OPTIONS
    )
    params = net.init(jax.random.key(0))
    x = jnp.asarray(peer.inputs(SHAPE), jnp.float32)
    by_layers = empirical_ntk(net, params, x)
    by_jacobian = empirical_ntk(net.apply, params, x)
    np.testing.assert_allclose(by_layers, by_jacobian, rtol=1e-4)


def test_embeddings_of_all_inputs_are_the_same_and_have_this_covariance():
    net = network(LAYERS["decay"], shape=(*SHAPE[:-1], 20000))
    params = net.init(jax.random.key(0))
    e = np.asarray(net.apply(params, jnp.zeros((2, *net.shape)))).reshape(2, 12, -1)
    np.testing.assert_array_equal(e[0], e[1])
    np.testing.assert_allclose(e[0] @ e[0].T / 20000, 0.7 * covariance(decays=True), atol=0.04)


def test_what_is_refused():
    with pytest.raises(UserError):
        network(LAYERS["plain"], global_pool(), dense(1), shape=SHAPE).limit()
    with pytest.raises(UserError):
        network(LAYERS["plain"], shape=(3,))
    with pytest.raises(UserError):
        network(positional_embedding(1.0, lambda d: d - 1), shape=SHAPE)
    with pytest.raises(UserError):
        network(positional_embedding(1.0, lambda d: 1.0), shape=SHAPE)
    for c in (-1.0, np.nan, np.inf):
        with pytest.raises(UserError):
            positional_embedding(c)
    with pytest.raises(UserError):
        positional_embedding(joined="product")
    with pytest.raises(UserError):
        positional_embedding(joined="channels", share=1.0)
