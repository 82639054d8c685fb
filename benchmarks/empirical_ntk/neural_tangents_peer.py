"""neural-tangents' three ways to the kernel: told a name on standard input, it answers with seconds."""

import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np
from jax._src import source_info_util
from jax.interpreters import ad

# the last neural-tangents looks for these where JAX 0.4.30 no longer shows them; without them, its fastest way fails
ad.source_info_util = source_info_util
ad.config = jax.config

NAMES = {"jacobian contraction": 1, "vector products": 2, "structured derivatives": 3}


def network(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w.T + b)
    w, b = params[-1]
    return x @ w.T + b


def main():
    folder = Path(sys.argv[1])
    arrays = np.load(folder / "problem.npz")
    params = [
        (jnp.asarray(arrays[f"w{i}"]), jnp.asarray(arrays[f"b{i}"]))
        for i in range(len(arrays.files) // 2)
    ]
    x = jnp.asarray(arrays["x"])
    # examples do not interact (vmap_axes=0), which spares all ways work
    runs = {
        f"neural-tangents {name}": jax.jit(
            nt.empirical_ntk_fn(network, vmap_axes=0, implementation=number)
        )
        for name, number in NAMES.items()
    }
    print(json.dumps(list(runs)), flush=True)
    for line in sys.stdin:
        name = line.strip()
        start = time.perf_counter()
        kernel = runs[name](x, None, params).block_until_ready()
        elapsed = time.perf_counter() - start
        if not (folder / f"{name}.npy").exists():
            np.save(folder / f"{name}.npy", np.asarray(kernel))
        print(json.dumps(elapsed), flush=True)


if __name__ == "__main__":
    main()
