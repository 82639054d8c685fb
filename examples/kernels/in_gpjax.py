"""The kernel of a convolutional network in GPJax: images as rows, one pair at a time; its coefficients are learned.

python examples/kernels/in_gpjax.py
"""

from collections.abc import Callable
from functools import partial

import equinox
import gpjax
import jax
import jax.numpy as jnp
import numpy as np
from data import NOISE, START, compared, learned, limit, threes_and_eights
from gpjax.parameters import PositiveReal, val

from steepest.kernels import kernel_function

TRAIN = 16


@partial(jax.jit, static_argnums=0)
def nngp(limit, c_w, c_b, x, y):
    """NNGP of two inputs; where coefficients are traced only the shape of ``like`` is read."""
    return kernel_function(limit(c_w, c_b), like=np.ones((1, *x.shape)))(x, y).nngp


class NetworkKernel(gpjax.kernels.AbstractKernel):
    """NNGP of a function of C_W and C_b that gives a limit, as GPJax calls it, with two rows."""

    limit: Callable = equinox.field(static=True)
    shape: tuple[int, ...] = equinox.field(static=True)
    c_w: PositiveReal
    c_b: PositiveReal

    def __init__(self, limit, shape, c_w, c_b):
        super().__init__()
        self.limit = limit
        self.shape = shape
        self.c_w = PositiveReal(c_w)
        self.c_b = PositiveReal(c_b)

    def __call__(self, x, y):
        images = x.reshape(self.shape), y.reshape(self.shape)
        return nngp(self.limit, val(self.c_w), val(self.c_b), *images)


def process_of(c_w, c_b, noise):
    """A model of GPJax: prior and noise."""
    kernel = NetworkKernel(limit, (4, 4, 1), c_w, c_b)
    prior = gpjax.gps.Prior(kernel, gpjax.mean_functions.Zero(), jitter=0.0)
    return prior * gpjax.likelihoods.Gaussian(obs_stddev=noise**0.5)


def main() -> dict[str, float]:
    """Compare a posterior of GPJax with ours, and learn C_W, C_b and the noise."""
    jax.config.update("jax_enable_x64", True)
    x, y = threes_and_eights(24)
    rows = jnp.asarray(x.reshape(len(x), -1))
    data = gpjax.Dataset(rows[:TRAIN], jnp.asarray(y[:TRAIN, None]))
    mean = process_of(2.0, 0.01, NOISE).predict(rows[TRAIN:], train_data=data).mean

    start = process_of(**START)
    loss = lambda process, data: -gpjax.objectives.conjugate_mll(process, data)
    end, _ = gpjax.fit_scipy(
        model=start, objective=loss, train_data=data, max_iters=20, verbose=False
    )

    kernel = end.prior.kernel
    noise = val(end.likelihood.obs_stddev) ** 2
    values = {"c_w": float(val(kernel.c_w)), "c_b": float(val(kernel.c_b)), "noise": float(noise)}
    likelihood = jax.jit(jax.value_and_grad(lambda logs: -loss(process_of(*jnp.exp(logs)), data)))
    first, last = (np.log([point[name] for name in START]) for point in (START, values))
    return compared(np.asarray(mean), x, y, TRAIN) | learned(
        likelihood, first, last, values, x[:TRAIN], y[:TRAIN]
    )


if __name__ == "__main__":
    print(main())
