"""With a one-dimensional code, the worst error on an ellipse is at least its shorter semi-axis.

The code must be continuous, as an autoencoder's is; the best trained autoencoders come near this bound. Errors of codes
by n bits and of codes by n numbers can differ exponentially. The width δ_n of an ellipsoid is the least error of n
numbers. The width is a_(n+1). Projection attains this error, and no continuous encoder has a smaller error: on the
sphere of n + 1 semi-axes some f and −f get the same code (Borsuk and Ulam). Networks are trained for n = 1 on the
plane. The entropy number ε_n is the least error of n bits.
"""

from typing import Annotated, NamedTuple

import jax
import numpy as np

from steepest import kit
from steepest.claims.expressivity.entropy_and_width.experiment import (
    CELLS,
    autoencoders,
    boundary,
    quantized,
    shell,
)
from steepest.geometry import ellipsoid_entropy, farthest_points

AXES = 2.0 ** -np.arange(1, 13)
"""Semi-axes a_i of the ellipsoid that is covered."""


class Setting(NamedTuple):
    """Points that are covered."""

    cloud: np.ndarray  # of the ellipsoid, (clouds, points, 12)
    slower: np.ndarray  # of one whose axes fall like 1/i, (clouds, points, 12)
    sphere: np.ndarray  # directions in space, (points, 3)


@kit.claim
class EntropyAndWidth(kit.Claim[Setting]):
    """Greedy coverings of an ellipsoid, autoencoders of an ellipse."""

    bits: Annotated[int, kit.Within(6, 9)] = kit.param(
        9,
        "largest n of the coverings",
        unit="bits",
        scope=kit.choices(8, 9, why="fewer are a short law"),
    )
    clouds: kit.Seeds = kit.param(6, "samples of the ellipsoid that is covered")
    size: Annotated[int, kit.Within(1000, 100_000)] = kit.param(6000, "points of each of them")
    short: Annotated[float, kit.Within(0.2, 0.9)] = kit.param(
        0.5,
        "shorter semi-axis of the ellipse, the longer is 1",
        scope=kit.between(0.45, 0.65, "flatter take longer, rounder have local minima"),
    )
    networks: kit.Seeds = kit.param(4, "autoencoders of each loss")
    steps: kit.Count = kit.param(
        1500,
        "steps of Adam on each",
        unit="steps",
        scope=kit.between(1500, 2500, "training takes them"),
    )
    lr: Annotated[float, kit.Within(1e-5, 1)] = kit.param(
        0.01, "its step size", scope=kit.between(0.005, 0.015, "networks are else not trained")
    )
    continuous: bool = kit.param(
        True, "whether codes depend continuously on what they stand for, or number cells"
    )

    kind = "theorem"
    says = {
        "the worst error on an ellipse is at least its shorter semi-axis": ("worst", "best"),
        "Errors of codes by n bits and of codes by n numbers can differ exponentially": "entropy",
    }
    tiny = {"bits": 6, "size": 1000, "networks": 3, "steps": 1000}
    full = {"clouds": 8, "size": 40_000, "networks": 16, "steps": 3000}
    out_of_scope = {"continuous": False}

    @property
    def counted(self) -> np.ndarray:
        """Return the numbers n of bits."""
        return np.arange(4, self.bits + 1)

    def axes(self):
        return {"bits": tuple(self.counted.tolist()), "power": (2, 8)}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        sphere = rng.standard_normal((20_000, 3))
        draw = lambda axes: np.stack([shell(axes, self.size, rng) for _ in range(self.clouds)])
        return Setting(
            draw(AXES),
            draw(AXES[0] / np.arange(1, len(AXES) + 1)),
            sphere / np.linalg.norm(sphere, axis=1, keepdims=True),
        )

    def hypotheses(self, setting):
        untrained = "networks are then not trained"
        yield kit.assume("steps", self.steps, ">=", 1000, untrained)
        yield kit.assume(
            "shorter semi-axis",
            self.short,
            between=(0.45, 0.65),
            note="flatter ellipses take longer to learn, and rounder ones end elsewhere",
        )
        yield kit.assume("step size", self.lr, between=(0.002, 0.03), note=untrained)
        yield kit.assume(
            "codes that are continuous",
            float(self.continuous),
            "==",
            1,
            "cells in an order are a number too",
        )

    def predict(self, setting):
        entropy = ellipsoid_entropy(AXES, self.counted)
        return kit.law(worst=self.short, entropy=("bits", entropy), constant=np.sqrt(8) / 3)

    def observe(self, setting, key):
        for_networks = jax.random.split(key)[1]
        errors = autoencoders(for_networks, self.short, self.networks, self.steps, self.lr)
        jumps = quantized(self.short)
        corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3**1.5
        nearest = np.linalg.norm(setting.sphere[:, None] - corners, axis=-1).min(1)
        return kit.seen(
            radii=("bits draw", self._covered(setting.cloud)),
            radii_of_slower=("bits draw", self._covered(setting.slower)),
            errors=("power start angle", errors if self.continuous else 0 * errors + jumps),
            quantized=("angle", jumps),
            constant=nearest.max(),
        )

    def _covered(self, clouds: np.ndarray) -> np.ndarray:
        """Return radii of greedy coverings by 2^n balls, shape ``(bits, clouds)``."""
        radii = [farthest_points(cloud, 2**self.bits).radii for cloud in clouds]
        return np.array(radii)[:, 2**self.counted - 1].T

    def derive(self, law, seen):
        """Return the largest error of each network."""
        return {"largest": seen.errors.max("angle", skipna=False)}

    def judge(self, law, seen):
        yield kit.at_least(
            "worst",
            0.997 * law.worst,  # points at which it is read are 0.3 % of the longer axis apart
            seen.largest.min(["power", "start"]),
            label="autoencoders: largest error of each, the least of them",
        )
        yield kit.agrees(
            "best",
            abs(seen.largest.sel(power=8).min("start") / law.worst - 1),
            0.05,  # trained, not optimal: one or two per cent above
            label="autoencoders of error⁸: largest error of the best, from a₂",
        )
        yield kit.follows(
            "entropy",
            law.entropy,
            seen.radii,
            # a greedy covering is at most twice as wide as the best; how far the bound is below that is not known
            (1.0, 2.0),
            over="bits",
            label="a_i = 2^(−i): radius of greedy coverings, from the bound of ε_n to twice",
        )
        yield kit.agrees(
            "constant",
            abs(seen.constant / law.constant - 1),
            0.01,
            label="covering radius of the ball in space by 4 balls, from √8/3",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "a neural code halves the largest error",
            "curves of one number can pass near every point",
            worst=law.worst / 2,
        )
        yield kit.rival(
            "ε_n and δ_n are equivalent",
            "as printed in the notes",
            id="equivalent",
            entropy=2.0 ** -(law.bits + 1.0),
        )
        yield kit.rival("δ_n ≤ ε_n", "a number is worth a bit at least", constant=1.0)

    def controls(self, seen):
        yield kit.control(
            f"the nearest of {CELLS} points, numbered",
            "its code jumps",
            id="cells",
            errors=seen.quantized.broadcast_like(seen.errors),
        )
        yield kit.control(
            "networks of error⁸ in place of error², and the reverse",
            "each loss is small elsewhere",
            id="other_power",
            errors=seen.errors.copy(data=seen.errors.values[::-1]),
        )
        yield kit.control(
            "an ellipsoid with a_i = 1/2i", "its bits buy another error", radii=seen.radii_of_slower
        )

    def figure(self, law, seen, rivals):
        angles = np.linspace(0, 360, seen.sizes["angle"], endpoint=False)
        squares = seen.errors.sel(power=2)
        of_squares = squares.isel(start=int((squares**2).mean("angle").argmin("start")))
        of_eighth = seen.errors.sel(power=8)[int(seen.largest.sel(power=8).argmin("start"))]
        projected = np.abs(boundary(self.short, len(angles))[:, 1])
        yield kit.panel(
            "No code of one number beats a₂",
            "angle on the ellipse",
            "error",
            kit.observed_curve(angles, of_squares.values, "trained on error²"),
            kit.observed_curve(angles, of_eighth.values, "trained on error⁸", shade=1.0),
            kit.context_curve(angles, projected, "projection"),
            kit.predicted_curve(angles[[0, -1]], [self.short] * 2, "a₂"),
            ylim=(0, None),
        )
        yield kit.curves(
            "a_i = 2^(−i): n bits do less than n numbers",
            law.entropy,
            seen.radii,
            over="bits",
            x="n",
            y="error",
            rivals={"width δ_n": rivals["equivalent"].entropy},
            log="y",
        )
