"""One point of the diagram of residual-stream: Pre-LN networks of one width and one depth."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.training.residual_stream import experiment
from steepest.claims.training.residual_stream.experiment import Signals
from steepest.kit.points import Arrays, equal

ROOM = 48
"""Blocks that the arrays of a point hold."""
ADDED = 0.5  # variance that a block adds
DEEPEST = 0.3  # depth over width, of d ≫ L


@dataclass(frozen=True)
class ResidualStreamPoint(kit.Point):
    """The variance behind all blocks, and the gradient of the first one."""

    width: kit.Count
    depths: Annotated[int, kit.Within(1, ROOM)]
    networks: kit.Count
    seeds: kit.Seeds

    precision = "float32"
    batched = ("depths",)
    diagram = {"width": "log:8:96:7", "depths": "log:8:48:7"}
    labels = {"last": "gradient of the last block over theory's"}
    diagram_remarks = (
        "Gradients are over √(d/2). That of the first block is predicted to be the same at any depth and width. It is "
        "larger in networks of less than 20 neurons. Above the line L = 0.3 d the law is out of range.",
    )

    def hypotheses(self, setting):
        yield kit.assume("depth over width", self.depths / self.width, "<=", DEEPEST)

    def predict(self, setting):
        stream = 1 + ADDED * self.depths
        return kit.Prediction(stream=stream, first=(1 + ADDED) ** -0.5, last=stream**-0.5)

    def observe(self, setting, key):
        return jax.lax.map(self.group, kit.keys(key, self.seeds))

    def group(self, key: kit.Key) -> dict[str, jax.Array]:
        """Return the signals of some networks, their squares averaged."""
        last = jnp.asarray(self.depths, int) - 1
        signals = jax.lax.map(self.signals, kit.keys(key, self.networks))
        variance = signals.variance.mean(0)
        gradient = jnp.sqrt(signals.square.mean(0))
        return {"stream": variance[last], "first": gradient[0], "last": gradient[last]}

    def signals(self, key: kit.Key) -> Signals:
        """Return the signals of one network: blocks behind its last have no second matrix, and do nothing."""
        weights, start, end = experiment.draw(key, self.width, ROOM)
        present = jnp.arange(ROOM) < self.depths
        second = weights.second * present[:, None, None]
        cut = weights._replace(second=second)
        return experiment.signals(cut, start, end, ROOM, experiment.pre)

    def judge(self, predicted, observed):
        yield equal(
            "stream",
            predicted["stream"],
            observed["stream"],
            0.08,  # exact in the mean; the interval takes 4 %
            label="variance of the stream",
        )
        yield equal(
            "gradient",
            predicted["first"],
            observed["first"],
            0.12,  # the interval takes 5 %, L/d a few
            label="gradient of the first block",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"last": float(observed["last"].mean() / predicted["last"])}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"width", "depths"}:
            return ()
        widths = np.array([1.0, 1e4])
        ends = (widths, DEEPEST * widths) if x == "width" else (DEEPEST * widths, widths)
        return (kit.predicted_curve(*ends, "L = 0.3 d"),)
