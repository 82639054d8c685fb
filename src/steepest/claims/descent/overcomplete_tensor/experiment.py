"""Ascent of tensors with more random components than dimensions."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kit.points import Arrays, equal
from steepest.landscapes import tensor_ascent

NEAR = 0.9
"""Overlap with ±a_i from which an end counts as near it."""
LARGEST = 0.5
"""Largest n/d² of a diagram."""


def unit(rows: Any) -> Any:
    """Return rows of length one."""
    return rows / jnp.sqrt((rows**2).sum(-1, keepdims=True))


def draw(key: kit.Key, d: int, n: int, starts: int) -> tuple[jax.Array, jax.Array]:
    """Draw unit components ``(n, d)`` and starts ``(starts, d)`` in single precision."""
    for_components, for_starts = jax.random.split(key)
    components = jax.random.normal(for_components, (n, d), jnp.float32)
    return unit(components), unit(jax.random.normal(for_starts, (starts, d), jnp.float32))


def merging_overlap() -> float:
    """Find the overlap of two components from which ascent from one of them ends half-way, by bisection.

    Near it ascent is slow: 20 000 steps leave an error of 1e-4.
    """
    low = 0.3
    high = 0.8
    while high - low > 1e-4:
        overlap = (low + high) / 2
        angle = 0.0
        psi = math.acos(overlap)
        for _ in range(20_000):
            # x ← Σ_i ⟨a_i, x⟩³ a_i in the plane of both, x at this angle from a_1
            first = math.cos(angle) ** 3
            second = math.cos(psi - angle) ** 3
            moved = math.atan2(second * math.sin(psi), first + second * math.cos(psi))
            if abs(moved - angle) < 1e-14:
                break
            angle = moved
        merged = abs(angle - psi / 2) < 0.01
        low, high = (low, overlap) if merged else (overlap, high)
    return (low + high) / 2


@dataclass(frozen=True)
class OvercompleteTensorPoint(kit.Point):
    """The share of random starts that end near a component, at one dimension and one n/d²."""

    d: kit.Count
    ratio: kit.Fraction
    starts: kit.Count
    steps: kit.Count

    precision = "float32"
    batched = ("ratio",)
    diagram = {"d": "12,16,24,32,48,64,96", "ratio": "log:0.02:0.5:9"}
    base = {"starts": 48, "steps": 100}
    labels = {"overlap": "median overlap with the nearest component"}
    diagram_remarks = (
        "Predicted is a share of one, where n ≪ d². One tensor a point. It fails from n/d² near 0.04 on at "
        "d = 32, 0.15 at d = 64 and 0.3 at d = 96; components with an overlap above ½ share one maximum, which is rare "
        "at large d only.",
    )

    def predict(self, setting):
        return kit.Prediction(share=1.0)

    def observe(self, setting, key):
        most = max(2, round(LARGEST * self.d**2))
        components, starts = draw(key, self.d, most, self.starts)
        count = jnp.maximum(1, jnp.round(self.ratio * self.d**2))
        components = components * (jnp.arange(most) < count)[:, None]
        ends = tensor_ascent(components, starts, self.steps)
        return {"overlap": jnp.abs(ends.points @ components.T).max(1), "moved": ends.moved}

    def run_conditions(self, observed):
        yield kit.assume("n/d²", self.ratio, "<=", LARGEST, "the diagram draws no more components")

    def judge(self, predicted, observed):
        share = (observed["overlap"] >= NEAR).mean()
        yield equal(
            "share",
            float(predicted["share"]),
            share,
            0.03,
            absolute=True,
            label="share of starts that end near a component",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"overlap": float(np.median(observed["overlap"]))}
