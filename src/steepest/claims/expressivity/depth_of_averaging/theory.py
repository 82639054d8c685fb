"""How often averages over a graph tell the class of a node, from powers of its walk."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from steepest.graphs import lazy_walk
from steepest.nn.types import Values


class Averages(NamedTuple):
    """Averages of noisy classes after 0, 1, …, K rounds, as normal variables at each node.

    Attributes:
        signal: their means, times the node's class, shape ``(K + 1, n)``.
        noise: their covariances at each node, shape ``(n, K + 1, K + 1)``.
    """

    signal: Values
    noise: Values


def averages(graph: Values, classes: Values, strength: float, rounds: int) -> Averages:
    """Return the law of (P^k x)_z at every node z, for x = strength · class + N(0, 1) and k up to ``rounds``."""
    walk = lazy_walk(graph)
    steps = [np.eye(len(walk))]
    for _ in range(rounds):
        steps.append(walk @ steps[-1])
    powers = np.stack(steps)
    signal = strength * classes * (powers @ classes)
    # Cov((P^j x)_z, (P^k x)_z) = Σ_x P^j_zx P^k_zx for white noise, (n, K + 1, K + 1)
    return Averages(signal, np.einsum("jzx,kzx->zjk", powers, powers))


def chances(of: Averages) -> Values:
    """Return the share of nodes whose class is the sign of their average, for each number of rounds, ``(K + 1,)``."""
    return ndtr(of.signal / deviations(of)).mean(1)


def deviations(of: Averages) -> Values:
    """Return standard deviations of the averages, ``(K + 1, n)``."""
    return np.sqrt(np.einsum("zkk->kz", of.noise))


def least_squares(of: Averages) -> Values:
    """Return the weights of all rounds, alike at all nodes, whose sum is nearest to the class in the mean square."""
    # in units of each round's own size, as late averages are small and alike
    size = np.sqrt(np.einsum("zkk->k", of.noise) / len(of.noise))
    # normal equations: E a_j a_k over nodes and noise, and E class · a_j, in which classes cancel
    second = of.noise.mean(0) + of.signal @ of.signal.T / of.signal.shape[1]
    scaled = second / np.outer(size, size)
    return np.linalg.solve(scaled, of.signal.mean(1) / size) / size


def chance_of(of: Averages, weights: Values) -> float:
    """Return the share of nodes whose class is the sign of a weighted sum over rounds, the same at all nodes."""
    spread = np.sqrt(np.einsum("j,zjk,k->z", weights, of.noise, weights))
    return float(ndtr(weights @ of.signal / spread).mean())


def chance_of_each(of: Averages) -> float:
    """Return the same with weights of each node's own, the best there are: Φ(√(vᵀC⁻¹v)) with the means v."""
    inverse = np.linalg.pinv(
        of.noise, rcond=1e-13, hermitian=True
    )  # of a lone node all rounds are one
    square = np.einsum("jz,zjk,kz->z", of.signal, inverse, of.signal)
    return float(ndtr(np.sqrt(square)).mean())
