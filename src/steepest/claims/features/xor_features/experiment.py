"""Descend on XOR in d dimensions: on whole cubes, on samples, and at one point of a diagram."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest import kit
from steepest.dynamics import Trajectory, descend, log_risk_steps, logarithmic
from steepest.kit.points import Arrays, bound
from steepest.measurement.quantities import signed_alignment
from steepest.nn.data import hypercube
from steepest.nn.networks import Neurons, two_layer

RECORDS = 25  # of each descent
LARGEST_RATIO = 64  # examples a dimension in the diagram


def directions(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ±(e₁ + e₂)/√2, ±(e₁ − e₂)/√2, shape ``(4, d)``, and the signs of the output weights that go with them."""
    units = np.zeros((4, dimension))
    units[:, :2] = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]) / np.sqrt(2)
    return units, np.array([1.0, 1.0, -1.0, -1.0])


def cubes(dimensions: tuple[int, ...]) -> np.ndarray:
    """Return the whole cubes in the shape of the largest, ``(dimensions, 2^D, D)``.

    Smaller ones have zeros beyond their bits, and every point as often as all others: one program serves all.
    """
    most = max(dimensions)
    signs = hypercube(most)
    return np.stack([signs * (np.arange(most) < d) / np.sqrt(d) for d in dimensions])


def starts(
    noise: Float[Array, "... h D"], signs: Float[Array, "... h"], scale: Any, dimension: Any
) -> Neurons:
    """Return balanced starts as `two_layer` draws them, w = ε g/√d and v = ±‖w‖, with zeros beyond d."""
    present = jnp.arange(noise.shape[-1]) < dimension
    w = scale * jnp.where(present, noise, 0.0) / jnp.sqrt(dimension)
    return Neurons(w, signs * jnp.linalg.norm(w, axis=-1))


def train(
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    start: Neurons,
    lr: Any,
    steps: int,
    weights: Float[Array, " n"] | None = None,
    records: int = RECORDS,
) -> Trajectory:
    """Descend on the logarithm of the exponential risk of weighted examples, and record margin and direction.

    Observed are the normalized margin ``min y f/(Σ v_j² + ‖w_j‖²)`` over examples of positive weight, and the mean
    cosine of the neurons with the four directions, weighted by ``|v_j| ‖w_j‖``.
    """
    apply = two_layer(x.shape[1], start.v.shape[-1]).apply
    units, signs = directions(x.shape[1])
    share = jnp.ones(x.shape[0]) if weights is None else weights

    def log_risk(params: Neurons) -> Array:
        # log of the weighted mean of e^(−y f)
        return jax.nn.logsumexp(-y * apply(params, x), b=share / share.sum())

    def margin(params: Neurons) -> Array:
        least = jnp.where(share > 0, y * apply(params, x), jnp.inf).min()
        return least / ((params.v**2).sum() + (params.w**2).sum())

    return descend(
        log_risk,
        start,
        log_risk_steps(lr),
        steps,
        record=logarithmic(steps, records),
        observe={
            "margin": margin,
            "cosine": lambda params: signed_alignment(params.w, params.v, units, signs).cosine,
        },
    )


@dataclass(frozen=True)
class XorFeaturesPoint(kit.Point):
    """The weighted cosine with the four directions over the scale of the start and the examples a dimension."""

    scales: kit.Positive
    samples: Annotated[float, kit.Within(1, LARGEST_RATIO)]
    dimensions: Annotated[int, kit.Within(2, 12)]
    width: kit.Count
    lr: kit.Positive
    steps: kit.Count
    seeds: kit.Seeds

    batched = ("scales", "samples")
    diagram = {"scales": "log:0.01:30:8", "samples": "log:2:64:9"}
    base = {"dimensions": (8,), "seeds": 3, "steps": 500, "width": 24}
    labels = {"cosine": "weighted cosine", "margin": "margin / (γ₁/2)"}
    contours = {"cosine_measured": (0.95, "cosine 0.95")}
    diagram_remarks = (
        "The statement is for the whole cube; samples tilt the directions, and large starts keep theirs for the given "
        "number of steps. No theory here says where.",
    )

    def predict(self, setting):
        return kit.Prediction(cosine=0.95)

    def observe(self, setting, key):
        return jax.lax.map(self.one, kit.keys(key, self.seeds))

    def one(self, key: kit.Key) -> Mapping[str, jax.Array]:
        """Train one network on one sample."""
        for_x, for_w, for_v = jax.random.split(key, 3)
        d = self.dimensions
        signs = jax.random.rademacher(for_x, (LARGEST_RATIO * d, d), float)
        noise = jax.random.normal(for_w, (self.width, d))
        start = starts(noise, jax.random.rademacher(for_v, (self.width,), float), self.scales, d)
        # the examples beyond the sample weigh nothing, so that all ratios have one shape
        weights = (jnp.arange(LARGEST_RATIO * d) < jnp.round(self.samples * d)).astype(float)
        y = signs[:, 0] * signs[:, 1]
        path = train(signs / jnp.sqrt(d), y, start, self.lr, self.steps, weights, 2)
        return {name: values[-1] for name, values in path.observed.items()}

    def judge(self, predicted, observed):
        least = float(predicted["cosine"])
        yield bound("cosine", observed["cosine"], at_least=least, label="weighted cosine")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        # of the sample, which can be larger than that of the cube
        best = 0.5 / np.sqrt(8 * self.dimensions)
        return {"margin": float(observed["margin"].mean() / best)}
