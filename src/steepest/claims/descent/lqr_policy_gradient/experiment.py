"""Descents over feedback matrices of linear quadratic regulators, with gradients and with costs of rollouts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy.optimize import brentq

from steepest import kit
from steepest.kit.points import Arrays, equal
from steepest.landscapes import Lqr, Optimum

METHODS = ("gradient", "natural", "gauss_newton", "sparse")
"""Descents of one program; the last is gradient descent on a pattern of the feedback's entries."""
SHARE = 0.7  # of 1/(‖Σ‖‖M‖) at the start, a step of gradient descent; near K* steps are stable up to 1/(‖Σ*‖‖M*‖)
SERIES = 10  # doublings of Lyapunov series, for spectral radii up to 0.98
POINT_STEPS = 1000
POINT_SYSTEMS = 6


def largest(matrix: jax.Array) -> jax.Array:
    """Return the largest eigenvalue of a symmetric matrix."""
    return jnp.linalg.eigvalsh(matrix)[-1]


def contraction(key: kit.Key, states: int, inputs: int, norm: jax.Array | float) -> tuple[Any, Any]:
    """Draw A of this largest singular value, and B with entries of variance 1/n."""
    for_a, for_b = jax.random.split(key)
    A = jax.random.normal(for_a, (states, states))
    B = jax.random.normal(for_b, (states, inputs)) / states**0.5
    return A * norm / jnp.sqrt(largest(A @ A.T)), B


def step_sizes(system: Lqr, start: jax.Array) -> jax.Array:
    """Return each method's step: a share of 1/(‖Σ‖‖M‖) at the start, the theorem's own, and one half."""
    terms = system.terms(start)
    gradient = SHARE / (largest(terms.covariance) * largest(terms.curvature))
    natural = natural_step(system, system.cost(start))
    return jnp.array([gradient, natural, 0.5, gradient])


def natural_step(system: Lqr, cost: jax.Array) -> jax.Array:
    """Return η = 1/(2(‖R‖ + ‖B‖²C_0/μ)), from which natural gradient descent never loses stability."""
    mu = jnp.linalg.eigvalsh(system.start)[0]
    return 1 / (2 * (largest(system.R) + largest(system.B @ system.B.T) * cost / mu))


def leaves_at(system: Lqr, far: float) -> float:
    """Return the c up to which half of the way from A − BK = ((0, c), (0, 0)) to the optimum's is stable, at most far.

    Found by bisection on the spectral radius; the optimum is that of the doubled series.
    """
    loop = np.asarray(system.A - system.B @ system.optimum.feedback)

    def excess(c: float) -> float:
        halfway = (np.array([[0.0, c], [0.0, 0.0]]) + loop) / 2
        return float(np.abs(np.linalg.eigvals(halfway)).max()) - 1

    if excess(far) <= 0:
        return far
    crossing: Any = brentq(excess, 0.0, far, xtol=1e-10)
    return float(crossing)


class Path(NamedTuple):
    """One descent.

    Attributes:
        excess: C − C* at every step, shape ``(steps + 1,)``.
        along: distance to K* along the slowest direction of the method, shape ``(steps + 1,)``.
        feedback: K at the end.
    """

    excess: jax.Array
    along: jax.Array
    feedback: jax.Array


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
) -> Path:
    """Descend by one of ``METHODS`` at a fixed step size.

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

    end, (excess, along) = jax.lax.scan(step, start, None, steps + 1)
    return Path(excess, along, end)


def rollout_gradients(
    system: Lqr, K: jax.Array, key: kit.Key, count: int, length: int, radius: float
) -> tuple[jax.Array, jax.Array]:
    """Estimate ∇C from costs c of rollouts at K ± U, U uniform on the sphere of this radius; ``(count, k, n)`` each.

    The first is (D/r²) ½ (c(K+U) − c(K−U)) U, D = kn, where both rollouts have one Gaussian start; the second
    (D/r²) c(K+U) U, of one rollout, as the source has it.
    """
    for_directions, for_starts = jax.random.split(key)
    normal = jax.random.normal(for_directions, (count, *K.shape))
    directions = radius * normal / jnp.sqrt((normal**2).sum((1, 2), keepdims=True))
    starts = jax.random.split(for_starts, count)

    def costs(sign: jax.Array) -> jax.Array:
        one = lambda U, key: system.rollouts(K + sign * U, key, 1, length)[0]
        return jax.vmap(one)(directions, starts)

    above, below = jax.vmap(costs)(jnp.array([1.0, -1.0]))
    # on a sphere E UUᵀ = (r²/D) I, so that E (D/r²)⟨∇C, U⟩U = ∇C
    scaled = K.size / radius**2 * directions
    return scaled * ((above - below) / 2)[:, None, None], scaled * above[:, None, None]


def rollout_descent(
    system: Lqr,
    optimum: Optimum,
    key: kit.Key,
    sided: jax.Array,
    steps: int,
    count: int,
    length: int,
    radius: float,
) -> jax.Array:
    """Return (C − C*)/C* along a descent from K = 0 by estimates of rollouts alone, ``(steps + 1,)``.

    ``sided`` is 0 for differences of two rollouts, 1 for single ones. Each step has ``count`` directions of its own.
    """
    start = jnp.zeros((system.B.shape[1], system.B.shape[0]))
    lr = (
        step_sizes(system, start)[0] / 2
    )  # noise takes one system in sixty out of stability at twice that

    def step(K: jax.Array, key: kit.Key) -> tuple[jax.Array, jax.Array]:
        both, one = rollout_gradients(system, K, key, count, length, radius)
        gradient = jnp.where(sided == 0, both.mean(0), one.mean(0))
        return K - lr * gradient, system.excess(K, optimum) / optimum.cost

    return jax.lax.scan(step, start, jax.random.split(key, steps + 1))[1]


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
        return _systems(key, self.norm, self.states, self.inputs)

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
            path = descent(system, optimum, start, jnp.ones_like(start), 0, self.lr, POINT_STEPS)
            return path.excess / optimum.cost

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


def _systems(key: kit.Key, norm: float, states: int, inputs: int) -> tuple[Lqr, Optimum]:
    """Draw the systems of a point, and their optima."""
    return _drawing(states, inputs)(jax.random.split(key, POINT_SYSTEMS), norm)


@cache
def _drawing(states: int, inputs: int) -> Callable[..., tuple[Lqr, Optimum]]:
    """Return one compiled program for all points of a diagram."""

    def draw(key: kit.Key, norm: jax.Array) -> tuple[Lqr, Optimum]:
        A, B = contraction(key, states, inputs, norm)
        eye = jnp.eye(states)
        system = Lqr(A, B, eye, jnp.eye(inputs), eye)
        return system, system.optimum

    return kit.compiled(jax.vmap(draw, in_axes=(0, None)))
