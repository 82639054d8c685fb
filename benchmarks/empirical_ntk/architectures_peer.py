"""neural-tangents' kernel of a convolutional network or a transformer: told what to do, it answers with costs.

Runs with the interpreter of the peer's environment, once for each network and each way; ``architectures.py`` talks to
it.
"""

import json
import resource
import sys
import time

import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np
from jax._src import source_info_util
from jax.interpreters import ad

# the last neural-tangents looks for these where JAX 0.4.30 no longer shows them; without them, its fastest way fails
ad.source_info_util = source_info_util
ad.config = jax.config


def linear(weights, x):
    return x @ weights["w"].T + weights["b"]


def convolution(weights, x):
    layout = ("NHWC", "OIHW", "NHWC")
    z = jax.lax.conv_general_dilated(x, weights["w"], (1, 1), "SAME", dimension_numbers=layout)
    return z + weights["b"]


def normalized(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True))


def attention(weights, x, heads):
    split = lambda z: z.reshape(*z.shape[:2], heads, -1)
    query = split(x @ weights["query"]["w"].T)
    key = split(x @ weights["key"]["w"].T)
    value = split(linear(weights["value"], x))
    logits = jnp.einsum("nphk,nqhk->nhpq", query, key) / query.shape[-1] ** 0.5
    mixed = jnp.einsum("nhpq,nqhk->nphk", jax.nn.softmax(logits), value)
    return linear(weights["output"], mixed.reshape(*x.shape[:2], -1))


def cnn(params, x):
    *convolutions, last = params
    for weights in convolutions:
        x = jax.nn.relu(convolution(weights, x))
    return linear(last, x.mean((1, 2)))


def transformer(heads):
    def apply(params, x):
        first, *blocks, last = params
        x = linear(first, x)
        for block in blocks:
            x = x + attention(block["attention"], normalized(x), heads)
            hidden = jax.nn.gelu(linear(block["up"], normalized(x)), approximate=False)
            x = x + linear(block["down"], hidden)
        return linear(last, x.mean(1))

    return apply


def main():
    order = json.loads(sys.argv[1])
    arrays = np.load(order["problem"])
    tree = jax.tree.unflatten(
        jax.tree.structure(order["names"]),
        [jnp.asarray(arrays[name]) for name in jax.tree.leaves(order["names"])],
    )
    apply = transformer(order["heads"]) if order["heads"] else cnn
    axes = (-1,) if order["outputs"] == "trace" else ()
    # examples do not interact (vmap_axes=0), which spares all ways work
    kernel = nt.empirical_ntk_fn(
        apply, trace_axes=axes, vmap_axes=0, implementation=order["implementation"]
    )
    x = jnp.asarray(arrays["x"])
    compiled = jax.jit(lambda x, params: kernel(x, None, params)).lower(x, tree).compile()
    temporary = compiled.memory_analysis().temp_size_in_bytes
    np.save(order["save"], np.asarray(compiled(x, tree)))
    print(json.dumps(temporary), flush=True)
    for _ in sys.stdin:
        started = time.process_time()
        compiled(x, tree).block_until_ready()
        seconds = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps([seconds, peak]), flush=True)


if __name__ == "__main__":
    main()
