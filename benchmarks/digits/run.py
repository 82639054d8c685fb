"""All 1797 digits by the kernels of an infinitely wide CNN: coefficients learned by ``fit`` beside fixed ones.

Both kernels serve as Gaussian processes on one-hot labels with their mean taken away, in five random splits into 1197
training and 600 test images of 8×8×1 pixels. Fixed coefficients are C_W = 2 and C_b = 0.01, with noise of a hundredth
of the mean of the kernel's diagonal. Learned ones have the largest marginal likelihood of 300 of the training
images of the split, from C_W = 2, C_b = 0.01 and the noise of the same rule, in at most ``STEPS`` steps.

    python -m benchmarks.digits.run [--record]
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from steepest.kernels import fit, gaussian_process, gram
from steepest.nn.data import digits
from steepest.nn.layers import WideLimit, conv, dense, flatten, network
from steepest.statistics import simultaneous_intervals

PLACE = Path(__file__).with_name("record.json")
SPLITS = 5
TRAINING = 1197
SUBSET = 300
STEPS = 15
SHARE = 0.01  # of the mean of the diagonal: the noise's fixed rule
FIXED = {"c_w": 2.0, "c_b": 0.01}
KERNELS = ("nngp", "ntk")


class Outcome(NamedTuple):
    """What a kernel did in a split: share of wrong test images, log likelihood a datum, CPU-seconds, coefficients."""

    error: float
    likelihood: float
    seconds: float
    c_w: float
    c_b: float
    noise: float


def limit_of(coefficients: Any) -> WideLimit:
    """Return the limit of two convolutions and a dense layer."""
    layers = (conv(1), "relu", conv(1), "relu", flatten(), dense(10))
    return network(*layers, shape=(8, 8, 1), parameterized="ntk", **coefficients).limit()


def images() -> tuple[NDArray, NDArray]:
    """Return images ``(1797, 8, 8, 1)`` of mean square one, and their labels."""
    data = digits()
    return np.asarray(data.x).reshape(-1, 8, 8, 1), np.asarray(data.y).argmax(1)


def judged(kernel: NDArray, train: NDArray, labels: NDArray, noise: float) -> tuple[float, float]:
    """Return the share of wrong test images, and the log likelihood of a training label's vector."""
    test = np.setdiff1d(np.arange(len(labels)), train)
    targets = np.eye(10)[labels] - 0.1
    posterior = gaussian_process(kernel[np.ix_(train, train)], targets[train], noise)
    guesses = posterior.mean(kernel[np.ix_(test, train)]).argmax(1)
    assert posterior.log_likelihood is not None
    likelihood = float(np.sum(posterior.log_likelihood)) / len(train)
    return float(np.mean(guesses != labels[test])), likelihood


def rule(kernel: NDArray, train: NDArray) -> float:
    """Return the noise's fixed rule."""
    return SHARE * float(np.diag(kernel)[train].mean())


def of_fixed(name: str, x: NDArray, labels: NDArray, splits: list[NDArray]) -> list[Outcome]:
    """Take one matrix of all images for all splits, whose CPU-seconds they share."""
    started = time.process_time()
    kernel = getattr(gram(limit_of(FIXED), x), name)
    shared = (time.process_time() - started) / len(splits)
    outcomes = []
    for train in splits:
        started = time.process_time()
        noise = rule(kernel, train)
        error, likelihood = judged(kernel, train, labels, noise)
        seconds = shared + time.process_time() - started
        outcomes.append(Outcome(error, likelihood, seconds, **FIXED, noise=noise))
    return outcomes


def of_learned(name: str, x: NDArray, labels: NDArray, train: NDArray) -> Outcome:
    """Learn the coefficients on the first images of a split, which are in random order."""
    started = time.process_time()
    subset = train[:SUBSET]
    targets = np.eye(10)[labels] - 0.1
    before = getattr(gram(limit_of(FIXED), x[subset]), name)
    noise = rule(before, np.arange(SUBSET))
    options = {"noise": noise, "kernel": name, "steps": STEPS}
    learned = fit(limit_of, FIXED, x[subset], targets[subset], **options)
    kernel = getattr(gram(learned.limit, x), name)
    error, likelihood = judged(kernel, train, labels, learned.noise)
    seconds = time.process_time() - started
    return Outcome(error, likelihood, seconds, **learned.hyperparameters, noise=learned.noise)


def interval(values: list[float], places: int) -> str:
    """Return the mean over splits with its interval of 95 %, by Student's law; splits share images."""
    low, high = simultaneous_intervals(values)
    return f"{np.mean(values):.{places}f} ± {(high - low) / 2:.{places}f}"


def spread(values: list[float]) -> str:
    """Return the smallest and the largest."""
    return f"{min(values):.3g} to {max(values):.3g}"


def row(name: str, kind: str, outcomes: list[Outcome]) -> list[str]:
    """Return a row of the table."""
    columns = [list(column) for column in zip(*outcomes, strict=True)]
    errors, likelihoods, seconds, *coefficients = columns
    return [
        name.upper(),
        kind,
        interval([100 * error for error in errors], 2),
        interval(likelihoods, 3),
        f"{np.mean(seconds):.1f}",
        *map(spread, coefficients),
    ]


def record(rows: list[list[str]], seconds: float, gigabytes: float) -> dict[str, Any]:
    """Return the record of a run."""
    columns = ["kernel", "coefficients", "wrong test images, %", "log likelihood a datum"]
    columns += ["CPU-seconds a split", "C_W", "C_b", "noise"]
    how = (
        f"`benchmarks/digits`: all 1797 digits of scikit-learn as 8×8×1 images, and a CNN of two convolutions with "
        f"ReLU and a dense layer behind `flatten`, infinitely wide. Both kernels are Gaussian processes on one-hot "
        f"labels less 0.1, in {SPLITS} random splits into {TRAINING} training and {1797 - TRAINING} test images. "
        f"Learned coefficients come from `fit` on {SUBSET} of the training images in at most {STEPS} steps. Fixed "
        f"ones are C_W = {FIXED['c_w']:g}, C_b = {FIXED['c_b']:g} and noise of {SHARE:g} of the mean diagonal. "
        "Intervals are of 95 % over splits, which share images. The log likelihood is of all ten outputs of an image."
    )
    says = [f"The whole run took {seconds:.0f} CPU-seconds and {gigabytes:.2f} GB at its peak."]
    tables = [{"columns": columns, "rows": rows}]
    return {"title": "Digits by the kernels of a CNN", "how": how, "tables": tables, "says": says}


def main() -> None:
    """Run all splits, and write the record if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    x, labels = images()
    splits = [np.random.default_rng(seed).permutation(len(x))[:TRAINING] for seed in range(SPLITS)]
    rows = []
    for name in KERNELS:
        rows.append(row(name, "fixed", of_fixed(name, x, labels, splits)))
        print(*rows[-1], sep=" | ", flush=True)
        learned = [of_learned(name, x, labels, train) for train in splits]
        rows.append(row(name, "learned", learned))
        print(*rows[-1], sep=" | ", flush=True)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    written = record(rows, time.process_time(), gigabytes)
    if given.record:
        PLACE.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
