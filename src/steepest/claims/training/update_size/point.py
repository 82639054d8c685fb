"""One point of the diagram of update-size: Adam on noise at one s and one β₂."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from steepest import kit
from steepest.claims.training.update_size import experiment
from steepest.kit.points import Arrays, equal
from steepest.optimizers import Adam, gaussian_moments, spread_of_second_moment, update_size_of_adam


@dataclass(frozen=True)
class UpdateSizePoint(kit.Point):
    """The size of Adam's updates on Gaussian gradients of one mean, in units of their deviation, at one β₂."""

    beta1: kit.Fraction
    beta2: kit.Fraction
    agreement: kit.NonNegative
    weights: kit.Count
    steps: kit.Count
    seeds: kit.Seeds

    precision = "float32"
    batched = ("beta2", "agreement")
    diagram = {"agreement": "linear:0:3:11", "beta2": "linear:0.76:0.999:12"}
    base = {"beta1": (0.9, 0.95), "weights": 400, "seeds": 6}
    labels = {"limit": "size over √((s² + ρ)/(1 + s²)), the law for β₂ → 1"}
    contours = {"adam_predicted": (0.5, "η/2 by theory")}
    diagram_remarks = (
        "β₁ = 0.9. Theory has the next order in 1 − β₂; out of range is where that is not small. The last map shows "
        "how far the headline's law, for β₂ → 1, is off.",
    )

    @property
    def late(self) -> tuple[int, int]:
        """Return the first and the last step that counts."""
        return self.steps // 2 + 1, self.steps

    def hypotheses(self, setting):
        memory = 2 / (1 - self.beta1) / self.steps
        spread = float(spread_of_second_moment(self.beta2, self.steps))
        yield kit.assume("memory of m, 1/(1 − β₁), over half of the steps", memory, "<=", 0.1)
        yield kit.assume("spread of v on noise", spread, "<=", 0.06, "raise --beta2")

    def predict(self, setting):
        moments = gaussian_moments(self.agreement)
        return kit.Prediction(
            adam=update_size_of_adam(moments, self.beta1, self.beta2, self.late),
            limit=Adam(self.beta1).update_size(self.agreement),
        )

    def observe(self, setting, key):
        lanes = [jnp.reshape(jnp.asarray(value, float), 1) for value in self.lane]

        def of_stream(key: jax.Array) -> jax.Array:
            return experiment.on_noise(key, lanes, self.weights, self.steps, repeated=1)[0]

        return {"adam": jax.vmap(of_stream)(kit.keys(key, self.seeds))}

    @property
    def lane(self) -> tuple[float, float, float]:
        """Return β₁, β₂ and the mean of the gradients."""
        return self.beta1, self.beta2, self.agreement

    def judge(self, predicted, observed):
        yield equal(
            "adam",
            predicted["adam"],
            observed["adam"],
            0.01,  # the interval takes half of it, the second order in 1 − β₂ as much at β₂ = 0.95
            label="size of Adam's update over η",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"limit": float(observed["adam"].mean() / predicted["limit"])}
