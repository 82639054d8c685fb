"""With a one-dimensional code, the worst error on an ellipse is at least its shorter semi-axis.

The code must be continuous, as an autoencoder's is; the best trained autoencoders come near this bound. Errors of codes
by n bits and of codes by n numbers can differ exponentially. The width δ_n of an ellipsoid is the least error of n
numbers. The width is a_(n+1). Projection attains this error, and no continuous encoder has a smaller error: on the
sphere of n + 1 semi-axes some f and −f get the same code (Borsuk and Ulam). Networks are trained for n = 1 on the
plane. The entropy number ε_n is the least error of n bits. The inequality δ_32n ≤ 3ε_n follows by projecting the 2^n
centres of a covering, whose distances a random map keeps up to a factor. The proof extends Lipschitz maps with the same
constant, which is possible between Hilbert spaces. For maps from the norm of the largest coordinate to d dimensions,
the extension may need a constant √(2d/(d + 1)) times as large.
"""

from math import ceil, log
from typing import Annotated, NamedTuple

import jax
import numpy as np

from steepest import kit
from steepest.claims.expressivity.entropy_and_width.experiment import (
    CELLS,
    Dimension,
    Points,
    ProjectionPoint,
    autoencoders,
    maximal_packing,
    quantized,
    shell,
    shortest_images,
    stretches,
)
from steepest.claims.expressivity.entropy_and_width.extension import climb, cube_constant
from steepest.claims.expressivity.entropy_and_width.figure import panels_of_codes
from steepest.geometry import ellipsoid_entropy, farthest_points, projection_distortion
from steepest.nn.data import digits

AXES = 12  # of the ellipsoid a_i = 2^(−i) that is covered
IMAGES = 256  # digits that are projected
IMAGE_DIMENSIONS = (8, 16, 32, 64)
LINEAR_BITS = 12  # n of the linear maps: 2^n unit vectors
CLIMBS = 30  # searches for a map that does not extend
ROUNDING = 1e-6  # of constants of extension
TARGETS = (1, 2, 3, 4)  # dimensions into which corners of a cube are mapped
PACKING_AXES = (1.0, 0.5, 0.3)
PACKING = 0.1  # δ of the packings by balls of radius 2δ


class Setting(NamedTuple):
    """Points that are covered and projected."""

    cloud: np.ndarray  # of the ellipsoid, (clouds, points, 12)
    slower: np.ndarray  # of one whose axes fall like 1/i, (clouds, points, 12)
    bodies: np.ndarray  # of a small ellipsoid, (clouds, points, 3)
    sphere: np.ndarray  # directions in space, (points, 3)
    images: np.ndarray  # (draws, 256, 64)


@kit.claim
class EntropyAndWidth(kit.Claim[Setting]):
    """Random projections of unit vectors and digits, greedy coverings of an ellipsoid, autoencoders of an ellipse."""

    points: tuple[Points, ...] = kit.param(
        (64, 256, 512),
        "k, unit vectors that are projected",
        scope=kit.choices((64, 256, 512), (32, 128, 512)),
    )
    dimensions: tuple[Dimension, ...] = kit.param(
        (128, 512),
        "m, for each k",
        scope=kit.choices((128, 512), (128, 256, 512), (200, 400), why="extremes of fewer spread"),
    )
    bits: Annotated[int, kit.Within(6, 9)] = kit.param(
        9,
        "largest n of coverings and of projected centres",
        unit="bits",
        scope=kit.choices(8, 9, why="fewer are a short law"),
    )
    draws: kit.Seeds = kit.param(20, "random maps of each kind")
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
    tiny = {
        "points": (16, 32),
        "dimensions": (64, 128),
        "bits": 6,
        "draws": 3,
        "size": 1000,
        "networks": 3,
        "steps": 1000,
    }
    full = {"draws": 40, "clouds": 8, "size": 40_000, "networks": 16, "steps": 3000}
    out_of_scope = {"continuous": False}
    point = ProjectionPoint

    @property
    def counted(self) -> np.ndarray:
        """Return the numbers n of bits."""
        return np.arange(4, self.bits + 1)

    def axes(self):
        return {
            "points": self.points,
            "dimension": self.dimensions,
            "image_dimension": IMAGE_DIMENSIONS,
            "bits": tuple(self.counted.tolist()),
            "power": (2, 8),
            "target": TARGETS,
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        axes = 2.0 ** -np.arange(1, AXES + 1)
        pixels = np.asarray(digits().x)
        sphere = rng.standard_normal((20_000, 3))
        draw = lambda axes, size: np.stack([shell(axes, size, rng) for _ in range(self.clouds)])
        bodies = draw(np.array(PACKING_AXES), 2000)
        return Setting(
            draw(axes, self.size),
            draw(axes[0] / np.arange(1, AXES + 1), self.size),
            np.stack([rng.permutation(body) for body in bodies]),
            sphere / np.linalg.norm(sphere, axis=1, keepdims=True),
            np.stack(
                [pixels[rng.choice(len(pixels), IMAGES, replace=False)] for _ in range(self.draws)]
            ),
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
        yield kit.assume(
            "smallest m of the projections",
            min(self.dimensions),
            ">=",
            64,
            "extremes of fewer spread",
        )
        yield kit.assume(
            "smallest k", min(self.points), ">=", 16, "the law is of extremes of many pairs"
        )

    def predict(self, setting):
        stretch = np.array(
            [[projection_distortion(k, m) for m in self.dimensions] for k in self.points]
        )
        return kit.law(
            low=("points dimension", stretch[..., 0]),
            high=("points dimension", stretch[..., 1]),
            image_low=(
                "image_dimension",
                [projection_distortion(IMAGES, m).low for m in IMAGE_DIMENSIONS],
            ),
            half=0.5,
            worst=self.short,
            error=self.short / np.sqrt(2),  # of the projection, root mean square over angles
            entropy=("bits", ellipsoid_entropy(2.0 ** -np.arange(1, AXES + 1), self.counted)),
            linear=np.sqrt(32 * LINEAR_BITS / 2**LINEAR_BITS),
            packing=4.0,
            constant=np.sqrt(8) / 3,
            same_constant=1.0,
            # the radius of a regular simplex of edge 2
            other_norm=("target", [np.sqrt(2 * d / (d + 1)) for d in TARGETS]),
        )

    def observe(self, setting, key):
        for_maps, for_networks = jax.random.split(key)
        rng = kit.numpy_generator(for_maps)
        several = lambda x, m: [stretches(x, m, rng) for _ in range(self.draws)]
        projected = np.array([[several(k, m) for m in self.dimensions] for k in self.points])
        enough = np.array([several(2**n, ceil(32 * log(2) * n)) for n in self.counted])
        few = np.array([several(2**n, 4 * int(n)) for n in self.counted])
        shortened = lambda m: [stretches(x, m, rng)[0] for x in setting.images]
        real = np.array([shortened(m) for m in IMAGE_DIMENSIONS])
        errors = autoencoders(for_networks, self.short, self.networks, self.steps, self.lr)
        jumps = quantized(self.short)
        corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3**1.5
        nearest = np.linalg.norm(setting.sphere[:, None] - corners, axis=-1).min(1)
        packings = [maximal_packing(body, 4 * PACKING) / PACKING for body in setting.bodies]
        return kit.seen(
            **self.extensions(rng),
            low=("points dimension seed", projected[..., 0]),
            high=("points dimension seed", projected[..., 1]),
            image_low=("image_dimension seed", real),
            kept=("bits seed", enough[..., 0] / enough[..., 1]),
            kept_by_few=("bits seed", few[..., 0] / few[..., 1]),
            radii=("bits draw", self._covered(setting.cloud)),
            radii_of_slower=("bits draw", self._covered(setting.slower)),
            errors=("power start angle", errors if self.continuous else 0 * errors + jumps),
            quantized=("angle", jumps),
            constant=nearest.max(),
            packings=("draw", packings),
            linear=("map", shortest_images(32 * LINEAR_BITS, 2**LINEAR_BITS, rng)),
        )

    def extensions(self, rng: np.random.Generator) -> dict[str, tuple[str, list[float]]]:
        """Return constants of extension: the largest that searches find, and those of corners of a cube."""
        norms = {"": 2, "_of_largest": np.inf}
        climbs = {
            f"extension{name}": [climb(order, rng) for _ in range(CLIMBS)]
            for name, order in norms.items()
        }
        corners = {
            f"corners{name}": [cube_constant(dimension, order, rng) for dimension in TARGETS]
            for name, order in norms.items()
        }
        return {
            **{name: ("climb", values) for name, values in climbs.items()},
            **{name: ("target", values) for name, values in corners.items()},
        }

    def _covered(self, clouds: np.ndarray) -> np.ndarray:
        """Return radii of greedy coverings by 2^n balls, shape ``(bits, clouds)``."""
        radii = [farthest_points(cloud, 2**self.bits).radii for cloud in clouds]
        return np.array(radii)[:, 2**self.counted - 1].T

    def derive(self, law, seen):
        """Return the largest error of each network, and its mean error over the projection's."""
        typical = (seen.errors**2).mean("angle") ** 0.5
        return {"largest": seen.errors.max("angle", skipna=False), "typical": typical / law.error}

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
        yield kit.at_most(
            "typical",
            0.5,
            seen.typical.sel(power=2).min("start"),
            label="best network of error²: mean error over the projection's, root mean square",
        )
        yield from self.judge_stretches(law, seen)
        yield from self.judge_extensions(law, seen)
        yield kit.agrees(
            "constant",
            abs(seen.constant / law.constant - 1),
            0.01,
            label="covering radius of the ball in space by 4 balls, from √8/3",
        )
        yield kit.idle(
            kit.agrees(
                "linear",
                abs(seen.linear.max() / law.linear - 1),
                0.01,
                label="linear maps of norm one: shortest image of 4096 unit vectors, from √(m/k)",
            ),
            "a harmonic frame attains √(m/k), and no map of norm one and rank m goes above it",
        )
        yield kit.idle(
            kit.at_most(
                "packing",
                law.packing,
                seen.packings.max(),
                label="maximal packings by balls of radius 2δ: covering radius over δ",
            ),
            "a point farther off would be another centre",
        )

    def judge_stretches(self, law, seen):
        """Judge how far random projections shorten and lengthen distances."""
        yield kit.follows(
            "low",
            law.low,
            seen.low,
            0.05,
            over="points dimension",
            label="smallest stretch of unit vectors",
        )
        yield kit.idle(
            kit.follows(
                "high",
                law.high,
                seen.high,
                0.05,
                over="points dimension",
                label="largest stretch of unit vectors",
            ),
            "no wrong law at hand is farther off than the margin",
        )
        yield kit.idle(
            kit.at_least(
                "digits",
                0.8 * law.image_low,  # smallest stretches of twenty draws spread by 10 %
                seen.image_low,
                over="image_dimension",
                label="digits in 8 to 64 dimensions: smallest stretch, that of unit vectors less a fifth",
            ),
            "no wrong law at hand is below it",
        )
        yield kit.at_least(
            "half",
            law.half,
            seen.kept.min(),
            label="2^n points in ⌈32 n ln 2⌉ dimensions: smallest over largest stretch, the least",
        )

    def judge_extensions(self, law, seen):
        """Judge with which constants Lipschitz maps extend."""
        yield kit.excluded(
            "extension",
            -ROUNDING,
            law.same_constant - seen.extension,
            label="one less the largest constant of extension, Euclidean norms",
        )
        yield kit.agrees(
            "attained",
            abs(seen.extension.max() / law.same_constant - 1),
            0.01,  # a short search need not arrive; drafts came within 1e-5
            label="largest constant of extension of all searches, from one",
        )
        yield kit.follows(
            "other_norm",
            law.other_norm,
            seen.corners_of_largest,
            ROUNDING,
            label="constant of extension from corners of a cube, norm of the largest coordinate",
        )

    def rivals(self, setting, law):
        leading = (8 * np.log(law.points) / law.dimension) ** 0.5
        # extremes of k pairs, as if each point had one partner
        partners = [ceil((2 * k) ** 0.5) for k in self.points]
        fewer = np.array([[projection_distortion(k, m) for m in self.dimensions] for k in partners])
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
        yield kit.rival(
            "squared stretches 1 ± √(8 ln k/m)",
            "it is the lemma's own constant",
            id="leading_order",
            low=(1 - leading).clip(min=0.01) ** 0.5,
            high=(1 + leading) ** 0.5,
        )
        yield kit.rival(
            "extremes of k numbers, not of k²/2",
            "there are k points",
            low=("points dimension", fewer[..., 0]),
            high=("points dimension", fewer[..., 1]),
        )
        yield kit.rival(
            "a linear map of norm one into 32n dimensions keeps half",
            "as printed in the notes",
            id="linear_lemma",
            linear=0.5,
        )
        yield kit.rival(
            "a maximal packing by balls of radius 2δ covers by balls of radius δ",
            "as printed in the notes",
            id="printed_packing",
            packing=1.0,
        )
        yield from self.rivals_of_extensions(law)
        yield kit.rival("δ_n ≤ ε_n", "a number is worth a bit at least", constant=1.0)

    def rivals_of_extensions(self, law):
        """Return wrong theories of the constants with which Lipschitz maps extend."""
        yield kit.rival(
            "Lipschitz maps extend with the same constant in any norm",
            "as the notes use it",
            id="any_norm",
            other_norm=1.0,
        )
        yield kit.rival(
            "constant of extension √d from the norm of the largest coordinate",
            "norms of the cube and of the ball differ by that factor",
            id="cube_and_ball",
            other_norm=law.target**0.5,
        )
        yield kit.rival(
            "constant of extension √d between Euclidean spaces, d = 3",
            "each coordinate extends by itself, as numbers do",
            id="coordinates",
            same_constant=3**0.5,
        )

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
        yield kit.control(
            "2^n points in 4n dimensions",
            "the constant may be less than 32 ln 2, not 4",
            kept=seen.kept_by_few,
        )
        yield kit.control(
            "maps from the norm of the largest coordinate",
            "it is no Hilbert space's",
            extension=seen.extension_of_largest,
        )
        yield kit.control(
            "corners of a cube in the Euclidean norm",
            "in a Hilbert space maps extend",
            corners_of_largest=seen.corners,
        )

    def figure(self, law, seen, rivals):
        return panels_of_codes(self.short, law, seen, rivals)
