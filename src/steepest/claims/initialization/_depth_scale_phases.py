"""How many layers a correlation survives over the plane of C_W and C_b: order on one side of a line, chaos beyond."""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest.activations import activation, gaussian_mean
from steepest.arrays import Prediction
from steepest.claims._cell import Cell, Seen
from steepest.judging import Check, Hypothesis, equal
from steepest.kernels import DepthScales, chi_parallel, chi_perpendicular, depth_scales
from steepest.panels import Curve, theory
from steepest.types import Key

MARGIN = 0.1  # relative error of ξ that counts as agreement


@lru_cache(4096)
def resting(sigma: str, c_w: float, c_b: float) -> DepthScales:
    """Fixed points and depth scales at ``(C_W, C_b)``, kept: every seed of a point asks for the same."""
    return depth_scales(activation(sigma), c_w, c_b)


class DepthScalePhases(Cell):
    """The depth scale ξ over C_W and C_b, measured and predicted; it diverges on the critical line."""

    batched = ("c_w", "c_b")
    diagram = {"c_w": "linear:0.5:4:12", "c_b": "linear:0.02:0.6:8"}
    base = {"c_w": (0.8,), "c_b": (0.05,), "depths": ()}  # one point, and no training
    remarks = (
        "Where ξ exceeds the layers that it is fitted to, along the critical line, a point is out of range.",
        "The line is χ⊥ = 1, drawn through its fixed variances: C_W = 1/E σ'²(K), C_b = K − C_W E σ²(K).",
        "All points of one seed use the same random numbers, so that their deviations go together: in chaos ξ can come "
        "out 5 % too large everywhere with one seed, where the mean of eight others is 2 % too large.",
    )

    def setting(self, key: Key) -> jax.Array:
        (inputs,) = self.at_rest().inputs
        return inputs

    def predict(self, setting: jax.Array) -> Prediction:
        (scales,) = self.at_rest().scales
        return Prediction(scale=((), scales.xi_correlation, "layers"))

    def observe(self, setting: jax.Array, key: Key) -> dict[str, Any]:
        (c_w,), (c_b,) = self.claim.c_w, self.claim.c_b
        # A traced field is a strong float64, which would carry the whole computation out of single precision.
        found = self.claim.correlations(key, jnp.float32(c_w), jnp.float32(c_b), setting)
        return {"correlation": found}

    def premises(self, observed: Seen) -> list[Hypothesis]:
        return self.claim.hypotheses(self.at_rest())

    def judge(self, predicted: Prediction, observed: Seen) -> list[Check]:
        return [equal("ξ", predicted["scale"], self.measured(observed), MARGIN)]

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        if {x, y} != {"c_w", "c_b"}:
            return ()
        c_w, c_b = critical_line(self.claim.activation)
        return (theory(*((c_w, c_b) if x == "c_w" else (c_b, c_w)), "χ⊥ = 1"),)

    def at_rest(self) -> Any:
        """The claim's setting at this one point; nothing in it is random."""
        return self.claim.setting(jax.random.key(0))

    def measured(self, observed: Seen) -> np.ndarray:
        """Jackknife values of ξ; NaN where nothing is at rest and there is no difference to follow."""
        found = np.asarray(observed["correlation"], float)
        difference = found[..., 0] - found[..., 1]
        there = np.isfinite(difference).all() and difference[:, 0].mean() > 0
        return self.claim.measured(difference) if there else np.full(len(found), np.nan)


def critical_line(sigma: str) -> tuple[np.ndarray, np.ndarray]:
    """C_W and C_b of the line χ⊥ = 1 through stable fixed variances, each of shape ``(points,)``.

    At a fixed variance K of slope χ⊥ = 1, C_W = 1/E σ'²(K) and C_b = K − C_W E σ²(K): the line is parametrized by K,
    in double precision, for C_b is a difference of nearly equal numbers where K is small.

    >>> c_w, c_b = critical_line("tanh")
    >>> bool(abs(c_w[0] - 1) < 1e-2), bool((np.diff(c_b) > 0).all())  # from (1, 0) upwards
    (True, True)
    """
    kind = activation(sigma)
    with jax.enable_x64(True):
        k = jnp.geomspace(1e-3, 100, 200)
        c_w = 1 / chi_perpendicular(kind, 1.0, k)
        c_b = k - c_w * gaussian_mean(lambda z: kind(z) ** 2, k, kind.kinks).value
        stable = (c_b >= 0) & (c_w * chi_parallel(kind, 1.0, k) <= 1)
        return np.asarray(c_w)[stable], np.asarray(c_b)[stable]
