"""neural-tangents, in its own environment (``../kernels/requirements.txt``): a JSON line of CPU-seconds for each order.

Runs with the interpreter of that environment; ``run.py`` talks to it.
"""

import json
import resource
import sys
import time

import jax
import numpy as np
from neural_tangents import stax


def conv(stride=1, c_w=2.0):
    return stax.Conv(1, (3, 3), (stride, stride), "SAME", W_std=c_w**0.5, b_std=None)


def activation(name):
    return stax.Relu() if name == "relu" else stax.ElementwiseNumerical(jax.numpy.tanh, deg=25)


def block(stride, project):
    body = stax.serial(stax.Relu(), conv(stride), stax.Relu(), conv())
    side = conv(stride) if project else stax.Identity()
    return stax.serial(stax.FanOut(2), stax.parallel(body, side), stax.FanInSum())


def heads(c_w):
    """Softmax attention, products over d, of one head: in the limit all are alike."""
    sizes = dict.fromkeys(("n_chan_out", "n_chan_key", "n_chan_val", "n_heads"), 1)
    names = ("W_key_std", "W_value_std", "W_query_std", "W_out_std")
    stds = dict.fromkeys(names, c_w**0.5)
    return stax.GlobalSelfAttention(
        **sizes, **stds, linear_scaling=True, b_std=None, attention_mechanism="SOFTMAX"
    )


def ring(vertices):
    shifts = (np.roll(np.eye(vertices, dtype=np.float32), by, 0) for by in (-1, 0, 1))
    return sum(shifts, np.zeros((vertices, vertices), np.float32)) / 3


def on_graph(kernel_fn):
    """The peer takes a graph beside each input."""

    def kernels(x):
        graphs = jax.numpy.broadcast_to(ring(x.shape[1]), (len(x), x.shape[1], x.shape[1]))
        return tuple(kernel_fn(x, None, ("nngp", "ntk"), pattern=(graphs, graphs)))

    return jax.jit(kernels)


def in_line(order):
    """Networks of positions in a line: attention, and a graph."""
    dense = lambda: stax.Dense(1, W_std=order["c_w"] ** 0.5, b_std=None)
    if order["case"] == "attention":
        first = [dense(), stax.Relu(), heads(order["c_w"]), stax.Relu()]
        layers = [*first, dense(), stax.Relu()]
    else:
        mixed = lambda: [dense(), stax.Aggregate(1, 0, 2), stax.Relu()]
        layers = [*mixed(), *mixed()]
    *_, kernel_fn = stax.serial(*layers, stax.GlobalAvgPool(), dense())
    if order["case"] == "graph":
        return on_graph(kernel_fn)
    return jax.jit(lambda x: tuple(kernel_fn(x, None, ("nngp", "ntk"))))


def network(order):
    if order["case"] in ("attention", "graph"):
        return in_line(order)
    if order["case"] == "wide residual":
        blocks = [block(stride, True) for stride in (1, 2, 2)]
        layers = [conv(), *blocks, stax.GlobalAvgPool()]
    else:
        c_w = order["c_w"]
        layers = [
            layer for _ in range(5) for layer in (conv(1, c_w), activation(order["activation"]))
        ]
        layers += {
            "flatten": [stax.Flatten()],
            "global pooling": [stax.GlobalAvgPool()],
            "pool, flatten": [stax.AvgPool((2, 2), (2, 2)), stax.Flatten()],
        }[order["case"]]
    *_, kernel_fn = stax.serial(*layers, stax.Dense(1, W_std=order["c_w"] ** 0.5, b_std=None))
    return jax.jit(lambda x: tuple(kernel_fn(x, None, ("nngp", "ntk"))))


def main():
    functions = {}
    for line in sys.stdin:
        order = json.loads(line)
        x = jax.numpy.asarray(np.load(order["data"]))
        key = (order["case"], order["activation"], x.shape)
        functions.setdefault(key, network(order))
        started = time.process_time()
        kernels = jax.block_until_ready(functions[key](x))
        seconds = time.process_time() - started
        if order.get("save"):
            np.savez(order["save"], nngp=np.asarray(kernels[0]), ntk=np.asarray(kernels[1]))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps({"seconds": seconds, "peak": peak}), flush=True)


if __name__ == "__main__":
    main()
