"""The two ways to tangent kernels of the tutorial of torch.func: told a name, it answers with seconds."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.func import jacrev, jvp, vjp, vmap


def network(params, x):
    for w, b in params[:-1]:
        x = torch.tanh(x @ w.T + b)
    w, b = params[-1]
    return (x @ w.T + b)[..., 0]


def jacobian_contraction(params, x):
    jacobian = vmap(jacrev(network), (None, 0))(params, x)
    leaves = [leaf.flatten(1) for layer in jacobian for leaf in layer]
    return sum(leaf @ leaf.T for leaf in leaves)


def vector_products(params, x):
    """⟨∇f(x_i), ∇f(x_j)⟩ as the derivative at x_i along the gradient at x_j, for all pairs."""

    def pair(one, other):
        gradient = vjp(lambda p: network(p, other), params)[1](torch.ones(()))[0]
        return jvp(lambda p: network(p, one), (params,), (gradient,))[1]

    # one row at a time: all pairs at once would hold every tangent
    return torch.stack([vmap(lambda one, other=other: pair(one, other))(x) for other in x])


def main():
    folder = Path(sys.argv[1])
    arrays = np.load(folder / "problem.npz")
    layers = range(len(arrays.files) // 2)
    params = [
        (torch.from_numpy(arrays[f"w{i}"]), torch.from_numpy(arrays[f"b{i}"])) for i in layers
    ]
    x = torch.from_numpy(arrays["x"])
    runs = {
        "torch jacobian contraction": jacobian_contraction,
        "torch vector products": vector_products,
    }
    print(json.dumps(list(runs)), flush=True)
    for line in sys.stdin:
        name = line.strip()
        start = time.perf_counter()
        kernel = runs[name](params, x)
        elapsed = time.perf_counter() - start
        if not (folder / f"{name}.npy").exists():
            np.save(folder / f"{name}.npy", kernel.detach().numpy())
        print(json.dumps(elapsed), flush=True)


if __name__ == "__main__":
    main()
