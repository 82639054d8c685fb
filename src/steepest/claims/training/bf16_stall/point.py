"""One point of the diagram of bf16-stall: weights rounded to nearest, at one step size and one noise."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.training.bf16_stall.experiment import DIGITS, Lane, descend
from steepest.kit.points import Arrays, equal


@dataclass(frozen=True)
class Bf16StallPoint(kit.Point):
    """The risk that is left beside gradient noise, in units of the curvature times the square of a spacing."""

    etas: kit.Positive
    noise: kit.Positive
    exponents: float
    curvature: kit.Positive
    weights: kit.Count
    steps: kit.Count
    seeds: kit.Seeds

    precision = "float32"
    batched = ("etas", "noise")
    diagram = {"etas": "log:0.02:0.8:11", "noise": "log:0.02:5:11"}
    base = {"exponents": (0.0,), "weights": 1000}
    labels = {"stalled": "log₂ of risk over that where weights stop without noise"}
    diagram_remarks = (
        "Noise of half a spacing a step and more undoes the stall: rounding is then an even error of its own. Above "
        "the line noise ends higher than weights that stop, below it lower.",
        "With η below 0.03 so many steps do not end: out of range.",
    )

    @property
    def spacing(self) -> float:
        """Return u."""
        return 2.0 ** (self.exponents + 1 - DIGITS)

    def hypotheses(self, setting):
        slowness = self.etas * self.curvature
        yield kit.assume("ηh", slowness, "<", 0.9, "near one a weight arrives in one step")
        yield kit.assume("steps in units of 1/ηh", self.steps * slowness, ">=", 14)

    def predict(self, setting):
        return kit.Prediction(
            dithered=beside_noise(self.etas, self.noise, self.curvature),
            left=left_of_stall(self.etas, self.curvature),
        )

    def observe(self, setting, key):
        eta = jnp.asarray(self.etas, float)
        u = self.spacing
        lane = Lane(eta, jnp.asarray(2.0**self.exponents, float), self.noise * u / eta)

        def risk(key: jax.Array) -> jax.Array:
            numbers = (self.curvature, self.weights, self.steps)
            return descend(lane, key, "nearest", *numbers, noisy=True).risk

        return {"risk": jax.lax.map(risk, kit.keys(key, self.seeds)) / (self.curvature * u**2)}

    def judge(self, predicted, observed):
        yield equal(
            "dithered",
            predicted["dithered"],
            observed["risk"],
            0.03,  # the interval takes 1 %
            label="risk over hu²",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"stalled": float(np.log2(observed["risk"].mean() / predicted["left"]))}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"etas", "noise"}:
            return ()
        etas = np.geomspace(1e-3, 0.9 / self.curvature, 200)
        left = left_of_stall(etas, self.curvature)
        quiet = beside_noise(etas, 0.0, self.curvature)
        # risk beside noise is quadratic in it
        slope = beside_noise(etas, 1.0, self.curvature) - quiet
        line = np.sqrt(np.where(left > quiet, left - quiet, np.nan) / slope)
        ends = (etas, line) if x == "etas" else (line, etas)
        return (kit.predicted_curve(*ends, "as high as the stall"),)


def beside_noise(eta: kit.Values, noise: float, h: float) -> kit.Values:
    """Return the risk over hu² beside noise of ``noise`` spacings a step, where rounding is an even error."""
    return (noise**2 + 1 / 12) / (4 * eta - 2 * eta**2 * h) / h


def left_of_stall(eta: kit.Values, h: float) -> kit.Values:
    """Return the risk over hu² where weights stop at most c = 1/2ηh spacings from their minima."""
    reach = 1 / (2 * eta * h)
    return (reach**2 - reach + 1 / 3) / 2
