"""Wide tanh networks that learn few examples on a circle: fields and hypotheses of claims on them, and their flows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.features._mean_field_theory import Limit, limit_of, relative_difference
from steepest.dynamics import flow

MARGIN = 0.25
"""Of a mean squared distance: the interval takes 0.1, and the next order in 1/N and in ε as much."""
BATCH = 20  # starts that are trained at a time; what other numbers leave over compiles once more
Networks = tuple[jax.Array, ...]
"""Neurons of one network of each width, (N, 2) each: together they compile once."""
Power = float | jax.Array
MEAN: Power = 1.0  # power of N that outputs are divided by, where they are means over neurons


class Setting(NamedTuple):
    """The examples, which are the population: one-pass SGD draws one of them at each step."""

    x: kit.Values  # (n, 2)
    y: kit.Values  # (n,)


def draw_examples(key: kit.Key, examples: int, radius: float, height: float) -> Setting:
    """Draw examples on a circle, with an odd target, as networks of tanh are odd in the mean."""
    angle = 2 * np.pi * kit.numpy_generator(key).random(examples)
    x = radius * np.stack([np.cos(angle), np.sin(angle)], 1)
    return Setting(x, height * (np.tanh(2 * x[:, 0]) - np.tanh(2 * x[:, 1])))


@dataclass(frozen=True)
class OnCircle(kit.Claim[Setting]):
    """Tanh networks of two inputs, trained on a few examples on a circle."""

    widths: tuple[kit.Count, ...] = kit.param(
        (60, 180, 540),
        "N",
        unit="neurons",
        scope=kit.choices(
            (60, 180, 540),
            (64, 256, 1024),
            (100, 300, 900),
            why="below the next order in 1/N is seen",
        ),
    )
    times: tuple[kit.Positive, ...] = kit.param(
        (0.2, 0.6, 2.0),
        "times of the flow, in time multiplied by N, increasing",
        scope=kit.choices((0.2, 0.6, 2.0), (0.2, 0.8, 3.0), why="later SGD is as noisy as early"),
    )
    examples: kit.Count = kit.param(
        12,
        "examples, the whole population",
        scope=kit.between(8, 20, "fewer often have small targets"),
    )
    radius: kit.Positive = kit.param(
        1.4, "length of an example", scope=kit.between(1.0, 1.6, "longer ones make steeper neurons")
    )
    height: kit.Positive = kit.param(
        0.5,
        "height of the target, height · (tanh 2x₁ − tanh 2x₂)",
        scope=kit.between(0.4, 0.6, "outputs at the start are small beside it"),
    )
    seeds: kit.Seeds = kit.param(40, "independent groups of starts")
    starts: kit.Count = kit.param(40, "starts of each width in a group")

    def axes(self):
        return {"width": self.widths, "time": self.times, "example": range(self.examples)}

    def check_fields(self) -> None:
        """Refuse times that do not increase."""
        if any(later <= time for time, later in zip(self.times, self.times[1:], strict=False)):
            raise kit.UserError(f"times must increase, got {self.times}")

    def setting(self, key):
        return draw_examples(key, self.examples, self.radius, self.height)

    def limit(self, setting: Setting, shift: float = 0.0) -> Limit:
        """Return the limit at the claim's times."""
        return limit_of(setting.x, setting.y, self.times, shift)

    def hypotheses(self, setting):
        limit = self.limit(setting)
        yield kit.assume("smallest width", min(self.widths), ">=", 30, "the law is for N → ∞")
        yield kit.assume(
            "variance of outputs at the first time, of the smallest network, over mean y²",
            float(limit.alone[0] / min(self.widths) / np.mean(setting.y**2)),
            "<=",
            0.06,
            "neurons move by their own noise; raise --widths or --height",
        )
        yield kit.assume(
            "relative difference of the laws by two quadratures",
            relative_difference(limit, self.limit(setting, 0.5), max(self.widths)),
            "<=",
            MARGIN / 3,
            "choose shorter --times or a smaller --radius",
        )


def output(w: jax.Array, x: jax.Array, power: Power = MEAN) -> jax.Array:
    """Return the outputs of a network at examples, ``(..., n)``."""
    return jnp.tanh(w @ x.T).sum(0) / len(w) ** power


def outputs_of(networks: Networks, data: Setting, power: Power = MEAN) -> jax.Array:
    """Return the outputs of every network at the examples, ``(widths, n)``."""
    return jnp.stack([output(w, data.x, power) for w in networks])


def risk_of(networks: Networks, data: Setting, power: Power = MEAN) -> jax.Array:
    """Return the risks ½ mean (f − y)², in the time of each width, summed over networks that do not see each other."""
    risks = [
        # the tangent kernel Σ_j ∇_j f ∇_j fᵀ is ∝ N^(1 − 2·power): this makes it of order one
        len(w) ** (2 * power - 1) * 0.5 * jnp.mean((output(w, data.x, power) - data.y) ** 2)
        for w in networks
    ]
    return jnp.stack(risks).sum()


def draw_networks(key: kit.Key, widths: Sequence[int]) -> Networks:
    """Draw the networks of one start, of Gaussian weights."""
    return tuple(jax.random.normal(jax.random.fold_in(key, N), (N, 2)) for N in widths)


def follow_flow(
    key: kit.Key, power: Power, data: Setting, widths: Sequence[int], times: kit.Values
) -> dict[str, jax.Array]:
    """Follow the gradient flow of one start: its outputs and how far its neurons have moved, (times, widths, …)."""
    start = draw_networks(key, widths)
    moved = lambda networks: jnp.stack(
        [((w - w0) ** 2).sum(1).mean() ** 0.5 for w, w0 in zip(networks, start, strict=True)]
    )
    risk = partial(risk_of, data=data, power=power)
    quantities = {"outputs": partial(outputs_of, data=data, power=power), "moved": moved}
    return flow(risk, start, times, observe=quantities, rtol=1e-4, atol=1e-6).observed
