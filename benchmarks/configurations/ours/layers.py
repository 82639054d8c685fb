"""Our linear layers, pools, branches, normalization and attention."""

from typing import Any

import jax
import numpy as np

from benchmarks.configurations import inputs as given
from benchmarks.configurations.ours.networks import flattened, kernels, limit_of, pooled, positions
from steepest.kernels import gram, gram_over_heads
from steepest.nn import layers

nn: Any = layers  # names that are not built yet are looked for when a configuration runs
conv, dense, identity, serial = nn.conv, nn.dense, nn.identity, nn.serial
X = given.VECTORS
IMAGES = given.IMAGES
LINES = given.LINES


def between(*layers, x=IMAGES, **options):
    """Put layers between two of weights and ReLU, before the mean over positions."""
    return pooled(dense(1), "relu", *layers, dense(1), "relu", x=x, **options)


def attending(*embeddings, x=LINES, c_w=1.0, **options):
    """Put attention between matrices and ReLU."""
    layer = nn.attention(1, heads=1, key=1, c_w=c_w, **options)
    return pooled(dense(1), "relu", *embeddings, layer, "relu", x=x)


def over_heads(x=LINES):
    """Return an estimate: softmax over the root of d has no closed form."""
    layer = nn.attention(1, heads=1, key=1, scale="1/sqrt(d)", tied=False)
    limit = limit_of(dense(1), "relu", layer, "relu", nn.global_pool(), dense(1), x=x)
    k = gram_over_heads(limit, x, jax.random.key(0), heads=64, count=4)
    return {"nngp": k.nngp, "ntk": k.ntk}


def with_output_biases():
    """Add biases behind attention, by a matrix without weights."""
    heads = nn.attention(1, heads=1, key=1, c_w=1.0, c_b=0.0)
    biased = nn.add(heads, dense(1, c_w=0.0, c_b=0.25))
    return pooled(dense(1), "relu", biased, "relu", x=LINES)


def standard():
    """Return the kernels of a network of width 32 in the standard parameterization, with biases."""
    layers = [dense(32, c_w=2.25, c_b=0.25), "relu", dense(1, c_w=1.44, c_b=0.09)]
    return kernels(*layers, x=X, parameterized="standard")


def fading(distance):
    return np.e ** (-0.5 * distance**2)


def embedding(c=1.0, **options):
    return nn.positional_embedding(c, **options)


def branches(*layers, x=IMAGES):
    return pooled(conv(1), *layers, x=x)


def residual(c_w=2.0):
    return serial("relu", conv(1, c_w=c_w))


def step(c_w):
    return [dense(1, c_w=c_w, c_b=0.01), "relu"]


def over_rows(matrix, columns=4):
    """Return the matrix over all positions of one over rows."""
    return np.kron(np.atleast_2d(matrix), np.eye(columns))


def with_graphs(graphs):
    """Give another graph beside each input."""
    limit = limit_of(
        dense(1), "relu", nn.aggregate(), dense(1), "relu", nn.global_pool(), dense(1), x=LINES
    )
    k = gram(limit, LINES, graphs=graphs)
    return {"nngp": k.nngp, "ntk": k.ntk}


def edges(matrices):
    """List the edges of graphs, pairs of output and position, −1 where a graph has fewer."""
    lists = [np.argwhere(matrix) for matrix in matrices]
    most = max(map(len, lists))
    return np.stack([np.pad(e, [(0, most - len(e)), (0, 0)], constant_values=-1) for e in lists])


DENSE = {
    "dense/ntk parameterization": lambda: kernels(
        dense(1, c_w=2.25), "relu", dense(1, c_w=1.44), x=X
    ),
    "dense/biases": lambda: kernels(
        dense(1, c_w=2.25, c_b=0.25), "relu", dense(1, c_w=1.44, c_b=0.09), x=X
    ),
    "dense/standard parameterization": lambda: kernels(
        dense(32, c_w=2.25), "relu", dense(1, c_w=1.44), x=X, parameterized="standard", bias=False
    ),
    "dense/standard parameterization, biases": lambda: standard(),
    "dense/standard parameterization, widths by s": lambda: standard(),
    "dense/two sets of inputs": lambda: kernels(
        dense(1, c_w=2.25), "relu", dense(1), x=X, other=given.OTHERS
    ),
    "dense/twenty layers by repeat": lambda: kernels(*20 * step(1.96), dense(1), x=X),
    "dense/identity": lambda: kernels(dense(1), identity, "relu", identity, dense(1), x=X),
    "dense/at each position": lambda: pooled(dense(1, c_w=2.25), "relu", dense(1), "erf", x=IMAGES),
    "dense/batch not first": lambda: kernels(dense(1, c_w=2.25), "relu", dense(1), x=X),
}
CONVOLUTIONS = {
    "convolution/no padding": lambda: pooled(
        conv(1, padding="none"), "relu", conv(1, 2), "relu", x=IMAGES
    ),
    "convolution/zero padding": lambda: pooled(conv(1), "relu", conv(1), "relu", x=IMAGES),
    "convolution/circular padding": lambda: pooled(
        conv(1, padding="circular"), "relu", conv(1, padding="circular"), "relu", x=IMAGES
    ),
    "convolution/stride, zero padding": lambda: pooled(
        conv(1, stride=2), "relu", conv(1), "relu", x=IMAGES
    ),
    "convolution/stride, no padding": lambda: pooled(
        conv(1, 2, stride=2, padding="none"), "relu", conv(1), "relu", x=IMAGES
    ),
    "convolution/stride, circular padding": lambda: pooled(
        conv(1, stride=2, padding="circular"), "relu", conv(1), "relu", x=IMAGES
    ),
    "convolution/several strides": lambda: pooled(
        conv(1, stride=(1, 2)), "relu", conv(1), "relu", x=IMAGES
    ),
    "convolution/one dimension": lambda: pooled(conv(1), "relu", conv(1), "relu", x=LINES),
    "convolution/three dimensions": lambda: pooled(conv(1, 2), "relu", x=given.CUBES),
    "convolution/oblong filter": lambda: pooled(
        conv(1, (1, 3)), "relu", conv(1, (3, 2)), "relu", x=IMAGES
    ),
    "convolution/even filter, zero padding": lambda: pooled(
        conv(1, 2), "relu", conv(1, 2), "relu", x=IMAGES
    ),
    "convolution/even filter, circular padding": lambda: pooled(
        conv(1, 2, padding="circular"), "relu", conv(1, 2), "relu", x=IMAGES
    ),
    "convolution/biases": lambda: pooled(
        conv(1, c_w=2.25, c_b=0.16), "relu", conv(1, c_b=0.04), "relu", x=IMAGES
    ),
    "convolution/standard parameterization": lambda: standard_convolutions(),
    "convolution/channels first": lambda: pooled(conv(1), "relu", x=IMAGES),
    "convolution/flattened": lambda: flattened(conv(1), "relu", conv(1), "relu", x=IMAGES),
    "convolution/two sets of inputs": lambda: pooled(
        conv(1), "relu", conv(1), "relu", x=IMAGES, other=given.OTHER_IMAGES
    ),
    "convolution/all positions of the output": lambda: positions(
        conv(1), "relu", conv(1), x=IMAGES
    ),
    "convolution/only equal positions": lambda: equal_positions(conv(1), "relu", conv(1), x=IMAGES),
}


def equal_positions(*layers, x):
    """Return kernels at equal positions, which need all of them here."""
    pairs = positions(*layers, x=x)
    return {name: np.einsum("nmhwhw->nmhw", kernel) for name, kernel in pairs.items()}


def standard_convolutions():
    """Return kernels of which only the last layer is in the parameterization of stax."""
    weights = {"c_w": 2.25, "c_b": 0.16}
    limit = nn.network(
        conv(16, **weights),
        "relu",
        conv(8, **weights),
        "relu",
        nn.global_pool(),
        shape=IMAGES.shape[1:],
        parameterized="standard",
    ).limit()
    k = gram(limit, IMAGES)
    # the last matrix of that configuration: NTK parameterization, C_W = 1, no biases
    return {"nngp": k.nngp, "ntk": k.nngp + k.ntk}


def after_transposed(*options, x=IMAGES, **named):
    return pooled(conv(1, *options, transposed=True, **named), "relu", conv(1), "relu", x=x)


TRANSPOSED = {
    "transposed/no padding": lambda: after_transposed(padding="none"),
    "transposed/zero padding": lambda: after_transposed(),
    "transposed/stride, no padding": lambda: after_transposed(stride=2, padding="none"),
    "transposed/stride, zero padding": lambda: after_transposed(stride=2),
    "transposed/circular padding": lambda: after_transposed(padding="circular", x=LINES),
    "transposed/stride, circular padding": lambda: after_transposed(
        stride=2, padding="circular", x=LINES
    ),
}


def after_local(**options):
    return pooled(conv(1, shared=False, **options), "relu", conv(1), "relu", x=IMAGES)


LOCAL = {
    "local/no padding": lambda: after_local(padding="none"),
    "local/zero padding": lambda: pooled(conv(1), "relu", conv(1, shared=False), "relu", x=IMAGES),
    "local/stride": lambda: after_local(stride=2),
    "local/biases": lambda: after_local(c_b=0.25),
    "local/circular padding": lambda: after_local(padding="circular"),
}
POOLS = {
    "pool/mean": lambda: between(nn.pool(2)),
    "pool/mean, windows that overlap": lambda: between(nn.pool((2, 3), 1)),
    "pool/mean, zero padding": lambda: between(nn.pool(3, 2, padding="zero")),
    "pool/mean, zero padding, edges left out": lambda: between(
        nn.pool(3, 1, padding="zero", count_edges=False)
    ),
    "pool/mean, circular padding": lambda: between(nn.pool(3, 1, padding="circular")),
    "pool/mean, one dimension": lambda: between(nn.pool(2), x=LINES),
    "pool/sum": lambda: between(nn.sum_pool(2, 2)),
    "pool/sum, zero padding": lambda: between(nn.sum_pool(3, 1, padding="zero")),
    "pool/sum, circular padding": lambda: between(nn.sum_pool(3, 2, padding="circular")),
    "pool/global mean": lambda: pooled(conv(1), "relu", x=IMAGES),
    "pool/global sum": lambda: kernels(conv(1), "relu", nn.global_sum_pool(), dense(1), x=IMAGES),
    "pool/global mean of inputs": lambda: kernels(
        nn.global_pool(), dense(1), "relu", dense(1), x=IMAGES
    ),
    "pool/before flatten": lambda: flattened(conv(1), "relu", nn.pool(2), x=IMAGES),
    "pool/flatten the inputs": lambda: kernels(nn.flatten(), dense(1), "relu", dense(1), x=IMAGES),
}
BRANCHES = {
    "branches/residual sum": lambda: branches(nn.add(identity, residual())),
    "branches/sum of three": lambda: branches(nn.add(residual(1.0), residual(), identity)),
    "branches/sum, then an activation": lambda: branches(nn.add(conv(1), residual()), "relu"),
    "branches/sum of activations": lambda: branches(nn.add("relu", serial(conv(1), "erf"))),
    "branches/branches within branches": lambda: branches(
        nn.add(identity, serial(nn.add(residual(), residual(1.0)), residual()))
    ),
    "branches/product": lambda: branches(
        nn.multiply(serial(conv(1), "relu"), serial(conv(1), "erf"))
    ),
    "branches/channels side by side": lambda: branches(nn.concatenate(conv(1), residual())),
    "branches/channels of activations": lambda: branches(
        nn.concatenate(serial(conv(1), "relu"), serial(conv(1), "erf"))
    ),
    "branches/channels, then an activation": lambda: branches(
        nn.concatenate(conv(1, c_w=4.0), residual()), "relu"
    ),
    "branches/positions side by side": lambda: branches(
        nn.concatenate(conv(1), residual(), space=0)
    ),
    "branches/inputs side by side": lambda: kernels(
        nn.concatenate(dense(1), serial(dense(1, c_w=2.25), "relu", dense(1)), batch=True),
        dense(1),
        x=X,
    ),
}
NORMALIZATION = {
    "normalization/channels": lambda: pooled(
        conv(1), nn.layer_norm(), "relu", conv(1), "relu", x=IMAGES
    ),
    "normalization/channels, after an activation": lambda: pooled(
        conv(1), "relu", nn.layer_norm(), conv(1), "relu", x=IMAGES
    ),
    "normalization/channels and all positions": lambda: pooled(
        conv(1), nn.layer_norm(space="all"), "relu", conv(1), "relu", x=IMAGES
    ),
    "normalization/channels and rows": lambda: pooled(
        conv(1), nn.layer_norm(space=(0,)), "relu", conv(1), "relu", x=IMAGES
    ),
    "normalization/of a fully connected network": lambda: kernels(
        dense(1, c_w=4.0, c_b=0.25), nn.layer_norm(), "erf", dense(1), x=X
    ),
    "normalization/channels and the batch": lambda: kernels(
        dense(1, c_w=4.0), nn.batch_norm(), "relu", dense(1), x=X
    ),
    "dropout/fully connected": lambda: kernels(
        dense(1), "relu", nn.dropout(0.3), dense(1), "relu", dense(1), x=X
    ),
    "dropout/before a pool": lambda: pooled(
        conv(1), "relu", nn.dropout(0.3), conv(1), "relu", x=IMAGES
    ),
    "dropout/directly before the mean": lambda: pooled(conv(1), "relu", nn.dropout(0.3), x=IMAGES),
    "dropout/two sets of inputs": lambda: kernels(
        dense(1), "relu", nn.dropout(0.3), dense(1), x=X, other=given.OTHERS
    ),
    "dropout/in evaluation": lambda: kernels(dense(1), "relu", dense(1), x=X),
}
MIXING = {
    "graph/one graph": lambda: between(nn.aggregate(given.GRAPH), x=LINES),
    "graph/one graph over one of two dimensions": lambda: between(
        nn.aggregate(given.ROWS_GRAPH, axis=0)
    ),
    "graph/another graph for each input": lambda: with_graphs(given.GRAPHS),
    "graph/lists of edges": lambda: with_graphs(nn.adjacency(edges(given.GRAPHS), 6)),
    "graph/one sparse graph": lambda: between(nn.aggregate(given.GRAPH), x=LINES),
    "resize/linear, larger": lambda: between(nn.resize((6, 6))),
    "resize/linear, smaller": lambda: between(nn.resize((2, 3))),
    "resize/nearest": lambda: between(nn.resize((6, 2), method="nearest")),
    "resize/cubic": lambda: between(nn.resize((6, 6), method="cubic")),
    "select/slices": lambda: between(nn.select(slice(1, 4), slice(None, None, 2))),
    "select/one row": lambda: between(nn.select(1)),
    "select/inputs": lambda: between(x=IMAGES[::2]),
    "matrix/over one dimension": lambda: positions(
        conv(1), "relu", nn.aggregate(over_rows(given.ROWS_GRAPH)), x=IMAGES
    ),
    "matrix/one output position": lambda: between(nn.aggregate(over_rows([1.0, -1.0, 2.0, 0.5]))),
    "matrix/a number": lambda: between(nn.aggregate(2 * np.eye(16))),
}
ATTENTION = {
    "attention/softmax over d": lambda: attending(),
    "attention/softmax over d, other scales": lambda: attending(c_w=2.25),
    "attention/identity over d": lambda: attending(weights="identity"),
    "attention/absolute value over d": lambda: attending(weights="abs"),
    "attention/relu over d": lambda: attending(weights="relu"),
    "attention/identity over the root of d": lambda: attending(
        scale="1/sqrt(d)", tied=False, weights="identity"
    ),
    "attention/softmax over the root of d": lambda: over_heads(),
    "attention/output biases": lambda: with_output_biases(),
    "attention/of images": lambda: attending(x=IMAGES),
    "attention/embeddings added": lambda: attending(embedding(0.49)),
    "attention/embeddings added, not to values": lambda: attending(through=embedding(0.49)),
    "attention/embeddings that decay": lambda: attending(embedding(decay=fading)),
    "attention/embeddings beside channels": lambda: attending(
        embedding(0.49, joined="channels", share=0.5)
    ),
    "attention/identity over the root of d, embeddings": lambda: attending(
        embedding(), scale="1/sqrt(d)", tied=False, weights="identity"
    ),
}
CONFIGURATIONS = {
    **DENSE,
    **CONVOLUTIONS,
    **TRANSPOSED,
    **LOCAL,
    **POOLS,
    **BRANCHES,
    **NORMALIZATION,
    **MIXING,
    **ATTENTION,
}
