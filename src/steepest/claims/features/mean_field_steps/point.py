"""One point of the diagram of mean-field-steps: SGD at one width and one step."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.features._mean_field import draw_examples
from steepest.claims.features._mean_field_theory import limit_of
from steepest.kit.points import Arrays, equal

ROOM = 1024
"""Neurons that the arrays of a point hold."""


@dataclass(frozen=True)
class MeanFieldPoint(kit.Point):
    """The distance from the limit of SGD at one width and one step."""

    widths: kit.Count
    rates: kit.Positive
    times: kit.Positive
    examples: kit.Count
    radius: kit.Positive
    height: kit.Positive
    seeds: kit.Seeds

    batched = ("widths", "rates")
    diagram = {"widths": "log:32:1024:6", "rates": "log:0.01:0.3:5"}
    base = {"seeds": 100, "times": (1.5,)}
    labels = {"log_distance": "log₁₀ of the distance from the limit"}
    contours = {"balance_measured": (0.0, "width and step weigh the same")}
    diagram_remarks = (
        "Distance² is predicted to be F/N + G ε, from the central limit of the start and the noise of SGD. Below the "
        "line ε = F/(G N) the width limits, above it the step. Shown: t = 1.5, 100 networks a point, trained by "
        "automatic differentiation.",
    )

    def check_fields(self) -> None:
        """Refuse more neurons than the arrays hold."""
        if self.widths > ROOM:
            raise kit.UserError(f"widths of a diagram must be at most {ROOM}, got {self.widths}")

    def setting(self, key):
        return draw_examples(key, self.examples, self.radius, self.height)

    def predict(self, setting):
        limit = limit_of(setting.x, setting.y, (self.times,))
        start = float(limit.start[0]) / self.widths
        noise = float(limit.noise[0]) * float(self.rates)
        return kit.Prediction(
            square=start + noise,
            balance=np.log10(noise / start),
            outputs=("example", limit.outputs[0]),
        )

    def observe(self, setting, key):
        x, y = map(jnp.asarray, setting)
        present = jnp.arange(ROOM) < self.widths
        output = lambda w, x: (jnp.tanh(w @ x.T) * present[:, None]).sum(0) / self.widths

        def one(key: kit.Key) -> jax.Array:
            for_start, for_draws = jax.random.split(key)

            def step(i: jax.Array, w: jax.Array) -> jax.Array:
                drawn = jax.random.randint(jax.random.fold_in(for_draws, i), (1,), 0, len(y))
                risk = lambda w: 0.5 * ((output(w, x[drawn]) - y[drawn]) ** 2).sum()
                return w - self.rates * self.widths * jax.grad(risk)(w)

            # no stop at an overflow: a point beyond stability is out of range
            steps = jnp.round(self.times / self.rates).astype(int)
            start = jax.random.normal(for_start, (ROOM, 2))
            return output(jax.lax.fori_loop(0, steps, step, start), x)

        return {"outputs": jax.vmap(one)(kit.keys(key, self.seeds))}

    def run_conditions(self, observed):
        yield kit.assume(
            "largest ε‖x‖²", float(self.rates) * self.radius**2, "<=", 0.5, "lower --rates"
        )
        yield kit.assume("width N", self.widths, ">=", 30, "raise --widths")

    def squares(self, predicted: kit.Prediction, observed: Arrays) -> np.ndarray:
        """Return the squared distance of each network from the limit."""
        return ((observed["outputs"] - predicted["outputs"]) ** 2).mean(1)

    def judge(self, predicted, observed):
        yield equal(
            "square",
            float(predicted["square"]),
            self.squares(predicted, observed),
            0.35,  # the interval is 15 to 20 %, the next order at the ends 10 %
            label="squared distance from the limit",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {
            "log_distance": float(0.5 * np.log10(self.squares(predicted, observed).mean())),
            "balance": float(predicted["balance"]),
        }
