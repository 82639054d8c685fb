"""Linear layers of the peer, pools, branches, normalization and attention."""

import numpy as np
from neural_tangents import stax

from benchmarks.configurations import inputs as given
from benchmarks.configurations.theirs.networks import dense, flattened, kernels, pooled, positions

X = given.VECTORS
IMAGES = given.IMAGES
LINES = given.LINES
SQUARE = (3, 3)


def conv(filter_shape=SQUARE, **options):
    return stax.Conv(1, filter_shape, **{"padding": "SAME", **options})


def local(**options):
    return stax.ConvLocal(1, SQUARE, **options)


def transposed(filter_shape=SQUARE, **options):
    return stax.ConvTranspose(1, filter_shape, **options)


def between(layer, *, x=IMAGES, **options):
    """Put a layer between two of weights and ReLU, before the mean over positions."""
    return pooled(stax.Dense(1), stax.Relu(), layer, stax.Dense(1), stax.Relu(), x=x, **options)


def attention(*, x=LINES, **options):
    layer = stax.GlobalSelfAttention(1, 1, 1, 1, **options)
    return pooled(stax.Dense(1), stax.Relu(), layer, stax.Relu(), x=x)


def branches(*layers, join, behind=(), x=IMAGES):
    fan = stax.serial(stax.FanOut(len(layers)), stax.parallel(*layers), join)
    return pooled(conv(), fan, *behind, x=x)


def residual(weights=2):
    return stax.serial(stax.Relu(), conv(W_std=weights**0.5))


def readable(*options):
    return stax.serial(stax.Dense(1, *options), stax.Relu())


DENSE = {
    "dense/ntk parameterization": lambda: kernels(
        stax.Dense(1, 1.5), stax.Relu(), stax.Dense(1, 1.2), x=X
    ),
    "dense/biases": lambda: kernels(
        stax.Dense(1, 1.5, 0.5), stax.Relu(), stax.Dense(1, 1.2, 0.3), x=X
    ),
    "dense/standard parameterization": lambda: kernels(
        stax.Dense(32, 1.5, parameterization="standard"),
        stax.Relu(),
        stax.Dense(1, 1.2, parameterization="standard"),
        x=X,
    ),
    "dense/standard parameterization, biases": lambda: kernels(
        stax.Dense(32, 1.5, 0.5, parameterization="standard"),
        stax.Relu(),
        stax.Dense(1, 1.2, 0.3, parameterization="standard"),
        x=X,
    ),
    "dense/standard parameterization, widths by s": lambda: kernels(
        stax.Dense(32, 1.5, 0.5, parameterization="standard", s=(1, 4)),
        stax.Relu(),
        stax.Dense(1, 1.2, 0.3, parameterization="standard", s=(4, 1)),
        x=X,
    ),
    "dense/two sets of inputs": lambda: kernels(
        stax.Dense(1, 1.5), stax.Relu(), stax.Dense(1), x=X, other=given.OTHERS
    ),
    "dense/twenty layers by repeat": lambda: kernels(
        stax.repeat(stax.serial(stax.Dense(3, 1.4, 0.1), stax.Relu()), 20), stax.Dense(1), x=X
    ),
    "dense/identity": lambda: kernels(
        stax.Dense(1), stax.Identity(), stax.Relu(), stax.Identity(), stax.Dense(1), x=X
    ),
    "dense/at each position": lambda: pooled(
        stax.Dense(1, 1.5), stax.Relu(), stax.Dense(1), stax.Erf(), x=IMAGES
    ),
    "dense/batch not first": lambda: kernels(
        stax.Dense(1, 1.5, batch_axis=1, channel_axis=0),
        stax.Relu(),
        stax.Dense(1, batch_axis=1, channel_axis=0),
        x=X.T,
    ),
}
CONVOLUTIONS = {
    "convolution/no padding": lambda: pooled(
        conv(padding="VALID"), stax.Relu(), conv((2, 2)), stax.Relu(), x=IMAGES
    ),
    "convolution/zero padding": lambda: pooled(conv(), stax.Relu(), conv(), stax.Relu(), x=IMAGES),
    "convolution/circular padding": lambda: pooled(
        conv(padding="CIRCULAR"), stax.Relu(), conv(padding="CIRCULAR"), stax.Relu(), x=IMAGES
    ),
    "convolution/stride, zero padding": lambda: pooled(
        conv(strides=(2, 2)), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "convolution/stride, no padding": lambda: pooled(
        conv((2, 2), strides=(2, 2), padding="VALID"), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "convolution/stride, circular padding": lambda: pooled(
        conv(strides=(2, 2), padding="CIRCULAR"), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "convolution/several strides": lambda: pooled(
        conv(strides=(1, 2)), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "convolution/one dimension": lambda: pooled(
        conv((3,)), stax.Relu(), conv((3,)), stax.Relu(), x=LINES
    ),
    "convolution/three dimensions": lambda: pooled(conv((2, 2, 2)), stax.Relu(), x=given.CUBES),
    "convolution/oblong filter": lambda: pooled(
        conv((1, 3)), stax.Relu(), conv((3, 2)), stax.Relu(), x=IMAGES
    ),
    "convolution/even filter, zero padding": lambda: pooled(
        conv((2, 2)), stax.Relu(), conv((2, 2)), stax.Relu(), x=IMAGES
    ),
    "convolution/even filter, circular padding": lambda: pooled(
        conv((2, 2), padding="CIRCULAR"), stax.Relu(), conv((2, 2)), stax.Relu(), x=IMAGES
    ),
    "convolution/biases": lambda: pooled(
        conv(W_std=1.5, b_std=0.4), stax.Relu(), conv(b_std=0.2), stax.Relu(), x=IMAGES
    ),
    "convolution/standard parameterization": lambda: pooled(
        stax.Conv(16, SQUARE, padding="SAME", W_std=1.5, b_std=0.4, parameterization="standard"),
        stax.Relu(),
        stax.Conv(8, SQUARE, padding="SAME", W_std=1.5, b_std=0.4, parameterization="standard"),
        stax.Relu(),
        x=IMAGES,
    ),
    "convolution/channels first": lambda: kernels(
        stax.Conv(1, SQUARE, padding="SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")),
        stax.Relu(),
        stax.GlobalAvgPool(channel_axis=1),
        dense(),
        x=np.moveaxis(IMAGES, -1, 1),
    ),
    "convolution/flattened": lambda: flattened(conv(), stax.Relu(), conv(), stax.Relu(), x=IMAGES),
    "convolution/two sets of inputs": lambda: pooled(
        conv(), stax.Relu(), conv(), stax.Relu(), x=IMAGES, other=given.OTHER_IMAGES
    ),
    "convolution/all positions of the output": lambda: positions(
        conv(), stax.Relu(), conv(), x=IMAGES
    ),
    "convolution/only equal positions": lambda: kernels(
        conv(), stax.Relu(), conv(), x=IMAGES, diagonal_spatial=True
    ),
}
TRANSPOSED = {
    "transposed/no padding": lambda: pooled(
        transposed(), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "transposed/zero padding": lambda: pooled(
        transposed(padding="SAME"), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "transposed/stride, no padding": lambda: pooled(
        transposed(strides=(2, 2)), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "transposed/stride, zero padding": lambda: pooled(
        transposed(strides=(2, 2), padding="SAME"), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "transposed/circular padding": lambda: pooled(
        transposed((3,), padding="CIRCULAR"), stax.Relu(), conv((3,)), stax.Relu(), x=LINES
    ),
    "transposed/stride, circular padding": lambda: pooled(
        transposed((3,), strides=(2,), padding="CIRCULAR"),
        stax.Relu(),
        conv((3,)),
        stax.Relu(),
        x=LINES,
    ),
}
LOCAL = {
    "local/no padding": lambda: pooled(local(), stax.Relu(), conv(), stax.Relu(), x=IMAGES),
    "local/zero padding": lambda: pooled(
        conv(), stax.Relu(), local(padding="SAME"), stax.Relu(), x=IMAGES
    ),
    "local/stride": lambda: pooled(
        local(padding="SAME", strides=(2, 2)), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "local/biases": lambda: pooled(
        local(padding="SAME", b_std=0.5), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "local/circular padding": lambda: pooled(
        local(padding="CIRCULAR"), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
}
POOLS = {
    "pool/mean": lambda: between(stax.AvgPool((2, 2), (2, 2))),
    "pool/mean, windows that overlap": lambda: between(stax.AvgPool((2, 3), (1, 1))),
    "pool/mean, zero padding": lambda: between(stax.AvgPool((3, 3), (2, 2), "SAME")),
    "pool/mean, zero padding, edges left out": lambda: between(
        stax.AvgPool((3, 3), (1, 1), "SAME", normalize_edges=True)
    ),
    "pool/mean, circular padding": lambda: between(stax.AvgPool((3, 3), (1, 1), "CIRCULAR")),
    "pool/mean, one dimension": lambda: between(stax.AvgPool((2,), (2,)), x=LINES),
    "pool/sum": lambda: between(stax.SumPool((2, 2), (2, 2))),
    "pool/sum, zero padding": lambda: between(stax.SumPool((3, 3), (1, 1), "SAME")),
    "pool/sum, circular padding": lambda: between(stax.SumPool((3, 3), (2, 2), "CIRCULAR")),
    "pool/global mean": lambda: pooled(conv(), stax.Relu(), x=IMAGES),
    "pool/global sum": lambda: kernels(
        conv(), stax.Relu(), stax.GlobalSumPool(), dense(), x=IMAGES
    ),
    "pool/global mean of inputs": lambda: kernels(
        stax.GlobalAvgPool(), stax.Dense(1), stax.Relu(), dense(), x=IMAGES
    ),
    "pool/before flatten": lambda: flattened(
        conv(), stax.Relu(), stax.AvgPool((2, 2), (2, 2)), x=IMAGES
    ),
    "pool/flatten the inputs": lambda: kernels(
        stax.Flatten(), stax.Dense(1), stax.Relu(), dense(), x=IMAGES
    ),
}
BRANCHES = {
    "branches/residual sum": lambda: branches(stax.Identity(), residual(), join=stax.FanInSum()),
    "branches/sum of three": lambda: branches(
        residual(1), residual(2), stax.Identity(), join=stax.FanInSum()
    ),
    "branches/sum, then an activation": lambda: branches(
        conv(), residual(), join=stax.FanInSum(), behind=(stax.Relu(),)
    ),
    "branches/sum of activations": lambda: branches(
        stax.Relu(), stax.serial(conv(), stax.Erf()), join=stax.FanInSum()
    ),
    "branches/branches within branches": lambda: branches(
        stax.Identity(),
        stax.serial(
            stax.FanOut(2), stax.parallel(residual(), residual(1)), stax.FanInSum(), residual()
        ),
        join=stax.FanInSum(),
    ),
    "branches/product": lambda: branches(
        stax.serial(conv(), stax.Relu()), stax.serial(conv(), stax.Erf()), join=stax.FanInProd()
    ),
    "branches/channels side by side": lambda: branches(
        conv(), residual(), join=stax.FanInConcat(-1)
    ),
    "branches/channels of activations": lambda: branches(
        stax.serial(conv(), stax.Relu()), stax.serial(conv(), stax.Erf()), join=stax.FanInConcat(-1)
    ),
    "branches/channels, then an activation": lambda: branches(
        conv(W_std=2.0), residual(), join=stax.FanInConcat(-1), behind=(stax.Relu(),)
    ),
    "branches/positions side by side": lambda: branches(
        conv(), residual(), join=stax.FanInConcat(1)
    ),
    "branches/inputs side by side": lambda: kernels(
        stax.FanOut(2),
        stax.parallel(stax.Dense(1), stax.serial(readable(1.5), stax.Dense(1))),
        stax.FanInConcat(0),
        stax.Dense(1),
        x=X,
    ),
}
NORMALIZATION = {
    "normalization/channels": lambda: pooled(
        conv(), stax.LayerNorm(), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "normalization/channels, after an activation": lambda: pooled(
        conv(), stax.Relu(), stax.LayerNorm(), conv(), stax.Relu(), x=IMAGES
    ),
    "normalization/channels and all positions": lambda: pooled(
        conv(), stax.LayerNorm(axis=(1, 2, 3)), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "normalization/channels and rows": lambda: pooled(
        conv(), stax.LayerNorm(axis=(1, 3)), stax.Relu(), conv(), stax.Relu(), x=IMAGES
    ),
    "normalization/of a fully connected network": lambda: kernels(
        stax.Dense(1, 2.0, 0.5), stax.LayerNorm(), stax.Erf(), dense(), x=X
    ),
    "normalization/channels and the batch": lambda: kernels(
        stax.Dense(1, 2.0), stax.LayerNorm(axis=(0, 1)), stax.Relu(), dense(), x=X
    ),
    "dropout/fully connected": lambda: kernels(
        stax.Dense(1), stax.Relu(), stax.Dropout(0.7), stax.Dense(1), stax.Relu(), dense(), x=X
    ),
    "dropout/before a pool": lambda: pooled(
        conv(), stax.Relu(), stax.Dropout(0.7), conv(), stax.Relu(), x=IMAGES
    ),
    "dropout/directly before the mean": lambda: pooled(
        conv(), stax.Relu(), stax.Dropout(0.7), x=IMAGES
    ),
    "dropout/two sets of inputs": lambda: kernels(
        stax.Dense(1), stax.Relu(), stax.Dropout(0.7), dense(), x=X, other=given.OTHERS
    ),
    "dropout/in evaluation": lambda: kernels(
        stax.Dense(1), stax.Relu(), stax.Dropout(0.7, mode="test"), dense(), x=X
    ),
}


def aggregated(pattern, *, x=LINES, axis=1, **options):
    layer = stax.Aggregate(aggregate_axis=axis, **options)
    layers = (stax.Dense(1), stax.Relu(), layer, stax.Dense(1), stax.Relu())
    return pooled(*layers, x=x, pattern=(pattern, pattern))


def edges(graph):
    """List the edges of graphs ``(batch, p, q)``, −1 where one has fewer."""
    lists = [np.argwhere(one.T) for one in graph]  # their pattern has the tail first
    most = max(map(len, lists))
    return np.stack([np.pad(e, [(0, most - len(e)), (0, 0)], constant_values=-1) for e in lists])


def alike(graph, n=3):
    return np.repeat(graph.T[None], n, 0)  # theirs: weight of the tail p in the head q


MIXING = {
    "graph/one graph": lambda: aggregated(alike(given.GRAPH)),
    "graph/one graph over one of two dimensions": lambda: aggregated(
        alike(given.ROWS_GRAPH), x=IMAGES, axis=1
    ),
    "graph/another graph for each input": lambda: aggregated(np.swapaxes(given.GRAPHS, 1, 2)),
    "graph/lists of edges": lambda: aggregated(edges(given.GRAPHS), implementation="SPARSE"),
    "graph/one sparse graph": lambda: aggregated(
        edges(np.repeat(given.GRAPH[None], 3, 0)), implementation="SPARSE"
    ),
    "resize/linear, larger": lambda: between(stax.ImageResize((-1, 6, 6, -1), "linear")),
    "resize/linear, smaller": lambda: between(stax.ImageResize((-1, 2, 3, -1), "linear")),
    "resize/nearest": lambda: between(stax.ImageResize((-1, 6, 2, -1), "nearest")),
    "resize/cubic": lambda: between(stax.ImageResize((-1, 6, 6, -1), "cubic")),
    "select/slices": lambda: between(stax.Index(stax.Slice[:, 1:4, ::2])),
    "select/one row": lambda: between(stax.Index(stax.Slice[:, 1])),
    "select/inputs": lambda: between(stax.Index(stax.Slice[::2])),
    "matrix/over one dimension": lambda: positions(
        conv(),
        stax.Relu(),
        stax.DotGeneral(lhs=given.ROWS_GRAPH, dimension_numbers=(((1,), (1,)), ((), ()))),
        x=IMAGES,
    ),
    "matrix/one output position": lambda: between(
        stax.DotGeneral(
            rhs=np.array([1.0, -1.0, 2.0, 0.5]), dimension_numbers=(((1,), (0,)), ((), ()))
        )
    ),
    "matrix/a number": lambda: between(stax.DotGeneral(rhs=2.0)),
}


def fading(distance):
    return np.e ** (-0.5 * distance)


ATTENTION = {
    "attention/softmax over d": lambda: attention(),
    "attention/softmax over d, other scales": lambda: attention(
        W_key_std=1.5, W_query_std=1.5, W_value_std=1.5, W_out_std=1.5
    ),
    "attention/identity over d": lambda: attention(attention_mechanism="IDENTITY"),
    "attention/absolute value over d": lambda: attention(attention_mechanism="ABS"),
    "attention/relu over d": lambda: attention(attention_mechanism="RELU"),
    "attention/identity over the root of d": lambda: attention(
        linear_scaling=False, attention_mechanism="IDENTITY"
    ),
    "attention/softmax over the root of d": lambda: attention(linear_scaling=False),
    "attention/output biases": lambda: attention(b_std=0.5),
    "attention/of images": lambda: attention(x=IMAGES),
    "attention/embeddings added": lambda: attention(
        pos_emb_type="SUM", val_pos_emb=True, W_pos_emb_std=0.7
    ),
    "attention/embeddings added, not to values": lambda: attention(
        pos_emb_type="SUM", W_pos_emb_std=0.7
    ),
    "attention/embeddings that decay": lambda: attention(
        pos_emb_type="SUM", val_pos_emb=True, pos_emb_decay_fn=fading
    ),
    "attention/embeddings beside channels": lambda: attention(
        pos_emb_type="CONCAT", val_pos_emb=True, W_pos_emb_std=0.7
    ),
    "attention/identity over the root of d, embeddings": lambda: attention(
        linear_scaling=False, attention_mechanism="IDENTITY", pos_emb_type="SUM", val_pos_emb=True
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
