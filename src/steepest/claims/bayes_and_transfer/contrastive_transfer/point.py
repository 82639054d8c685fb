"""One point of the diagram of contrastive-transfer: random representations of one scale and dimension."""

from dataclasses import dataclass
from functools import cache

import jax
import numpy as np

from steepest import kit
from steepest.claims.bayes_and_transfer._contrastive import PIXELS, images_by_class, zipf
from steepest.claims.bayes_and_transfer.contrastive_transfer.theory import mean_slack
from steepest.kit.points import Arrays, bound
from steepest.measurement.quantities import Contrastive, contrastive


@cache
def first_images(per_class: int) -> kit.Values:
    """Return the images of a diagram, the same at every point."""
    return images_by_class(np.random.default_rng(0), per_class)[0]


@dataclass(frozen=True)
class ContrastiveTransferPoint(kit.Point):
    """The slack of the bound for random linear representations of one scale and dimension."""

    amplitudes: kit.Positive
    ks: kit.Count
    per_class: kit.Count
    seeds: kit.Seeds

    batched = ("amplitudes",)
    diagram = {"amplitudes": "log:0.05:5:13", "ks": "log:1:64:7"}
    base = {"per_class": 12, "seeds": 4}
    labels = {
        "log_slack": "log₁₀ of the slack",
        "supervised": "L_sup of the mean classifier [bits]",
        "un": "contrastive loss L_un [bits]",
    }
    diagram_remarks = (
        "Lines are where theory has the slack 10⁻⁴, 10⁻² and 1, from the covariances of the classes alone; it is "
        "for small scales. Twelve images of each digit, four random matrices a point.",
    )

    def setting(self, key):
        return first_images(self.per_class)

    def predict(self, setting):
        return kit.Prediction(slack=0.0)

    def observe(self, setting, key):
        def losses(key: kit.Key) -> Contrastive:
            weights = jax.random.normal(key, (PIXELS, self.ks)) / self.ks**0.5
            return contrastive(self.amplitudes * (setting @ weights))

        return jax.lax.map(losses, kit.keys(key, self.seeds))._asdict()

    def judge(self, predicted, observed):
        limit = float(predicted["slack"])
        yield bound("slack", _slacks(observed), at_least=limit, aggregate="all", label="slack")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {
            "log_slack": float(np.log10(_slacks(observed)).mean()),
            "supervised": float(observed["supervised"].mean()),
            "un": float(observed["un"].mean()),
        }

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"amplitudes", "ks"}:
            return ()
        dimensions = np.geomspace(1, 64, 20)
        shares = zipf(0.0)
        images = first_images(self.per_class)
        slopes = np.array([mean_slack(images, shares, k) for k in dimensions])
        curves = []
        for level in (1e-4, 1e-2, 1.0):
            # the slack is of fourth order in the scale
            scales = (level / slopes) ** 0.25
            ends = (scales, dimensions) if x == "amplitudes" else (dimensions, scales)
            curves.append(kit.predicted_curve(*ends, f"slack {level:g}"))
        return tuple(curves)


def _slacks(observed: Arrays) -> kit.Values:
    tau = observed["collision"]
    return (observed["un"] - tau) / (1 - tau) - observed["supervised"]
