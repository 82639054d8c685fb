"""One point of the diagram of untied-attention: heads with one width of keys and one sharpness."""

from dataclasses import dataclass

import numpy as np

from steepest import kit
from steepest.claims.kernels.untied_attention import experiment, theory
from steepest.kit.points import Arrays, equal, run_in_numpy

LARGEST = 0.6  # deviation of logits


@dataclass(frozen=True)
class UntiedAttentionPoint(kit.Point):
    """How far positions read from the mean over positions, on noise."""

    widths: kit.Count
    sharpnesses: kit.Positive
    positions: kit.Count
    channels: kit.Count
    heads: kit.Count
    seeds: kit.Seeds

    batched = ("widths", "sharpnesses")
    diagram = {"widths": "log:4:512:8", "sharpnesses": "log:0.1:30:11"}
    labels = {"ratio": "distance² over the law's"}
    contours = {"distance_predicted": (0.1, "0.1 by theory")}
    diagram_remarks = (
        "Distance² is predicted to fall as β²/d, to first order in the logits. Where their predicted deviation is "
        "above 0.6 these are not small: out of range.",
        "It cannot exceed that of positions that read a single one, and stays below the law there.",
    )

    def setting(self, key):
        return kit.numpy_generator(key).standard_normal((self.positions, self.channels))

    def logit(self, setting: kit.Values) -> float:
        """Return the predicted deviation of logits, βK/√d with K averaged over positions."""
        mean = np.trace(theory.covariance(setting)) / len(setting)
        return float(self.sharpnesses * mean / self.widths**0.5)

    def hypotheses(self, setting):
        logit = self.logit(setting)
        yield kit.assume("deviation of logits", logit, "<=", LARGEST, "the law is for d ≫ β²K²")

    def predict(self, setting):
        covariance = theory.covariance(setting)
        law = theory.distance(covariance, self.sharpnesses, np.array(float(self.widths)))
        return kit.Prediction(distance=law)

    def observe(self, setting, key):
        ends = (setting, self.widths, self.sharpnesses)
        return run_in_numpy(self.distances, {"distance": (self.seeds,)}, key, *ends)

    def distances(
        self, rng: np.random.Generator, z: kit.Values, width: int, beta: float
    ) -> dict[str, list[float]]:
        """Return the mean square distance over the heads of each seed."""
        values = z @ z.T / z.shape[1]
        scale = beta / int(width)
        draw = lambda: experiment.weights(rng, z, self.heads, int(width), scale, tied=False)
        return {"distance": [experiment.distance(draw(), values) for _ in range(self.seeds)]}

    def judge(self, predicted, observed):
        yield equal(
            "distance",
            predicted["distance"],
            observed["distance"],
            0.2,  # the interval takes 0.08, the next order 0.1 at the narrowest keys
            label="distance² from the mean over positions",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        ratio = observed["distance"].mean() / predicted["distance"]
        return {"ratio": float(ratio)}
