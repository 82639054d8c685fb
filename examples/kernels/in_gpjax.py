"""The kernel of a convolutional network in GPJax: images as rows, one pair at a time.

python examples/kernels/in_gpjax.py
"""

from collections.abc import Callable

import equinox
import gpjax
import jax
import jax.numpy as jnp
import numpy as np
from data import NOISE, compared, limit, threes_and_eights

from steepest.kernels import kernel_function

TRAIN = 16


class NetworkKernel(gpjax.kernels.AbstractKernel):
    """NNGP of a limit as GPJax calls it, with two rows."""

    shape: tuple[int, ...] = equinox.field(static=True)
    pair: Callable = equinox.field(static=True)

    def __init__(self, limit, like):
        super().__init__()
        self.shape = limit.shape
        self.pair = kernel_function(limit, like=like)

    def __call__(self, x, y):
        return self.pair(x.reshape(self.shape), y.reshape(self.shape)).nngp


def main() -> dict[str, float]:
    """Compare a posterior of GPJax with ours."""
    jax.config.update("jax_enable_x64", True)
    x, y = threes_and_eights(24)
    rows = jnp.asarray(x.reshape(len(x), -1))
    kernel = NetworkKernel(limit(), x)
    data = gpjax.Dataset(rows[:TRAIN], jnp.asarray(y[:TRAIN, None]))
    prior = gpjax.gps.Prior(kernel, gpjax.mean_functions.Zero(), jitter=0.0)
    noise = gpjax.likelihoods.Gaussian(obs_stddev=NOISE**0.5)
    mean = (prior * noise).predict(rows[TRAIN:], train_data=data).mean
    return compared(np.asarray(mean), x, y, TRAIN)


if __name__ == "__main__":
    print(main())
