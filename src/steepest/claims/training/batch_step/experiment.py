"""Many runs of SGD on least squares that can be fitted, near the minimum."""

import numpy as np
from numpy.typing import NDArray


def batches(rng: np.random.Generator, runs: int, n: int, batch: int, *, replaced: bool) -> NDArray:
    """Return weights of the examples in each run's batch, ``(runs, n)``, which add up to one."""
    if replaced:
        return rng.multinomial(batch, np.full(n, 1 / n), size=runs) / batch
    order = rng.random((runs, n)).argsort(1)
    return (order < batch) / batch


def step(
    rng: np.random.Generator, x: NDArray, errors: NDArray, eta: float, batch: int, *, replaced: bool
) -> NDArray:
    """Take one step from each run's error of the weights, ``(runs, d)``."""
    weights = batches(rng, len(errors), len(x), batch, replaced=replaced)
    # the batch's mean of H_i e = x_i ⟨x_i, e⟩
    return errors - eta * (weights * (errors @ x.T)) @ x


def growth(
    rng: np.random.Generator,
    x: NDArray,
    moment: NDArray,
    eta: float,
    batch: int,
    runs: int,
    *,
    replaced: bool = False,
) -> float:
    """Return by how much the mean square grows in a step, from errors of a given second moment."""
    values, vectors = np.linalg.eigh(moment)
    root = vectors * np.sqrt(np.maximum(values, 0))
    # R g with R Rᵀ = V and g ~ N(0, I) has the second moment V
    start = rng.standard_normal((runs, len(root))) @ root.T
    end = step(rng, x, start, eta, batch, replaced=replaced)
    return float((end**2).sum() / (start**2).sum())
