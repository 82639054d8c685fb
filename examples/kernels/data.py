"""Images of two digits, a convolutional kernel, and what all recipes of this folder should find."""

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_digits

from steepest.kernels import gaussian_process, gram
from steepest.nn.layers import conv, dense, global_pool, network

NOISE = 1e-3  # variance
START = {"c_w": 8.0, "c_b": 0.1, "noise": 0.1}  # where learning begins
STEP = 1e-4  # of differences


def threes_and_eights(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images (n, 4, 4, 1), means of squares of 2 by 2 pixels, and targets 1 and -1."""
    digits = load_digits()
    chosen = np.flatnonzero(np.isin(digits.target, (3, 8)))[:count]
    images = digits.images[chosen].reshape(-1, 4, 2, 4, 2).mean((2, 4)) / 16
    return images[..., None], np.where(digits.target[chosen] == 3, 1.0, -1.0)


def limit(c_w=2.0, c_b=0.01):
    """Return the limit of a network with two convolutions and global pooling."""
    layers = [conv(64), "relu", conv(64), "relu", global_pool(), dense(1)]
    return network(*layers, shape=(4, 4, 1), parameterized="ntk", c_w=c_w, c_b=c_b).limit()


def compared(mean: np.ndarray, x: np.ndarray, y: np.ndarray, train: int) -> dict[str, float]:
    """Compare a posterior mean for the images behind the first ``train`` with ours, and with their targets."""
    kernel = gram(limit(), x).nngp
    ours = gaussian_process(kernel[:train, :train], y[:train], NOISE).mean(kernel[train:, :train])
    return {
        "difference of the means": float(np.abs(mean - ours).max()),
        "right": float((np.sign(mean) == y[train:]).mean()),
    }


def learned(
    likelihood: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    end: np.ndarray,
    values: dict[str, float],
    x: np.ndarray,
    y: np.ndarray,
) -> dict[str, float]:
    """Compare what was learned with ours, and the derivatives on the way with differences.

    Args:
        likelihood: the log marginal likelihood and its gradient, at parameters as the library has them.
        start: these parameters, where learning began.
        end: and where it ended.
        values: c_w, c_b and noise there.
        x: the images that were learned from.
        y: their targets.
    """
    first, slope = map(np.asarray, likelihood(start))
    last, _ = likelihood(end)
    differences = [
        (likelihood(start + shift)[0] - likelihood(start - shift)[0]) / (2 * STEP)
        for shift in STEP * np.eye(len(start))
    ]
    kernel = gram(limit(values["c_w"], values["c_b"]), x).nngp
    ours = gaussian_process(kernel, y, values["noise"]).log_likelihood
    return values | {
        "log likelihood at the start": float(first),
        "log likelihood": float(last),
        "log likelihood, ours": float(ours),
        "error of the gradient": float(np.abs(slope / differences - 1).max()),
    }
