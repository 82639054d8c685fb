"""Images of two digits, and a convolutional kernel: what all recipes of this folder start from."""

import numpy as np
from sklearn.datasets import load_digits

from steepest.nn.layers import conv, dense, global_pool, network


def threes_and_eights(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return images (n, 8, 8, 1) and targets 1 and -1."""
    digits = load_digits()
    chosen = np.flatnonzero(np.isin(digits.target, (3, 8)))[:count]
    images = digits.images[chosen, :, :, None] / 16
    return images, np.where(digits.target[chosen] == 3, 1.0, -1.0)


def limit():
    """Return the limit of a network with two convolutions and global pooling."""
    layers = [conv(64), "relu", conv(64), "relu", global_pool(), dense(1)]
    return network(*layers, shape=(8, 8, 1), parameterized="ntk", c_w=2.0, c_b=0.01).limit()
