"""Random networks: the covariance Σ of their outputs given the last hidden layer, and what becomes of it."""

import jax.numpy as jnp
import numpy as np

from steepest.claims.signals._three_inputs import ENTRIES
from steepest.claims.signals.nngp_limit.theory import Case

CHUNK = 1000
"""Networks drawn at once."""


def draw_covariances(
    case: Case, inputs: np.ndarray, width: int, hidden: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw Σ of networks after the last hidden layer and after the one before it, ``(2, networks, 3, 3)``.

    Rows of Gaussian weights applied to known features are Gaussian, so layers are drawn without their matrices.
    """
    # given the inputs the first layer is Gaussian at any width
    start = case.c_b + case.c_w * inputs @ inputs.T / inputs.shape[1]
    chunks = []
    for first in range(0, count, CHUNK):
        size = min(CHUNK, count - first)
        layers = [np.broadcast_to(start, (size, 3, 3))]
        for _ in range(hidden):
            normal = rng.standard_normal((size, 3, width), np.float32)
            # z of a neuron given Σ is N(0, Σ)
            z = np.linalg.cholesky(layers[-1]).astype(np.float32) @ normal
            features = np.asarray(case.activation(jnp.asarray(z)))
            products = (features @ features.swapaxes(1, 2)).astype(float)
            layers.append(case.c_b + case.c_w / width * products)
        chunks.append(np.stack(layers[-2:]))
    # the last hidden layer first
    return np.concatenate(chunks, 1)[::-1]


def moments(covariances: np.ndarray, u: np.ndarray, groups: int) -> dict[str, np.ndarray]:
    """Return what is compared with the limit, the last layer's Gaussian weights integrated exactly.

    The mean of Σ, ``(groups, 6)``, E cos(u·z), ``(groups, 13)``, and the excess kurtosis of an output in the mean over
    inputs, ``(groups,)``.
    """
    grouped = covariances.reshape(groups, -1, 3, 3)
    # uᵀΣu, (groups, networks, 13)
    exponent = np.einsum("ua,gkab,ub->gku", u, grouped, u, optimize=True)
    variances = np.diagonal(grouped, axis1=2, axis2=3)
    # z given Σ is Gaussian, E z⁴ = 3 E Σ²: the excess kurtosis is 3 Var Σ/(E Σ)²
    spread = variances.var(1, ddof=1) / variances.mean(1) ** 2
    first, second = np.transpose(ENTRIES)
    return {
        "covariance": grouped.mean(1)[:, first, second],
        "cosine": np.exp(-exponent / 2).mean(1),  # E[cos(u·z) | Σ] = exp(−uᵀΣu/2)
        "kurtosis": 3 * spread.mean(1),
    }
