"""Weights that fit a sample, by the margin perceptron."""

import numpy as np

from steepest.nn.types import Values

PASSES = 1000  # over a sample, at most, until weights fit it


def perceptron(x: Values, y: Values) -> Values:
    """Return weights of hinge loss zero on each sample, which w* with margins of one can fit.

    Steps w → w + yx wherever y⟨w, x⟩ < 1, pass after pass. ⟨w, w*⟩ grows by one a step at least and ‖w‖² by d + 2 at
    most, so that there are at most (d + 2)‖w*‖² steps in all.

    Args:
        x: inputs, shape ``(seeds, n, d)``.
        y: labels ±1, shape ``(seeds, n)``.

    Returns:
        shape ``(seeds, d)``.
    """
    weights = np.zeros((len(x), x.shape[-1]))
    for i, (inputs, labels) in enumerate(zip(x, y, strict=True)):
        signed = labels[:, None] * inputs
        w = weights[i]
        for _ in range(PASSES):
            steps = 0
            for row in signed:
                if row @ w < 1:
                    w += row
                    steps += 1
            if not steps:
                break
    return weights
