"""Gradients of random networks against every parity, smooth bumps, and elimination over the field of two numbers."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.linalg import parity_spectrum
from steepest.nn.data import hypercube


def signals(key: kit.Key, n: int, neurons: int, seeds: int, ones: float) -> np.ndarray:
    """Return ‖E χ_S ∂f‖² of random networks, by the number of bits of S, averaged over S, ``(seeds, n + 1)``.

    Args:
        key: of the weights.
        n: bits of the inputs.
        neurons: of each network.
        seeds: networks.
        ones: P(x_i = 1); the correlations are those of inputs that are drawn so.
    """
    x = hypercube(n)
    weight = np.prod(np.where(x > 0, ones, 1 - ones), axis=1) * len(x)  # P(x) over 2^(−n)
    bits = (x < 0).sum(1)

    def output(params: tuple[jax.Array, ...], x: jax.Array) -> jax.Array:
        w, b, v = params
        return jax.nn.relu(w @ x + b) @ v / jnp.sqrt(neurons)

    # signs as output weights: their size, which the law takes as one, does not fluctuate
    def gradients(key: kit.Key, x: jax.Array) -> jax.Array:
        for_w, for_b, for_v = jax.random.split(key, 3)
        params = (
            jnp.sqrt(2 / n) * jax.random.normal(for_w, (neurons, n)),
            jax.random.normal(for_b, (neurons,)),
            jax.random.rademacher(for_v, (neurons,), float),
        )
        slopes = jax.vmap(jax.grad(output), (None, 0))(params, x)
        return jnp.concatenate([part.reshape(len(x), -1) for part in slopes], axis=1)

    compute = kit.compiled(gradients)
    rows = []
    for network in kit.keys(key, seeds):
        gradient = np.asarray(compute(network, jnp.asarray(x)))
        spectrum = parity_spectrum(gradient * weight[:, None])
        rows.append(np.bincount(bits, (spectrum**2).sum(1)) / np.bincount(bits))
    return np.array(rows)


def bumps(rng: np.random.Generator, bits: int, a: float, samples: int, groups: int) -> np.ndarray:
    """Return sampled means of cos(a Σ_S x) cos(a Σ_S' x), by the bits that S and S' share, ``(groups, bits + 1)``."""
    x = rng.normal(size=(groups, max(1, samples // groups), 2 * bits))
    first = np.cos(a * x[..., :bits].sum(-1))
    rows = []
    for shared in range(bits + 1):
        other = x[..., bits - shared : 2 * bits - shared].sum(-1)
        rows.append((first * np.cos(a * other)).mean(-1))
    return np.stack(rows, axis=-1)


def eliminations(rng: np.random.Generator, n: int, examples: int, draws: int) -> np.ndarray:
    """Return whether elimination finds a random parity of n/2 bits from random examples, ``(draws,)``."""
    results = []
    for _ in range(draws):
        inside = rng.permutation(n) < n // 2
        bits = rng.integers(0, 2, (examples, n))
        solved = solve_mod_2(bits, bits @ inside % 2)
        results.append(solved is not None and np.array_equal(solved, inside))
    return np.array(results, float)


def solve_mod_2(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """Return the solution of a linear system over the field of two numbers, None where it is not unique."""
    rows = np.column_stack([matrix, right]) % 2
    unknowns = matrix.shape[1]
    for column in range(unknowns):
        below = np.flatnonzero(rows[column:, column])
        if not below.size:
            return None
        pivot = column + below[0]
        rows[[column, pivot]] = rows[[pivot, column]]
        others = rows[:, column].astype(bool)
        others[column] = False
        rows[others] ^= rows[column]  # addition modulo two
    return rows[:unknowns, -1]
