"""Gradient descent on a quadratic multiplies the error by 1 − ηλ at every step.

Replace this claim by yours: the first line of this text is the statement in one sentence, the rest explains it.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Positive, Seeds
from steepest.descent import descend
from steepest.judging import Check, Hypothesis, Rival, equal, require
from steepest.panels import Panel, panel, seen, theory
from steepest.types import Key


@dataclass(frozen=True)
class Template(Claim):
    """A quadratic in one dimension, from random starts."""

    lr: Positive = 0.5  # η, step size [1/curvature]
    curvature: Positive = 1.0  # λ, second derivative of the risk [1]
    steps: Count = 10  # steps of descent [steps]
    seeds: Seeds = 5  # random starting points [1]

    statement = r"w_t = (1 - \eta\lambda)^t\, w_0"
    source = "any course on optimization"
    beyond = {"lr": 2.5}
    full = {"seeds": 50}

    def setting(self, key: Key) -> jax.Array:
        return 1 + jax.random.uniform(key, (self.seeds,))

    def hypotheses(self, setting: jax.Array) -> list[Hypothesis]:
        return [require("ηλ", self.lr * self.curvature, "<", 2, "choose a smaller --lr")]

    def predict(self, setting: jax.Array) -> Prediction:
        steps = jnp.arange(self.steps + 1)
        return Prediction(ratio=("step", (1 - self.lr * self.curvature) ** steps))

    def observe(self, setting: jax.Array, key: Key) -> Observation:
        def path(start: jax.Array) -> jax.Array:
            risk = lambda w: 0.5 * self.curvature * w**2
            run = descend(risk, start, optax.sgd(self.lr), self.steps, observe={"w": lambda w: w / start})
            return run.observed["w"]

        return Observation(ratio=("seed step", jax.vmap(path)(setting)))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        return [equal("w_t/w_0 at the end", predicted["ratio"][-1], observed["ratio"][:, -1], 1e-9, over="each")]

    def rivals(self, setting: jax.Array, predicted: Prediction) -> list[Rival]:
        flow = np.exp(-self.lr * self.curvature * np.arange(self.steps + 1))
        return [Rival("gradient flow", predicted.replace(ratio=("step", flow)), "descent is its Euler discretization")]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        steps = np.arange(self.steps + 1)
        curves = (
            seen(steps, np.abs(observed["ratio"]), "descent"),
            theory(steps, np.abs(predicted["ratio"]), "(1−ηλ)^t"),
        )
        return (panel("The error shrinks geometrically", "step", "|w_t/w_0|", *curves, log="y"),)
