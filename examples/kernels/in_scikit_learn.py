"""The kernel of a convolutional network in scikit-learn: as a kernel of its Gaussian processes, and precomputed.

python examples/kernels/in_scikit_learn.py
"""

import numpy as np
from data import NOISE, compared, limit, threes_and_eights
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel
from sklearn.svm import SVC

from steepest.kernels import gram, gram_diagonal

TRAIN = 40


class NetworkKernel(Kernel):
    """NNGP of a limit; inputs come as rows, as scikit-learn wants them."""

    def __init__(self, limit):
        self.limit = limit

    def __call__(self, X, Y=None, eval_gradient=False):
        x, y = (None if rows is None else rows.reshape(-1, *self.limit.shape) for rows in (X, Y))
        kernel = gram(self.limit, x, y).nngp
        return (kernel, np.empty((len(X), len(X), 0))) if eval_gradient else kernel

    def diag(self, X):
        return gram_diagonal(self.limit, X.reshape(-1, *self.limit.shape)).nngp

    def is_stationary(self):
        return False


def main() -> dict[str, float]:
    """Compare a posterior of scikit-learn with ours, and train a support vector machine."""
    x, y = threes_and_eights(60)
    rows = x.reshape(len(x), -1)
    kernel = NetworkKernel(limit()) + WhiteKernel(NOISE, "fixed")
    process = GaussianProcessRegressor(kernel).fit(rows[:TRAIN], y[:TRAIN])
    mean, deviation = process.predict(rows[TRAIN:], return_std=True)
    tangent = gram(limit(), x).ntk
    machine = SVC(kernel="precomputed", C=100.0).fit(tangent[:TRAIN, :TRAIN], y[:TRAIN])
    return compared(mean, x, y, TRAIN) | {
        "right, support vectors": (machine.predict(tangent[TRAIN:, :TRAIN]) == y[TRAIN:]).mean(),
        "largest deviation": deviation.max(),
    }


if __name__ == "__main__":
    print(main())
