"""One point of bayesian-deep-linear: the posterior mean of s over depth and width."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np

from steepest.bayes import limit_scale, posterior_scale
from steepest.claim import (
    Arrays,
    Check,
    Count,
    Curve,
    Key,
    Point,
    Positive,
    Prediction,
    Seeds,
    equal,
    keys,
    predicted_curve,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.slices import (
    Shape,
    padded,
    sample_rows,
)


@dataclass(frozen=True)
class BayesianDeepLinearPoint(Point):
    """The posterior mean of the squared scale s at one depth, one width of all layers and one size of data."""

    layers: Count
    widths: Count
    sizes: Positive
    points: Count
    chains: Seeds
    sweeps: Count
    burn: Count

    batched = ("sizes",)
    diagram = {"layers": "log:1:8:4", "widths": "log:5:40:7"}
    base = {
        "layers": (2,),
        "widths": (10,),
        "sizes": (3.0,),
        "chains": 24,
        "sweeps": 300,
        "burn": 100,
    }
    labels = {
        "scale": "posterior mean of s",
        "limit": "s of the limit at λ",
    }
    diagram_remarks = (
        "Lines are those of equal effective depth PL/n; in the limit of many data each is a line of equal s.",
        "24 chains of 300 sweeps a point; the check is against the exact law at that depth and width.",
    )

    def predict(self, setting: None) -> Prediction:
        widths = (self.widths,) * self.layers
        return Prediction(scale=posterior_scale(widths, self.points, self.sizes))

    def observe(self, setting: None, key: Key) -> Mapping[str, jax.Array]:
        network = Shape(*(part[0] for part in padded([(self.widths,) * self.layers])))

        def chain(key: Key) -> jax.Array:
            points = float(self.points)
            record = sample_rows(network, points, self.sizes, key, self.sweeps, self.burn)
            return (record.observed["row"] ** 2).sum(-1).mean()

        return {"scale": jax.vmap(chain)(keys(key, self.chains))}

    def judge(self, predicted: Prediction, observed: Arrays) -> list[Check]:
        # the interval over 24 chains is 2 to 4 %
        return [equal("scale", predicted["scale"], observed["scale"], 0.06, label="s given data")]

    def quantities(self, predicted: Prediction, observed: Arrays) -> dict[str, float]:
        depth = self.points * self.layers / self.widths
        return {"limit": limit_scale(depth, self.sizes)}

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        if {x, y} != {"layers", "widths"}:
            return ()
        layers = np.linspace(1, 8, 50)
        curves = []
        for depth in (1, 2, 4, 8):
            widths = self.points * layers / depth
            ends = (layers, widths) if x == "layers" else (widths, layers)
            curves.append(predicted_curve(*ends, f"PL/n = {depth}"))
        return tuple(curves)
