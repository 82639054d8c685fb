"""Walkers in valleys of minima: a product of two numbers with noisy labels, and a valley between growing walls."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kit.points import Arrays, equal


class Balance(NamedTuple):
    """What walkers of the product network leave at the marks, each of shape ``(marks,)``.

    Attributes:
        imbalance: D = u² − v².
        product: D₀ Π (1 − γ² r²) over the steps so far.
        trace: tr H on the valley, u² + v².
    """

    imbalance: Any
    product: Any
    trace: Any


def balance_walk(
    u: float, v: float, lr: Any, noise: Any, marks: kit.Values, key: kit.Key, *, fresh: Any = 1
) -> Balance:
    """Descend on ½(uv − 1 − σξ)² with a fresh ξ ~ N(0, 1) at each step, and look at the marks.

    With ``fresh`` zero the first ξ is kept: a label that is wrong, and stays so.
    """

    def step(i: Any, state: tuple) -> tuple:
        u, v, product = state
        residual = u * v - 1 - noise * jax.random.normal(jax.random.fold_in(key, i * fresh))
        moved = u - lr * residual * v
        other = v - lr * residual * u
        # u² − v² becomes (u² − v²)(1 − γ²r²): the terms −2γruv and +2γruv cancel
        return moved, other, product * (1 - lr**2 * residual**2)

    def advance(state: tuple, ends: tuple) -> tuple:
        u, v, product = jax.lax.fori_loop(ends[0], ends[1], step, state)
        return (u, v, product), Balance(u**2 - v**2, product, u**2 + v**2)

    one = jnp.ones(())
    start = (u * one, v * one, (u**2 - v**2) * one)
    before = jnp.concatenate([jnp.zeros(1, int), jnp.asarray(marks[:-1])])
    return jax.lax.scan(advance, start, (before, jnp.asarray(marks)))[1]


def balance_law(imbalance: float, lr: float, noise: float, marks: kit.Values) -> kit.Values:
    """Return D at the marks by D ← D(1 − 2γ²σ²/(2 − γλ)), with λ = tr H = √(D² + 4) on the valley uv = 1.

    E r² = 2σ²/(2 − γλ) holds the noise of the label, σ², and that of uv around 1, γλσ²/(2 − γλ).
    """
    values = []
    current = float(imbalance)
    last = 0
    for mark in np.asarray(marks):
        for _ in range(mark - last):
            # (u² + v²)² = D² + 4(uv)²
            trace = np.sqrt(current**2 + 4)
            current *= 1 - 2 * lr**2 * noise**2 / (2 - lr * trace)
        values.append(current)
        last = mark
    return np.array(values)


def walls(place: Any, tanh: Any, xp: Any = jnp) -> tuple[Any, Any]:
    """Return λ₁, λ₂ at a place of the valley and their slopes there, each of shape ``(2,)``.

    Args:
        place: θ̂.
        tanh: 0 for 1 + θ̂² and ½ + ½(θ̂ − 1)², whose sum falls to θ̂ = ⅓; 1 for 3/2 + tanh θ̂ and 3/2 − ½ tanh θ̂.
        xp: NumPy or JAX's.
    """
    bend = xp.tanh(place)
    slope = 1 - bend**2  # of tanh
    heights = xp.where(
        tanh > 0.5,
        xp.stack([1.5 + bend, 1.5 - bend / 2]),
        xp.stack([1 + place**2, 0.5 + (place - 1) ** 2 / 2]),
    )
    slopes = xp.where(tanh > 0.5, xp.stack([slope, -slope / 2]), xp.stack([2 * place, place - 1]))
    return heights, slopes


class Valley(NamedTuple):
    """What a walker of the valley leaves.

    Attributes:
        place: θ̂ at the marks, shape ``(marks,)``.
        spread: time average of θ̄², shape ``(2,)``, for walkers that were held in place.
    """

    place: Any
    spread: Any


def valley_walk(
    start: Any,
    tanh: Any,
    alphas: Any,
    held: Any,
    power: Any,
    *,
    lr: float,
    burn: int,
    marks: kit.Values,
    key: kit.Key,
) -> Valley:
    """Descend on Σ θ̄_i² λ_i(θ̂), with noise of covariance α_i H_ii = 2 α_i λ_i in each θ̄_i.

    Args:
        start: θ̂ at first, held there for ``burn`` steps.
        tanh: which walls.
        alphas: α_i, shape ``(2,)``.
        held: 1.0 for a walker that stays at θ̂.
        power: of λ in the covariance, 1 where it is α_i H_ii, 0 where it is 2 α_i however steep the wall.
        lr: step size γ.
        burn: steps before the clock starts.
        marks: steps at which to look.
        key: of the noise.
    """

    def step(i: Any, state: tuple) -> tuple:
        place, wide, total = state
        heights, slopes = walls(place, tanh)
        drawn = jax.random.normal(jax.random.fold_in(key, i), (2,))
        gradient = 2 * heights * wide + jnp.sqrt(2 * alphas * heights**power) * drawn
        free = jnp.where(i < burn, 0.0, 1 - held)
        # ∂/∂θ̂ of Σ θ̄_i² λ_i(θ̂)
        drift = (wide**2 * slopes).sum()
        total = total + jnp.where(i < burn, 0.0, wide**2)
        return place - free * lr * drift, wide - lr * gradient, total

    def advance(state: tuple, ends: tuple) -> tuple:
        state = jax.lax.fori_loop(ends[0], ends[1], step, state)
        return state, state[0]

    ends = jnp.asarray(marks) + burn
    before = jnp.concatenate([jnp.zeros(1, int), ends[:-1]])
    zero = jnp.zeros(2)
    (_, _, total), places = jax.lax.scan(advance, (start, zero, zero), (before, ends))
    return Valley(places, total / marks[-1])


def spread(heights: kit.Values, alphas: kit.Values, lr: float) -> kit.Values:
    """Return ⟨θ̄_i²⟩ = γα_i/(2(1 − γλ_i)), exact at a fixed place."""
    # the fixed point of v = (1 − 2γλ)² v + 2γ²αλ
    return lr * np.asarray(alphas) / (2 * (1 - lr * heights))


def slow_law(
    start: float, tanh: float, alphas: kit.Values, lr: float, marks: kit.Values
) -> kit.Values:
    """Return θ̂ at the marks by the averaged map θ̂ ← θ̂ − γ Σ ⟨θ̄_i²⟩ λ_i'(θ̂)."""
    values = []
    place = float(start)
    last = 0
    for mark in np.asarray(marks):
        for _ in range(mark - last):
            heights, slopes = walls(np.float64(place), tanh, np)
            place -= lr * (spread(heights, alphas, lr) * slopes).sum()
        values.append(place)
        last = mark
    return np.array(values)


@dataclass(frozen=True)
class BalancePoint(kit.Point):
    """How fast noisy labels balance the two factors, over the step and the noise."""

    lr: kit.Positive
    noise: kit.Positive
    start: kit.Positive
    walkers: Annotated[int, kit.Within(8)]

    batched = ("lr", "noise")
    diagram = {"lr": "linear:0.01:0.16:6", "noise": "linear:0.1:1.1:6"}
    labels = {"stable_measured": "γ tr H at the start"}
    contours = {"stable_measured": (1.0, "γ tr H = 1 at the start")}
    base = {"walkers": 256}
    diagram_remarks = (
        "The colour is how far the logarithm of the mean D falls in 1000 steps; by theory like γ²σ² at small steps.",
    )

    def predict(self, setting):
        imbalance = self.start**2 - self.start**-2
        at_end = balance_law(imbalance, self.lr, self.noise, np.array([1000]))[0]
        return kit.Prediction(
            decay=np.log(imbalance / at_end), stable=self.lr * (self.start**2 + self.start**-2)
        )

    def observe(self, setting, key):
        walk = lambda key: balance_walk(
            self.start, 1 / self.start, self.lr, self.noise, np.array([1000]), key
        )
        ends = jax.vmap(walk)(kit.keys(key, self.walkers)).imbalance[:, 0]
        groups = ends[: ends.size // 8 * 8].reshape(8, -1).mean(1)
        return {"decay": jnp.log((self.start**2 - self.start**-2) / groups)}

    def run_conditions(self, observed):
        trace = self.start**2 + self.start**-2
        advice = "the fast directions are not much faster than the slow one; lower --lr"
        yield kit.assume("γ tr H at the start", self.lr * trace, "<", 1, advice)
        yield kit.assume("γσ, the noise of one step", self.lr * self.noise, "<", 0.1, advice)

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"stable": float(predicted["stable"])}

    def judge(self, predicted, observed):
        yield equal(
            "decay", predicted["decay"], observed["decay"], 0.1, label="decay of log mean D"
        )
