"""The same small descents with `steepest.dynamics.descend` and with eager torch, side by side.

Full-batch gradient descent on a two-layer tanh network, mean squared loss, float32, the same data and start. Each
repetition times all contestants one after the other, so that a busy neighbour hits all of them; medians are compared.
"""

import argparse
import json
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

from steepest.dynamics import descend
from steepest.nn.networks import mlp

SWEEP = 64


def problem(n, d, width, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    y = np.tanh(x @ rng.normal(size=d)).astype(np.float32)
    net = mlp((d, width, 1), "tanh")
    return x, y, net, net.init(jax.random.key(seed))


def ours(x, y, net, start, steps):
    x = jnp.asarray(x)
    y = jnp.asarray(y)
    risk = lambda p: 0.5 * jnp.mean((net.apply(p, x) - y) ** 2)
    run = jax.jit(lambda lr: descend(risk, start, optax.sgd(lr), steps, record=steps).risk[-1])
    return lambda lr: float(run(lr))


def ours_sweep(x, y, net, start, steps):
    x = jnp.asarray(x)
    y = jnp.asarray(y)
    risk = lambda p: 0.5 * jnp.mean((net.apply(p, x) - y) ** 2)
    one = lambda lr: descend(risk, start, optax.sgd(lr), steps, record=steps).risk[-1]
    run = jax.jit(jax.vmap(one))
    return lambda rates: np.asarray(run(jnp.asarray(rates)))


def theirs(x, y, net, start, steps):
    x = torch.from_numpy(x)
    y = torch.from_numpy(y)

    def run(lr):
        model = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], start[0]["w"].shape[0]),
            torch.nn.Tanh(),
            torch.nn.Linear(start[0]["w"].shape[0], 1),
        )
        with torch.no_grad():
            for layer, values in zip((model[0], model[2]), start, strict=True):
                layer.weight.copy_(torch.from_numpy(np.array(values["w"])))
                layer.bias.copy_(torch.from_numpy(np.array(values["b"])))
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = 0.5 * ((model(x)[:, 0] - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        return float(0.5 * ((model(x)[:, 0] - y) ** 2).mean().detach())

    return run


def theirs_batched(x, y, net, start, steps):
    """The strongest eager form we know: one batched product for all points of the sweep, gradients by autograd."""
    x = torch.from_numpy(x)
    y = torch.from_numpy(y)

    def run(rates):
        rates = torch.from_numpy(np.asarray(rates, np.float32))
        leaves = [
            torch.from_numpy(np.array(v)) for layer in start for v in (layer["w"], layer["b"])
        ]
        params = [leaf.expand(len(rates), *leaf.shape).clone().requires_grad_() for leaf in leaves]

        def losses():
            w1, b1, w2, b2 = params
            hidden = torch.tanh(x @ w1.transpose(1, 2) + b1[:, None])
            return 0.5 * (((hidden @ w2.transpose(1, 2) + b2[:, None])[..., 0] - y) ** 2).mean(1)

        for _ in range(steps):
            gradients = torch.autograd.grad(losses().sum(), params)
            with torch.no_grad():
                for p, g in zip(params, gradients, strict=True):
                    p -= rates.view(-1, *[1] * (p.ndim - 1)) * g
        return losses().detach().numpy()

    return run


def medians(contestants, repetitions):
    """Median seconds of each callable, interleaved."""
    times = {name: [] for name in contestants}
    for run in contestants.values():
        run()  # compile, warm up
    for _ in range(repetitions):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def compare(n, d, width, steps, repetitions):
    x, y, net, start = problem(n, d, width)
    mine = ours(x, y, net, start, steps)
    torchs = theirs(x, y, net, start, steps)
    np.testing.assert_allclose(mine(0.1), torchs(0.1), rtol=1e-3)  # the same descent
    found = medians({"ours": lambda: mine(0.1), "torch": lambda: torchs(0.1)}, repetitions)
    return {
        "n": n,
        "d": d,
        "width": width,
        "steps": steps,
        **found,
        "ratio": found["torch"] / found["ours"],
    }


def sweep(n, d, width, steps, repetitions):
    x, y, net, start = problem(n, d, width)
    rates = np.geomspace(0.001, 0.1, SWEEP).astype(np.float32)
    mine, one, batched = (
        make(x, y, net, start, steps) for make in (ours_sweep, theirs, theirs_batched)
    )
    np.testing.assert_allclose(mine(rates), batched(rates), rtol=1e-3)
    found = medians(
        {
            "ours": lambda: mine(rates),
            "torch": lambda: one(0.1),
            "torch batched": lambda: batched(rates),
        },
        repetitions,
    )
    found["torch"] *= SWEEP  # one after the other
    ratios = {
        "ratio": found["torch"] / found["ours"],
        "ratio batched": found["torch batched"] / found["ours"],
    }
    return {"n": n, "d": d, "width": width, "steps": steps, "points": SWEEP, **found, **ratios}


def efficiency(n, d, width, steps, repetitions):
    """Arithmetic rate of a descent against that of the bare product X Wᵀ of its first layer."""
    x, y, net, start = problem(n, d, width)
    mine = ours(x, y, net, start, steps)
    a = jnp.asarray(x)
    b = start[0]["w"].T
    once = jax.jit(jnp.matmul)
    product = lambda: [once(a, b).block_until_ready() for _ in range(20)]
    found = medians({"descent": lambda: mine(0.1), "product": product}, repetitions)
    # forward 2ndw + 2nw, gradients of the weights the same again, of the hidden layer 2nw
    flops = steps * (4 * n * d * width + 6 * n * width)
    rate = flops / found["descent"]
    peak = 20 * 2 * n * d * width / found["product"]
    return {
        "n": n,
        "d": d,
        "width": width,
        "gflops": rate / 1e9,
        "product gflops": peak / 1e9,
        "fraction": rate / peak,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    repetitions = parser.parse_args().repetitions
    torch.manual_seed(0)
    print(
        json.dumps(
            {
                "small": compare(20, 5, 50, 1000, repetitions),
                "medium": compare(200, 20, 200, 300, repetitions),
                "sweep": sweep(20, 5, 50, 200, repetitions),
                "sweep of medium": sweep(200, 20, 200, 20, repetitions),
                "efficiency": efficiency(1000, 192, 500, 50, repetitions),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
