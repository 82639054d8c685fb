"""A claim whose point costs nothing, and which crashes where it is told to."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from steepest import kit
from steepest.kit.points import equal


@dataclass(frozen=True)
class ToyPoint(kit.Point):
    """A level that is the scale."""

    scale: kit.Positive
    shift: float
    width: kit.Count
    seeds: kit.Count
    parts: kit.Positive

    batched = ("scale", "shift", "parts")
    diagram: ClassVar = {"scale": "log:1:8:4", "width": "2,3"}
    base: ClassVar = {"seeds": 5}
    diagram_remarks = ("A toy.",)

    def setting(self, key):
        if self.scale == 13:
            raise RuntimeError("thirteen\nis unlucky")
        return jnp.full(3, float(self.parts))

    def predict(self, setting):
        return kit.law(level=float(self.scale) * (setting[0] + 1))

    def observe(self, setting, key):
        noise = jax.random.normal(key, (self.seeds, self.width))
        return {
            "level": self.scale * (setting[0] + 1) * (1 + 0.01 * noise.mean(1)) + self.shift,
        }

    def run_conditions(self, observed):
        return [kit.assume("shift", float(self.shift), "<", 100)]

    def judge(self, predicted, observed):
        return [equal("level", predicted["level"], observed["level"], 0.1)]

    def quantities(self, predicted, observed):
        return {"spread": float(observed["level"].std())}

    def boundaries(self, x, y):
        return (kit.predicted_curve((1, 2), (1, 2), "edge"),)


@kit.claim
class Toy(kit.Claim[None]):
    """A toy."""

    scale: kit.Positive = kit.param(1.0, "scale")
    shift: float = kit.param(0.0, "shift", unit="m")
    width: kit.Count = kit.param(2, "width", unit="neurons")
    seeds: kit.Count = kit.param(3, "seeds")
    parts: tuple[kit.Positive, ...] = kit.param((1.0, 2.0), "parts")
    word: str = kit.param("tanh", "word", unit="name")
    flag: bool = kit.param(False, "flag", unit="truth")

    says = {"costs nothing": "level"}
    statement = "x"
    source = "here"
    point = ToyPoint

    def predict(self, setting):
        return kit.law(level=self.scale)

    def observe(self, setting, key):
        if self.scale == 13:
            raise RuntimeError("thirteen")
        return kit.seen(level=self.scale)

    def judge(self, law, seen):
        return [kit.follows("level", law.level, seen.level, 0.1)]

    def figure(self, law, seen, rivals):
        return ()
