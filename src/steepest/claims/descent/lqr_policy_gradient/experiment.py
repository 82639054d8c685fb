"""Descents over feedback matrices of linear quadratic regulators."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from steepest import kit
from steepest.claims.descent._lqr import drawn, gradient_step, largest
from steepest.kit.points import Arrays, equal
from steepest.landscapes import Lqr, Optimum

METHODS = ("gradient", "natural", "gauss_newton", "sparse")
"""Descents of one program; the last is gradient descent on a pattern of the feedback's entries."""
SERIES = 10  # doublings of Lyapunov series, for spectral radii up to 0.98
POINT_STEPS = 1000
POINT_SYSTEMS = 6


def step_sizes(system: Lqr, start: jax.Array) -> jax.Array:
    """Return each method's step: a share of 1/(‖Σ‖‖M‖) at the start, the theorem's own, and one half."""
    gradient = gradient_step(system, start)
    mu = jnp.linalg.eigvalsh(system.start)[0]
    cost = system.cost(start)
    # η = 1/(2(‖R‖ + ‖B‖²C_0/μ)), with which natural gradient descent never loses stability
    natural = 1 / (2 * (largest(system.R) + largest(system.B @ system.B.T) * cost / mu))
    return jnp.array([gradient, natural, 0.5, gradient])


def slowest_direction(optimum: Optimum) -> jax.Array:
    """Return the unit matrix u vᵀ that decays last near K*, ``(k, n)``.

    u is the lowest eigenvector of M*; v that of Σ* for the gradient. Natural steps do not see Σ, and take any v.
    """
    u = jnp.linalg.eigh(optimum.curvature)[1][:, 0]
    v = jnp.linalg.eigh(optimum.covariance)[1][:, 0]
    return jnp.outer(u, v)


def descent(
    system: Lqr,
    optimum: Optimum,
    start: jax.Array,
    mask: jax.Array,
    method: ArrayLike,
    lr: ArrayLike,
    steps: int,
) -> tuple[jax.Array, jax.Array]:
    """Return C − C* and the distance to K* along the slowest direction, ``(steps + 1,)``, of one of ``METHODS``.

    Gradient: K − η 2EΣ; natural: K − 2ηE; Gauss–Newton: K − 2ηM⁻¹E.
    """
    direction = slowest_direction(optimum)

    def step(K: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        terms = system.terms(K, SERIES)
        away = K - optimum.feedback
        # C − C* = tr[(K − K*)ᵀM*(K − K*)Σ_K] exactly, where a difference of costs would cancel
        excess = jnp.vdot(away.T @ optimum.curvature @ away, terms.covariance)
        excess = jnp.where(terms.settled < 1e-8, excess, jnp.inf)  # no sum: K is not stabilizing
        gradient = terms.residual @ terms.covariance
        newton = jnp.linalg.solve(terms.curvature, terms.residual)
        choices = jnp.stack([gradient, terms.residual, newton, gradient * mask])
        return K - 2 * lr * choices[method], (excess, jnp.vdot(direction, away))  # ∇C = 2EΣ

    return jax.lax.scan(step, start, None, steps + 1)[1]


@dataclass(frozen=True)
class LqrPoint(kit.Point):
    """Gradient descent from K = 0 at one step size, on several systems whose A has one size."""

    norm: kit.Positive
    lr: kit.Positive
    states: kit.Count
    inputs: kit.Count

    batched = ("norm", "lr")
    diagram = {"norm": "linear:0.3:0.98:12", "lr": "log:0.005:2:16"}
    labels = {"log_steps": "log₁₀ of steps to (C − C*)/C* = 10⁻³"}
    contours = {"share_predicted": (0.5, "η = 1/(‖Σ*‖‖M*‖), half of the systems")}
    diagram_remarks = (
        "Predicted is stability near K*: η < 1/(‖Σ*‖‖M*‖). No theorem says that from K = 0 no other limit counts.",
        "Six systems a point, 1000 steps; the same six at every point.",
    )

    def setting(self, key):
        keys = jax.random.split(key, POINT_SYSTEMS)
        return _systems(self.states, self.inputs)(keys, self.norm)

    def predict(self, setting):
        _, optimum = setting
        size = lambda matrices: np.linalg.eigvalsh(np.asarray(matrices))[:, -1]
        # C has the Hessian 2M* ⊗ Σ* at K*: steps are stable below 2/(2‖M*‖‖Σ*‖)
        limit = 1 / (size(optimum.covariance) * size(optimum.curvature))
        return kit.Prediction(share=float((self.lr < limit).mean()))

    def observe(self, setting, key):
        del key
        systems, optima = setting
        start = jnp.zeros((self.inputs, self.states))

        def run(system: Lqr, optimum: Optimum) -> jax.Array:
            every = jnp.ones_like(start)
            return descent(system, optimum, start, every, 0, self.lr, POINT_STEPS)[0] / optimum.cost

        excess = jax.vmap(run)(systems, optima)
        return {"steps": (excess > 1e-3).sum(1), "end": excess[:, -1]}

    def judge(self, predicted, observed):
        share = (observed["end"] < 1e-3).mean()
        yield equal(
            "share",
            float(predicted["share"]),
            share,
            0.17,  # one of six systems
            absolute=True,
            label="share of systems whose descent reaches K*",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        steps = observed["steps"][observed["end"] < 1e-3]
        return {"log_steps": float(np.log10(steps.mean())) if steps.size else float("nan")}


@cache
def _systems(states: int, inputs: int) -> Callable[..., tuple[Lqr, Optimum]]:
    """Return one compiled program for all points of a diagram, which draws systems and finds their optima."""

    def draw(key: kit.Key, norm: jax.Array) -> tuple[Lqr, Optimum]:
        system = drawn(key, inputs, norm, np.ones(states))
        return system, system.optimum

    return kit.compiled(jax.vmap(draw, in_axes=(0, None)))
