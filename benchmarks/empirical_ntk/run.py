"""The tangent kernel of one finite network: `steepest.kernels.empirical_ntk` beside torch.func and neural-tangents.

A tanh network with a million parameters and biases, one output, 200 points, float32, the same weights everywhere.
Every contestant is compiled and run once before, and its kernel is compared with ours. The peers sit in processes of
their own, in environments of their own, and wait for their turn: each repetition times all contestants one after the
other, so that a busy neighbour hits all of them; medians are compared.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from steepest.kernels import empirical_ntk
from steepest.nn.networks import mlp
from steepest.nn.types import count

HERE = Path(__file__).parent


class Peer:
    """A process that computes a kernel when told to, by name, and answers with seconds."""

    def __init__(self, python, script, folder):
        command = [python, str(HERE / script), str(folder)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.names = self.hear()

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args} ended early, with code {self.process.wait()}")
        return json.loads(line)

    def time(self, name):
        print(name, file=self.process.stdin, flush=True)
        return self.hear()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def ours(net, params, x):
    """Our three ways, as compiled functions without arguments."""
    ways = {}
    for method in ("layerwise", "jacobian", "vectors"):
        run = jax.jit(lambda p, method=method: empirical_ntk(net, p, x, method=method))
        ways[f"steepest {method}"] = lambda run=run: run(params).block_until_ready()
    return ways


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def agree(folder, expected):
    """Relative distance of each peer's kernel, which it left in the folder, from ours."""
    size = np.linalg.norm(expected)
    return {
        path.stem: float(np.linalg.norm(np.load(path) - expected) / size)
        for path in Path(folder).glob("*.npy")
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--width", type=int, default=690)
    parser.add_argument("--torch-python", help="an interpreter with torch; left out without")
    parser.add_argument(
        "--neural-tangents-python", help="an interpreter with neural-tangents; left out without"
    )
    parser.add_argument("--skip", nargs="*", default=[], help="contestants to leave out, by name")
    known = parser.parse_args()
    net = mlp((64, *[known.width] * 3, 1), "tanh", c_w=2.0)
    params = net.init(jax.random.key(0))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(known.points, 64)), jnp.float32)
    with tempfile.TemporaryDirectory() as folder:
        arrays = {
            f"{kind}{i}": layer[kind] for i, layer in enumerate(params) for kind in ("w", "b")
        }
        np.savez(Path(folder) / "problem.npz", x=x, **arrays)
        scripts = (
            (known.torch_python, "torch_peer.py"),
            (known.neural_tangents_python, "neural_tangents_peer.py"),
        )
        peers = [Peer(python, script, folder) for python, script in scripts if python]
        timers = {name: lambda run=run: seconds(run) for name, run in ours(net, params, x).items()}
        timers |= {name: lambda p=p, name=name: p.time(name) for p in peers for name in p.names}
        timers = {name: timer for name, timer in timers.items() if name not in known.skip}
        times = {name: [] for name in timers}
        for timer in timers.values():
            timer()  # compile, warm up
        distances = agree(folder, np.asarray(empirical_ntk(net, params, x)))
        for _ in range(known.repetitions):
            for name, timer in timers.items():
                times[name].append(timer())
        for peer in peers:
            peer.end()
    medians = {name: statistics.median(values) for name, values in times.items()}
    best = medians["steepest layerwise"]  # what method="auto" takes
    ratios = {name: value / best for name, value in medians.items()}
    problem = {
        "parameters": count(params),
        "points": known.points,
        "repetitions": known.repetitions,
    }
    print(
        json.dumps(
            {**problem, "seconds": medians, "ratio to auto": ratios, "distance": distances},
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
