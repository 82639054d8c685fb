"""A function with a finite first Fourier moment as an average of steps along ridges, from which networks are drawn."""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import betainc, gammaln

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.types import Values

NODES = 800
"""Of the quadratures over frequencies, thresholds and radii: moments are exact to 1e-4."""


class Ridges(NamedTuple):
    """A network Σ_j a_j 1[⟨u_j, x⟩ > t_j] of N steps.

    Attributes:
        directions: u, unit vectors, shape ``(..., N, d)``.
        thresholds: t in [0, 1], shape ``(..., N)``.
        weights: a, shape ``(..., N)``.
    """

    directions: Float[Values, "*batch N d"]
    thresholds: Float[Values, "*batch N"]
    weights: Float[Values, "*batch N"]

    def steps(self, x: Float[Values, "*batch n d"]) -> Float[Values, "*batch n N"]:
        """Return the value of every step at every input, 0 or 1."""
        along = x @ self.directions.swapaxes(-1, -2)
        return (along > self.thresholds[..., None, :]).astype(float)

    def apply(self, x: Float[Values, "*batch n d"]) -> Float[Values, "*batch n"]:
        """Return the network's outputs."""
        return (self.steps(x) * self.weights[..., None, :]).sum(-1)


@dataclass(frozen=True)
class Barron:
    """The function f(x) = exp(−‖x‖²/2s²) − 1 on the unit ball of R^d, and Barron's law of steps.

    With frequencies w ~ N(0, I/s²), f(x) = E [cos⟨w, x⟩ − 1], and with r = ‖w‖, u = w/r and z = ⟨u, x⟩

        cos(r z) − 1 = −r ∫₀¹ sin(r t) (1[z > t] + 1[z < −t]) dt.

    So f is V times the mean of the steps −sign(sin(r t)) 1[⟨u, x⟩ > t] under the law of density ∝ r |sin(r t)|, with u
    uniform on the sphere. The mean of N of them errs by ``variance / N`` in the mean square over the ball.

    Attributes:
        dimension: d.
        scale: s.
    """

    dimension: int
    scale: float

    @property
    def constant(self) -> float:
        """Return C_f = E‖w‖, the first Fourier moment."""
        d = self.dimension
        # E χ_d = √2 Γ((d + 1)/2)/Γ(d/2)
        return sqrt(2) * float(np.exp(gammaln((d + 1) / 2) - gammaln(d / 2))) / self.scale

    @property
    def mass(self) -> float:
        """Return V = 2 E ∫₀¹ r |sin(r t)| dt, at most 2 C_f."""
        return float(self._moments[0])

    @property
    def second_moment(self) -> float:
        """Return the mean square of a step, over the law and the ball."""
        return float(self._moments[1])

    @property
    def norm(self) -> float:
        """Return the mean of f² over the ball."""
        rho, weights = _legendre(0.0, 1.0)
        # the radius of a uniform point of the ball has the density d ρ^{d−1}
        values = np.expm1(-(rho**2) / (2 * self.scale**2)) ** 2
        return float((weights * self.dimension * rho ** (self.dimension - 1) * values).sum())

    @property
    def variance(self) -> float:
        """Return ``V² E φ² − ‖f‖²``: N times the mean squared error of N sampled steps."""
        # N times the variance of a mean of N steps V φ with mean f: E (V φ)² − f², averaged over x
        return self.mass**2 * self.second_moment - self.norm

    def target(self, x: Float[Values, "... d"]) -> Float[Values, "..."]:
        """Return f(x)."""
        return np.expm1(-(np.asarray(x) ** 2).sum(-1) / (2 * self.scale**2))

    def ball(self, rng: np.random.Generator, *shape: int) -> Float[np.ndarray, "... d"]:
        """Draw points of the unit ball, uniformly, shape ``(*shape, d)``."""
        # P(radius < ρ) = ρ^d, inverted
        radius = rng.random(shape) ** (1 / self.dimension)
        return radius[..., None] * _directions(rng, shape, self.dimension)

    def sample(self, rng: np.random.Generator, *shape: int) -> tuple[Ridges, int]:
        """Draw networks of N steps from Barron's law.

        Frequencies of density ∝ r p(r) and uniform thresholds are kept with probability |sin(r t)|, which is exact.

        Args:
            rng: NumPy's generator; ``numpy_generator(key)`` makes one of a key.
            *shape: of the networks, with N last.

        Returns:
            The networks, and how many proposals were made: ``2 C_f · N / proposals`` estimates V.
        """
        wanted = int(np.prod(shape))
        kept: list[np.ndarray] = []
        have = 0
        proposals = 0
        while have < wanted:
            # r p(r) ∝ r^d exp(−s² r²/2): the law of χ_{d+1}/s
            r = np.sqrt(rng.chisquare(self.dimension + 1, 2 * wanted)) / self.scale
            t = rng.random(2 * wanted)
            wave = np.sin(r * t)
            accepted = np.flatnonzero(rng.random(2 * wanted) < np.abs(wave))[: wanted - have]
            last = have + len(accepted) == wanted
            proposals += int(accepted[-1]) + 1 if last else 2 * wanted
            kept.append(np.stack([t[accepted], -np.sign(wave[accepted])]))
            have += len(accepted)
        thresholds, signs = np.concatenate(kept, 1).reshape(2, *shape)
        directions = _directions(rng, shape, self.dimension)
        return Ridges(directions, thresholds, self.mass / shape[-1] * signs), proposals

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Return V and E φ²."""
        d = self.dimension
        middle = sqrt(d) / self.scale
        r, weights = _legendre(0.0, middle + 10 / self.scale)
        # p(r) ∝ r^{d−1} exp(−s² r²/2), normalized on the nodes; r is near √d/s
        log_density = (d - 1) * np.log(r) - (self.scale * r) ** 2 / 2
        density = weights * np.exp(log_density - log_density.max())
        density /= density.sum()
        t = (np.arange(NODES) + 0.5) / NODES
        above = 0.5 * betainc((d + 1) / 2, 0.5, 1 - t**2)  # P(⟨u, x⟩ > t) on the ball
        waves = r[:, None] * np.abs(np.sin(r[:, None] * t))
        # E r |sin(r t)| at each threshold; the steps 1[z > t] and 1[z < −t] are alike in law
        half = (density[:, None] * waves).sum(0) / NODES
        return 2 * half.sum(), (half * above).sum() / half.sum()


@checked
def barron(dimension: Count, scale: float = 0.5) -> Barron:
    """Return f(x) = exp(−‖x‖²/2s²) − 1 on the unit ball with Barron's law of steps.

    Args:
        dimension: d.
        scale: s; the smaller, the larger the frequencies.

    Raises:
        UserError: no dimension, or a scale that is not above zero.

    Source: Barron 1993, lemma 1 and theorem 1.

    >>> rng = np.random.default_rng(0)
    >>> f = barron(5, scale=0.5)
    >>> round(f.constant, 3), round(f.mass, 2), round(f.variance, 2)  # V is below 2 C, the variance far below (2 C)²
    (4.255, 5.41, 3.67)
    >>> networks, _ = f.sample(rng, 200, 64)
    >>> x = f.ball(rng, 100)
    >>> errors = networks.apply(x) - f.target(x)
    >>> bool(abs(64 * (errors**2).mean() / f.variance - 1) < 0.2)
    True
    """
    if dimension < 1:
        raise UserError(f"barron: expected at least one dimension, got {dimension}")
    if not scale > 0:
        raise UserError(f"barron: expected a scale above zero, got {scale:g}")
    return Barron(int(dimension), float(scale))


def _directions(rng: np.random.Generator, shape: tuple[int, ...], d: int) -> np.ndarray:
    vectors = rng.standard_normal((*shape, d))
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _legendre(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss–Legendre quadrature on an interval."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES // 4)
    return low + (high - low) * (nodes + 1) / 2, (high - low) / 2 * weights
