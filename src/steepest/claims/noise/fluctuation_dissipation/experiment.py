"""Stochastic gradient descent on a linear model, with time averages of what the steady state is about."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kit.points import Arrays, equal
from steepest.nn.data import breast_cancer
from steepest.noise import batch_factor, steady_state

FEATURES = 10  # mean radius to mean fractal dimension; the other twenty nearly repeat them


class Averages(NamedTuple):
    """Time averages along one run.

    Attributes:
        alignment: of (θ − w)·∇L about the minimum w.
        dissipation: of ½γ tr C̃.
        covariance: of ½γ tr C, the covariance in place of the second moment.
        replaced: of ½γ tr C̃ with C̃ of batches with replacement.
        slope: of |∇L|².
        curved: of ½γ tr H C̃.
        curved_covariance: of ½γ tr H C.
        gradient: |mean of ∇L|².
        boundary: (|δ₀|² − |δ_T|²)/(2γT), what a finite run adds to the alignment.
    """

    alignment: Any
    dissipation: Any
    covariance: Any
    replaced: Any
    slope: Any
    curved: Any
    curved_covariance: Any
    gradient: Any
    boundary: Any


class LeastSquares(NamedTuple):
    """Data of a point of the diagram.

    Attributes:
        x: patients, shape ``(m, d)``.
        y: their labels.
        w: the minimum.
        largest: λ_max there.
    """

    x: Any
    y: Any
    w: Any
    largest: Any


@cache
def patients(examples: int) -> tuple[kit.Values, kit.Values]:
    """Return standardized features of the first patients with a constant 1, shape ``(m, 11)``, and labels ±1."""
    data = breast_cancer()
    x = np.asarray(data.x)[:examples, :FEATURES]
    return np.hstack([x, np.ones((len(x), 1))]), np.asarray(data.y)[:examples]


def residuals(logistic: Any, output: Any, y: Any) -> tuple[Any, Any]:
    """Return first and second derivative by its output of each example's loss, log(1 + e^(−yf)) or ½(f − y)²."""
    sigmoid = 1 / (1 + jnp.exp(y * output))
    first = jnp.where(logistic > 0.5, -y * sigmoid, output - y)
    second = jnp.where(logistic > 0.5, sigmoid * (1 - sigmoid), 1.0)
    return first, second


def minimum(
    x: kit.Values, y: kit.Values, ridge: float, logistic: bool
) -> tuple[kit.Values, kit.Values]:
    """Return the exact minimum of the ridged risk and the Hessian there, by Newton's method."""
    m, d = x.shape
    theta = np.zeros(d)
    hessian = np.eye(d)
    for _ in range(30):
        output = x @ theta
        if logistic:
            sigmoid = 1 / (1 + np.exp(y * output))
            first = -y * sigmoid
            second = sigmoid * (1 - sigmoid)
        else:
            first = output - y
            second = np.ones(m)
        hessian = (x * second[:, None]).T @ x / m + ridge * np.eye(d)
        theta = theta - np.linalg.solve(hessian, first @ x / m + ridge * theta)
    return theta, hessian


def average_window(
    step: Callable, start: Any, w: Any, lr: Any, key: kit.Key, length: Any
) -> tuple[Any, Averages]:
    """Return where a window of a run ends, and the averages over it of what ``step`` keeps."""

    def add(i: Any, carry: tuple) -> tuple:
        theta, total, slopes = carry
        theta, (summed, slope) = step(theta, jax.random.fold_in(key, i))
        return theta, jax.tree.map(jnp.add, total, summed), slopes + slope

    zero = Averages(*[jnp.zeros(())] * len(Averages._fields))
    last, total, slopes = jax.lax.fori_loop(0, length, add, (start, zero, jnp.zeros_like(start)))
    mean = jax.tree.map(lambda value: value / length, total)
    boundary = (((start - w) ** 2).sum() - ((last - w) ** 2).sum()) / (2 * lr * length)
    return last, mean._replace(gradient=((slopes / length) ** 2).sum(), boundary=boundary)


def averages(
    x: Any,
    y: Any,
    ridge: float,
    logistic: Any,
    w: Any,
    start: Any,
    lr: Any,
    batch: Any,
    key: kit.Key,
    burn: int,
    steps: int,
) -> tuple[Averages, Averages]:
    """Run SGD with batches of independent coins, and average over the first ``burn`` steps, and over those after.

    Full gradient and C̃ come from the gradients of all examples at every step, not from the batch that moves the
    weights: with the batch's own the identity would be a telescoping sum that no run can violate.
    """
    m = x.shape[0]
    coin = batch / m
    factor = batch_factor(m, batch, "independent")
    gram = x @ x.T
    squares = gram**2

    def step(theta: Any, key: kit.Key) -> tuple[Any, tuple]:
        output = x @ theta
        first, second = residuals(logistic, output, y)
        slope = first @ x / m + ridge * theta
        flat = slope @ slope
        # g_k = first_k x_k + ridge θ, and x_j · g_k = first_k gram_jk + ridge output_j: no table of gradients is needed
        weight = first**2
        lengths = weight @ jnp.diag(gram) + 2 * ridge * (first @ output)  # Σ_k |g_k|²
        lengths += m * ridge**2 * (theta @ theta)
        stretched = second @ (squares @ weight) + 2 * ridge * (second * output) @ (gram @ first)
        stretched += m * ridge**2 * (second @ output**2)  # Σ_jk second_j (x_j · g_k)²
        curved = (stretched / m + ridge * lengths) / m  # (1/m) Σ_k g_kᵀ H g_k
        bent = second @ (x @ slope) ** 2 / m + ridge * flat  # ∇Lᵀ H ∇L
        # coins are independent, so that tr C = factor Σ|g_k|²/m, and C̃ = C + ∇L∇Lᵀ
        dissipation = lr / 2 * (factor * lengths / m + flat)
        kept = Averages(
            alignment=(theta - w) @ slope,
            dissipation=dissipation,
            covariance=dissipation - lr / 2 * flat,
            # b independent draws: tr C = (E|g|² − |∇L|²)/b
            replaced=lr / 2 * ((lengths / m - flat) / batch + flat),
            slope=flat,
            curved=lr / 2 * (factor * curved + bent),
            curved_covariance=lr / 2 * factor * curved,
            gradient=0.0,
            boundary=0.0,
        )
        joins = jax.random.bernoulli(key, coin, (m,))
        moved = (joins * first) @ x / batch + joins.sum() / batch * ridge * theta
        return theta - lr * moved, (kept, slope)

    # One body for both windows: their lengths are data.
    window = lambda theta, drawn: average_window(step, theta, w, lr, *drawn)
    windows = (jax.random.split(key), jnp.array([burn, steps]))
    _, both = jax.lax.scan(window, start, windows)
    return tuple(jax.tree.map(lambda values, i=i: values[i], both) for i in range(2))


@dataclass(frozen=True)
class NoisePoint(kit.Point):
    """The excess risk of least squares in units of γ(1/b − 1/m), the rule of linear scaling, over step and batch."""

    shares: kit.Fraction
    batch: kit.Count
    examples: kit.Count
    ridge: kit.NonNegative

    batched = ("shares", "batch")
    diagram = {"shares": "linear:0.02:0.7:8", "batch": "4,8,16,32,64"}
    labels = {"radius_measured": "radius of the map of second moments"}
    contours = {"radius_measured": (1.0, "second moments become infinite")}
    diagram_remarks = (
        "Where noise depends on γ(1/b − 1/m) alone, as the rule for small steps says, the colour does not change.",
        "To the right of the last level second moments are infinite though the mean still converges.",
    )

    def setting(self, key):
        x, y = patients(self.examples)
        w, hessian = minimum(x, y, self.ridge, False)
        return LeastSquares(x, y, w, np.linalg.eigvalsh(hessian)[-1])

    def predict(self, setting):
        lr = self.shares * 2 / setting.largest
        state = steady_state(setting.x, setting.y, lr, self.batch, ridge=self.ridge)
        unit = lr * (1 / self.batch - 1 / self.examples)
        excess = state.excess_risk / unit if state.radius < 1 else np.inf
        return kit.Prediction(excess=excess, radius=state.radius)

    def observe(self, setting, key):
        x, y, w, largest = setting
        lr = self.shares * 2 / largest
        run = lambda key: averages(
            x, y, self.ridge, 0.0, w, w, lr, self.batch, key, burn=500, steps=2000
        )[1]
        late = jax.vmap(run)(kit.keys(key, 16))
        unit = lr * (1 / self.batch - 1 / self.examples)
        # on a quadratic (θ − w)·∇L is twice the excess risk
        return {"excess": late.alignment / 2 / unit}

    def run_conditions(self, observed):
        x, y, _, largest = self.setting(jax.random.key(0))
        lr = self.shares * 2 / largest
        radius = steady_state(x, y, 1.2 * lr, self.batch, ridge=self.ridge).radius
        yield kit.assume(
            "radius of the map of second moments at 1.2 times the step",
            radius,
            "<",
            1,
            "second moments are infinite, or nearly so: rare excursions make the mean, which no short run sees; "
            "lower --shares or raise --batch",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"radius": float(predicted["radius"])}

    def judge(self, predicted, observed):
        # near the edge of stability excursions are long, and the interval over 16 runs with them
        yield equal("excess", predicted["excess"], observed["excess"], 0.15, label="excess risk")
