"""neural-tangents, in its own environment: answers one JSON line of seconds for each JSON line on its input.

Runs with the interpreter of the environment of ``requirements.txt``; ``run.py`` talks to it.
"""

import json
import sys
import time

import jax
import numpy as np
from neural_tangents import stax


def kernel(name, depth, c_w, c_b):
    options = {"W_std": c_w**0.5, "b_std": c_b**0.5 if c_b else None}
    activation = {
        "relu": stax.Relu,
        "erf": stax.Erf,
        "gelu": stax.Gelu,
        "tanh": lambda: stax.ElementwiseNumerical(jax.numpy.tanh, deg=25),
    }[name]
    layers = [layer for _ in range(depth) for layer in (stax.Dense(1, **options), activation())]
    *_, kernel_fn = stax.serial(*layers, stax.Dense(1, **options))
    return jax.jit(lambda x: tuple(kernel_fn(x, None, ("nngp", "ntk"))))


def main():
    functions = {}
    data = {}
    for line in sys.stdin:
        order = json.loads(line)
        file = order["data"]
        if file not in data:
            data[file] = jax.numpy.asarray(np.load(file))
        key = (order["name"], order["depth"], order["c_w"], order["c_b"])
        functions.setdefault(key, kernel(*key))
        started = time.perf_counter()
        found = jax.block_until_ready(functions[key](data[file]))
        seconds = time.perf_counter() - started
        if order.get("save"):
            np.savez(order["save"], nngp=np.asarray(found[0]), ntk=np.asarray(found[1]))
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
