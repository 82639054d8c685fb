"""Exact laws of the discretized Langevin equation, by transfer matrices, and what theory says of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Arrays,
    Check,
    Hypothesis,
    Key,
    Point,
    Positive,
    Prediction,
    Values,
    assume,
    equal,
)
from steepest.noise import exit_moments, gibbs, stationary, transfer_matrix

DEPTH = 36.0  # βf over its minimum where grids end: exp(−36) = 2e-16
SPACING = 0.6  # of nodes on the line, in standard deviations of a step: rules of sums err by 1e-23
HALF = 240  # nodes of a point's grid on x > 0, enough for β/ε up to 16000
SPACING_PLANE = 0.95  # in the plane: 1e-9
DEPTH_PLANE = 20.0


class LineLaw(NamedTuple):
    """The exact law of the walk in the double well, at one step size.

    Attributes:
        moments: E x² and E x⁴, shape ``(2,)``.
        rate: −log of the second eigenvalue over ε.
        end: mass of the heavier end of the grid.
    """

    moments: Values
    rate: float
    end: float


class Expansion(NamedTuple):
    """What theory says of observables in the limit of small steps.

    Attributes:
        gibbs: their means under exp(−βf), shape ``(observables,)``.
        bias: of their means, over ε, shape ``(observables,)``.
        slopes_only: what the bias would be without Δf.
    """

    gibbs: Values
    bias: Values
    slopes_only: Values


def well(x: Any) -> Any:
    """Return the double well ``(x² − 1)²/4``."""
    return (x**2 - 1) ** 2 / 4


def plane_well(x: Values, y: Values) -> Values:
    """Return ``x²y²/2 + (x² + y²)/2 + x⁴/4``, which does not separate."""
    return x**2 * y**2 / 2 + (x**2 + y**2) / 2 + x**4 / 4


def expansion(
    masses: Values, square: Values, laplacian: Values, observables: list[Values], beta: float
) -> Expansion:
    """Return Gibbs means and ``Cov_π(φ, β|∇f|²/4 − Δf/2)`` of observables on the nodes of a grid."""

    def mean(values: Values) -> float:
        return float((masses * values).sum())

    def covariance(values: Values, other: Values) -> float:
        return mean(values * other) - mean(values) * mean(other)

    whole = beta * square / 4 - laplacian / 2
    return Expansion(
        np.array([mean(values) for values in observables]),
        np.array([covariance(values, whole) for values in observables]),
        np.array([covariance(values, beta * square / 4) for values in observables]),
    )


def line_expansion(beta: float) -> Expansion:
    """Return what theory says of x² and x⁴ in the double well."""
    x = np.linspace(-_reach(beta), _reach(beta), 801)
    masses = gibbs(well, beta, x)
    return expansion(masses, (x**3 - x) ** 2, 3 * x**2 - 1, [x**2, x**4], beta)


def plane_expansion() -> Expansion:
    """Return what theory says of x², y² and x²y² in the plane, at β = 1."""
    x, y = np.meshgrid(np.linspace(-4, 4, 161), np.linspace(-9, 9, 361), indexing="ij")
    masses = np.exp(-plane_well(x, y))
    square = (x * y**2 + x + x**3) ** 2 + (x**2 * y + y) ** 2
    laplacian = 4 * x**2 + y**2 + 2
    observables = [x**2, y**2, (x * y) ** 2]
    return expansion(masses / masses.sum(), square, laplacian, observables, 1.0)


def line_law(step: float, beta: float) -> LineLaw:
    """Return the exact law of the walk in the double well."""
    variance = 2 * step / beta
    reach = _reach(beta)
    half = int(reach / (SPACING * variance**0.5)) + 1
    x = np.linspace(-reach, reach, 2 * half)
    transitions = transfer_matrix(x, -step * (x**3 - x), variance)
    law = stationary(transitions)
    # the slowest mode is odd; odd functions live on x > 0 and are killed at zero
    odd = transitions[half:, half:] - transitions[half:, half - 1 :: -1]
    rate = exit_moments(np.maximum(odd, 0)).rate / step
    return LineLaw(np.array([law @ x**2, law @ x**4]), rate, float(max(law[0], law[-1])))


def plane_moments(step: float) -> Values:
    """Return E x², E y² and E x²y² of the walk in the plane at β = 1, ``(3,)``."""
    spacing = SPACING_PLANE * (2 * step) ** 0.5
    across = spacing * np.arange(-int(4 / spacing), int(4 / spacing) + 1)
    up = spacing * np.arange(-int(7 / spacing), int(7 / spacing) + 1)
    nodes = np.stack(np.meshgrid(across, up, indexing="ij"), -1).reshape(-1, 2)
    nodes = nodes[plane_well(*nodes.T) < DEPTH_PLANE]
    x, y = nodes.T
    slopes = np.stack([x * y**2 + x + x**3, x**2 * y + y], 1)
    weights = np.full(len(nodes), spacing**2)
    law = stationary(transfer_matrix(nodes, -step * slopes, 2 * step, weights))
    return np.array([law @ x**2, law @ y**2, law @ (x * y) ** 2])


def extrapolate(steps: Values, values: Values) -> Values:
    """Return the value at step zero of the polynomial through values at all steps, steps first."""
    steps = np.asarray(steps, float)
    weights = [
        np.prod(np.delete(steps, i) / (np.delete(steps, i) - h)) for i, h in enumerate(steps)
    ]
    return np.tensordot(weights, values, 1)


def _reach(beta: float) -> float:
    """Return where the grid ends: βf = 36 in the double well."""
    return float(np.sqrt(1 + np.sqrt(4 * DEPTH / beta)))


@dataclass(frozen=True)
class LangevinGibbsPoint(Point):
    """The exact law of the walk in the double well, at one step size and one temperature."""

    step: Positive
    beta: Positive

    batched = ("step", "beta")
    diagram = {"step": "log:0.002:0.25:15", "beta": "log:0.5:32:13"}
    labels = {"share_of_theory": "bias over theory's"}
    contours = {"bias_predicted": (0.01, "theory: a bias of 1 %")}
    diagram_remarks = (
        "No walkers: the law of the walk is exact at every point, so that what is seen beside the prediction is its "
        "second order in ε. It fails where that exceeds a tenth.",
        "Out of range is where steps are so large that the tails do not vanish at the ends of the grid: x − ε(x³ − x) "
        "runs away beyond |x| = √(1 + 2/ε). Ratios above three are shown as three.",
    )

    def predict(self, setting: Any) -> Prediction:
        theory = line_expansion(self.beta)
        return Prediction(
            mean=theory.gibbs[0], bias=abs(self.step * theory.bias[0]) / theory.gibbs[0]
        )

    def observe(self, setting: Any, key: Key) -> Mapping[str, jax.Array]:
        # the law is even: nodes on x > 0, to which a step from there leads as well as to their mirror images
        variance = 2 * self.step / self.beta
        reach = jnp.sqrt(1 + jnp.sqrt(4 * DEPTH / self.beta))
        x = reach * (jnp.arange(HALF) + 0.5) / HALF
        means = x - self.step * (x**3 - x)
        spread = lambda places: jnp.exp((places - means[:, None]) ** 2 / (-2 * variance))
        transitions = spread(x) + spread(-x)
        transitions = transitions / transitions.sum(1, keepdims=True)
        # as in noise.stationary: π (I − P + E/n) = 1/n
        system = jnp.eye(HALF) - transitions + 1 / HALF
        law = jnp.linalg.solve(system.T, jnp.full(HALF, 1 / HALF))
        return {"square": law @ x**2, "end": law[-1]}

    def run_conditions(self, observed: Arrays) -> list[Hypothesis]:
        return [
            assume(
                "mass at the ends of the grid",
                abs(float(observed["end"])),
                "<",
                1e-6,
                "steps this large throw the walk off: take smaller ones",
            )
        ]

    def judge(self, predicted: Prediction, observed: Arrays) -> list[Check]:
        bias = abs(float(observed["square"]) / float(predicted["mean"]) - 1)
        return [
            # a tenth of it for the second order
            equal("bias", predicted["bias"], bias, 0.1, label="bias of E x² over E x²")
        ]

    def quantities(self, predicted: Prediction, observed: Arrays) -> dict[str, float]:
        bias = abs(float(observed["square"]) / float(predicted["mean"]) - 1)
        return {"share_of_theory": min(bias / float(predicted["bias"]), 3.0)}
