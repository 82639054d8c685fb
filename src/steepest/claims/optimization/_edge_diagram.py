"""Where full-batch descent hovers at the edge of stability, over step size and width."""

from typing import Any

import jax

from steepest.arrays import Prediction
from steepest.claims._cell import Cell, Seen
from steepest.judging import Check, Hypothesis, equal
from steepest.types import Key

MARGIN = (0.95, 1.15)  # factors of 2/η between which the late sharpness agrees with it


class EdgeDiagram(Cell):
    """The late sharpness in units of 2/η, which theory wants to be one, over step size and width."""

    batched = ("lr",)
    diagram = {"lr": "log:0.1:2:14", "width": "16,32,64"}
    base = {"steps": 725}
    contours = {"sharpness at the start / (2/η) measured": (1.0, "the start is at 2/η")}
    remarks = (
        "Every step size takes the same number of steps, so that small ones end at an earlier flow time η × steps, "
        "before the sharpness has risen to 2/η: there the point fails, for theory does not say when it will.",
        "Points leave the range beyond the line, where the sharpness at the start, in the mean over seeds, is 2/η. "
        "That sharpness is measured: the limit kernel alone gives 1.9, while at widths 16 to 64 it is 3.6 to 2.6.",
    )

    def predict(self, setting: Any) -> Prediction:
        return Prediction(sharpness=2 / self.claim.lr)

    def observe(self, setting: Any, key: Key) -> dict[str, Any]:
        start = self.claim.setting(key)
        path = jax.vmap(lambda seed: self.claim.path(start, seed, self.claim.lr))(start.keys)
        return {"risk": path.risk, **path.observed["sharpness"]}

    def premises(self, observed: Seen) -> list[Hypothesis]:
        return self.claim.assumed(observed["value"][:, 0] * self.claim.lr / 2, observed["residual"])

    def judge(self, predicted: Prediction, observed: Seen) -> list[Check]:
        late = self.claim.late(observed["value"]) / predicted["sharpness"]
        return [equal("late sharpness / (2/η)", 1.0, late, MARGIN)]

    def quantities(self, predicted: Prediction, observed: Seen) -> dict[str, float]:
        start = observed["value"][:, 0].mean() / predicted["sharpness"]
        return {"sharpness at the start / (2/η)": float(start)}
