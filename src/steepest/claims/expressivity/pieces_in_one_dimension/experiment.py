"""Breakpoints of random networks on a line and on segments, counted exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Arrays,
    Check,
    Count,
    Hypothesis,
    Key,
    NonNegative,
    Point,
    Positive,
    Prediction,
    Seeds,
    Values,
    assume,
    equal,
)
from steepest.claims.expressivity._random_networks import SEED_OF_THEORY, unbatched
from steepest.geometry import Layer, Trace, crossings, homogeneous, trace
from steepest.kernels import finite_crossings

LINE = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
"""All of R, from −∞ over 0 to ∞, in homogeneous coordinates (x, τ)."""


def on_line(layers: Sequence[Layer]) -> Trace:
    """Follow a network of one input along all of R."""
    return trace(homogeneous(layers), LINE)


def coordinates(along: Trace) -> Values:
    """Return x at the places of a trace along the line, infinite at its ends, shape ``(k,)``."""
    tau = 1 - np.abs(along.places - 1)
    with np.errstate(divide="ignore"):
        return (along.places - 1) / tau


def pieces(along: Trace) -> int:
    """Count the linear pieces of the output along the line: runs of equal slope and offset."""
    tau = 1 - np.abs(along.places - 1)
    corners = np.stack([along.places - 1, tau], 1)
    pairs = np.stack([corners[:-1], corners[1:]], 1)
    apart = np.linalg.norm(corners[1:] - corners[:-1], axis=1) > 0
    heights = np.stack([along.outputs[:-1, 0], along.outputs[1:, 0]], 1)
    affine = np.linalg.solve(pairs[apart], heights[apart, :, None])[..., 0]
    jumps = np.abs(np.diff(affine, axis=0)).max(1)
    return 1 + int((jumps > 1e-9 * np.abs(affine).max()).sum())


def features_below(layers: Sequence[Layer], ends: Values, c_w: float, c_b: float) -> Values:
    """Return ``φ = (√C_b, √(C_w/n) σ(z))`` of the layer below the last hidden one at all places of a segment.

    A neuron of the last hidden layer is ``g·φ`` with standard normal g. Shape ``(places, 1 + n)``.
    """
    below = trace(
        layers[:-2], ends
    ).outputs  # the last is the output, the one before it the neurons
    active = np.maximum(below, 0) * (c_w / below.shape[1]) ** 0.5
    return np.concatenate([np.full((len(active), 1), c_b**0.5), active], 1)


def redrawn(features: Values, rng: np.random.Generator, neurons: int) -> float:
    """Count the sign changes of so many new neurons of the last hidden layer, and return their mean."""
    z = features @ rng.standard_normal((features.shape[1], neurons))
    return ((z[1:] > 0) != (z[:-1] > 0)).sum() / neurons


def conditional_mean(features: Values) -> Values:
    """Return the mean zeros of a neuron given those below, ``Σ ∠(φ(t_i), φ(t_{i+1}))/π`` (Edelman and Kostlan 1995).

    Returns:
        that; and the angle of the two ends alone, shape ``(2,)``.
    """
    features = features / np.linalg.norm(features, axis=1, keepdims=True)
    chords = np.linalg.norm(features[1:] - features[:-1], axis=1)
    across = np.linalg.norm(features[-1] - features[0])
    return np.array([_angle(chords).sum(), _angle(across)]) / np.pi


def _angle(chord: Any) -> Any:
    """Return the angle of two unit vectors at this distance."""
    return 2 * np.arcsin(np.minimum(chord / 2, 1))


@dataclass(frozen=True)
class PiecesPoint(Point):
    """Breakpoints in a segment around zero, per neuron, of networks of one depth and one variance of weights."""

    depth: Count
    width: Count
    c_w: Positive
    c_b: NonNegative
    half: Positive
    networks: Seeds

    batched = ("c_w", "c_b", "half")
    diagram = {"c_w": "linear:0.5:4:15", "depth": "1,2,3,4,6,8,12"}
    base = {"networks": 150}
    contours = {"share_predicted": (0.3, "0.3 by theory")}
    diagram_remarks = (
        "Its 150 networks a point are 32 neurons wide. On all of R there is one breakpoint per neuron at every point: "
        "where few are in [−1, 1] they are further out.",
    )

    def hypotheses(self, setting: Any) -> list[Hypothesis]:
        return [assume("variance of the biases", self.c_b, ">", 0, "all vanish at the origin")]

    def predict(self, setting: Any) -> Prediction:
        rng = np.random.default_rng(SEED_OF_THEORY)
        ends = [[-self.half], [self.half]]
        mean = finite_crossings(ends, (self.width,) * self.depth, self.c_w, self.c_b, rng, 20_000)
        return Prediction(share=mean.mean.mean())

    def observe(self, setting: Any, key: Key) -> Mapping[str, jax.Array]:
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

    def judge(self, predicted: Prediction, observed: Arrays) -> list[Check]:
        return [
            equal(
                "share",
                predicted["share"],
                observed["share"],
                (-0.04, 0.04),  # the interval over 150 networks is up to 0.02
                absolute=True,
                label="breakpoints in the segment, per neuron",
            )
        ]


def _count(first: Values, others: Values, biases: Values, half: Values) -> Values:
    """Count the breakpoints of each network in [−half, half], shape ``(networks,)``."""
    ends = np.array([[-float(half)], [float(half)]])
    layers = np.moveaxis(np.asarray(others), 1, 0)
    networks = unbatched([first, *layers], list(np.moveaxis(np.asarray(biases), 1, 0)))
    return np.array([crossings(one, ends).sum() for one in networks], float)
