"""The kernel of a convolutional network in scikit-learn: as a kernel of its Gaussian processes, and precomputed.

python examples/kernels/in_scikit_learn.py
"""

import numpy as np
from data import limit, threes_and_eights
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel
from sklearn.svm import SVC

from steepest.kernels import gaussian_process, gram, gram_diagonal


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
    x, y = threes_and_eights()
    train, test = slice(0, 40), slice(40, 60)
    rows = x.reshape(len(x), -1)
    kernel = NetworkKernel(limit()) + WhiteKernel(1e-3, "fixed")
    process = GaussianProcessRegressor(kernel).fit(rows[train], y[train])
    mean, deviation = process.predict(rows[test], return_std=True)
    matrix = gram(limit(), x)
    ours = gaussian_process(matrix.nngp[train, train], y[train], 1e-3)
    machine = SVC(kernel="precomputed", C=100.0).fit(matrix.ntk[train, train], y[train])
    right = (machine.predict(matrix.ntk[test, train]) == y[test]).mean()
    return {
        "difference of the means": np.abs(mean - ours.mean(matrix.nngp[test, train])).max(),
        "right, Gaussian process": (np.sign(mean) == y[test]).mean(),
        "right, support vectors": right,
        "largest deviation": deviation.max(),
    }


if __name__ == "__main__":
    print(main())
