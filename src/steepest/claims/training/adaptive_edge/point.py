"""One point of the diagram of adaptive-edge: trainings by Adam at one β₁ and one step size."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.training._tanh_network import sharpness
from steepest.claims.training.adaptive_edge import experiment
from steepest.claims.training.adaptive_edge.experiment import Rule
from steepest.kit.points import Arrays, equal

LOOKS = (0.75, 0.8, 0.85, 0.9, 0.95, 1.0)  # of the training, after which curvature is read
BEYOND = 1.15  # of the edge, which trainings with half of the step must pass


@dataclass(frozen=True)
class AdaptiveEdgePoint(kit.Point):
    """Where curvature stops under Adam, in its own coordinates, and how far it goes with half of the step."""

    adam_betas: kit.Fraction
    adam_edge: kit.Positive
    steps: kit.Count
    seeds: kit.Seeds

    precision = "float32"
    batched = ("adam_betas", "adam_edge")
    diagram = {"adam_edge": "log:100:1000000:9", "adam_betas": "0,0.3,0.6,0.9,0.95"}
    base = {"seeds": 4}
    labels = {
        "ratio": "log₂ of late curvature over the edge",
        "passed": "largest curvature over the edge, with half of the step",
    }
    contours = {"product_predicted": (20.0, "20/η by theory")}
    diagram_remarks = (
        "The step size is chosen for the edge (2 + 2β₁)/((1 − β₁)η), which is the axis: large edges are small steps.",
        "Trainings with half of the step have to pass 1.15 of the edge, else it is no edge that stops them, but the "
        "data are fitted first: out of range.",
    )

    @property
    def step_size(self) -> Any:
        """Return η that puts the edge where it is wanted."""
        return 2 * (1 + self.adam_betas) / (1 - self.adam_betas) / self.adam_edge

    def predict(self, setting):
        # of curvature times η, as the curvatures are alike by the choice of η
        return kit.Prediction(product=(2 + 2 * self.adam_betas) / (1 - self.adam_betas))

    def observe(self, setting, key):
        of_training, of_powers = jax.random.split(key)
        marks = tuple(round(part * self.steps) for part in LOOKS)
        eta = jnp.asarray(self.step_size, float)
        beta = jnp.asarray(self.adam_betas, float)

        def train(key: jax.Array, lr: jax.Array) -> experiment.Readings:
            return experiment.train(key, Rule(lr, beta, 0.0, 1.0), marks)

        over_steps = jax.vmap(train, (None, 0))
        over_seeds = jax.vmap(over_steps, (0, None))
        kept = over_seeds(kit.keys(of_training, self.seeds), jnp.stack([eta, eta / 2]))
        curvature = sharpness(of_powers, kept.weights, kept.scale)
        return {
            "product": (curvature[:, 0] * eta).mean(-1),
            "passed": curvature[:, 1].max(-1) / self.adam_edge,
        }

    def run_conditions(self, observed):
        yield kit.assume(
            "largest curvature of Adam with half of its step, over the edge",
            observed["passed"].min(),
            ">",
            BEYOND,
            "nothing else may stop it: choose a smaller --adam-edge",
        )

    def judge(self, predicted, observed):
        yield equal(
            "product",
            predicted["product"],
            observed["product"],
            0.12,  # it moves up and down by a tenth
            label="late curvature × η",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {
            "ratio": float(np.log2(observed["product"].mean() / predicted["product"])),
            "passed": float(observed["passed"].min()),
        }
