"""Flows on one example and descents on XOR, of plain networks and of normalized ones."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend, flow
from steepest.kit.points import Arrays, order
from steepest.nn.data import hypercube
from steepest.nn.losses import exponential, log_margin_risk, logistic, margin_risk
from steepest.nn.networks import Neurons, NormalizedNeurons, normalized_two_layer, two_layer

LR = 0.5  # step of the descents
STEPS = 400
RISK = 0.1  # at which rotations are compared
TOLERANCE = 1e-10  # of the flows


class Flows(NamedTuple):
    """Records of one neuron on one example e₁, leading axes cases and seeds where they are mapped.

    Attributes:
        sine: of the angle to the example, ``(readings,)``.
        product: r = ab, or |v| ‖w‖, ``(readings,)``.
        squares: a² + b², or v² + ‖w‖², ``(readings,)``.
        norm: ‖v‖, or ‖w‖, ``(readings,)``.
        imbalance: a² − b², or v² − ‖w‖², ``(readings,)``.
    """

    sine: kit.Values
    product: kit.Values
    squares: kit.Values
    norm: kit.Values
    imbalance: kit.Values


def follow_normalized(
    direction: jax.Array, start: jax.Array, norm: jax.Array, ratio: jax.Array, times: jax.Array
) -> Flows:
    """Follow one normalized neuron with ``a = √ratio · start``, ``b = start/√ratio`` and ``‖v‖ = norm``."""
    net = normalized_two_layer(direction.size, 1)
    # ab = start² and a/b = ratio
    params = NormalizedNeurons(
        (start * jnp.sqrt(ratio))[None], (start / jnp.sqrt(ratio))[None], norm * direction[None]
    )
    path = _follow(net.apply, params, times)
    a = path.a[:, 0]
    b = path.b[:, 0]
    v = path.v[:, 0]
    size = jnp.linalg.norm(v, axis=1)
    # the example is e₁: the other coordinates are what stands across it
    sine = jnp.linalg.norm(v[:, 1:], axis=1) / size
    return Flows(sine, a * b, a**2 + b**2, size, a**2 - b**2)


def follow_plain(
    direction: jax.Array, start: jax.Array, ratio: jax.Array, times: jax.Array
) -> Flows:
    """Follow one plain neuron with ``v = √ratio · start`` and ``‖w‖ = start/√ratio``."""
    net = two_layer(direction.size, 1)
    params = Neurons((start / jnp.sqrt(ratio)) * direction[None], (start * jnp.sqrt(ratio))[None])
    path = _follow(net.apply, params, times)
    v = path.v[:, 0]
    w = path.w[:, 0]
    size = jnp.linalg.norm(w, axis=1)
    sine = jnp.linalg.norm(w[:, 1:], axis=1) / size
    return Flows(sine, v * size, v**2 + size**2, size, v**2 - size**2)


def _follow(apply: Any, params: Any, times: jax.Array) -> Any:
    dimension = (
        params[-1].shape[-1] if isinstance(params, NormalizedNeurons) else params.w.shape[-1]
    )
    x = jnp.eye(1, dimension)
    y = jnp.ones(1)
    risks = [make(exponential, apply, x, y) for make in (margin_risk, log_margin_risk)]
    observe = {"all": lambda parameters: parameters}
    path = flow(
        risks[0], params, times, "log", risks[1], observe, rtol=TOLERANCE, atol=TOLERANCE / 1e12
    )
    return path.observed["all"]


def xor(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all points of the cube, of length one, and the products of their first two signs."""
    signs = hypercube(dimension)
    return signs / math.sqrt(dimension), signs[:, 0] * signs[:, 1]


class Descent(NamedTuple):
    """Records of one descent at every step.

    Attributes:
        risk: shape ``(steps + 1,)``.
        vectors: input weights, ``(steps + 1, neurons, d)``.
        weight: |v| ‖w‖ or |a b| of every neuron, ``(steps + 1, neurons)``.
    """

    risk: kit.Values
    vectors: kit.Values
    weight: kit.Values


def descend_plain(key: kit.Key, dimension: int, width: int, scale: Any) -> Descent:
    """Descend on XOR with the plain network."""
    net = two_layer(dimension, width, scale=scale)
    weight = lambda p: jnp.abs(p.v) * jnp.linalg.norm(p.w, axis=1)
    return _descend(net, key, dimension, {"vectors": lambda p: p.w, "weight": weight})


def descend_normalized(key: kit.Key, dimension: int, width: int, scale: Any, norm: Any) -> Descent:
    """Descend on XOR with the normalized network, from the plain one's start."""
    net = normalized_two_layer(dimension, width, scale=scale, norm=norm)
    weight = lambda p: jnp.abs(p.a * p.b)
    return _descend(net, key, dimension, {"vectors": lambda p: p.v, "weight": weight})


def _descend(net: Any, key: kit.Key, dimension: int, observe: Mapping[str, Any]) -> Descent:
    x, y = map(jnp.asarray, xor(dimension))
    risk = margin_risk(logistic, net.apply, x, y)
    path = descend(risk, net.init(key), optax.sgd(LR), STEPS, observe=observe)
    return Descent(path.risk, path.observed["vectors"], path.observed["weight"])


def angles(vectors: jax.Array, start: jax.Array) -> jax.Array:
    """Return angles from the start as ``rotation`` does, within a compiled program."""
    unit = vectors / jnp.linalg.norm(vectors, axis=-1, keepdims=True)
    first = start / jnp.linalg.norm(start, axis=-1, keepdims=True)
    # tan(θ/2) = ‖u − u₀‖/‖u + u₀‖ keeps the digits of small angles, which the cosine loses
    apart = jnp.linalg.norm(unit - first, axis=-1)
    return 2 * jnp.arctan2(apart, jnp.linalg.norm(unit + first, axis=-1))


@dataclass(frozen=True)
class NormalizedPoint(kit.Point):
    """How far both networks have turned at one risk, over the scale of the start and the norm ‖v‖."""

    scales: kit.Positive
    norms: kit.Positive
    dimension: kit.Count
    width: kit.Count
    seeds: kit.Seeds

    batched = ("scales", "norms")
    diagram = {"scales": "log:0.05:1:9", "norms": "log:0.1:2:9"}
    base = {"seeds": 3, "width": 40}
    labels = {"log_ratio": "log₂ of rotation, normalized / plain"}
    contours = {"log_ratio_measured": (0.0, "equal")}
    diagram_remarks = (
        "The normalized network turns by ab/‖v‖² times the plain one's rate, which is (ε/‖v‖)² at the start: less than "
        "the plain one above the line ‖v‖ = ε, more below it.",
    )

    def predict(self, setting):
        return kit.Prediction(sign=np.sign(self.scales - self.norms))

    def observe(self, setting, key):
        return jax.vmap(self.rotations)(kit.keys(key, self.seeds))

    def rotations(self, key: kit.Key) -> Mapping[str, jax.Array]:
        """Return the mean angles, weighted by |v| ‖w‖ or |a b|, and the risks where they are compared."""
        plain = descend_plain(key, self.dimension, self.width, self.scales)
        other = descend_normalized(key, self.dimension, self.width, self.scales, self.norms)
        turned = {}
        for name, path in (("plain", plain), ("normalized", other)):
            reached = jnp.argmax(path.risk < RISK)
            angle = angles(path.vectors[reached], path.vectors[0])
            weight = path.weight[reached]
            turned[name] = (angle * weight).sum() / weight.sum()
            turned[f"{name}_risk"] = path.risk[reached]
        return turned

    def run_conditions(self, observed):
        highest = max(observed["plain_risk"].max(), observed["normalized_risk"].max())
        yield kit.assume(
            "risk where rotations are compared",
            float(highest),
            "<",
            RISK,
            f"not reached in {STEPS} steps",
        )
        yield kit.assume(
            "|log₂(ε/‖v‖)|",
            abs(math.log2(self.scales / self.norms)),
            ">",
            0.5,
            "near ε = ‖v‖ both turn alike",
        )

    def judge(self, predicted, observed):
        names = ["normalized", "plain"]
        turned = {name: observed[name] for name in names}
        increasing = names if float(predicted["sign"]) < 0 else names[::-1]
        yield order("rotation", increasing, turned, label="the network that turns less")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        ratio = np.mean(observed["normalized"] / observed["plain"])
        return {"log_ratio": float(np.log2(ratio))}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"scales", "norms"}:
            return ()
        line = np.array([0.01, 10.0])
        return (kit.predicted_curve(line, line, "‖v‖ = ε"),)
