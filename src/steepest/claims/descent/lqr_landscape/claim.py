"""The cost of linear quadratic control is neither convex nor star-convex in the feedback.

Half-way between two stable feedbacks u = −Kx the closed loop A − BK can be unstable, and the cost C(K) infinite. The
same can happen half-way from a stable feedback to the optimum K*. Still, the squared gradient of C dominates the excess
C − C*: K* is the only critical point.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from steepest import kit
from steepest.claims.descent._lqr import riccati
from steepest.landscapes import Lqr
from steepest.nn.types import Values

CHEAP = (0.001, 0.01, 0.1, 1.0)
"""Costs q of the state in systems of one state, where the gradient dominates the excess least."""
GROWTH = (0.1, 0.3, 0.6, 0.9, 1.0, 1.2)
"""Factors a of those systems, x' = ax + u."""
GAINS = np.linspace(0.2, 0.9, 8)
"""Feedbacks of those systems, in units of a."""
LOST = 1e9
"""Stands for the c of a way to K* that never leaves the stable feedbacks."""
PAIRS = (
    np.array([[[0.0, 10.0], [0.0, 0.0]], [[0.0, 0.0], [10.0, 0.0]]]),
    np.array([[[0.0, 0, 10], [1, 0, 0], [0, 0, 0]], [[0, 10, 0], [0, 0, 0], [1, 0, 0]]]),
)
"""Closed loops A − BK of two stable feedbacks each, A = B = I."""
ONE_INPUT = (
    np.array([[[1.8, -0.81], [1.0, 0.0]], [[-1.8, -0.81], [1.0, 0.0]]]),
    np.array([[[1.6, -0.64], [1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]),
)
"""The same of one input and two states, whose stable feedbacks are convex: only the first row depends on K."""


@kit.claim
class LqrLandscape(kit.Claim[None]):
    """Pairs of stable feedbacks, ways to the optimum of systems of two states, and systems of one state."""

    tilts: tuple[float, ...] = kit.param(
        (-0.9, -0.5, 0.5, 0.9),
        "off-diagonal entries q of Q = ((1, q), (q, 1)), A = B = R = I, so that the optimum mixes both states",
        scope=kit.choices((-0.9, -0.5, 0.5, 0.9), (-0.8, -0.3, 0.3, 0.8), (-0.7, -0.2, 0.4, 0.6)),
    )

    kind = "theorem"
    says = {
        "neither convex": "midpoint_radius",
        "nor star-convex in the feedback": "star",
    }
    tiny = {"tilts": (-0.5, 0.5)}
    out_of_scope = {"tilts": (-0.5, 1.5)}

    def axes(self):
        return {"pair": (2, 3), "tilt": self.tilts, "growth": GROWTH, "cost": CHEAP}

    def hypotheses(self, setting):
        sizes = np.abs(self.tilts)
        yield kit.assume("largest |q|", sizes.max(), "<", 1, "Q must be positive")
        yield kit.assume("smallest |q|", sizes.min(), ">", 0, "at 0 the optimum mixes nothing")

    def predict(self, setting):
        return kit.law(
            midpoint_radius=("pair", [5.0, 5**0.5]),
            leaves_at=("tilt", [_leaves_at(tilted(q)) for q in self.tilts]),
            dominance=("growth cost", [[_cheap_factor(a, q) for q in CHEAP] for a in GROWTH]),
        )

    def observe(self, setting, key):
        radii = lambda pairs: ("pair", [_midpoint_radius(pair) for pair in pairs])
        return kit.seen(
            midpoint_radius=radii(PAIRS),
            one_input_radius=radii(ONE_INPUT),
            leaves_at=("tilt", [leaves_at(tilted(q)) for q in self.tilts]),
            level_leaves_at=("tilt", [leaves_at(tilted(0.0))] * len(self.tilts)),
            dominance=("growth cost gain", dominance()),
        )

    def judge(self, law, seen):
        yield kit.follows(
            "midpoint_radius",
            law.midpoint_radius,
            seen.midpoint_radius,
            1e-6,
            label="spectral radius half-way between two stable feedbacks",
        )
        yield kit.follows(
            "star",
            law.leaves_at,
            seen.leaves_at,
            1e-6,
            label="c from which half of the way to K* is not stable",
        )
        yield kit.at_most(
            "dominance", law.dominance, seen.dominance, each=True, label="one state: (C − C*)/‖∇C‖²"
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "stable feedbacks are a convex set",
            "a cost that descent minimizes",
            midpoint_radius=1.0,
        )
        yield kit.rival(
            "all ways to K* stay in the stable feedbacks",
            "no way to the optimum leads over a mountain",
            leaves_at=LOST + 0 * law.leaves_at,
        )
        yield kit.rival(
            "c = 4/|N*₂₁|",
            "right for large c",
            leaves_at=("tilt", [4 / abs(riccati(tilted(q))[1][1, 0]) for q in self.tilts]),
        )
        yield kit.rival(
            "‖Σ_0‖ in place of ‖Σ*‖",
            "the covariance of the first states is what is given",
            dominance=0 * law.dominance + 0.25,
        )
        yield kit.rival(
            "a constant of dominance that is a tenth smaller",
            "bounds have slack",
            dominance=law.dominance / 1.1,
        )

    def controls(self, seen):
        yield kit.control(
            "systems of one input and two states",
            "with one input and two states the stable feedbacks are a triangle",
            midpoint_radius=seen.one_input_radius,
        )
        yield kit.control(
            "costs that do not mix the two states",
            "K* is a multiple of one, and half of the way the loop is triangular",
            leaves_at=seen.level_leaves_at,
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "Beyond this c the mean of ((0, c), (0, 0)) and N* is not stable",
            law.leaves_at,
            seen.leaves_at,
            over="tilt",
            x="q, by which the cost mixes both states",
            y="c",
            rivals={"4/|N*₂₁|": rivals["c_4_n_21"].leaves_at},
        )


def tilted(tilt: float) -> Lqr:
    """Return the system of two states with A = B = R = I and Q = ((1, q), (q, 1))."""
    eye = jnp.eye(2)
    return Lqr(eye, eye, eye + tilt * (1 - eye), eye, eye)


def leaves_at(system: Lqr) -> float:
    """Return the c up to which half of the way from A − BK = ((0, c), (0, 0)) to the optimum's is stable.

    Found by bisection on the spectral radius, up to ``LOST``; the optimum is by the doubled series.
    """
    loop = np.asarray(system.A - system.B @ system.optimum.feedback)

    def excess(c: float) -> float:
        halfway = (np.array([[0.0, c], [0.0, 0.0]]) + loop) / 2
        return float(np.abs(np.linalg.eigvals(halfway)).max()) - 1

    if excess(LOST) <= 0:
        return LOST
    crossing: Any = brentq(excess, 0.0, LOST, xtol=1e-10)
    return float(crossing)


def dominance() -> Values:
    """Return (C − C*)/‖∇C‖² of systems x' = ax + u of one state, ``(growth, cost, gain)``."""

    def ratio(a: jax.Array, q: jax.Array, gain: jax.Array) -> jax.Array:
        matrix = lambda number: jnp.reshape(number, (1, 1))
        unit = jnp.ones((1, 1))
        system = Lqr(matrix(a), unit, matrix(q), unit, unit)
        K = matrix(gain * a)
        return system.excess(K, system.optimum) / (system.gradient(K) ** 2).sum()

    grid = np.meshgrid(GROWTH, CHEAP, GAINS, indexing="ij")
    flat = kit.compiled(jax.vmap(ratio))(*(np.ravel(axis) for axis in grid))
    return np.asarray(flat).reshape(grid[0].shape)


def _leaves_at(system: Lqr) -> float:
    """Return the least c > 0 at which the mean of ((0, c), (0, 0)) and N* has an eigenvalue of modulus one.

    With trace t and determinant d(c) = (det N* − N*₂₁ c)/4 that is 1 − t + d = 0 where N*₂₁ > 0, and d = 1 where N*₂₁
    < 0, as the eigenvalues are then a pair of complex ones.
    """
    loop = riccati(system)[1]
    trace = np.trace(loop) / 2
    determinant = trace - 1 if loop[1, 0] > 0 else 1.0
    return float((np.linalg.det(loop) - 4 * determinant) / loop[1, 0])


def _cheap_factor(a: float, q: float) -> float:
    """Return ‖Σ*‖/(4μ²σ_min(R)) of x' = ax + u with the cost q x² + u²; P solves P² + (1 − a² − q)P − q = 0."""
    middle = (a**2 + q - 1) / 2
    value = middle + np.sqrt(middle**2 + q)
    # Σ* = 1/(1 − N*²) with N* = a/(1 + P)
    return 1 / (4 * (1 - (a / (1 + value)) ** 2))


def _midpoint_radius(pair: Values) -> float:
    """Return the spectral radius of A − BK half-way between two feedbacks, of which it is an affine function."""
    return float(np.abs(np.linalg.eigvals(pair.mean(0))).max())
