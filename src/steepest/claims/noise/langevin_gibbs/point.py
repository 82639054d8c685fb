"""One point of the diagram of langevin-gibbs: how far the walk in the double well is from Gibbs's law."""

from dataclasses import dataclass

import jax.numpy as jnp

from steepest import kit
from steepest.claims.noise._double_well import DEPTH
from steepest.claims.noise._double_well_walk import line_expansion
from steepest.kit.points import Arrays, equal

HALF = 240  # nodes of a point's grid on x > 0, enough for β/ε up to 16000


@dataclass(frozen=True)
class LangevinGibbsPoint(kit.Point):
    """The exact law of the walk in the double well, at one step size and one temperature."""

    step: kit.Positive
    beta: kit.Positive

    batched = ("step", "beta")
    diagram = {"step": "log:0.002:0.25:15", "beta": "log:0.5:32:13"}
    labels = {"share_of_theory": "bias over theory's"}
    contours = {"bias_predicted": (0.01, "theory: a bias of 1 %")}
    diagram_remarks = (
        "No walkers: the law of the walk is exact at every point, so that what is seen beside the prediction is its "
        "second order in ε. It fails where that exceeds a tenth.",
        "Out of range is where steps are so large that the tails do not vanish at the ends of the grid: x − ε(x³ − x) "
        "runs away beyond |x| = √(1 + 2/ε). Ratios above three are shown as three.",
    )

    def predict(self, setting):
        theory = line_expansion(self.beta)
        return kit.Prediction(
            mean=theory.gibbs[0], bias=abs(self.step * theory.bias[0]) / theory.gibbs[0]
        )

    def observe(self, setting, key):
        # the law is even: nodes on x > 0, to which a step from there leads as well as to their mirror images
        variance = 2 * self.step / self.beta
        far = jnp.sqrt(1 + jnp.sqrt(4 * DEPTH / self.beta))
        x = far * (jnp.arange(HALF) + 0.5) / HALF
        means = x - self.step * (x**3 - x)
        spread = lambda places: jnp.exp((places - means[:, None]) ** 2 / (-2 * variance))
        transitions = spread(x) + spread(-x)
        transitions = transitions / transitions.sum(1, keepdims=True)
        # as in noise.stationary: π (I − P + E/n) = 1/n
        system = jnp.eye(HALF) - transitions + 1 / HALF
        law = jnp.linalg.solve(system.T, jnp.full(HALF, 1 / HALF))
        return {"square": law @ x**2, "end": law[-1]}

    def run_conditions(self, observed):
        yield kit.assume(
            "mass at the ends of the grid",
            abs(float(observed["end"])),
            "<",
            1e-6,
            "steps this large throw the walk off: take smaller ones",
        )

    def judge(self, predicted, observed):
        bias = abs(float(observed["square"]) / float(predicted["mean"]) - 1)
        # a tenth of it for the second order
        yield equal("bias", predicted["bias"], bias, 0.1, label="bias of E x² over E x²")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        bias = abs(float(observed["square"]) / float(predicted["mean"]) - 1)
        return {"share_of_theory": min(bias / float(predicted["bias"]), 3.0)}
