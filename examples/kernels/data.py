"""Images of two digits, a convolutional kernel, and the posterior mean that all recipes of this folder should find."""

import numpy as np
from sklearn.datasets import load_digits

from steepest.kernels import gaussian_process, gram
from steepest.nn.layers import conv, dense, global_pool, network

NOISE = 1e-3  # variance


def threes_and_eights(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images (n, 8, 8, 1) and targets 1 and -1."""
    digits = load_digits()
    chosen = np.flatnonzero(np.isin(digits.target, (3, 8)))[:count]
    images = digits.images[chosen, :, :, None] / 16
    return images, np.where(digits.target[chosen] == 3, 1.0, -1.0)


def limit():
    """Return the limit of a network with two convolutions and global pooling."""
    layers = [conv(64), "relu", conv(64), "relu", global_pool(), dense(1)]
    return network(*layers, shape=(8, 8, 1), parameterized="ntk", c_w=2.0, c_b=0.01).limit()


def compared(mean: np.ndarray, x: np.ndarray, y: np.ndarray, train: int) -> dict[str, float]:
    """Compare a posterior mean for the images behind the first ``train`` with ours, and with their targets."""
    kernel = gram(limit(), x).nngp
    ours = gaussian_process(kernel[:train, :train], y[:train], NOISE).mean(kernel[train:, :train])
    return {
        "difference of the means": float(np.abs(mean - ours).max()),
        "right": float((np.sign(mean) == y[train:]).mean()),
    }
