"""One point of the diagram of batch-step: SGD near a minimum, with one batch and one step size."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.training.batch_step import experiment, theory
from steepest.kit.points import Arrays, equal, run_in_numpy

SINGLE = 100  # runs that are followed one by one
STEPS = 400  # of each


class OneStep(NamedTuple):
    """The examples and one step size, with what SGD tends to there."""

    x: kit.Values  # (n, d)
    step: kit.Values  # ()
    moment: kit.Values  # leading second moment, (d, d)


@dataclass(frozen=True)
class BatchStepPoint(kit.Point):
    """Growth of the mean square in a step, and of single runs in many, over the step size and the batch."""

    n: kit.Count
    dimension: kit.Count
    batches: kit.Count
    parts: kit.Positive
    runs: kit.Count
    seeds: kit.Seeds

    batched = ("parts",)
    diagram = {"batches": "1:13", "parts": "linear:0.1:1.3:13"}
    base = {"runs": 2500, "seeds": 12}
    labels = {"single": "logarithm of a single run's growth in a step"}
    contours = {
        "growth_predicted": (1.0, "lower: the mean square grows from here on (theory)"),
        "single_measured": (0.0, "upper: single runs grow too (measured)"),
    }
    diagram_remarks = (
        "The step size is in units of 2/λ₁, the limit of full gradients, for twelve examples in five dimensions.",
        "Between the two lines the mean square grows, by rare runs, while single runs go to the minimum.",
        "A batch of all twelve has no noise and is out of range: there both lines meet at one.",
    )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        sizes = np.linspace(1.6, 0.4, self.dimension)
        x = sizes * rng.standard_normal((self.n, self.dimension))
        step = 2 / np.linalg.eigvalsh(x.T @ x / self.n)[-1] * self.parts
        moment = theory.growth(x, step, theory.share(self.batches, self.n)).moment
        return OneStep(x, np.array(step), moment)

    def hypotheses(self, setting):
        yield kit.assume("batch", self.batches, "<", self.n, "a batch of all has no noise")
        yield kit.assume("examples over d", self.n / self.dimension, ">=", 1.5)

    def predict(self, setting):
        share = theory.share(self.batches, self.n)
        return kit.Prediction(growth=theory.growth(setting.x, float(setting.step), share).factor)

    def observe(self, setting, key):
        def run(
            rng: np.random.Generator, x: kit.Values, step: float, moment: kit.Values
        ) -> dict[str, kit.Values]:
            growths = [
                experiment.growth(rng, x, moment, step, self.batches, self.runs)
                for _ in range(self.seeds)
            ]
            return {
                "growth": np.array(growths),
                "single": growth_of_single_runs(rng, x, step, self.batches),
            }

        shapes = {"growth": (self.seeds,), "single": (SINGLE,)}
        return run_in_numpy(run, shapes, key, *setting)

    def judge(self, predicted, observed):
        yield equal(
            "growth",
            float(predicted["growth"]),
            observed["growth"],
            0.06,  # the claim's; exact in the mean, and the interval takes 2 to 3 %
            label="growth of the mean square in a step",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"single": float(observed["single"].mean())}


def growth_of_single_runs(
    rng: np.random.Generator, x: kit.Values, eta: float, batch: int
) -> kit.Values:
    """Return the mean logarithm of each run's growth in a step, from random directions, ``(runs,)``."""
    errors = rng.standard_normal((SINGLE, x.shape[1]))
    total = np.zeros(SINGLE)
    for _ in range(STEPS):
        # a Lyapunov exponent: directions go on, lengths begin anew
        errors /= np.linalg.norm(errors, axis=1, keepdims=True)
        errors = experiment.step(rng, x, errors, eta, batch, replaced=False)
        total += np.log(np.linalg.norm(errors, axis=1))
    return total / STEPS
