"""The claim central-flow beside the code that was published with the paper it is from.

The package of Cohen, Damian, Talwalkar, Kolter and Lee follows its central flow, by the same steps as in its `main.py`,
from the weights where our claim begins: the same network, data, step size and stretches, float32. Compared are the mean
of σ², the mean risk that is predicted, and the weights at the end of each stretch, with each other and with descent.

    python benchmarks/published/central_flow.py CHECKOUT

takes a checkout of https://github.com/centralflows/centralflows, in an environment with steepest and
`benchmarks/published/requirements.txt`. That code sends some small arrays to a GPU whatever device it is told. Where
there is none they are left where they are, and nothing else of it is changed. It takes a quarter of an hour.
"""

import argparse
import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import torch

from steepest.claims.training import _tanh_network as ours
from steepest.claims.training.central_flow.claim import CentralFlow, Setting
from steepest.core.experiment import seeded
from steepest.nn.data import chebyshev

QUANTITIES = ("variance", "risk", "weights")


class Followed(NamedTuple):
    """What a flow predicts, or what descent does, in each stretch.

    Attributes:
        variance: σ², its mean, ``(trainings, stretches)``.
        risk: its mean, ``(trainings, stretches)``.
        weights: at the end, less those at the beginning, ``(trainings, stretches, p)``.
    """

    variance: np.ndarray
    risk: np.ndarray
    weights: np.ndarray


def risk_in_torch():
    """Our risk of flat weights, in torch."""
    data = chebyshev(ours.POINTS, ours.DEGREE)
    x = torch.tensor(np.asarray(data.x))
    y = torch.tensor(np.asarray(data.y)).ravel()
    shapes = [shape for inputs, n in pairwise(ours.WIDTHS) for shape in ((n,), (n, inputs))]
    sizes = [int(np.prod(shape)) for shape in shapes]

    def risk(weights):
        parts = [
            part.reshape(shape) for part, shape in zip(weights.split(sizes), shapes, strict=True)
        ]
        z = x
        for layer in range(0, len(parts), 2):
            z = (torch.tanh(z) if layer else z) @ parts[layer + 1].T + parts[layer]
        return 0.5 * ((z.ravel() - y) ** 2).mean()

    return risk


def agree(risk, weights):
    """Largest relative difference of the risk and of its slope between JAX and torch."""
    value, slope = jax.vmap(jax.value_and_grad(ours.risk))(weights)
    slopes, values = torch.func.vmap(torch.func.grad_and_value(risk))(torch.tensor(weights))
    off = np.linalg.norm(slopes.numpy() - slope, axis=1) / np.linalg.norm(slope, axis=1)
    return max(float(np.abs(values.numpy() / value - 1).max()), float(off.max()))


def published(risk, middle, claim, eta, tolerance):
    """Follow the flow of the published code; also in how many steps more than one direction was at the edge."""
    from src.loss_function import LossFunction
    from src.processes import CentralFlow as Theirs
    from src.processes import CentralFlowConfig, EigConfig
    from src.update_rules import GradientDescent

    variance = []
    below = []
    weights = []
    several = 0
    for first in middle:
        optimizer = GradientDescent(lr=eta)
        w = torch.tensor(first)
        state = optimizer.initialize_state(w)
        eigenvectors = EigConfig(frequency=1, tol=tolerance)
        flow = Theirs(optimizer, LossFunction(risk), w, state, eigenvectors, CentralFlowConfig())
        for _ in range(claim.stretch * claim.stretches):
            flow.prepare()
            # their eigenvectors u have |u|² = η, and the covariance of swings is U X Uᵀ
            variance.append(float(flow.X @ flow.U.square().sum(0)))
            below.append(float(flow.loss + flow.X.sum()))
            several += len(flow.X) > 1
            flow.step()
            weights.append(flow.w.numpy() - first)
    shape = (len(middle), claim.stretches, claim.stretch)
    means = [np.reshape(values, shape).mean(-1) for values in (variance, below)]
    ends = np.reshape(weights, (*shape, -1))[:, :, -1]
    return Followed(*means, ends), several


def of_claim(data):
    """What the claim predicts or observes."""
    return Followed(*(np.asarray(data[name], float) for name in ("variance", "risk", "moved")))


def apart(first: Followed, second: Followed, departed):
    """Relative distances of two paths: median and largest over trainings and stretches, of each quantity."""
    parts = [
        np.abs(first.variance / second.variance - 1),
        np.abs(first.risk / second.risk - 1),
        np.linalg.norm(first.weights - second.weights, axis=-1) / departed,
    ]
    return [(float(np.median(part)), float(part.max())) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="of the published code")
    parser.add_argument("--trainings", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-9,
        help="of their eigenvectors; at their own 1e-10 float32 is slow to get there, or never does",
    )
    parser.add_argument("--json", help="file for all numbers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sys.path.insert(0, str(options.checkout))
    if not torch.cuda.is_available():
        torch.Tensor.cuda = lambda tensor, *_, **__: tensor

    claim = CentralFlow(seeds=options.trainings)
    keys = seeded(options.seed)
    setting: Setting = claim.setting(keys[0])
    law = claim.predict(setting)
    observed = claim.observe(setting, keys[1])
    middle = np.asarray(setting.weights[:, 0] + 2 * setting.weights[:, 1] + setting.weights[:, 2])
    middle = (middle / 4).astype(np.float32)
    risk = risk_in_torch()
    print(f"risk and slope in torch and JAX: relative difference {agree(risk, middle):.1e}")
    start = time.perf_counter()
    theirs, several = published(risk, middle, claim, setting.eta, options.tolerance)
    print(f"published flow: {time.perf_counter() - start:.0f} s")
    print(f"steps with more than one direction at the edge: {several}")

    predicted = of_claim(law)
    measured = of_claim(observed)
    slow = np.asarray(observed["moved_of_slow"], float)
    departed = np.linalg.norm(measured.weights - slow, axis=-1)
    paths = {"ours": predicted, "published": theirs, "measured": measured}
    pairs = (("ours", "published"), ("ours", "measured"), ("published", "measured"))
    table = {" and ".join(pair): apart(*(paths[name] for name in pair), departed) for pair in pairs}
    for pair, numbers in table.items():
        distances = (
            f"{quantity} {median:.4f} ({largest:.4f})"
            for quantity, (median, largest) in zip(QUANTITIES, numbers, strict=True)
        )
        print(f"{pair}: {', '.join(distances)}")
    for stretch in range(claim.stretches):
        for name, path in paths.items():
            print(
                f"stretch {stretch + 1}, {name}: σ² {path.variance[:, stretch].mean():.5f}, "
                f"risk {path.risk[:, stretch].mean():.5f}"
            )
    if options.json:
        numbers = {name: [values.tolist() for values in path[:2]] for name, path in paths.items()}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"apart": table, "stretches": numbers}, file, indent=1)


if __name__ == "__main__":
    main()
