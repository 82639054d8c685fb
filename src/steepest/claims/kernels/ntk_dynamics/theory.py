"""What the limit of infinite width says of descent, and what a single neuron says of the departure from it."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from steepest.kernels import gram
from steepest.nn.activations import activation
from steepest.nn.networks import mlp

NEURONS = 20_000
"""Draws of one neuron; their mean of squares is exact to 2 %."""


class Limit(NamedTuple):
    """Kernels over training points, then test points, of the infinitely wide network."""

    nngp: np.ndarray
    ntk: np.ndarray


class Recursion(NamedTuple):
    """Outputs z_t = carried z_0 + gained after some steps of descent with a fixed kernel."""

    carried: np.ndarray  # (steps, points, points)
    gained: np.ndarray  # (steps, points)


def limit_kernels(sigma: str, x: np.ndarray) -> Limit:
    """Return the kernels of one hidden layer in the NTK parameterization."""
    limit = gram(mlp((x.shape[1], 8, 1), sigma, parameterized="ntk").limit(), x)
    return Limit(np.asarray(limit.nngp), np.asarray(limit.ntk))


def recursion(kernel: np.ndarray, y: np.ndarray, rate: float, steps: Sequence[int]) -> Recursion:
    """Follow z ← z − (η/m) Θ (z − y) at all points, for the start and for the targets apart."""
    m = len(y)
    # z ← (I − (η/m) Θ P) z + (η/m) Θ y, with P onto training points
    step_matrix = np.eye(len(kernel))
    step_matrix[:, :m] -= rate / m * kernel[:, :m]
    push = rate / m * kernel[:, :m] @ y
    carried = np.eye(len(kernel))
    gained = np.zeros(len(kernel))
    at = {}
    for step in range(1, max(steps) + 1):
        carried = step_matrix @ carried
        gained = step_matrix @ gained + push
        at[step] = carried, gained
    return Recursion(*map(np.stack, zip(*(at[step] for step in steps), strict=True)))


def flow(kernel: np.ndarray, y: np.ndarray, rate: float, steps: Sequence[int]) -> Recursion:
    """Follow gradient flow to the times ηt."""
    m = len(y)
    values, vectors = np.linalg.eigh(kernel[:m, :m] / m)
    at = []
    for step in steps:
        # m Θ⁻¹(1 − e^(−ηtΘ/m)); expm1, as 1 − e^(−x) cancels at the small eigenvalues
        learned = vectors * (-np.expm1(-rate * step * values) / values) @ vectors.T
        # f_t(x) = f_0(x) + Θ(x, X) Θ⁻¹(1 − e^(−ηtΘ/m)) (y − f_0(X))
        from_targets = kernel[:, :m] @ learned / m
        carried = np.eye(len(kernel))
        carried[:, :m] -= from_targets
        at.append((carried, from_targets @ y))
    return Recursion(*map(np.stack, zip(*at, strict=True)))


class Neurons(NamedTuple):
    """Single neurons at their start, with outputs at the start of as many networks."""

    value: np.ndarray  # σ(z), (neurons, points)
    slope: np.ndarray  # σ'(z)
    last: np.ndarray  # squared weight of the last layer, (neurons, 1)
    start: np.ndarray  # outputs of infinitely wide networks, (neurons, points)


def draw_neurons(sigma: str, x: np.ndarray, nngp: np.ndarray) -> Neurons:
    """Draw neurons, always the same, and outputs of networks that have nothing to do with them."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(NEURONS, x.shape[1])) @ x.T / np.sqrt(x.shape[1])
    last = rng.normal(size=(NEURONS, 1)) ** 2
    root = np.linalg.cholesky(nngp + 1e-9 * np.trace(nngp) * np.eye(len(nngp)))
    start = rng.normal(size=(NEURONS, len(nngp))) @ root.T
    function = activation(sigma)
    value = np.asarray(function(jnp.asarray(z)), float)
    return Neurons(value, np.asarray(function.slope(jnp.asarray(z)), float), last, start)


def kernel_times(neurons: Neurons, x: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Return each neuron's tangent kernel κ times a residual, ``(neurons, points)``.

    The kernel of a network is the mean of κ(x, x') = 1 + σσ' + a² σ̇σ̇' (1 + x·x'/d), where biases are the ones.
    """
    m = residual.shape[1]
    # κr, term by term: Σ_j r_j, then σ Σ_j σ_j r_j, then a² σ̇ Σ_j σ̇_j r_j (1 + x·x_j/d)
    inputs = 1 + x[:m] @ x.T / x.shape[1]
    bias = residual.sum(1, keepdims=True)
    read = neurons.value * (neurons.value[:, :m] * residual).sum(1, keepdims=True)
    hidden = neurons.last * neurons.slope * ((neurons.slope[:, :m] * residual) @ inputs)
    return bias + read + hidden


def departures(
    neurons: Neurons,
    x: np.ndarray,
    y: np.ndarray,
    ntk: np.ndarray,
    rate: float,
    steps: Sequence[int],
) -> np.ndarray:
    """Return n E|Δz_t|² at every point, ``(steps, points)``: to first order in a network's own kernel.

    That is a mean of n independent κ, so one neuron says it: Δ_{t+1} = Δ_t − (η/m) (Θ Δ_t + (κ − Θ)(z_t − y)).
    """
    m = len(y)
    kernel = ntk[:, :m]
    z = neurons.start
    departure = np.zeros_like(z)
    at = {}
    for step in range(1, max(steps) + 1):
        residual = z[:, :m] - y
        along_limit = residual @ kernel.T  # Θ(z_t − y), (neurons, points)
        pushed = departure[:, :m] @ kernel.T + kernel_times(neurons, x, residual) - along_limit
        departure = departure - rate / m * pushed
        z = z - rate / m * along_limit
        at[step] = (departure**2).mean(0)
    return np.stack([at[step] for step in steps])
