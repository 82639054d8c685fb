"""Networks of squares under SGD, tanh networks and their limit, and one point of the diagram."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Arrays,
    Check,
    Count,
    Curve,
    Hypothesis,
    Key,
    Point,
    Positive,
    Prediction,
    Seeds,
    Values,
    Within,
    assume,
    equal,
    keys,
    predicted_curve,
)
from steepest.linalg import sequential
from steepest.nn.networks import QuadraticMeanField, quadratic_mean_field

TANH_STEP = 0.1  # of descent on tanh networks, in time multiplied by N
NODES = 32  # of Gauss–Hermite quadrature a dimension, for the limit of tanh networks
LIGHT = 1e-12  # weights of nodes that are left out
STIFF = (
    0.1  # largest ε · 2(D + 2)|tr(A − τ²I)|: the mean relative change of a neuron in the first step
)


class Tanh(NamedTuple):
    """A tanh network after descent."""

    outputs: Values  # at the examples, (…, n)
    movement: Values  # root of the mean square of ‖w − w₀‖, (…,)


def draw_squares(rng: np.random.Generator, N: int, runs: int, D: int, scale: float) -> Values:
    """Return M at the start of networks of width N, shape ``(runs, D, D)``."""
    theta = scale * rng.standard_normal((runs, N, D))
    return theta.swapaxes(1, 2) @ theta / N


def one_pass(
    model: QuadraticMeanField, rng: np.random.Generator, lr: float, steps: int, runs: int
) -> Values:
    """Run SGD from M = τ² I with a new input at every step, and return M, shape ``(runs, D, D)``."""
    D = len(model.target)
    M = np.broadcast_to(model.scale**2 * np.eye(D), (runs, D, D))
    for _ in range(steps):
        M = model.step(M, rng.standard_normal((runs, D)), lr)
    return M


def descend_tanh(w: Values, weights: Values, x: Values, y: Values, steps: int) -> Tanh:
    """Descend on ½ mean (f − y)² with f(x) = Σ ω_i tanh⟨w_i, x⟩, each neuron's gradient divided by its weight.

    Args:
        w: neurons, shape ``(…, N, d)``.
        weights: ω, 1/N each for a network; the weights of a quadrature for the limit, shape ``(N,)``.
        x: examples, shape ``(n, d)``.
        y: targets, shape ``(n,)``.
        steps: of length TANH_STEP.
    """
    start = w
    for _ in range(steps):
        active = np.tanh(w @ x.T)  # (…, N, n)
        error = weights @ active - y  # (…, n)
        w = w - TANH_STEP * ((1 - active**2) * error[..., None, :]) @ x / len(x)
    moved = ((w - start) ** 2).sum(-1) @ weights
    return Tanh(weights @ np.tanh(w @ x.T), np.sqrt(moved))


def tanh_limit(x: Values, y: Values, steps: int, nodes: int = NODES) -> Tanh:
    """Return the limit N → ∞ of the same descent, with neurons at the nodes of a quadrature of N(0, I)."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    d = x.shape[1]
    grid = np.stack(np.meshgrid(*[points] * d, indexing="ij"), -1).reshape(-1, d)
    products = np.prod(np.stack(np.meshgrid(*[weights] * d, indexing="ij"), -1), -1).ravel()
    heavy = products > LIGHT
    return descend_tanh(grid[heavy], products[heavy], x, y, steps)


def wishart(key: Key, N: Any, D: int) -> jax.Array:
    """Draw Σ g gᵀ of N vectors g ~ N(0, I) by Bartlett's decomposition, so that N may be traced; N ≥ D."""
    for_squares, for_normals = jax.random.split(key)
    lower = jnp.tril(jax.random.normal(for_normals, (D, D)), -1)
    squares = 2 * jax.random.gamma(for_squares, (N - jnp.arange(D)) / 2)  # χ² of N − i degrees
    factor = lower + jnp.diag(jnp.sqrt(squares))
    return factor @ factor.T


@cache
@sequential
def in_theory(diagonal: tuple[float, ...], scale: float, time: float) -> tuple[float, float]:
    """Return N · E distance² from the limit at a time, and E distance² / ε of SGD there."""
    model = quadratic_mean_field(np.array(diagonal), scale)
    times = np.array([0.0, time])
    return float(model.fluctuations(times)[-1]), float(model.noise(times)[-1])


@dataclass(frozen=True)
class MeanFieldPoint(Point):
    """The distance from the limit of SGD at one width and one step."""

    widths: Count
    rates: Annotated[float, Within(1e-6)]
    diagonal: tuple[float, ...]
    scale: Positive
    horizon: Positive
    seeds: Seeds

    batched = ("widths", "rates")
    diagram = {"widths": "log:50:5000:5", "rates": "log:2e-5:1e-3:6"}
    base = {"seeds": 100, "horizon": 0.05}
    labels = {"log_distance": "log₁₀ of the distance from the limit"}
    diagram_remarks = (
        "Distance² is predicted to be F/N + G ε, from the central limit of the start and the noise of SGD. Below the "
        "line ε = F/(G N) the width limits, above it the step. Shown: t = 0.05, 100 runs a point. Only M = E θθᵀ of "
        "the start enters, and is drawn from its law, Wishart's.",
    )

    def predict(self, setting: Any) -> Prediction:
        start, noise = in_theory(self.diagonal, self.scale, self.horizon)
        return Prediction(square=start / self.widths + noise * float(self.rates))

    def observe(self, setting: Any, key: Key) -> Mapping[str, jax.Array]:
        model = quadratic_mean_field(np.array(self.diagonal), self.scale)
        D = len(self.diagonal)
        limit = jnp.asarray(model.limit(np.array([0.0, self.horizon]))[-1])

        def one(key: Key) -> jax.Array:
            for_start, for_inputs = jax.random.split(key)
            start = wishart(for_start, self.widths, D) * self.scale**2 / self.widths

            def step(i: jax.Array, M: jax.Array) -> jax.Array:
                x = jax.random.normal(jax.random.fold_in(for_inputs, i), (D,))
                return model.step(M, x, self.rates)

            # no stop at an overflow: a point beyond stability is out of range
            steps = jnp.round(self.horizon / self.rates).astype(int)
            M = jax.lax.fori_loop(0, steps, step, start)
            return model.distance(M, limit) ** 2

        return {"square": jax.vmap(one)(keys(key, self.seeds))}

    def run_conditions(self, observed: Arrays) -> list[Hypothesis]:
        return [
            assume("largest ε · 2(D + 2)|tr Δ₀|", self.stiffness, "<", STIFF, "lower --rates"),
            assume("width N", self.widths, ">=", 10 * len(self.diagonal), "raise --widths"),
        ]

    @property
    def stiffness(self) -> float:
        """How much a step changes a neuron at the start, in the mean."""
        return float(self.rates) * initial_rate(self.diagonal, self.scale)

    def judge(self, predicted: Prediction, observed: Arrays) -> list[Check]:
        return [
            equal(
                "square",
                float(predicted["square"]),
                observed["square"],
                # the interval is 10 to 15 %; at N = 50 or ε = 1e-3 the next order is as large
                0.35,
                label="squared distance from the limit",
            )
        ]

    def quantities(self, predicted: Prediction, observed: Arrays) -> dict[str, float]:
        return {"log_distance": float(0.5 * np.log10(observed["square"].mean()))}

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        if {x, y} != {"widths", "rates"}:
            return ()
        start, noise = in_theory(self.diagonal, self.scale, self.horizon)
        widths = np.geomspace(10, 1e5, 50)
        corner = start / noise / widths
        ends = (widths, corner) if x == "widths" else (corner, widths)
        return (predicted_curve(*ends, "width and step weigh the same"),)


def initial_rate(diagonal: tuple[float, ...], scale: float) -> float:
    """Return 2(D + 2)|tr(A − τ²I)|, the mean of 2 e ‖x‖² at the start."""
    D = len(diagonal)
    return 2 * (D + 2) * abs(sum(diagonal) - D * scale**2)
