"""Top-5 eigenpairs and trace of the Hessian: ours on torch and JAX beside hessian-eigenthings, curvlinops, PyHessian.

The same torch modules from `examples/measure` with the same weights and data in float32. Eigenpairs count at the same
accuracy: the largest residual ‖Hv − λv‖ over λ₁, measured afterwards by products of its own, is at most 1e-3. Peers
that take a number of steps or a tolerance of another kind get the cheapest setting of a list that reaches it. Traces
take the same number of products, 50 or 51.

Contestants sit in processes of their own and wait for their turn: each repetition times all of them one after the
other, so that a busy neighbour hits all; medians are compared. Memory is the growth of the peak while measuring.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "measure"
TOLERANCE = 1e-3
COUNT = 5
PRODUCTS = 50
CONTESTANTS = ("steepest", "hessian-eigenthings", "curvlinops", "pyhessian")


def model(name):
    """Module, loss and one batch."""
    sys.path.insert(0, str(EXAMPLES))
    import torch

    module, _, data = __import__(f"{name}_torch").build()
    if not isinstance(data, tuple):  # a loader
        data = [torch.cat(batches) for batches in zip(*data, strict=True)]
    return module, torch.nn.CrossEntropyLoss(), *[tensor[:500] for tensor in data]


def product_of(module, loss, x, y):
    """Products with the Hessian by double backward, for the check of what the contestants found."""
    import numpy as np
    import torch

    weights = [each for each in module.parameters() if each.requires_grad]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        slopes = torch.autograd.grad(loss(module(x), y), weights, create_graph=True)

    def product(vector):
        parts = torch.as_tensor(np.array(vector), dtype=weights[0].dtype).split(
            [tensor.numel() for tensor in weights]
        )
        parts = [part.reshape(each.shape) for part, each in zip(parts, weights, strict=True)]
        images = torch.autograd.grad(slopes, weights, parts, retain_graph=True)
        return torch.cat([each.reshape(-1) for each in images]).numpy()

    return product


def steepest(module, loss, x, y):
    from steepest.measurement.adapters import subject

    return (
        *ours(subject(module, loss, (x, y), check=False))[:3],
        None,
    )  # the check has its own products, as for all


def steepest_jax(module, loss, x, y):
    """The plain network in JAX with the same weights."""
    import jax
    import jax.numpy as jnp

    from steepest.measurement.adapters import subject

    layers = [each for each in module if hasattr(each, "weight")]
    params = [
        {"w": jnp.asarray(e.weight.detach().numpy()), "b": jnp.asarray(e.bias.detach().numpy())}
        for e in layers
    ]

    def apply(params, x):
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"].T + layer["b"])
        return x @ params[-1]["w"].T + params[-1]["b"]

    def cross_entropy(outputs, targets):
        return -jnp.take_along_axis(jax.nn.log_softmax(outputs), targets[:, None], axis=1).mean()

    data = jnp.asarray(x.numpy()), jnp.asarray(y.numpy())
    return ours(subject((apply, params), cross_entropy, data, check=False))


def ours(small):
    import numpy as np

    from steepest.linalg import top_eigenpairs, trace

    def fresh():
        return small.at(small.values())  # nothing is kept from the run before

    def eigenpairs(seed, setting):
        start = np.random.default_rng(seed).standard_normal(small.size).astype(np.float32)
        found = top_eigenpairs(fresh().products, start, COUNT, tolerance=TOLERANCE)
        return found.values, found.vectors

    def total(seed):
        return trace(fresh().products, small.size, np.random.default_rng(seed)).value

    return eigenpairs, total, [None], small.products


def hessian_eigenthings(module, loss, x, y):
    from hessian_eigenthings import HessianOperator, hutch_plus_plus, lanczos, supervised_loss

    def operator():
        return HessianOperator(module, [(x, y)], supervised_loss(loss))

    def eigenpairs(seed, setting):
        found = lanczos(operator(), k=COUNT, max_iter=setting, tol=TOLERANCE, which="LA", seed=seed)
        vectors = found.eigenvectors.numpy()
        return found.eigenvalues.numpy(), vectors if vectors.shape[0] == COUNT else vectors.T

    def total(seed):
        return hutch_plus_plus(operator(), num_matvecs=PRODUCTS + 1, seed=seed).estimate

    return eigenpairs, total, [15, 20, 25, 30, 40, 60, 90, 130, 200], None


def curvlinops(module, loss, x, y):
    import torch
    from curvlinops import HessianLinearOperator, hutchpp_trace
    from scipy.sparse.linalg import eigsh

    def operator():
        weights = [each for each in module.parameters() if each.requires_grad]
        return HessianLinearOperator(module, loss, weights, [(x, y)], check_deterministic=False)

    def eigenpairs(seed, setting):
        torch.manual_seed(seed)
        values, vectors = eigsh(operator().to_scipy(), k=COUNT, which="LA", tol=setting)
        return values, vectors.T

    def total(seed):
        torch.manual_seed(seed)
        return float(hutchpp_trace(operator(), PRODUCTS + 1))

    return eigenpairs, total, [1e-2, 1e-3, 1e-4], None


def pyhessian(module, loss, x, y):
    import contextlib
    import io

    import numpy as np
    import torch
    from pyhessian import hessian

    def operator():
        module.zero_grad()
        return hessian(module, loss, data=(x, y), cuda=False)

    def eigenpairs(seed, setting):
        torch.manual_seed(seed)
        with contextlib.redirect_stdout(io.StringIO()):
            values, vectors = operator().eigenvalues(maxIter=1000, tol=setting, top_n=COUNT)
        return np.array(values), np.stack(
            [torch.cat([p.reshape(-1) for p in v]).numpy() for v in vectors]
        )

    def total(seed):
        torch.manual_seed(seed)
        return float(np.mean(operator().trace(maxIter=PRODUCTS, tol=0.0)))

    return eigenpairs, total, [1e-3, 1e-4, 1e-5, 1e-6, 1e-7], None


WAYS = {
    "steepest": steepest,
    "steepest on JAX": steepest_jax,
    "hessian-eigenthings": hessian_eigenthings,
    "curvlinops": curvlinops,
    "pyhessian": pyhessian,
}


def work(contestant, name):
    """A contestant's process: finds its setting, then answers each line with seconds."""
    import warnings

    import numpy as np

    warnings.simplefilter("ignore")
    answers = sys.stdout
    sys.stdout = sys.stderr  # what peers print does not reach the answers
    module, loss, x, y = model(name)
    eigenpairs, total, settings, product = WAYS[contestant](module, loss, x, y)
    product = product or product_of(module, loss, x, y)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def residual(found):
        values, vectors = found
        images = np.stack([product(each) for each in vectors])
        return float(
            np.linalg.norm(images - np.array(values)[:, None] * vectors, axis=1).max()
            / np.max(values)
        )

    error = float("nan")
    for setting in settings:
        try:
            error = residual(eigenpairs(0, setting))
        except Exception as trouble:
            print(f"{contestant}, {setting}: {trouble!r}", file=sys.stderr)
            continue
        if error <= TOLERANCE:
            break
    total(0)  # what is compiled is compiled before the first repetition
    print(json.dumps({"setting": setting, "residual": error}), file=answers, flush=True)
    for line in sys.stdin:
        what, seed = line.split()
        start = time.perf_counter()
        found = eigenpairs(int(seed), setting) if what == "eigenpairs" else total(int(seed))
        said = {"seconds": time.perf_counter() - start}
        said |= {"residual": residual(found)} if what == "eigenpairs" else {"trace": found}
        said["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
        print(json.dumps(said), file=answers, flush=True)


class Worker:
    """The other end of a contestant's process."""

    def __init__(self, contestant, name):
        command = [sys.executable, __file__, "--contestant", contestant, "--model", name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.first = json.loads(self.process.stdout.readline())

    def ask(self, what, seed):
        print(what, seed, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def compare(name, repetitions):
    """The table of one model."""
    names = [*CONTESTANTS, *["steepest on JAX"] * (name == "mlp")]
    workers = {each: Worker(each, name) for each in names}
    found = {(each, what): [] for each in workers for what in ("eigenpairs", "trace")}
    for seed in range(1, repetitions + 1):
        for each, what in found:
            found[each, what].append(workers[each].ask(what, seed))
    for worker in workers.values():
        worker.process.stdin.close()
        worker.process.wait()
    print(f"\n{name}: ratio of medians to steepest on torch")
    print(
        "| contestant | eigenpairs | residual | setting | trace | spread of the trace | memory (MB) |"
    )
    print("|---|---|---|---|---|---|---|")
    middle = {key: statistics.median(e["seconds"] for e in each) for key, each in found.items()}
    for each, worker in workers.items():
        pairs = found[each, "eigenpairs"]
        traces = [e["trace"] for e in found[each, "trace"]]
        worst = max(e["residual"] for e in pairs)
        ratios = [middle[each, what] / middle["steepest", what] for what in ("eigenpairs", "trace")]
        spread = statistics.stdev(traces) / abs(statistics.mean(traces))
        print(
            f"| {each} | {ratios[0]:.2f} ({middle[each, 'eigenpairs']:.2f} s) | {worst:.0e} "
            f"| {worker.first['setting']} | {ratios[1]:.2f} ({middle[each, 'trace']:.2f} s) "
            f"| {spread:.1%} of {statistics.mean(traces):.4g} | {max(e['memory'] for e in found[each, 'trace']):.0f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--models", nargs="*", default=["mlp", "resnet"])
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    known = parser.parse_args()
    if known.contestant:
        work(known.contestant, known.model)
        return
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for name in known.models:
        compare(name, known.repetitions)


if __name__ == "__main__":
    main()
