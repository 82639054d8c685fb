"""Gradient descent on a quadratic multiplies the error by 1 − ηλ at every step.

Replace this claim by yours: the first line of this text is the statement in one sentence, the rest explains it.
"""

from dataclasses import dataclass

import jax
import numpy as np
import optax

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    assume,
    equal,
    observed_curve,
    panel,
    predicted_curve,
)
from steepest.dynamics import descend


@dataclass(frozen=True)
class Template(Claim):
    """A quadratic in one dimension, from random starts."""

    lr: Positive = 0.5  # η, step size [1/curvature]
    curvature: Positive = 1.0  # λ, second derivative of the risk [1]
    steps: Count = 10  # steps of descent [steps]
    seeds: Seeds = 5  # random starting points [1]

    kind = "theorem"
    statement = r"w_t = (1 - \eta\lambda)^t\, w_0"
    source = "any course on optimization"
    full = {"seeds": 50}
    tiny = {"seeds": 3}
    out_of_scope = {"lr": 2.5}
    # a sweep over the step size runs as one compiled program: observe is pure JAX, and no array's shape depends on lr
    batched = ("lr",)
    diagram = {"lr": "linear:0.1:1.9:10", "curvature": "0.5,1"}

    def setting(self, key: Key) -> jax.Array:
        """Draw what theory and experiment may both see: here the starting points, shape (seeds,)."""
        return 1 + jax.random.uniform(key, (self.seeds,))

    def hypotheses(self, setting: jax.Array) -> list[Hypothesis]:
        """Check what the theorem assumes; where it fails the verdict is out of range."""
        product = self.lr * self.curvature
        return [assume("ηλ", product, between=(0, 2), note="choose a smaller --lr")]

    def predict(self, setting: jax.Array) -> Prediction:
        """Use theory only: w_t/w_0 at every step."""
        steps = np.arange(self.steps + 1)
        return Prediction(ratio=("step", (1 - self.lr * self.curvature) ** steps))

    def observe(self, setting: jax.Array, key: Key) -> Observation:
        """Run the experiment; it never sees the prediction."""

        def path(start: jax.Array) -> jax.Array:
            risk = lambda w: 0.5 * self.curvature * w**2
            ratio = {"ratio": lambda w: w / start}
            return descend(risk, start, optax.sgd(self.lr), self.steps, observe=ratio).observed[
                "ratio"
            ]

        return Observation(ratio=("seed step", jax.vmap(path)(setting)))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        """Compare, within a margin that was written down before the first run."""
        end = observed["ratio"][:, -1]
        label = "w_t/w_0 at the end"
        return [
            equal("final_ratio", predicted["ratio"][-1], end, 1e-9, aggregate="all", label=label)
        ]

    def rivals(self, setting: jax.Array, predicted: Prediction) -> list[Rival]:
        """Name wrong theories that the same data must reject: the nearer they miss, the better."""
        flow = np.exp(-self.lr * self.curvature * np.arange(self.steps + 1))
        wrong = predicted.replace(ratio=("step", flow))
        return [Rival("gradient_flow", wrong, "descent is its Euler discretization")]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        """Say what the figure shows, as data."""
        steps = np.arange(self.steps + 1)
        descent = observed_curve(steps, np.abs(observed["ratio"]), "descent")
        theory = predicted_curve(steps, np.abs(predicted["ratio"]), "(1−ηλ)^t")
        title = "The error shrinks geometrically"
        return (panel(title, "step", "|w_t/w_0|", descent, theory, log="y"),)
