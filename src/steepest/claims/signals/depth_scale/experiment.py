"""One point of the depth scale: correlations through random networks at one (C_W, C_b)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kernels import (
    DepthScales,
    chi_parallel,
    chi_perpendicular,
    depth_scales,
    planar_inputs,
)
from steepest.kit.points import equal
from steepest.nn.activations import activation, gaussian_mean
from steepest.nn.networks import sample_grams

GROUPS = 20  # groups of networks, for the jackknife
MARGIN = 0.1  # relative error of ξ that counts as agreement


@lru_cache(4096)
def resting(sigma: str, c_w: float, c_b: float) -> DepthScales:
    """Return fixed points and depth scales at ``(C_W, C_b)``, kept for all seeds of a point."""
    return depth_scales(activation(sigma), c_w, c_b)


@dataclass(frozen=True)
class DepthScalePoint(kit.Point):
    """The depth scale ξ over C_W and C_b, measured and predicted; it diverges on the critical line."""

    activation: str
    c_w: kit.Positive
    c_b: kit.NonNegative
    width: kit.Count
    layers: kit.Count
    networks: kit.Seeds
    separation: kit.Fraction
    floor: kit.Fraction

    batched = ("c_w", "c_b")
    diagram = {"c_w": "linear:0.5:4:12", "c_b": "linear:0.02:0.6:8"}
    base = {"c_w": (0.8,), "c_b": (0.05,)}  # one point
    diagram_remarks = (
        "Where ξ exceeds the layers that it is fitted to, along the critical line, a point is out of range.",
        "The line is χ⊥ = 1, drawn through its fixed variances: C_W = 1/E σ'²(K), C_b = K − C_W E σ²(K).",
        "All points of one seed use the same random numbers, so that their deviations go together: in chaos ξ can come "
        "out 5 % too large everywhere with one seed, where the mean of eight others is 2 % too large.",
    )

    @property
    def scales(self) -> DepthScales:
        """Return fixed points and depth scales."""
        return resting(self.activation, self.c_w, self.c_b)

    def setting(self, key):
        """Return one input and two others at rest, at correlations around the fixed one, shape ``(3, 2)``."""
        k = self.scales.k_star
        c = self.scales.correlation
        if not 0 < k < np.inf:  # nothing is at rest there: a hypothesis says so
            return jnp.zeros((3, 2))
        if c == 1:
            apart = np.array([0, -self.separation / 10])
        else:
            apart = np.multiply([1, -1], min(self.separation, (1 - c) / 5))
        # K_αβ = C_b + (K* − C_b) cos θ
        angles = np.arccos(np.clip(((c + apart) * k - self.c_b) / (k - self.c_b), -1, 1))
        return planar_inputs(k, self.c_w, self.c_b, (1, 0), *((1, angle) for angle in angles))

    def predict(self, setting):
        return kit.Prediction(scale=((), self.scales.xi_correlation, "layers"))

    def observe(self, setting, key):
        # A traced field is a strong float64, which would carry the whole computation out of single precision.
        single = self.traced({"c_w": jnp.float32(self.c_w), "c_b": jnp.float32(self.c_b)})
        return {"correlation": single.correlations(setting, key)}

    def correlations(self, inputs: jax.Array, key: kit.Key) -> jax.Array:
        """Return correlations of the first input with the others, ``(groups, layers + 1, 2)``: means over groups."""
        sigma = activation(self.activation)
        inputs = inputs.astype(jnp.float32)  # differences stay far above rounding
        grams = sample_grams(
            key, self.networks, sigma, self.c_w, self.c_b, self.width, self.layers, inputs
        )
        size = jnp.sqrt(jnp.diagonal(grams, axis1=-2, axis2=-1))  # C_αβ = K_αβ/√(K_αα K_ββ)
        correlation = grams[..., 0, 1:] / (size[..., :1] * size[..., 1:])  # (network, layer, pair)
        group = self.networks // GROUPS
        grouped = correlation[: group * GROUPS].reshape(GROUPS, group, self.layers + 1, 2)
        return grouped.mean(1)

    def run_conditions(self, observed):
        return rests_and_forgets([self.scales], self.layers, self.width)

    def judge(self, predicted, observed):
        correlation = np.asarray(observed["correlation"], float)
        # both approach one fixed correlation, which finite width shifts: it leaves their difference
        difference = correlation[..., 0] - correlation[..., 1]
        # where nothing is at rest there is no difference to follow
        followed = np.isfinite(difference).all() and difference[:, 0].mean() > 0
        none = np.full(len(difference), np.nan)
        measured = fitted_scale(difference, self.floor) if followed else none
        yield equal("depth_scale", predicted["scale"], measured, MARGIN, label="ξ")

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"c_w", "c_b"}:
            return ()
        c_w, c_b = critical_line(self.activation)
        line = (c_w, c_b) if x == "c_w" else (c_b, c_w)
        return (kit.predicted_curve(*line, "χ⊥ = 1"),)


def rests_and_forgets(scales: list[DepthScales], layers: int, width: int) -> list[kit.Hypothesis]:
    """Check that signals have a resting variance, and a depth scale that layers and width can show."""
    smallest = min(point.k_star for point in scales)
    correlation = [point.xi_correlation for point in scales]
    longest = max(xi if xi > 0 else np.inf for xi in correlation)
    away = "stay away from criticality"
    wider = "choose a larger --width"
    return [
        kit.assume("smallest resting variance", smallest, ">", 0, "raise --c_b"),
        kit.assume("longest depth scale / layers", longest / layers, "<=", 1, away),
        kit.assume("longest depth scale / width", longest / width, "<=", 0.02, wider),
    ]


def fitted_scale(difference: np.ndarray, floor: float) -> np.ndarray:
    """Return jackknife values of ξ from the mean difference of correlations ``(groups, layers)``; their mean is ξ."""
    mean = difference.mean(0)
    # layers before the mean is below the floor; the −1 at the end is below it in any case
    fitted = np.arange(max(2, np.argmax(np.append(mean, -1) < floor * mean[0])))

    def scale(groups: np.ndarray) -> float:
        # the difference falls like exp(−l/ξ): the slope of its logarithm is −1/ξ
        logs = np.log(np.maximum(groups.mean(0)[fitted], 1e-300))
        return -1 / np.polyfit(fitted, logs, 1)[0]

    without = np.array([scale(np.delete(difference, i, axis=0)) for i in range(GROUPS)])
    # pseudo-values g T − (g − 1) T₋ᵢ: their mean has no bias of order 1/g
    return GROUPS * scale(difference) - (GROUPS - 1) * without


def shares_left(difference: np.ndarray, layers: Sequence[int]) -> np.ndarray:
    """Return jackknife values of what is left of a mean difference ``(groups, layers)`` after some layers.

    Returns:
        Shares of the difference at the start, ``(groups, layers asked for)``; their mean is the share.
    """
    share = lambda groups: groups.mean(0)[list(layers)] / groups.mean(0)[0]
    without = np.array([share(np.delete(difference, i, axis=0)) for i in range(GROUPS)])
    # pseudo-values, as a ratio of means is biased
    return GROUPS * share(difference) - (GROUPS - 1) * without


def critical_line(sigma: str) -> tuple[np.ndarray, np.ndarray]:
    """Return C_W and C_b of the line χ⊥ = 1 through stable fixed variances, each of shape ``(points,)``.

    At a fixed variance K of slope χ⊥ = 1, C_W = 1/E σ'²(K) and C_b = K − C_W E σ²(K): the line is parametrized by K,
    in double precision, for C_b is a difference of nearly equal numbers where K is small.

    >>> c_w, c_b = critical_line("tanh")
    >>> bool(abs(c_w[0] - 1) < 1e-2), bool((np.diff(c_b) > 0).all())  # from (1, 0) upwards
    (True, True)
    """
    kind = activation(sigma)
    with jax.enable_x64(True):
        k = jnp.geomspace(1e-3, 100, 200)
        c_w = 1 / chi_perpendicular(kind, 1.0, k)  # χ⊥ = C_W E σ'² = 1
        # K = C_b + C_W E σ²
        c_b = k - c_w * gaussian_mean(lambda z: kind(z) ** 2, k, kind.kinks).value
        stable = (c_b >= 0) & (c_w * chi_parallel(kind, 1.0, k) <= 1)  # χ∥ ≤ 1: K attracts
        return np.asarray(c_w)[stable], np.asarray(c_b)[stable]
