"""Expectations at single positions as functions of the variance: Chebyshev series in its logarithm."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from steepest.kernels.duals._expectations import at_rest, hermite_coefficients, single_moments
from steepest.nn.activations import Activation, gaussian_mean

TERMS = (
    256,
    1024,
)  # of a series: tables have the first count if it will do, and the last is refused
NODES = (8, 16, 32, 64, 128, 256)
FLOOR = 1e-12  # relative to the largest variance: where an angle is asked for, smaller ones count as this


class Interpolant(NamedTuple):
    """Functions of the variance as Chebyshev series in its logarithm, times powers of it.

    Attributes:
        low: smallest variance.
        high: largest.
        series: coefficients, shape ``(nodes, functions)``.
        halves: twice the power of the variance that each function has besides, 0, 1 or 2: so what vanishes with the
            variance keeps its digits.
        error: between the nodes, relative to the largest value of each function or to the root of the first's.
    """

    low: float
    high: float
    series: NDArray[np.float64]
    halves: NDArray[np.int64]
    error: float

    def only(self, functions: slice) -> "Interpolant":
        """Return the same of some functions."""
        return self._replace(series=self.series[:, functions], halves=self.halves[functions])

    def at(self, variances: Any, xp: Any = np) -> Any:
        """Return all functions at variances of any shape, functions last; ``xp`` is NumPy or JAX's."""
        clipped = xp.clip(variances, self.low, self.high)
        # Chebyshev variable of log K, from −1 at the smallest variance to 1 at the largest
        place = 2 * xp.log(clipped / self.low) / math.log(self.high / self.low) - 1
        basis = [xp.ones_like(place), place]
        while len(basis) < len(self.series):
            basis.append(2 * place * basis[-1] - basis[-2])
        values = xp.stack(basis[: len(self.series)], axis=-1) @ self.series.astype(place.dtype)
        if not self.halves.any():
            return values
        powers = xp.stack([xp.ones_like(place), xp.sqrt(clipped), clipped], axis=-1)
        return values * powers[..., self.halves].astype(place.dtype)


@lru_cache(maxsize=64)
def series_table(activation: Activation, low: float, high: float, count: int) -> Interpolant:
    """Interpolate E σ², E σ'², E σ''², E σ and ``h_k``.

    At small variances E σ² is like K and E σ like √K at most if σ(0) is zero; ``h_k`` is for every k > 0.
    """
    vanishes = at_rest(activation)[0] == 0
    halves = np.array([2, 0, 0, 1, 1] if vanishes else [0] * 5)
    halves = np.concatenate([halves, np.ones(count - 1, int)])

    def functions(variances: NDArray[np.float64]) -> NDArray[np.float64]:
        square, slope = single_moments(activation, variances)
        h = hermite_coefficients(activation, variances, count)
        k = np.arange(h.shape[1])
        # Stein: σ' has the coefficients √(k/K) h_k, so that E σ''² = Σ k (k − 1) h_k²/K²
        curvature = ((k * (k - 1.0)) * h**2).sum(1) / variances**2
        values = np.concatenate([np.stack([square, slope, curvature, h[:, 0]], axis=1), h], axis=1)
        return values / variances[:, None] ** (halves / 2)

    return _interpolate(functions, low, high)._replace(halves=halves)


@lru_cache(maxsize=64)
def third_table(activation: Activation, low: float, high: float) -> Interpolant:
    """Interpolate E σ‴² = Σ k(k − 1)(k − 2) h_k²/K³; apart from the others, whose interpolation is counted."""

    def functions(variances: NDArray[np.float64]) -> NDArray[np.float64]:
        h = hermite_coefficients(activation, variances, TERMS[-1])
        k = np.arange(h.shape[1])
        # Stein three times: E σ‴² = Σ k (k − 1)(k − 2) h_k²/K³
        third = (k * (k - 1.0) * (k - 2.0) * h**2).sum(1) / variances**3
        return third[:, None]

    return _interpolate(functions, low, high)


def _interpolate(functions: Callable, low: float, high: float) -> Interpolant:
    """Raise the number of nodes until the functions agree between them."""
    between = np.geomspace(low, high, 17)[1:-1]
    exact = functions(between)
    scale = np.maximum(np.abs(exact).max(0), np.sqrt(np.abs(exact[:, 0]).max()))
    for count in NODES:
        points = np.cos((2 * np.arange(count) + 1) * np.pi / (2 * count))
        values = functions(np.sqrt(low * high) * (high / low) ** (points / 2))
        # T_j are orthogonal over the nodes: c_j = (2/N) Σ f T_j, c_0 half of it
        series = chebyshev.chebvander(points, count - 1).T @ values * (2 / count)
        series[0] /= 2
        table = Interpolant(low, high, series, np.zeros(series.shape[1], int), 0.0)
        error = float((np.abs(table.at(between) - exact) / scale).max())
        if error < 1e-13:
            break
    return table._replace(error=error)


@lru_cache(maxsize=64)
def moment_table(activation: Activation, low: float, high: float) -> Interpolant:
    """Interpolate E σ''² and E σ, by quadrature."""
    moments = _moments_of(activation)

    def functions(variances: NDArray[np.float64]) -> NDArray[np.float64]:
        with jax.enable_x64(True):
            return np.stack([np.asarray(moment) for moment in moments(variances)], axis=1)

    return _interpolate(functions, low / 1.05, high * 1.05)


@lru_cache
def _moments_of(activation: Activation) -> Callable:
    second = jnp.vectorize(jax.grad(activation.slope))

    def one(variance):
        square = gaussian_mean(lambda z: second(z) ** 2, variance, activation.kinks).value
        return square, gaussian_mean(activation.function, variance, activation.kinks).value

    return jax.jit(lambda variances: jax.lax.map(one, variances, batch_size=64))
