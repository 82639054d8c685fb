"""When the second moment of SGD with batches grows, near a minimum that fits all examples.

Example i has the Hessian H_i = x_i x_iᵀ and no gradient at the minimum. A batch of b of n, drawn without replacement,
takes the second moment V of the error to (I − ηH)V(I − ηH) + η²p(mean_i H_iVH_i − HVH), p = (n − b)/(b(n − 1)).
"""

from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values


class Growth(NamedTuple):
    """What a step does to the second moment in the long run.

    Attributes:
        factor: by which it grows, the spectral radius.
        moment: that it tends to, up to its size, ``(d, d)``; positive semidefinite, of trace one.
    """

    factor: float
    moment: Values


def share(batch: int, n: int) -> float:
    """Return p of batches without replacement.

    >>> share(1, 5), share(5, 5)
    (1.0, 0.0)
    """
    return (n - batch) / (batch * (n - 1))


def growth(x: Values, eta: float, p: float) -> Growth:
    """Return growth and leading second moment for examples ``(n, d)``, a step size, and p of the batches."""
    n, d = x.shape
    hessian = x.T @ x / n
    step = np.eye(d) - eta * hessian
    outer = np.einsum("ni,nj->nij", x, x).reshape(n, d * d)
    of_examples = np.einsum("na,nb->ab", outer, outer) / n
    # H_iVH_i = x_i x_iᵀ (x_iᵀVx_i)
    # vec(AVA) = (A ⊗ A) vec V for symmetric A; V is a vector of d² entries here
    operator = np.kron(step, step) + eta**2 * p * (of_examples - np.kron(hessian, hessian))
    values, vectors = np.linalg.eig(operator)
    place = int(np.argmax(np.abs(values)))
    moment = np.real(vectors[:, place]).reshape(d, d)
    moment = (moment + moment.T) / 2
    # over the trace, which also settles the sign that an eigenvector leaves open
    return Growth(float(np.abs(values[place])), moment / np.trace(moment))
