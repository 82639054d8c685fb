"""Where a two-layer linear network ends: it stays lazy, is catapulted, or diverges."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.arrays import Prediction
from steepest.claims._cell import Cell, Seen
from steepest.claims._claim import keys
from steepest.descent import descend
from steepest.judging import Check, Hypothesis, bound, equal, require
from steepest.kernels import ntk_top
from steepest.panels import Curve, theory
from steepest.types import Key


class CatapultPhases(Cell):
    """The phase over γλ₀ and width: 0 lazy (the loss never exceeds its start), 1 catapult, 2 divergent."""

    batched = ("multiple",)
    diagram = {"multiple": "linear:0.5:5:37", "width": "log:8:2048:9"}
    base = {"steps": 300}
    remarks = (
        "Each seed counts 0 if the loss never exceeds its start, 1 if it does and descent converges, 2 if it diverges; "
        "shown is the mean over seeds. The theorem is for m → ∞: narrow networks may leave it.",
    )

    def predict(self, setting: Any) -> Prediction:
        multiple = float(self.claim.multiple)
        return Prediction(phase=float(multiple > 2) + float(multiple > 4), flatness=2.0)

    def observe(self, setting: Any, key: Key) -> dict[str, Any]:
        claim, net = self.claim, self.claim.linear(self.claim.width)
        x = jnp.ones((1, claim.dimension))

        def one(key: Key) -> dict[str, jax.Array]:
            start = net.init(key)
            lr = claim.multiple / ntk_top(net.apply, start, x)
            path = descend(
                lambda p: 0.5 * jnp.mean(net.apply(p, x) ** 2), start, optax.sgd(lr), claim.steps, ceiling=1e12
            )
            return {
                "growth": jnp.nanmax(path.risk) / path.risk[0],
                "flatness": lr * ntk_top(net.apply, path.params, x),
                "diverged": path.diverged,
            }

        return jax.vmap(one)(keys(key, claim.seeds))

    def premises(self, observed: Seen) -> list[Hypothesis]:
        distance = min(abs(float(self.claim.multiple) - line) for line in (2, 4))
        return [require("distance of γλ₀ from 2 and 4", distance, ">", 0, "the theorem says nothing on the lines")]

    def judge(self, predicted: Prediction, observed: Seen) -> list[Check]:
        phase = np.where(observed["diverged"], 2.0, np.where(observed["growth"] > 1, 1.0, 0.0))
        stays = float(predicted["phase"]) < 2
        left = np.where(observed["diverged"], np.nan, observed["flatness"])  # where it diverged there is no end
        flat = bound("γλ at the end", left, at_most=float(predicted["flatness"]), over="each")
        return [equal("phase", predicted["phase"], phase, (-0.25, 0.25), absolute=True), *([flat] if stays else [])]

    def quantities(self, predicted: Prediction, observed: Seen) -> dict[str, float]:
        there = ~observed["diverged"]
        growth = np.log10(observed["growth"][there])
        return {"log₁₀ of largest loss / loss at the start": float(growth.mean()) if there.any() else float("nan")}

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        if {x, y} != {"multiple", "width"}:
            return ()
        ends = np.array([1.0, 1e6])
        lines = [(np.full(2, at), ends, f"γλ₀ = {at:g}") for at in (2.0, 4.0)]
        return tuple(theory(*((a, b) if x == "multiple" else (b, a)), label) for a, b, label in lines)
