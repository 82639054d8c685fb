"""The kernel of a convolutional network in scikit-learn: in its Gaussian processes, which learn it, and precomputed.

python examples/kernels/in_scikit_learn.py
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from data import NOISE, START, compared, learned, limit, threes_and_eights
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, WhiteKernel
from sklearn.svm import SVC

from steepest.kernels import gram, gram_diagonal

TRAIN = 24


@partial(jax.jit, static_argnums=0)
def with_slopes(limit, logs, x):
    """NNGP and its derivatives by the logarithms of coefficients, behind its axes; one program for all their values."""
    nngp = lambda logs: gram(limit(*jnp.exp(logs)), x).nngp
    return nngp(logs), jax.jacfwd(nngp)(logs)


class NetworkKernel(Kernel):
    """NNGP of a function of C_W and C_b that gives a limit; inputs come as rows, as scikit-learn wants them."""

    def __init__(self, limit, shape, c_w=2.0, c_b=0.01, within=(1e-3, 1e3)):
        self.limit = limit
        self.shape = shape
        self.c_w = c_w
        self.c_b = c_b
        self.within = within

    @property
    def hyperparameter_c_w(self):
        return Hyperparameter("c_w", "numeric", self.within)

    @property
    def hyperparameter_c_b(self):
        return Hyperparameter("c_b", "numeric", self.within)

    def __call__(self, X, Y=None, eval_gradient=False):
        x, y = (None if rows is None else rows.reshape(-1, *self.shape) for rows in (X, Y))
        if eval_gradient:  # scikit-learn sorts hyperparameters by name
            kernel, slopes = with_slopes(self.limit, np.log([self.c_w, self.c_b]), x)
            return np.asarray(kernel), np.asarray(slopes)[:, :, ::-1]
        return gram(self.limit(self.c_w, self.c_b), x, y).nngp

    def diag(self, X):
        return gram_diagonal(self.limit(self.c_w, self.c_b), X.reshape(-1, *self.shape)).nngp

    def is_stationary(self):
        return False


def main() -> dict[str, float]:
    """Compare a posterior with ours, learn C_W, C_b and the noise, and train a support vector machine."""
    jax.config.update("jax_enable_x64", True)
    x, y = threes_and_eights(40)
    rows = x.reshape(len(x), -1)
    kernel = NetworkKernel(limit, (4, 4, 1)) + WhiteKernel(NOISE)
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(rows[:TRAIN], y[:TRAIN])
    mean, deviation = process.predict(rows[TRAIN:], return_std=True)

    noise = WhiteKernel(START["noise"], (1e-4, 1.0))
    start = NetworkKernel(limit, (4, 4, 1), START["c_w"], START["c_b"]) + noise
    process = GaussianProcessRegressor(start).fit(rows[:TRAIN], y[:TRAIN])
    end = process.kernel_
    values = {"c_w": end.k1.c_w, "c_b": end.k1.c_b, "noise": end.k2.noise_level}
    likelihood = partial(process.log_marginal_likelihood, eval_gradient=True)
    numbers = learned(likelihood, start.theta, end.theta, values, x[:TRAIN], y[:TRAIN])

    tangent = gram(limit(), x).ntk
    machine = SVC(kernel="precomputed", C=100.0).fit(tangent[:TRAIN, :TRAIN], y[:TRAIN])
    right = (machine.predict(tangent[TRAIN:, :TRAIN]) == y[TRAIN:]).mean()
    also = {"right, support vectors": right, "largest deviation": deviation.max()}
    return compared(mean, x, y, TRAIN) | also | numbers


if __name__ == "__main__":
    print(main())
