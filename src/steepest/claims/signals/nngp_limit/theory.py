"""The kernel of the limit, and the order 1/n of what random networks are off by: fluctuations and shift of Σ.

Σ is the covariance of an output at three inputs, given the last hidden layer.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from steepest.claims.signals._three_inputs import (
    ENTRIES,
    characteristic,
    entries_of,
    matrix_of,
    on_entries,
)
from steepest.kernels import finite_width, homogeneous_kurtosis, propagate
from steepest.nn.activations import Activation, homogeneous_slopes

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
    return entries_of(case.c_b + case.c_w * inputs @ inputs.T / inputs.shape[1])


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


def kernel_after(case: Case, inputs: np.ndarray, hidden: int) -> np.ndarray:
    """Return the kernel after some hidden layers, ``(6,)``."""
    kernel = first_kernel(case, inputs)
    for _ in range(hidden):
        kernel = next_kernel(case, kernel)
    return kernel


def with_variances(kernels: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return kernels with their own correlations and the variances of others, ``(cases, 6)``."""
    first, second = np.transpose(ENTRIES)
    scale = np.sqrt(others[:, :3] / kernels[:, :3])
    # K_ab ← K_ab √(V_aa/K_aa) √(V_bb/K_bb), which leaves correlations as they are
    return kernels * scale[:, first] * scale[:, second]


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
        # a variance depends only on itself: its pair is one input twice
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
