"""The experiments of saddle-escape: descent with and without noise through a chain of saddles, and on Ge's example."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kit.points import Arrays, equal
from steepest.landscapes import chain_times, chain_value

LONGEST = (
    8  # rooms of every simulated chain; what comes behind a room does not change when it is left
)
START = 0.1  # largest coordinate of a start


def exits(
    start: jax.Array,
    key: kit.Key,
    noise: jax.Array | float,
    gain: jax.Array | float,
    loss: jax.Array | float,
    lr: jax.Array | float,
    steps: int,
) -> jax.Array:
    """Descend through the chain and return the first step at which each |x_i| is at least one, −1 where never.

    Args:
        start: shape ``(rooms,)``.
        key: of the noise.
        noise: ν, standard deviation of what every step adds to every coordinate.
        gain: g.
        loss: ℓ.
        lr: η.
        steps: of the descent, at most: it ends when all rooms are left.
    """
    slope = jax.grad(chain_value)

    def going(state: tuple) -> jax.Array:
        _, first, step = state
        return (step < steps) & (first < 0).any()

    def move(state: tuple) -> tuple:
        x, first, step = state
        kick = noise * jax.random.normal(jax.random.fold_in(key, step), x.shape)
        x = x - lr * slope(x, gain, loss) + kick
        step = step + 1
        return x, jnp.where((first < 0) & (jnp.abs(x) >= 1), step, first), step

    return jax.lax.while_loop(going, move, (start, jnp.full(start.shape, -1), 0))[1]


def ends_on_wells(starts: np.ndarray, lr: float, steps: int) -> np.ndarray:
    """Return where descents on Ge's example −‖x‖₂² + ‖x‖₄⁴ end, shape of the starts, ``(starts, d)``."""
    x = starts.copy()
    for _ in range(steps):
        x = x - lr * (4 * x**3 - 2 * x)  # ∇(‖x‖₄⁴ − ‖x‖₂²)
    return x


@dataclass(frozen=True)
class ChainPoint(kit.Point):
    """The steps to pass a chain of saddles, over the number of rooms and the size of the noise."""

    rooms: Annotated[int, kit.Within(1, LONGEST)]
    noises: kit.Positive
    gain: kit.Positive
    loss: kit.Positive
    lr: kit.Positive
    seeds: kit.Seeds
    steps: kit.Count

    batched = ("rooms", "noises")
    diagram = {"rooms": "linear:1:8:8", "noises": "log:1e-30:0.01:15"}
    base = {"seeds": 10, "steps": 6000}
    labels = {"log_steps": "log₁₀ of the steps to pass all rooms"}
    diagram_remarks = (
        "Without noise each room takes ρ = 4.1 times as long as the one before. With noise ν no room takes longer than "
        "about log(1/ν)/log(1 + 2ηg): the rows bend from an exponential to a line, the later the smaller the noise.",
    )

    def setting(self, key):
        """Draw the starts, ``(seeds, LONGEST)``."""
        rng = kit.numpy_generator(key)
        return draw_starts(rng, self.seeds)

    def predict(self, setting):
        times = chain_times(setting, self.gain, self.loss, self.lr, self.noises)
        return kit.Prediction(total=times[:, : self.rooms].sum(-1).mean())

    def observe(self, setting, key):
        one = lambda start, seed: exits(
            start, seed, self.noises, self.gain, self.loss, self.lr, self.steps
        )
        first = jax.vmap(one)(jnp.asarray(setting), jax.random.split(key, self.seeds))
        return {"total": first[:, self.rooms - 1].astype(float)}

    def run_conditions(self, observed):
        yield kit.assume("least total", observed["total"].min(), ">", 0, "choose more --steps")

    def judge(self, predicted, observed):
        ratio = observed["total"] / float(predicted["total"])
        yield equal("total", 1.0, ratio, 0.15, label="steps to pass all rooms / predicted")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"log_steps": float(np.log10(np.maximum(observed["total"], 1)).mean())}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"rooms", "noises"}:
            return ()
        quiet = chain_times(np.full(4, 0.75 * START), self.gain, self.loss, self.lr)
        # log ν of the noise that coordinate i has when it is entered without any
        logs = -np.log1p(2 * self.lr * self.gain) * quiet
        place = np.linspace(1, 4, 40)
        noises = np.exp(np.interp(place, np.arange(1, 5), logs))
        drawn = noises > 1e-30
        label = "above: noise decides the last room"
        if x == "rooms":
            return (kit.predicted_curve(place[drawn], noises[drawn], label),)
        return (kit.predicted_curve(noises[drawn], place[drawn], label),)


def draw_starts(rng: np.random.Generator, seeds: int) -> np.ndarray:
    """Return random starts, ``(seeds, LONGEST)``, of coordinates from half to all of START, with random signs."""
    sizes = START * rng.uniform(0.5, 1, (seeds, LONGEST))
    return sizes * rng.choice([-1.0, 1.0], sizes.shape)
