"""A claim whose point costs nothing, and which crashes where it is told to."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from steepest.claim import (
    Claim,
    Count,
    Observation,
    Point,
    Positive,
    Prediction,
    assume,
    equal,
    predicted_curve,
)


@dataclass(frozen=True)
class ToyPoint(Point):
    """A level that is the scale."""

    scale: Positive
    shift: float
    width: Count
    seeds: Count
    parts: Positive

    batched = ("scale", "shift", "parts")
    diagram: ClassVar = {"scale": "log:1:8:4", "width": "2,3"}
    base: ClassVar = {"seeds": 5}
    diagram_remarks = ("A toy.",)

    def setting(self, key):
        if self.scale == 13:
            raise RuntimeError("thirteen\nis unlucky")
        return jnp.full(3, float(self.parts))

    def predict(self, setting):
        return Prediction(level=float(self.scale) * (setting[0] + 1))

    def observe(self, setting, key):
        noise = jax.random.normal(key, (self.seeds, self.width))
        return {
            "level": self.scale * (setting[0] + 1) * (1 + 0.01 * noise.mean(1)) + self.shift,
        }

    def run_conditions(self, observed):
        return [assume("shift", float(self.shift), "<", 100)]

    def judge(self, predicted, observed):
        return [equal("level", predicted["level"], observed["level"], 0.1)]

    def quantities(self, predicted, observed):
        return {"spread": float(observed["level"].std())}

    def boundaries(self, x, y):
        return (predicted_curve((1, 2), (1, 2), "edge"),)


@dataclass(frozen=True)
class Toy(Claim):
    """A toy."""

    scale: Positive = 1.0  # scale [1]
    shift: float = 0.0  # shift [m]
    width: Count = 2  # width [neurons]
    seeds: Count = 3  # seeds [1]
    parts: tuple[Positive, ...] = (1.0, 2.0)  # parts [1]
    word: str = "tanh"  # word [name]
    flag: bool = False  # flag [truth]

    statement = "x"
    source = "here"
    point = ToyPoint

    def predict(self, setting):
        return Prediction(level=self.scale)

    def observe(self, setting, key):
        if self.scale == 13:
            raise RuntimeError("thirteen")
        return Observation(level=self.scale)

    def judge(self, predicted, observed):
        return [equal("level", predicted["level"], observed["level"], 0.1)]

    def rivals(self, setting, predicted):
        return []

    def panels(self, predicted, observed):
        return ()
