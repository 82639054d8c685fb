"""The kernel of the limit, and the order 1/n of what random networks are off by: fluctuations and shift of Σ.

Σ is the covariance of an output at three inputs, given the last hidden layer: six entries, three of them variances.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from steepest.kernels import finite_width, homogeneous_kurtosis, propagate
from steepest.nn.activations import Activation, homogeneous_slopes

ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Of a symmetric matrix at three inputs."""
COMBINATIONS = np.array([u for u in product((1, 0, -1), repeat=3) if u > (0, 0, 0)], float)
"""Frequencies of the characteristic function, up to scale: each output, sums and differences of two and of three."""
DRAWS = 200_000
"""Of the features of one neuron, in opposite pairs: moments of the fourth order are exact to 1 %."""
STEP = 1e-3
"""Of the differences that give derivatives of the kernel's recursion, over the size of the kernel."""

SIGNS = tuple(product((1, -1), repeat=2))


class Case(NamedTuple):
    """One activation at one initialization."""

    activation: Activation
    c_w: float
    c_b: float


class FirstOrder(NamedTuple):
    """Mean and covariance of Σ: ``K + shift/n`` and ``spread/n``."""

    kernel: np.ndarray  # K, (6,)
    shift: np.ndarray  # (6,)
    spread: np.ndarray  # (6, 6)


def first_kernel(case: Case, inputs: np.ndarray) -> np.ndarray:
    """Return the covariance of the first layer, whose inputs are known, ``(6,)``."""
    covariance = case.c_b + case.c_w * inputs @ inputs.T / inputs.shape[1]
    return np.array([covariance[pair] for pair in ENTRIES])


def matrix_of(entries: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix of six entries."""
    matrix = np.empty((3, 3))
    for (a, b), entry in zip(ENTRIES, entries, strict=True):
        matrix[a, b] = matrix[b, a] = entry
    return matrix


def next_kernel(case: Case, kernel: np.ndarray) -> np.ndarray:
    """Return the kernel one layer on, ``C_b + C_W E σσ``."""
    return np.array([next_entry(case, of_pair(kernel, entry)) for entry in range(6)])


def of_pair(kernel: np.ndarray, entry: int) -> np.ndarray:
    """Return the variances and the covariance of the two inputs of an entry."""
    # entries 0, 1 and 2 are the variances of the inputs 0, 1 and 2
    return kernel[[*ENTRIES[entry], entry]]


def next_entry(case: Case, pair: np.ndarray) -> float:
    """Return one entry of the kernel one layer on, from variances and covariance."""
    return float(propagate(*case, jnp.asarray(pair), 1)[-1, 2])


def first_order(case: Case, inputs: np.ndarray, hidden: int) -> FirstOrder:
    """Carry kernel, shift and spread of Σ through hidden layers of n neurons each.

    The n neurons of a layer are independent given Σ before them: they add the covariance of one neuron's products of
    features, and pass on what Σ has already, by the derivatives of the kernel's recursion.
    """
    kernel = first_kernel(case, inputs)
    shift = np.zeros(6)
    spread = np.zeros((6, 6))
    for _ in range(hidden):
        slope, bend = derivatives(case, kernel)
        # E F(K + δ) = F(K) + F'·E δ + ½ F'':E δδᵀ; both means are of order 1/n
        shift = slope @ shift + 0.5 * np.einsum("pij,ij->p", bend, spread)
        # Var E[Σ' | Σ] + E Var[Σ' | Σ]: the second is of a mean of n neurons, C_W² Cov(σσ)/n
        spread = slope @ spread @ slope.T + case.c_w**2 * products_of_features(case, kernel)
        kernel = next_kernel(case, kernel)
    return FirstOrder(kernel, shift, spread)


def derivatives(case: Case, kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return first and second derivatives of the kernel one layer on, ``(6, 6)`` and ``(6, 6, 6)``."""
    slope = np.zeros((6, 6))
    bend = np.zeros((6, 6, 6))
    for entry, (a, b) in enumerate(ENTRIES):
        # a variance depends on itself alone: its pair is one input twice
        ways = np.ones((1, 3)) if a == b else np.eye(3)
        places = [entry] if a == b else [a, b, entry]
        gradient, curvature = differences(case, of_pair(kernel, entry), ways)
        slope[entry, places] = gradient
        bend[np.ix_([entry], places, places)] = curvature
    return slope, bend


def differences(case: Case, pair: np.ndarray, ways: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and curvature of one entry along some ways, by central differences."""
    step = STEP * pair[:2].max()
    at = lambda move: next_entry(case, pair + step * move)
    gradient = np.array([(at(way) - at(-way)) / (2 * step) for way in ways])
    curvature = np.empty((len(ways), len(ways)))
    for i, j in product(range(len(ways)), repeat=2):
        if i <= j:
            # ∂_i∂_j F ≈ Σ s t F(x + h (s e_i + t e_j)/2)/h² over signs s and t
            corners = [s * t * at((s * ways[i] + t * ways[j]) / 2) for s, t in SIGNS]
            curvature[i, j] = curvature[j, i] = sum(corners) / step**2
    return gradient, curvature


def products_of_features(case: Case, kernel: np.ndarray) -> np.ndarray:
    """Return the covariance of one neuron's products σ(z_a) σ(z_b), ``(6, 6)``."""
    half = np.random.default_rng(0).normal(size=(DRAWS // 2, 3))
    # what is odd in z cancels
    z = np.concatenate([half, -half]) @ np.linalg.cholesky(matrix_of(kernel)).T
    features = np.asarray(case.activation(jnp.asarray(z)), float)
    return np.cov(np.stack([features[:, a] * features[:, b] for a, b in ENTRIES]))


def frequencies(kernel: np.ndarray) -> np.ndarray:
    """Return frequencies u at which uᵀKu is of order one, ``(13, 3)``: 2 for a single output."""
    units = np.sqrt(2) * COMBINATIONS / np.linalg.norm(COMBINATIONS, axis=1, keepdims=True)
    return units / np.sqrt(kernel[:3])


def on_entries(u: np.ndarray) -> np.ndarray:
    """Return the weights with which uᵀΣu is a sum over six entries, ``(13, 6)``."""
    # entries off the diagonal stand twice
    return np.stack([u[:, a] * u[:, b] * (1 if a == b else 2) for a, b in ENTRIES], -1)


def characteristic(kernel: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return E cos(u·z) = exp(−uᵀKu/2) of the limit, ``(13,)``."""
    return np.exp(-on_entries(u) @ kernel / 2)


def characteristic_shift(order: FirstOrder, u: np.ndarray) -> np.ndarray:
    """Return n times what E cos(u·z) = E exp(−uᵀΣu/2) is off by, to first order, ``(13,)``."""
    weights = on_entries(u)
    # E exp(−X/2) = exp(−E X/2)(1 + Var X/8 + …) of X = uᵀΣu, with E X = uᵀKu + (shift)/n
    variance = np.einsum("up,pq,uq->u", weights, order.spread, weights)
    return characteristic(order.kernel, u) * (variance / 8 - weights @ order.shift / 2)


def kurtosis(case: Case, inputs: np.ndarray, widths: Sequence[int], hidden: int) -> np.ndarray:
    """Return the excess kurtosis of an output, mean over inputs: exact where σ allows it, else its order 1/n."""
    if homogeneous_slopes(case.activation) is not None and case.c_b == 0:
        exact = [homogeneous_kurtosis(case.activation, (n,) * hidden) for n in widths]
        return 3 * (np.array(exact) - 1)
    starts = first_kernel(case, inputs)[:3]
    # leading order is a coefficient over n: layers of one neuron give the coefficient
    leading = [finite_width(*case, float(k), (1,) * hidden).kurtosis[-1] for k in starts]
    return np.mean(leading) / np.array(widths)


def kurtosis_of_signs(n: int, hidden: int) -> float:
    """Return the exact excess kurtosis of a ReLU network without biases whose weights beyond the first layer are signs.

    Every z is symmetric, so that with C_W = 2 and K = 1 in all layers 2 E σ(z)² = E z² and 2 E σ(z)⁴ = E z⁴. With
    m = E Σ² and q = E z⁴ a layer does ``m ← (2 q + (n − 1) m)/n`` and ``q ← 3 m − 4 q/n``.
    """
    m = 1.0
    q = 3.0
    for _ in range(hidden):
        features = 2 * q  # 4 E σ⁴
        # E Σ²: n terms 4 E σ⁴, and n(n − 1) pairs 4 E σ_i²σ_j² = E z_i²z_j² = E Σ² before, over n²
        m = (features + (n - 1) * m) / n
        q = 3 * m - 2 * features / n  # E(Σ s_j a_j)⁴ = 3 (Σ a_j²)² − 2 Σ a_j⁴ for signs s
    return q - 3


def exponential_kernel(
    c_w: float, inputs: np.ndarray, hidden: int, *, bare: bool = False
) -> np.ndarray:
    """Return K of the outputs for σ = exp without biases, ``(6,)``.

    E exp(z + z') is exp of half the variance of the sum: ``K_ab ← C_W exp((K_aa + K_bb)/2 + K_ab)``.

    Args:
        c_w: C_W.
        inputs: shape ``(3, n_0)``.
        hidden: layers.
        bare: whether the variances are forgotten, exp(K_ab), a wrong theory.
    """
    kernel = c_w * inputs @ inputs.T / inputs.shape[1]
    for _ in range(hidden):
        half = np.diag(kernel) / 2
        variances = 0.0 if bare else half[:, None] + half
        kernel = c_w * np.exp(variances + kernel)
    return np.array([kernel[pair] for pair in ENTRIES])
