"""Rad of stumps, by the central limit theorem: n examples do not enter but by 1/√n."""

import numpy as np

DRAWS = 40_000  # of Gaussian processes, which leave 0.2 %


def rademacher_constant(features: int, cells: int, rng: np.random.Generator) -> float:
    """Return lim √n E max_h |Σ σ_i h(x_i)|/n over stumps of uniform inputs: the mean maximum of a Gaussian process.

    Stumps ``±1`` at the thresholds s and t have the covariance 1 − 2|s − t| in one feature, and (1 − 2s)(1 − 2t) in
    two.

    Args:
        features: of the inputs, independent.
        cells: of the grid of thresholds ``1/cells, …, 1 − 1/cells``.
        rng: for its draws.
    """
    t = np.arange(1, cells) / cells
    within = 1 - 2 * np.abs(t[:, None] - t)
    between = np.outer(1 - 2 * t, 1 - 2 * t)
    # signs σ_i have mean zero, so that E h h' is the covariance; between features h and h' are
    # independent, and (1 − 2s)(1 − 2t) is the product of their means
    covariance = np.kron(np.eye(features), within - between) + np.tile(
        between, (features, features)
    )
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(values.clip(min=0))
    process = rng.standard_normal((DRAWS, len(root))) @ root.T
    return float(np.abs(process).max(1).mean())
