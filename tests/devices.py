"""What :mod:`tests.test_devices` runs in a process with several devices; prints JSON."""

import hashlib
import json
import tempfile
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.kernels import gram, tiled_gram
from steepest.linalg import sharpness
from steepest.nn.networks import mlp

CLAIMS = ("average-regions", "saddle-escape")  # one calls back to the host, one compiles quickly
NET = mlp((3, 8, 1), "tanh", parameterized="ntk")
WIDE = mlp((3, 8, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)  # its table is small


def digest(arrays):
    """One checksum of named arrays, bit by bit."""
    checksum = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        checksum.update(f"{name} {array.dtype} {array.shape}".encode())
        checksum.update(array.tobytes())
    return checksum.hexdigest()


def claim_bits(name):
    """The verdict and the observation of a tiny run."""
    result = steepest.run(name, preset="tiny")
    return [result.verdict.value, digest(result.observed)]


def kernel_bits(x):
    """Kernels in memory and on disk."""
    limit = WIDE.limit()
    kernel = gram(limit, x)
    with tempfile.TemporaryDirectory() as folder:
        tiled = tiled_gram(limit, x, folder, tile=4).ntk.toarray()
    return digest({"nngp": kernel.nngp, "ntk": kernel.ntk, "tiled": tiled})


def loss(outputs, targets):
    """The risk of squared errors."""
    return 0.5 * jnp.mean((outputs[..., 0] - targets) ** 2)


def readings(params, batch):
    """Numbers of a report on a network of JAX."""
    what = ["risk", "sharpness"]
    report = steepest.measure((NET.apply, params), loss, [batch], what=what, lr=0.1)
    return {quantity.name: quantity.value for quantity in report.quantities}


def refusal(params, batch):
    """What is said of weights on several devices."""
    first, *others = jax.devices()
    leaves, structure = jax.tree.flatten(params)
    places = [others[0], *[first] * (len(leaves) - 1)]
    spread = structure.unflatten(map(jax.device_put, leaves, places))
    try:
        readings(spread, batch)
    except steepest.kit.UserError as trouble:
        return str(trouble)


def main():
    """Compute the same on the first device and with everything placed on the last one."""
    first = jax.devices()[0]
    last = jax.devices()[-1]
    x = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    batch = (x, np.ones(10, np.float32))
    params = NET.init(jax.random.key(0))
    on_last = lambda tree: jax.device_put(tree, last)
    risk = lambda params, batch: loss(NET.apply(params, batch[0]), batch[1])

    def curved(params, batch):
        return float(sharpness(partial(risk, batch=batch), params, jax.random.key(1)).value)

    report = {
        "devices": jax.device_count(),
        "claims": {name: claim_bits(name) for name in CLAIMS},
        "kernels": [kernel_bits(x), kernel_bits(on_last(x))],
        "readings": [
            readings(params, batch),
            readings(on_last(params), batch),
            readings(on_last(params), on_last(batch)),
            readings(on_last(params), jax.device_put(batch, first)),
        ],
        "sharpness": [curved(params, batch), curved(on_last(params), on_last(batch))],
        "refusal": refusal(params, batch),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
