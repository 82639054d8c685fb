"""Graphs that differ from input to input: the recursion in NumPy, one matrix for all, finite networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import (
    empirical_ntk,
    empirical_ntk_diagonal,
    gram,
    gram_diagonal,
    gram_layers,
    gram_over_heads,
    gram_positions,
    kernel_function,
    sampled_gram,
    tiled_gram,
)
from steepest.nn.layers import (
    add,
    adjacency,
    aggregate,
    attention,
    conv,
    dense,
    global_pool,
    network,
    pool,
    serial,
)
from steepest.nn.networks import mlp
from tests.kernels.wide import masked, peer

SHAPE = (3, 2, 2)
OPTIONS = {"shape": SHAPE, "parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
ENDS = (dense(4), "erf", global_pool(), dense(1))
TWICE = (dense(4), "relu", aggregate(), dense(4), "erf", aggregate(), *ENDS)
X = peer.inputs(SHAPE, 5)


def drawn(n, seed=0):
    """Weights of both signs between six positions, of which the first input's last reads none."""
    graphs = np.random.default_rng(seed).normal(size=(n, 6, 6)) / 4
    graphs[0, -1] = 0
    return graphs


def holes(n):
    """Masks in which some positions are missing, of the last input none."""
    mask = np.random.default_rng(1).random((n, *SHAPE[:-1])) > 0.3
    mask[-1] = True
    return mask


GRAPHS = drawn(5)
SOME = holes(5)
LIMIT = network(*TWICE, **OPTIONS).limit()
ONCE = (dense(4), "erf", aggregate(), *ENDS)


def by_recursion(i, j, mask):
    mixed = ("graphs", (GRAPHS[i], GRAPHS[j]))
    steps = [("dense",), ("relu",), mixed, ("dense",), ("erf",), mixed]
    ends = [("dense",), ("erf",), ("mean",), ("dense",)]
    return masked.kernels([*steps, *ends], X[i], X[j], (mask[i], mask[j]), 1.4, 0.1)


@pytest.mark.parametrize("whole", [False, True])
def test_kernels_by_the_recursion_over_all_pairs(whole):
    mask = np.ones_like(SOME) if whole else SOME
    kernels = gram(LIMIT, X, graphs=GRAPHS, mask=None if whole else mask)
    for i, j in ((0, 0), (0, 1), (1, 2), (3, 4)):
        k, theta = by_recursion(i, j, mask)
        np.testing.assert_allclose(kernels.nngp[i, j], k, rtol=1e-9)
        np.testing.assert_allclose(kernels.ntk[i, j], theta, rtol=1e-9)
    assert 0 < kernels.error < 1e-5


def test_two_sets_of_inputs_have_graphs_of_their_own():
    masks = {"mask": SOME[:3], "other_mask": SOME[3:]}
    beside = {"graphs": GRAPHS[:3], "other_graphs": GRAPHS[3:], **masks}
    apart = gram(LIMIT, X[:3], X[3:], **beside)
    together = gram(LIMIT, X, graphs=GRAPHS, mask=SOME)
    np.testing.assert_allclose(apart.nngp, together.nngp[:3, 3:], rtol=1e-10)
    np.testing.assert_allclose(apart.ntk, together.ntk[:3, 3:], rtol=1e-10)


def test_a_mask_of_the_second_set_alone():
    beside = {"graphs": GRAPHS[:3], "other_graphs": GRAPHS[3:], "other_mask": SOME[3:]}
    mask = np.concatenate([np.ones_like(SOME[:3]), SOME[3:]])
    together = gram(LIMIT, X, graphs=GRAPHS, mask=mask)
    np.testing.assert_allclose(
        gram(LIMIT, X[:3], X[3:], **beside).ntk, together.ntk[:3, 3:], rtol=1e-10
    )


def test_weights_at_positions_that_do_not_exist_are_not_read():
    other = np.where(SOME.reshape(5, 1, 6), GRAPHS, 1e3)
    read = gram(LIMIT, X, graphs=GRAPHS, mask=SOME)
    np.testing.assert_allclose(gram(LIMIT, X, graphs=other, mask=SOME).ntk, read.ntk, rtol=1e-12)


def test_one_graph_for_all_inputs_is_a_matrix():
    layers = lambda mixing: (conv(4), "relu", mixing, dense(4), "erf")
    given = network(*layers(aggregate()), **OPTIONS).limit()
    fixed = network(*layers(aggregate(GRAPHS[1])), **OPTIONS).limit()
    ends = (global_pool(), dense(1))
    of_matrix = gram_positions(fixed, X, mask=SOME)
    by_layers = gram_layers(fixed, X, mask=SOME)
    end = gram(network(*layers(aggregate(GRAPHS[1])), *ends, **OPTIONS).limit(), X, mask=SOME)
    for graphs in (GRAPHS[1], np.repeat(GRAPHS[1:2], 5, 0)):
        beside = {"graphs": graphs, "mask": SOME}
        kernels = gram_positions(given, X, **beside)
        np.testing.assert_allclose(kernels.ntk, of_matrix.ntk, rtol=1e-10, atol=1e-12)
        for one, two in zip(gram_layers(given, X, **beside), by_layers, strict=True):
            np.testing.assert_allclose(one.nngp, two.nngp, rtol=1e-10, atol=1e-12)
        one = gram(network(*layers(aggregate()), *ends, **OPTIONS).limit(), X, **beside)
        np.testing.assert_allclose(one.ntk, end.ntk, rtol=1e-10)
        assert end.error <= one.error <= 2 * end.error  # weights and sums are rounded


def test_diagonals_are_those_of_gram():
    both = gram(LIMIT, X, graphs=GRAPHS, mask=SOME)
    diagonal = gram_diagonal(LIMIT, X, graphs=GRAPHS, mask=SOME)
    np.testing.assert_array_equal(diagonal.nngp, np.diag(both.nngp))
    np.testing.assert_array_equal(diagonal.ntk, np.diag(both.ntk))


def test_the_error_in_float32_is_a_bound():
    exact = gram(LIMIT, X, graphs=GRAPHS)
    rough = gram(LIMIT, X.astype(np.float32), graphs=GRAPHS)
    assert rough.nngp.dtype == np.float32
    for kernel, close in zip(rough[:2], exact[:2], strict=True):
        size = np.sqrt(np.outer(np.diag(close), np.diag(close)))
        assert (np.abs(kernel - close) <= rough.error * size).all()
    assert rough.error < 1e-2


def test_sums_that_cancel_stay_below_the_bound_in_float32():
    x = np.random.default_rng(0).normal(size=(6, 3, 2, 2)) + 20
    differences = GRAPHS - GRAPHS.mean(-1, keepdims=True)
    limit = network(dense(4), aggregate(), *ENDS, **OPTIONS).limit()
    exact = gram(limit, x, graphs=differences[1])
    rough = gram(limit, x.astype(np.float32), graphs=differences[1])
    for kernel, close in zip(rough[:2], exact[:2], strict=True):
        size = np.sqrt(np.outer(np.diag(close), np.diag(close)))
        assert (np.abs(kernel - close) <= rough.error * size).all()


def test_a_pair_is_an_entry_of_gram():
    limit = network(*ONCE, **OPTIONS).limit()
    kernels = gram(limit, X, graphs=GRAPHS, mask=SOME)
    kernel = kernel_function(limit, X, graphs=GRAPHS, mask=SOME)
    pairs = jax.vmap(
        lambda i, j: kernel(
            jnp.asarray(X)[i],
            jnp.asarray(X)[j],
            jnp.asarray(SOME)[i],
            jnp.asarray(SOME)[j],
            graphs=jnp.asarray(GRAPHS)[i],
            other_graphs=jnp.asarray(GRAPHS)[j],
        )
    )
    i, j = np.array([[0, 1, 2, 4], [1, 1, 3, 0]])
    given = pairs(i, j)
    np.testing.assert_allclose(given.nngp, kernels.nngp[i, j], rtol=1e-8)
    np.testing.assert_allclose(given.ntk, kernels.ntk[i, j], rtol=1e-8)


def test_derivatives_by_coefficients_and_by_graphs():
    def total(c_w, graphs):
        limit = network(*ONCE, **{**OPTIONS, "c_w": c_w}).limit()
        kernels = gram(limit, X[:2], graphs=graphs, mask=SOME[:2])
        return kernels.ntk[0, 1] + kernels.nngp[0, 1]

    by_c_w, by_graphs = jax.grad(total, (0, 1))(1.4, jnp.asarray(GRAPHS[:2]))
    step = 1e-5
    moved = np.zeros((2, 6, 6))
    moved[1] = np.random.default_rng(3).normal(size=(6, 6))
    for slope, up, down in (
        (by_c_w, (1.4 + step, GRAPHS[:2]), (1.4 - step, GRAPHS[:2])),
        (
            (by_graphs * moved).sum(),
            (1.4, GRAPHS[:2] + step * moved),
            (1.4, GRAPHS[:2] - step * moved),
        ),
    ):
        np.testing.assert_allclose(slope, (total(*up) - total(*down)) / (2 * step), rtol=1e-6)


def test_attention_over_drawn_heads_reads_graphs_too():
    heads = attention(4, heads=2, key=4, scale="1/sqrt(d)", tied=False)
    of = lambda mixing: network(dense(4), "erf", mixing, heads, *ENDS, **OPTIONS).limit()
    options = {"heads": 3, "count": 2, "mask": SOME[:3]}
    key = jax.random.key(0)
    one = gram_over_heads(of(aggregate()), X[:3], key, graphs=GRAPHS[1], **options)
    two = gram_over_heads(of(aggregate(GRAPHS[1])), X[:3], key, **options)
    np.testing.assert_allclose(one.ntk, two.ntk, rtol=1e-8)


def test_finite_layers_are_sums_by_these_graphs():
    net = network(add(aggregate(), serial(aggregate())), shape=SHAPE)
    params = net.init(jax.random.key(0))
    expected = 2 * np.einsum("npq,nqc->npc", GRAPHS, X.reshape(5, 6, 2)).reshape(X.shape)
    np.testing.assert_allclose(net.apply(params, X, graphs=GRAPHS), expected, atol=1e-5)
    whole = jnp.asarray(np.round(X), int)
    rounded = net.apply(params, whole, graphs=GRAPHS[1])
    np.testing.assert_allclose(
        rounded, 2 * (GRAPHS[1] @ np.round(X).reshape(5, 6, 2)).reshape(X.shape), atol=1e-5
    )
    one_by_one = jax.vmap(lambda x, graph: net.apply(params, x, graphs=graph))(X, GRAPHS)
    np.testing.assert_allclose(one_by_one, expected, atol=1e-5)


def test_finite_networks_have_these_kernels_in_the_mean():
    layers = (dense(64), "relu", aggregate(), dense(64), "relu", global_pool(), dense(4))
    net = network(*layers, **OPTIONS)
    beside = {"graphs": GRAPHS[:3], "mask": SOME[:3]}
    draws = sampled_gram(net, X[:3], jax.random.key(0), **beside, count=100)
    limit = gram(net.limit(), X[:3], **beside)
    for mean, deviation, exact in (
        (draws.nngp, draws.nngp_error, limit.nngp),
        (draws.ntk, draws.ntk_error, limit.ntk),
    ):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.03 * size).all(), (mean, exact)


@pytest.mark.parametrize("method", ["layerwise", "jacobian", "vectors"])
def test_tangent_kernels_of_one_network(method):
    net = network(dense(4), "erf", aggregate(), dense(3), global_pool(), dense(1), **OPTIONS)
    params = net.init(jax.random.key(0))
    gradients = [
        jax.flatten_util.ravel_pytree(
            jax.grad(lambda p, i=i: net.apply(p, X[i], graphs=GRAPHS[i]))(params)
        )[0]
        for i in range(5)
    ]
    rows = np.stack(gradients)
    beside = {"graphs": GRAPHS[:3], "other_graphs": GRAPHS[3:]}
    theta = empirical_ntk(net, params, X[:3], X[3:], **beside, method=method)
    np.testing.assert_allclose(theta, rows[:3] @ rows[3:].T, rtol=1e-5)
    diagonal = empirical_ntk_diagonal(net, params, X, graphs=GRAPHS)
    np.testing.assert_allclose(diagonal, (rows**2).sum(1), rtol=1e-5)


def test_lists_of_edges_are_these_matrices():
    edges = np.array([[[0, 1], [1, 0], [2, 2]], [[2, 0], [2, 0], [-1, -1]]])
    weights = np.array([[0.5, 2.0, -1.0], [3.0, 4.0, np.pi]])
    plain = np.zeros((2, 3, 3))
    weighted = np.zeros((2, 3, 3))
    for graph in range(2):
        for (p, q), weight in zip(edges[graph], weights[graph], strict=True):
            if p >= 0:
                plain[graph, p, q] += 1
                weighted[graph, p, q] += weight
    np.testing.assert_array_equal(adjacency(edges, 3), plain)
    np.testing.assert_array_equal(adjacency(edges, 3, weights), weighted)
    np.testing.assert_array_equal(adjacency(edges[1], 3, weights[1]), weighted[1])
    assert adjacency(np.zeros((2, 0, 2)), 3).shape == (2, 3, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: adjacency([[0, 3]], 3),
        lambda: adjacency([[0, -1]], 3),
        lambda: adjacency([[0.5, 1]], 3),
        lambda: adjacency([[np.nan, 1]], 3),
        lambda: adjacency([[0, 1, 2]], 3),
        lambda: adjacency([0, 1], 3),
        lambda: adjacency([[0, 1]], 3, [1.0, 2.0]),
        lambda: adjacency([[0, 1]], 3, [np.inf]),
        lambda: aggregate(axis=0),
        lambda: network(dense(4), aggregate(), pool(2), aggregate(), shape=(4, 4, 2)),
        lambda: network(aggregate(), shape=(4,)),
    ],
)
def test_wrong_graphs_are_refused(make):
    with pytest.raises(UserError):
        make()


NET = network(*TWICE, **OPTIONS)
PLAIN = network(*ENDS, **OPTIONS)
PARAMS = NET.init(jax.random.key(0))
NOT_A_NUMBER = np.where(np.arange(6) < 5, GRAPHS, np.nan)


def entry_of(graphs):
    """Return an entry of the tangent kernel as a function of C_W."""

    def entry(c_w):
        net = network(*TWICE, **{**OPTIONS, "c_w": c_w})
        return gram(net.limit(), X, graphs=graphs).ntk[0, 1]

    return entry


@pytest.mark.parametrize(
    "graphs", [None, GRAPHS[:4], GRAPHS[:, :5], GRAPHS[0, 0], NOT_A_NUMBER, "A"]
)
@pytest.mark.parametrize(
    "call",
    [
        lambda graphs: NET.apply(PARAMS, X, graphs=graphs),
        lambda graphs: gram(LIMIT, X, graphs=graphs),
        lambda graphs: gram(LIMIT, X, X, graphs=GRAPHS, other_graphs=graphs),
        lambda graphs: gram_diagonal(LIMIT, X, graphs=graphs),
        lambda graphs: gram_layers(LIMIT, X, graphs=graphs),
        lambda graphs: kernel_function(LIMIT, X, graphs=graphs),
        lambda graphs: sampled_gram(NET, X, jax.random.key(0), graphs=graphs, count=2),
        lambda graphs: jax.grad(entry_of(graphs))(1.0),
    ],
)
def test_missing_and_misshapen_graphs_are_refused(call, graphs):
    with pytest.raises(UserError):
        call(graphs)


@pytest.mark.parametrize(
    "call",
    [
        lambda: PLAIN.apply(PLAIN.init(jax.random.key(0)), X, graphs=GRAPHS),
        lambda: gram(PLAIN.limit(), X, graphs=GRAPHS),
        lambda: gram_diagonal(PLAIN.limit(), X, graphs=GRAPHS),
        lambda: kernel_function(PLAIN.limit(), X, graphs=GRAPHS),
        lambda: kernel_function(PLAIN.limit(), X)(X[0], X[1], graphs=GRAPHS[0]),
        lambda: kernel_function(LIMIT, X, graphs=GRAPHS)(X[0], X[1], graphs=GRAPHS[0]),
        lambda: sampled_gram(PLAIN, X, jax.random.key(0), graphs=GRAPHS, count=2),
        lambda: sampled_gram(mlp((12, 4, 1)), X.reshape(5, 12), jax.random.key(0), graphs=GRAPHS),
        lambda: gram(mlp((12, 4, 1)).limit(), X.reshape(5, 12), graphs=GRAPHS),
        lambda: gram(LIMIT, X, graphs=GRAPHS, other_graphs=GRAPHS),
        lambda: sampled_gram(NET, X, jax.random.key(0), graphs=GRAPHS, other_graphs=GRAPHS),
        lambda: tiled_gram(LIMIT, X, "never-made"),
    ],
)
def test_graphs_that_nobody_reads_are_refused(call):
    with pytest.raises(UserError):
        call()
