"""One point of the diagram of rotational-equilibrium: AdamW on noise at one ηλ and one β₁."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.training.rotational_equilibrium import experiment, theory
from steepest.kit.points import Arrays, equal

RATE = 0.01  # η
BETA2 = 0.99
SHORTEST = 6.0  # steps in units of the time in which norms relax
LARGEST = 0.03  # ηλ of small steps


@dataclass(frozen=True)
class RotationalEquilibriumPoint(kit.Point):
    """By which angle AdamW turns a scale-invariant weight a step, and how long that weight comes to be."""

    decays: kit.Positive
    beta: kit.Fraction
    sizes: kit.Positive
    weights: kit.Count
    steps: kit.Count
    seeds: kit.Seeds

    precision = "float32"
    batched = ("decays", "beta", "sizes")
    diagram = {"decays": "log:0.0008:0.15:14", "beta": "linear:0:0.98:8"}
    labels = {"usual": "angle over √(2ηλ(1 − β₁)/(1 + β₁))"}
    contours = {"angle_predicted": (0.05, "0.05 radians by theory")}
    diagram_remarks = (
        "AdamW on gradients of pure noise, 1500 steps. Left of the line they are too few for norms to come to "
        "balance; right of ηλ = 0.03 steps are not small. Both are out of range.",
    )

    def hypotheses(self, setting):
        half = self.steps / 2
        yield kit.assume(
            "half of the steps, in units of 1/2ηλ", 2 * self.decays * half, ">=", SHORTEST
        )
        yield kit.assume(
            "half of the steps, in units of 1/(1 − β₂)", half * (1 - BETA2), ">=", SHORTEST
        )
        yield kit.assume("ηλ", self.decays, "<=", LARGEST, "the law is of small steps")

    def predict(self, setting):
        balance = theory.adamw(np.array(self.decays), self.beta)
        momentum = (1 - self.beta) / (1 + self.beta)
        return kit.Prediction(
            angle=balance.angle,
            square=theory.square_of_adamw(balance, RATE, self.beta, self.weights),
            usual=np.sqrt(2 * self.decays * momentum),
        )

    def observe(self, setting, key):
        beta: Any = jnp.asarray(self.beta, float)
        size = jnp.asarray(self.sizes, float)
        optimizer = experiment.adamw(RATE, beta, BETA2)(jnp.asarray(self.decays, float) / RATE)

        def turns(key: jax.Array) -> experiment.Turns:
            return experiment.on_noise(key, optimizer, size, self.weights, self.steps)

        return jax.vmap(turns)(kit.keys(key, self.seeds))._asdict()

    def judge(self, predicted, observed):
        yield equal(
            "angle",
            predicted["angle"],
            observed["angle"],
            0.02,  # v varies, which takes half a percent
            label="angle a step [radians]",
        )
        yield equal(
            "square",
            predicted["square"],
            observed["square"],
            0.05,  # v varies, which takes 1 %, and the interval 2 %
            label="square of the norm",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"usual": float(observed["angle"].mean() / predicted["usual"])}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"decays", "beta"}:
            return ()
        line = np.full(2, SHORTEST / self.steps)
        betas = np.array([-1.0, 2.0])
        ends = (line, betas) if x == "decays" else (betas, line)
        return (kit.predicted_curve(*ends, "norms have come to balance"),)
