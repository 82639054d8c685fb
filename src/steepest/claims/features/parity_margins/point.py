"""One point of the diagram of parity-margins: neurons that climb, and frozen features, at one d and one k."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kit.points import Arrays, equal
from steepest.nn.data import hypercube
from steepest.programs import parity_margins

MOST_BITS = 6  # of the parities of the diagram
MOST = 64  # d of the diagram
STARTS = 6  # neurons that climb at each point
STEPS = 200  # of each
MORE = 15  # times as many inputs for the correlations


@dataclass(frozen=True)
class ParityMarginsPoint(kit.Point):
    """The ratio of the two margins over (d, k): of the best neuron that a climb finds, and of sampled correlations."""

    large: Annotated[int, kit.Within(2, MOST)]
    bits: Annotated[int, kit.Within(2, MOST_BITS)]
    samples: kit.Count
    groups: kit.Seeds

    batched = ("large", "bits")
    diagram = {"large": "2,3,4,5,6,8,10,12,16,24,32,64", "bits": "2,4,6"}
    base = {"samples": 200, "groups": 3}
    labels = {"log_samples": "log₁₀ of (γ₁/γ₂)², the ratio of sample counts"}
    contours = {"ratio_predicted": (1.0, "γ₁ = γ₂")}
    diagram_remarks = (
        "Beyond the line neurons that learn have the larger margin, before it the frozen features have. The ratio of "
        "sample counts is that of the bounds 1/γ², not of networks.",
        "Shown is the best of 18 neurons that climb from random directions, on sampled inputs. At 64 dimensions "
        "and six bits they do not find it: a random start is nearly blind to six bits.",
    )

    def hypotheses(self, setting):
        spare = self.large - self.bits
        odd = self.bits % 2
        yield kit.assume("bits outside the parity", spare, ">=", 0, "d is at least k")
        yield kit.assume("odd bits of the parity", odd, "==", 0, "odd parities have no margin")

    def predict(self, setting):
        if self.bits > self.large:  # out of range
            return kit.Prediction(ratio=np.nan)
        first, tangent = parity_margins(self.large, self.bits)
        return kit.Prediction(ratio=first / tangent)

    def observe(self, setting, key):
        return jax.lax.map(self.group, kit.keys(key, self.groups))

    def group(self, key: kit.Key) -> Mapping[str, jax.Array]:
        """Return both margins from one sample of inputs; the first bits take all their values."""
        for_x, for_u = jax.random.split(key)
        d = jnp.asarray(self.large)
        present = jnp.arange(MOST) < d
        patterns = jnp.asarray(hypercube(MOST_BITS))
        y = jnp.where(jnp.arange(MOST_BITS) < self.bits, patterns, 1).prod(1) / len(patterns)
        # correlations need more inputs than the climb, whose end does not depend on them
        many = jax.random.rademacher(for_x, (MORE * self.samples, MOST - MOST_BITS), float)
        others = many[: self.samples]

        def edge(u: jax.Array) -> jax.Array:
            inner = (patterns @ u[:MOST_BITS])[:, None] + others @ u[MOST_BITS:]
            return jnp.abs(y @ jnp.maximum(inner, 0).mean(1))

        def climb(u: jax.Array) -> jax.Array:
            def move(i: jax.Array, carry: tuple) -> tuple:
                u, best = carry
                margin, slope = jax.value_and_grad(edge)(u)
                slope = unit(jnp.where(present, slope, 0.0))
                step = 0.5 * 0.97**i
                return unit(u + step * slope), jnp.maximum(best, margin)

            return jax.lax.fori_loop(0, STEPS, move, (u, jnp.zeros(())))[1]

        starts = jnp.where(present, jax.random.normal(for_u, (STARTS, MOST)), 0.0)
        first = jax.vmap(climb)(jax.vmap(unit)(starts)).max() / jnp.sqrt(d)
        ones = present.astype(float)
        products = (patterns @ ones[:MOST_BITS])[:, None] + many @ ones[MOST_BITS:]
        products = jnp.clip(products / d, -1.0, 1.0)
        kernel = products * (jnp.pi - jnp.arccos(products)) / (2 * jnp.pi)
        return {"first": first, "tangent": jnp.sqrt(jnp.maximum(y @ kernel.mean(1), 0.0))}

    def judge(self, predicted, observed):
        if not np.isfinite(predicted["ratio"]):
            return []
        ratios = observed["first"].max() / observed["tangent"]
        return [equal("ratio", predicted["ratio"], ratios, 0.1, label="γ₁/γ₂")]

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        if not np.isfinite(predicted["ratio"]):
            return {"log_samples": float("nan")}
        ratio = observed["first"].max() / observed["tangent"].mean()
        return {"log_samples": float(2 * np.log10(ratio))}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"large", "bits"}:
            return ()
        bits = np.arange(2, MOST_BITS + 1, 2)
        line = np.array([_crossing(int(k)) for k in bits], float)
        ends = (line, bits) if x == "large" else (bits, line)
        return (kit.predicted_curve(*ends, "γ₁ = γ₂"),)


def unit(u: jax.Array) -> jax.Array:
    """Return the vector in length one, zero if it is zero."""
    size = jnp.linalg.norm(u)
    return u / jnp.where(size > 0, size, 1.0)


def _crossing(k: int) -> float:
    """Return the d, interpolated, from which the margin over all neurons is the larger."""
    before = 0.0
    for d in range(k, MOST + 1):
        first, tangent = parity_margins(d, k)
        now = np.log(first / tangent)
        if now >= 0:
            return d if d == k else d - now / (now - before)
        before = now
    return float(MOST)
