"""Exact laws of the discretized Langevin equation, by transfer matrices, and what theory says of them."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from steepest import kit
from steepest.claims.noise._double_well import DEPTH, reach, well
from steepest.kit.points import Arrays, equal
from steepest.noise import exit_moments, gibbs, stationary, transfer_matrix

SPACING = 0.6  # of nodes on the line, in standard deviations of a step: rules of sums err by 1e-23
HALF = 240  # nodes of a point's grid on x > 0, enough for β/ε up to 16000
SPACING_PLANE = 0.95  # in the plane: 1e-9
DEPTH_PLANE = 20.0
AMPLITUDE = 2.0  # a of the rugged parabola x²/2 − (a/k) cos k(x − 0.3)
WAVES = 4.0  # k
PHASE = 0.3
PLACES = np.linspace(-1.8, 1.8, 37)  # where log densities are compared


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
    """What theory says of observables in the limit of small steps.

    Attributes:
        gibbs: their means under exp(−βf), shape ``(observables,)``.
        bias: of their means, over ε, shape ``(observables,)``.
        slopes_only: what the bias would be without Δf.
    """

    gibbs: kit.Values
    bias: kit.Values
    slopes_only: kit.Values


class Shift(NamedTuple):
    """What theory says of the log density at ``PLACES`` in the double well, for small steps.

    Attributes:
        logs: log density of exp(−βf), shape ``(places,)``.
        shift: of the walk's, over ε: ``β|∇f|²/4 − Δf/2`` less its mean.
        slopes_only: what the shift would be without Δf.
    """

    logs: kit.Values
    shift: kit.Values
    slopes_only: kit.Values


def plane_well(x: kit.Values, y: kit.Values) -> kit.Values:
    """Return ``x²y²/2 + (x² + y²)/2 + x⁴/4``, which does not separate."""
    return x**2 * y**2 / 2 + (x**2 + y**2) / 2 + x**4 / 4


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


def line_expansion(beta: float) -> Expansion:
    """Return what theory says of x² and x⁴ in the double well."""
    x = np.linspace(-reach(beta), reach(beta), 801)
    masses = gibbs(well, beta, x)
    return expansion(masses, (x**3 - x) ** 2, 3 * x**2 - 1, [x**2, x**4], beta)


def line_shift(beta: float) -> Shift:
    """Return what theory says of the log density in the double well."""
    x = np.linspace(-reach(beta), reach(beta), 801)
    masses = gibbs(well, beta, x)
    norm = np.exp(-beta * well(x)).sum() * (x[1] - x[0])
    slopes = lambda x: beta * (x**3 - x) ** 2 / 4
    bend = lambda x: (3 * x**2 - 1) / 2
    return Shift(
        -beta * well(PLACES) - np.log(norm),
        # less its mean, so that the law stays normalized
        slopes(PLACES) - bend(PLACES) - masses @ (slopes(x) - bend(x)),
        slopes(PLACES) - masses @ slopes(x),
    )


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


def plane_moments(step: float) -> kit.Values:
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


def rugged_bound(betas: kit.Values) -> kit.Values:
    """Return (1/2β) log[(eM/m)(bβ + 1)] for the rugged parabola, with M = 1 + ak, m = ½ and b = a²/2."""
    factor = np.e * (1 + AMPLITUDE * WAVES) / 0.5
    return np.log(factor * (AMPLITUDE**2 / 2 * betas + 1)) / (2 * betas)


def rugged_second() -> float:
    """Return the coefficient of 1/β² in E f − min f, by Laplace's method: 5f‴²/24f″³ − f⁗/8f″² at the minimum."""
    slope = lambda x: x + AMPLITUDE * np.sin(WAVES * (x - PHASE))
    turn = WAVES * (float(np.asarray(brentq(slope, 0.0, 0.5))) - PHASE)
    second = 1 + AMPLITUDE * WAVES * np.cos(turn)
    third = -AMPLITUDE * WAVES**2 * np.sin(turn)
    fourth = -AMPLITUDE * WAVES**3 * np.cos(turn)
    # E f = −∂_β log Z, and the next term of log Z is this coefficient over β
    return float(5 * third**2 / (24 * second**3) - fourth / (8 * second**2))


def rugged_excess(beta: float, amplitude: float = AMPLITUDE) -> float:
    """Return E f − min f under exp(−βf) for the rugged parabola, or one of smaller ripples."""
    x = np.linspace(-9, 9, 72001)
    potential = lambda x: x**2 / 2 - amplitude / WAVES * np.cos(WAVES * (x - PHASE))
    lowest = int(potential(x).argmin())
    least = potential(np.linspace(x[lowest - 1], x[lowest + 1], 10001)).min()
    return float(gibbs(potential, beta, x) @ potential(x) - least)


@dataclass(frozen=True)
class LangevinGibbsPoint(kit.Point):
    """The exact law of the walk in the double well, at one step size and one temperature."""

    step: kit.Positive
    beta: kit.Positive

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

    def predict(self, setting):
        theory = line_expansion(self.beta)
        return kit.Prediction(
            mean=theory.gibbs[0], bias=abs(self.step * theory.bias[0]) / theory.gibbs[0]
        )

    def observe(self, setting, key):
        # the law is even: nodes on x > 0, to which a step from there leads as well as to their mirror images
        variance = 2 * self.step / self.beta
        far = jnp.sqrt(1 + jnp.sqrt(4 * DEPTH / self.beta))
        x = far * (jnp.arange(HALF) + 0.5) / HALF
        means = x - self.step * (x**3 - x)
        spread = lambda places: jnp.exp((places - means[:, None]) ** 2 / (-2 * variance))
        transitions = spread(x) + spread(-x)
        transitions = transitions / transitions.sum(1, keepdims=True)
        # as in noise.stationary: π (I − P + E/n) = 1/n
        system = jnp.eye(HALF) - transitions + 1 / HALF
        law = jnp.linalg.solve(system.T, jnp.full(HALF, 1 / HALF))
        return {"square": law @ x**2, "end": law[-1]}

    def run_conditions(self, observed):
        yield kit.assume(
            "mass at the ends of the grid",
            abs(float(observed["end"])),
            "<",
            1e-6,
            "steps this large throw the walk off: take smaller ones",
        )

    def judge(self, predicted, observed):
        bias = abs(float(observed["square"]) / float(predicted["mean"]) - 1)
        # a tenth of it for the second order
        yield equal("bias", predicted["bias"], bias, 0.1, label="bias of E x² over E x²")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        bias = abs(float(observed["square"]) / float(predicted["mean"]) - 1)
        return {"share_of_theory": min(bias / float(predicted["bias"]), 3.0)}
