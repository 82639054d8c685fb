"""One point of the diagram of synthetic-data: one number of rounds, and one number of examples."""

from dataclasses import dataclass

import numpy as np

from steepest import kit
from steepest.claims.training.synthetic_data import experiment, theory
from steepest.claims.training.synthetic_data.experiment import Sizes
from steepest.kit.points import Arrays, equal, run_in_numpy

SHARE = 0.618  # of true labels, where they are mixed


@dataclass(frozen=True)
class SyntheticDataPoint(kit.Point):
    """The error after rounds of refitting in three ways, over that of one fit to true labels."""

    dimension: kit.Count
    examples: kit.Count
    rounds: kit.Count
    runs: kit.Count
    seeds: kit.Seeds

    batched = ("rounds",)
    diagram = {"rounds": "1:13", "examples": "log:14:80:6"}
    base = {"runs": 100}
    labels = {"saved": "error where labels are replaced over that where all are kept"}
    contours = {"kept_predicted": (1.4, "kept: 1.4 times one fit (theory)")}
    diagram_remarks = (
        "Ten weights. Where labels are replaced the error over that of one fit is the number of rounds, whatever the "
        "number of examples; where all are kept it stays below π²/6 = 1.64, and lower still with few examples.",
        "The third map is of a mean of fits to true labels and to the model's own, the true one with the weight 0.618.",
        "With fewer than 18 examples errors have no finite spread, and points are out of range.",
    )

    def hypotheses(self, setting):
        spare = self.examples - self.dimension
        yield kit.assume("T − d", spare, ">=", 8, "raise --examples")

    def predict(self, setting):
        rounds = int(self.rounds)
        return kit.Prediction(
            fit=self.dimension / (self.examples - self.dimension - 1),
            replaced=theory.replaced(rounds)[-1],
            kept=theory.kept(rounds, self.dimension, self.examples)[-1],
            mixed=theory.mixed(np.array([SHARE]), rounds)[0],
        )

    def observe(self, setting, key):
        def run(rng: np.random.Generator, rounds: int) -> dict[str, kit.Values]:
            inputs = experiment.gaussian(rng)
            sizes = Sizes(self.seeds * self.runs, self.examples, self.dimension, rounds)
            errors = {
                "replaced": experiment.replace(rng, inputs, sizes)[:, -1],
                "kept": experiment.keep(rng, inputs, sizes, refreshed=False)[:, -1],
                "mixed": experiment.mix(rng, inputs, sizes, SHARE, fresh=True),
            }
            return {
                name: of_runs.reshape(self.seeds, self.runs).mean(1)
                for name, of_runs in errors.items()
            }

        shapes = {name: (self.seeds,) for name in ("replaced", "kept", "mixed")}
        return run_in_numpy(run, shapes, key, self.rounds)

    def judge(self, predicted, observed):
        labels = {
            "replaced": "error where labels are replaced, over one fit's",
            "kept": "error where all are kept, over one fit's",
            "mixed": "error with 0.618 of true labels, over one fit's",
        }
        return [
            equal(
                name,
                float(predicted[name]),
                observed[name] / float(predicted["fit"]),
                0.08,  # the claim's; the interval takes 3 to 5 %
                label=label,
            )
            for name, label in labels.items()
        ]

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"saved": float(observed["replaced"].mean() / observed["kept"].mean())}
