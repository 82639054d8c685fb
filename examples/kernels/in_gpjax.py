"""The kernel of a convolutional network in GPJax: images as rows, one pair at a time.

python examples/kernels/in_gpjax.py
"""

from collections.abc import Callable

import equinox
import gpjax
import jax
import jax.numpy as jnp
import numpy as np
from data import limit, threes_and_eights

from steepest.kernels import gaussian_process, gram, kernel_function


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
    train, test = slice(0, 16), slice(16, 24)
    rows = jnp.asarray(x.reshape(len(x), -1))
    kernel = NetworkKernel(limit(), x)
    data = gpjax.Dataset(rows[train], jnp.asarray(y[train, None]))
    prior = gpjax.gps.Prior(kernel, gpjax.mean_functions.Zero(), jitter=0.0)
    noise = gpjax.likelihoods.Gaussian(obs_stddev=jnp.sqrt(1e-3))
    posterior = prior * noise
    mean = posterior.predict(rows[test], train_data=data).mean
    matrix = gram(limit(), x).nngp
    ours = gaussian_process(matrix[train, train], y[train], 1e-3)
    return {
        "difference of the means": float(np.abs(mean - ours.mean(matrix[test, train])).max()),
        "right": float((np.sign(mean) == y[test]).mean()),
    }


if __name__ == "__main__":
    print(main())
