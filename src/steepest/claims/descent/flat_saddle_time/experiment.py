"""How long linear networks of several depths wait at the origin."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import flow
from steepest.kit.points import equal
from steepest.landscapes import mode_time

DEEPEST = 6  # layers that there is room for in the one program of all depths


def time_to_learn(
    start: kit.Values, depth: jax.Array | int, target: kit.Values, share: jax.Array | float
) -> tuple[jax.Array, jax.Array]:
    """Follow the flow on ½‖W_L⋯W_1 − Y‖² until the largest mode of Y could have been learned to a share.

    That is when the risk is ½(‖Y‖² − s_1² (1 − (1 − share)²)), as with one mode learned so far and no other. The
    log-risk clock lands there.

    Args:
        start: W_1, …, shape ``(layers, d, d)``; layers beyond the depth are not used and replaced by I, so that one
            program serves all depths.
        depth: L.
        target: Y, diagonal, its largest singular value first, ``(d, d)``.
        share: of s_1.

    Returns:
        the time and whether it was reached.
    """
    start = jnp.asarray(start)
    layers, dimension, _ = start.shape
    used = (jnp.arange(layers) < depth)[:, None, None]

    def risk(weights: jax.Array) -> jax.Array:
        layered = jnp.where(used, weights, jnp.eye(dimension))
        product = layered[0]
        for layer in layered[1:]:
            product = layer @ product
        return jnp.sum((product - target) ** 2) / 2

    first = target[0, 0]
    end = (jnp.sum(target**2) - first**2 * (1 - (1 - share) ** 2)) / 2
    reading = jnp.log(risk(start) / end)
    path = flow(risk, start, reading[None], "log-risk", rtol=1e-6, atol=1e-12)
    return path.time[0], path.ok


@dataclass(frozen=True)
class FlatSaddlePoint(kit.Point):
    """How long one mode waits at the origin, over the number of layers and the size of the start."""

    depths: Annotated[int, kit.Within(2, DEEPEST)]
    sizes: kit.Positive
    singular: kit.Positive
    share: kit.Fraction

    batched = ("depths", "sizes")
    diagram = {"depths": "linear:2:6:5", "sizes": "log:0.003:0.3:13"}
    diagram_remarks = (
        "The lines are where (α^(2 − L) − 1)/((L − 2)s), log(1/α)/s for L = 2, is 10, 10³, 10⁵ and 10⁷. One start of "
        "L equal weights α: the flow of one mode is deterministic.",
    )

    def predict(self, setting):
        return kit.Prediction(time=mode_time(self.sizes, self.singular, self.depths, self.share))

    def observe(self, setting, key):
        start = jnp.full((DEEPEST, 1, 1), self.sizes)
        target = jnp.full((1, 1), self.singular)
        time, arrived = time_to_learn(start, self.depths, target, self.share)
        return {"time": time, "arrived": arrived}

    def run_conditions(self, observed):
        yield kit.assume("the flow arrived", float(observed["arrived"]), "==", 1)

    def judge(self, predicted, observed):
        yield equal(
            "waiting",
            predicted["time"],
            observed["time"],
            1e-3,
            label="time to learn half of one mode",
        )

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"depths", "sizes"}:
            return ()
        depths = np.linspace(2.001, 6, 80)
        curves = []
        for time in (1e1, 1e3, 1e5, 1e7):
            # the waiting time, solved for α
            scales = (1 + (depths - 2) * self.singular * time) ** (-1 / (depths - 2))
            ends = (depths, scales) if x == "depths" else (scales, depths)
            curves.append(kit.predicted_curve(*ends, f"time 10^{round(np.log10(time))}"))
        return tuple(curves)
