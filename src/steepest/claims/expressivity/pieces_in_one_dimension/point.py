"""Breakpoints in a segment at one point of a diagram."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.expressivity._random_networks import SEED_OF_THEORY, unbatched
from steepest.geometry import crossings
from steepest.kernels import finite_crossings
from steepest.kit.points import equal


@dataclass(frozen=True)
class PiecesPoint(kit.Point):
    """Breakpoints in a segment around zero, per neuron, of networks of one depth and one variance of weights."""

    depth: kit.Count
    width: kit.Count
    c_w: kit.Positive
    c_b: kit.NonNegative
    half: kit.Positive
    networks: kit.Seeds

    batched = ("c_w", "c_b", "half")
    diagram = {"c_w": "linear:0.5:4:15", "depth": "2,3,4,6,8,12"}
    base = {"networks": 150}
    contours = {"share_predicted": (0.3, "0.3 by theory")}
    diagram_remarks = (
        "Its 150 networks a point are 32 neurons wide. On all of R there is one breakpoint per neuron at every point: "
        "where few are in [−1, 1] they are further out.",
    )

    def hypotheses(self, setting):
        yield kit.assume("variance of the biases", self.c_b, ">", 0, "all vanish at the origin")

    def predict(self, setting):
        rng = np.random.default_rng(SEED_OF_THEORY)
        ends = [[-self.half], [self.half]]
        mean = finite_crossings(ends, (self.width,) * self.depth, self.c_w, self.c_b, rng, 20_000)
        return kit.Prediction(share=mean.mean.mean())

    def observe(self, setting, key):
        for_first, for_others, for_biases = jax.random.split(key, 3)
        n = self.width
        first = jax.random.normal(for_first, (self.networks, n, 1))
        others = jax.random.normal(for_others, (self.networks, self.depth - 1, n, n)) / n**0.5
        biases = jax.random.normal(for_biases, (self.networks, self.depth, n))
        scale = jnp.sqrt(self.c_w)
        count = jax.pure_callback(
            _count,
            jax.ShapeDtypeStruct((self.networks,), np.float64),
            scale * first,
            scale * others,
            jnp.sqrt(self.c_b) * biases,
            jnp.asarray(self.half, float),
            vmap_method="sequential",
        )
        return {"share": count / (n * self.depth)}

    def judge(self, predicted, observed):
        yield equal(
            "share",
            predicted["share"],
            observed["share"],
            (-0.04, 0.04),  # the interval over 150 networks is up to 0.02
            absolute=True,
            label="breakpoints in the segment, per neuron",
        )


def _count(
    first: kit.Values, others: kit.Values, biases: kit.Values, half: kit.Values
) -> kit.Values:
    """Count the breakpoints of each network in [−half, half], shape ``(networks,)``."""
    ends = np.array([[-float(half)], [float(half)]])
    layers = np.moveaxis(np.asarray(others), 1, 0)
    networks = unbatched([first, *layers], list(np.moveaxis(np.asarray(biases), 1, 0)))
    return np.array([crossings(network, ends).sum() for network in networks], float)
