"""One point of bayesian-deep-linear: the posterior mean of s over depth and width.

Elliptical slices sample the upper layers, with the first integrated over by theory: they assume the weight of s, which
the claim's Gibbs chain tests, and serve layers that are no wider than the data, where that chain is reducible.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.bayes import elliptical_slice, limit_scale, posterior_scale
from steepest.kit.points import Arrays, equal

EVERY = 5
"""Sweeps from one record to the next."""


def sample_scales(
    layers: int, width: int, points: int, size: Any, key: kit.Key, sweeps: int, burn: int
) -> jax.Array:
    """Sample W^(2), …, W^(L+1) from their posterior, W^(1) integrated, and record s, ``(records,)``.

    Given v = W^(L+1)⋯W^(2) the outputs are N(0, ‖v‖² XᵀX/n_0), so that the logarithm of the likelihood is
    −(P/2)(log‖v‖² + A/‖v‖²) up to a constant.
    """

    def scale(weights: jax.Array) -> jax.Array:
        inner = weights[width:].reshape(layers - 1, width, width)
        row = jax.lax.scan(lambda v, matrix: (v @ matrix, None), weights[:width], inner)[0]
        return (row**2).sum()

    def log_likelihood(weights: jax.Array) -> jax.Array:
        square = scale(weights)
        # log N(y; 0, s XᵀX/n_0), in which yᵀ(XᵀX)⁻¹y = ‖θ_∥‖² = PA/n_0
        return -points / 2 * (jnp.log(square) + size / square)

    def sample_prior(key: kit.Key) -> jax.Array:
        # single precision halves the time, and rounds at 1e-7
        draw = jax.random.normal(key, (width + (layers - 1) * width**2,), jnp.float32)
        return draw.astype(float) / np.sqrt(width)

    record = elliptical_slice(
        log_likelihood, sample_prior, key, sweeps, observe={"scale": scale}, burn=burn, every=EVERY
    )
    return record.observed["scale"]


@dataclass(frozen=True)
class BayesianDeepLinearPoint(kit.Point):
    """The posterior mean of the squared scale s at one depth, one width of all layers and one size of data."""

    layers: kit.Count
    widths: kit.Count
    sizes: kit.Positive
    points: kit.Count
    chains: kit.Seeds
    sweeps: kit.Count
    burn: kit.Count

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
    labels = {"scale": "posterior mean of s", "limit": "s of the limit at λ"}
    diagram_remarks = (
        "Lines are those of equal effective depth PL/n; in the limit of many data each is a line of equal s.",
        "24 chains of 300 sweeps a point; the check is against the exact law at that depth and width.",
    )

    def predict(self, setting):
        widths = (self.widths,) * self.layers
        return kit.Prediction(scale=posterior_scale(widths, self.points, self.sizes))

    def observe(self, setting, key):
        def chain(key: kit.Key) -> jax.Array:
            return sample_scales(
                self.layers, self.widths, self.points, self.sizes, key, self.sweeps, self.burn
            ).mean()

        return {"scale": jax.vmap(chain)(kit.keys(key, self.chains))}

    def judge(self, predicted, observed):
        # the interval over 24 chains is 2 to 4 %
        yield equal("scale", predicted["scale"], observed["scale"], 0.06, label="s given data")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        depth = self.points * self.layers / self.widths
        return {"limit": limit_scale(depth, self.sizes)}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"layers", "widths"}:
            return ()
        layers = np.linspace(1, 8, 50)
        curves = []
        for depth in (1, 2, 4, 8):
            widths = self.points * layers / depth
            ends = (layers, widths) if x == "layers" else (widths, layers)
            curves.append(kit.predicted_curve(*ends, f"PL/n = {depth}"))
        return tuple(curves)
