"""Networks of two hidden layers whose neurons are exponentials, near their limit and far from it."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import logsumexp

from steepest.claims.signals._three_inputs import ENTRIES

C_W = 0.1  # of all layers; there are no biases
HIGHEST = 300.0  # logarithm of a neuron that is told from larger ones


def of_variance(inputs: np.ndarray, largest: float) -> np.ndarray:
    """Return inputs of a length at which the first layer's largest variance is this."""
    squares = C_W * (inputs**2).mean(1)
    return inputs * np.sqrt(largest / squares.max())


def draw_wide(
    log_neuron: Callable[[np.ndarray], np.ndarray],
    inputs: np.ndarray,
    u: np.ndarray,
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return E cos(u·z) and the median of each entry of Σ in every group, ``(groups, 13)`` and ``(groups, 6)``.

    Networks have two hidden layers of neurons exp(h(z)). The last Gaussian weights are integrated.

    Args:
        log_neuron: h, cut at ``HIGHEST``.
        inputs: shape ``(3, n_0)``.
        u: frequencies, shape ``(13, 3)``.
        shape: groups, networks of each, and neurons of a hidden layer.
        rng: of the networks.
    """
    groups, networks, width = shape
    start = C_W * inputs @ inputs.T / inputs.shape[1]

    def neurons(covariance: np.ndarray) -> np.ndarray:
        # with jitter, as a single huge neuron makes it singular
        scale = np.trace(covariance, axis1=1, axis2=2)[:, None, None]
        root = np.linalg.cholesky(covariance + 1e-12 * scale * np.eye(3))
        z = root @ rng.standard_normal((networks, 3, width))
        return np.exp(np.minimum(log_neuron(z), HIGHEST))

    cosines = []
    medians = []
    for _ in range(groups):
        covariance = np.broadcast_to(start, (networks, 3, 3))
        features = neurons(covariance)
        features = neurons(C_W / width * features @ features.swapaxes(1, 2))
        # uᵀΣu/C_W = (1/n) Σ_j (u·σ_j)²: a sum of squares, where entries of Σ would cancel
        squares = ((u @ features) ** 2).mean(2)
        cosines.append(np.exp(-C_W * squares / 2).mean(0))
        products = np.stack([features[:, a] * features[:, b] for a, b in ENTRIES], 1).mean(2)
        medians.append(C_W * np.median(products, 0))
    return np.stack(cosines), np.stack(medians)


def largest_shares(
    variance: float, widths: Sequence[int], groups: int, networks: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of the largest network in a group's sum of Σ, at one input and for σ = exp.

    Two hidden layers and one hidden layer, ``(groups, widths)`` each. Sums are of logarithms, as Σ overflows.

    Args:
        variance: of the first layer.
        widths: of the hidden layers.
        groups: how many.
        networks: of each group.
        rng: of the networks.
    """
    share = lambda logs: np.exp(logs.max(1) - logsumexp(logs, axis=1))
    deep = []
    shallow = []
    for width in widths:
        draw = lambda width=width: rng.standard_normal((groups, networks, width))
        # log Σ = log(C_W/n) + log Σ_j exp(2 z_j), as σ(z)² = exp(2z)
        first = np.log(C_W / width) + logsumexp(2 * variance**0.5 * draw(), axis=2)
        z = np.exp(first / 2)[..., None] * draw()  # z = Σ^½ ξ
        second = np.log(C_W / width) + logsumexp(2 * z, axis=2)
        deep.append(share(second))
        shallow.append(share(first))
    return np.stack(deep, 1), np.stack(shallow, 1)
