"""Exact laws of Langevin dynamics in the double well, and their limits as steps tend to zero."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.noise._double_well import reach, well
from steepest.noise import (
    exit_moments,
    gibbs,
    spectral_gap,
    stationary,
    transfer_matrix,
)
from steepest.statistics import Extrapolation, extrapolate

GIBBS = 1e-5  # relative margin of moments as ε → 0: the extrapolations err by a third at most
MOMENTS = ("x²", "x⁴")
ORDERS = (1, 2, 3, 4)  # powers of ε that are taken out
PLACES = np.linspace(-1.8, 1.8, 37)  # where log densities are compared
SPACING = 0.6  # of nodes on the line, in standard deviations of a step: rules of sums err by 1e-23


@dataclass(frozen=True)
class ExactLaws(kit.Claim[None]):
    """Exact laws of walks in the double well, at steps from which the limit is extrapolated."""

    betas: tuple[kit.Positive, ...] = kit.param(
        (2.0, 4.0, 8.0),
        "β of the exact laws in the double well",
        unit="1/height",
        scope=kit.choices((2.0, 4.0, 8.0), (3.0, 5.0, 9.0)),
    )
    steps: tuple[kit.Positive, ...] = kit.param(
        (0.05, 0.025, 0.0125, 0.00625, 0.003125),
        "ε of the exact laws in the double well, from which ε → 0 is extrapolated",
        unit="time",
    )


class LineLaw(NamedTuple):
    """The exact law of the walk in the double well, at one step size.

    Attributes:
        moments: E x² and E x⁴, shape ``(2,)``.
        rate: −log of the second eigenvalue over ε.
        end: mass of the heavier end of the grid.
        logs: log density at ``PLACES``, shape ``(places,)``.
    """

    moments: kit.Values
    rate: float
    end: float
    logs: kit.Values


class Expansion(NamedTuple):
    """What theory says of means of observables, or of the log density at places, in the limit of small steps.

    Attributes:
        gibbs: the value of exp(−βf).
        bias: how far the walk's value is from it, over ε.
        slopes_only: what the bias would be without Δf.
    """

    gibbs: kit.Values
    bias: kit.Values
    slopes_only: kit.Values


def line_law(step: float, beta: float) -> LineLaw:
    """Return the exact law of the walk in the double well."""
    variance = 2 * step / beta
    far = reach(beta)
    half = int(far / (SPACING * variance**0.5)) + 1
    x = np.linspace(-far, far, 2 * half)
    drift = -step * (x**3 - x)
    transitions = transfer_matrix(x, drift, variance)
    law = stationary(transitions)
    # the slowest mode is odd; odd functions live on x > 0 and are killed at zero
    odd = transitions[half:, half:] - transitions[half:, half - 1 :: -1]
    rate = exit_moments(np.maximum(odd, 0)).rate / step
    # the density one step later, which is the same: between nodes as exact as at them
    spread = np.exp((PLACES[:, None] - x - drift) ** 2 / (-2 * variance))
    logs = np.log(spread @ law / np.sqrt(2 * np.pi * variance))
    moments = np.array([law @ x**2, law @ x**4])
    return LineLaw(moments, rate, float(max(law[0], law[-1])), logs)


def expansion(
    masses: kit.Values,
    square: kit.Values,
    laplacian: kit.Values,
    observables: list[kit.Values],
    beta: float,
) -> Expansion:
    """Return Gibbs means and ``Cov_π(φ, β|∇f|²/4 − Δf/2)`` of observables on the nodes of a grid."""

    def mean(values: kit.Values) -> float:
        return float((masses * values).sum())

    def covariance(values: kit.Values, other: kit.Values) -> float:
        return mean(values * other) - mean(values) * mean(other)

    # the walk's law is e^(−βf)(1 + ε(w − E w)) to first order in ε, so that E φ gains ε Cov(φ, w)
    whole = beta * square / 4 - laplacian / 2
    return Expansion(
        np.array([mean(values) for values in observables]),
        np.array([covariance(values, whole) for values in observables]),
        np.array([covariance(values, beta * square / 4) for values in observables]),
    )


def gibbs_line(beta: float) -> tuple[kit.Values, kit.Values]:
    """Return the nodes of a grid, and the mass that exp(−βf) has at each."""
    x = np.linspace(-reach(beta), reach(beta), 801)
    return x, gibbs(well, beta, x)


def line_expansion(beta: float) -> Expansion:
    """Return what theory says of x² and x⁴ in the double well."""
    x, masses = gibbs_line(beta)
    return expansion(masses, (x**3 - x) ** 2, 3 * x**2 - 1, [x**2, x**4], beta)


def well_gap(beta: float) -> float:
    """Return the spectral gap of the double well, to 1e-6."""
    return spectral_gap(well, beta, np.linspace(-3.5, 3.5, 6001))


def limit(values: xarray.DataArray | kit.Values, steps: tuple[float, ...]) -> Extrapolation:
    """Return the limit as ε → 0 of values at each β, step and what else there is."""
    return extrapolate(np.moveaxis(np.asarray(values), 1, 0), steps, ORDERS)


def relative(found: Extrapolation) -> Extrapolation:
    """Return an extrapolation in units of its value, without the ratio of its corrections."""
    return Extrapolation(1.0, found.error / found.value, np.nan)


def trusted(
    ends: kit.Values, moments: kit.Values, steps: tuple[float, ...]
) -> Iterator[kit.Hypothesis]:
    """Yield what must be true of exact laws at each β and step, so that they have a limit."""
    yield kit.assume(
        "mass at the ends of the grids",
        float(ends.max()),
        "<",
        1e-9,
        "the walk is thrown off; choose smaller --steps",
    )
    yield from kit.converged("moments on the line", relative(limit(moments, steps)), GIBBS)


def small_enough(*steps: float) -> kit.Hypothesis:
    """Return what theory asks of ε in the double well."""
    return kit.assume(
        "largest ε in the double well",
        max(steps),
        "<=",
        0.25,
        "the walk runs away from where a step overshoots; choose smaller --steps",
    )
