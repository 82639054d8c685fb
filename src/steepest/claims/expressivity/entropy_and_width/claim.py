"""No network that codes an ellipse by one number beats its shorter semi-axis; bits and widths can differ exponentially.

The width δ_n of an ellipsoid is a_(n+1), which projection attains and no continuous encoder goes below: on the sphere
of n + 1 semi-axes some f and −f get the same code (Borsuk and Ulam). Networks are trained for n = 1 on the plane. The
entropy number ε_n counts bits instead. δ_32n ≤ 3ε_n by projecting the 2^n centres of a covering, whose distances a
random map keeps up to a factor.
"""

from dataclasses import dataclass
from math import ceil, log
from typing import Annotated, NamedTuple

import jax
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Prediction,
    Rival,
    Seeds,
    Within,
    assume,
    bound,
    context_curve,
    equal,
    idle,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.expressivity.entropy_and_width.experiment import (
    FINE,
    Dimension,
    Points,
    ProjectionPoint,
    autoencoders,
    boundary,
    maximal_packing,
    shell,
    shortest_images,
    stretches,
)
from steepest.geometry import ellipsoid_entropy, farthest_points, projection_distortion
from steepest.nn.data import digits

AXES = 12  # of the ellipsoid a_i = 2^(−i) that is covered
IMAGES = 256  # digits that are projected
IMAGE_DIMENSIONS = (8, 16, 32, 64)
LINEAR_BITS = 12  # n of the linear maps: 2^n unit vectors
PACKING_AXES = (1.0, 0.5, 0.3)
PACKING = 0.1  # δ of the packings by balls of radius 2δ
CELLS = 256  # of the discontinuous code


class Setting(NamedTuple):
    """Points that are covered and projected."""

    cloud: np.ndarray  # of the ellipsoid, (draws, points, 12)
    bodies: np.ndarray  # of a small ellipsoid, (draws, points, 3)
    sphere: np.ndarray  # directions in space, (points, 3)
    images: np.ndarray  # (draws, 256, 64)


@dataclass(frozen=True)
class EntropyAndWidth(Claim):
    """Random projections of unit vectors and digits, greedy coverings of an ellipsoid, autoencoders of an ellipse."""

    points: tuple[Points, ...] = (64, 256, 512)  # k, unit vectors that are projected [1]
    dimensions: tuple[Dimension, ...] = (128, 512)  # m, for each k [1]
    bits: Annotated[int, Within(4, 9)] = 9  # largest n of coverings and of projected centres [bits]
    draws: Seeds = 8  # random maps of each kind [1]
    clouds: Seeds = 3  # samples of the ellipsoid that is covered [1]
    size: Annotated[int, Within(1000, 100_000)] = 6000  # points of each of them [1]
    short: Annotated[float, Within(0.2, 0.9)] = (
        0.5  # shorter semi-axis of the ellipse, the longer is 1 [length]
    )
    networks: Seeds = 4  # autoencoders of each loss [1]
    steps: Annotated[int, Within(1)] = 1500  # of Adam on each [steps]
    lr: Annotated[float, Within(1e-5, 1)] = 0.01  # its step size [1]
    # whether codes depend continuously on what they stand for, or number cells [true or false]
    continuous: bool = True

    kind = "theorem"
    statement = (
        r"\delta_n(K)=a_{n+1},\qquad \varepsilon_n(K)\ge\max_d 2^{-n/d}(a_1\cdots a_d)^{1/d}\qquad "
        r"\big(K=\{\textstyle\sum_i x_i^2/a_i^2\le 1\}\big),\qquad \delta_{32n}\le 3\,\varepsilon_n"
    )
    source = "Lecture of 28 November in [@hanin2022]; [@kolmogorov1959]; [@cohen2022]"
    corrections = (
        "The notes' lemma has a map that is 1-Lipschitz and linear and keeps distances up to ½. Linear and 1-Lipschitz "
        "on all of X it cannot be: at 0, e_1, …, e_k rank m gives min‖Ae_i‖² ≤ m/k, and 32n dimensions are too few "
        "from n = 11 on (n = 12 is judged). It is 1-Lipschitz on the points; Kirszbraun's theorem extends it as it "
        "does M, not linearly.",
        "“ε_n and δ_n are equivalent” holds for polynomial rates only, up to logarithms. For a_i = 2^(−i) the width is "
        "2^(−n−1) and ε_n is about 2^(−√(2n)), which the coverings show.",
        "A maximal set of disjoint balls of radius 2δ gives a covering by balls of radius 4δ, not δ; the codes are "
        "then δ apart, and balls around them disjoint at radius δ/2, not δ.",
        "32n takes the logarithm of 2^n to the base 2. With the natural one 22.2n dimensions are enough; that is "
        "judged.",
        "M maps into X, not into K: Kirszbraun's extension leaves K. Where K is convex, as here, the nearest point of "
        "K mends that. Algebra, not tested here.",
    )
    remarks = (
        "Lower bound of the width: of the sphere in n + 1 semi-axes some f and −f have one code, by Borsuk and Ulam's "
        "theorem, so that one of them is reconstructed with an error of ‖f‖ ≥ a_(n+1) at least. Stability plays no "
        "part; continuity does: the cells of a covering, numbered, are one number too.",
        "Autoencoders R² → R → R² on the boundary of an ellipse, tanh, trained by Adam. With error² the best has a "
        "third of the projection's mean error, at twice its largest; with error⁸ the largest error falls to a_2, and "
        "not below.",
        "The bound of ε_n compares volumes of sections. Greedy coverings are at most twice as wide as the best ones of "
        "the sample; that they lie within twice the bound is measured, not proved.",
        "“n numbers do what n bits do” (δ_n ≤ ε_n) fails for the ball in space: two numbers leave an error of 1, and 4 "
        "balls of radius √8/3 = 0.943 cover it. For the ellipsoids a_i = i^(−r) comparing the width with the lower "
        "bound of ε_n would refute nothing.",
        "Unit vectors have nearly independent distances, so that extremes of squared stretches are quantiles of χ². "
        "Digits lie near a subspace and are stretched less, the more so the fewer the dimensions.",
        "Flatter ellipses take longer to learn: at a_2 = 0.3 these steps end at the projection or before it, 8000 "
        "steps of eight networks at a largest error of 0.3001. Rounder ones have local minima: from a_2 = 0.75 on "
        "the best of four may end 10 % above a_2 and more. Both limits, of a field, were added after fresh seeds were "
        "run; defaults and margins are as they were.",
        "The proof that δ_n ≲ n^(−α) bounds ε_n, and Kirszbraun's extension itself, are not tested here.",
    )
    headline = ("worst", "best", "entropy")
    full = {"draws": 40, "clouds": 8, "size": 40_000, "networks": 16, "steps": 3000}
    tiny = {
        "points": (16,),
        "dimensions": (64,),
        "bits": 4,
        "draws": 3,
        "size": 1000,
        "networks": 3,
        "steps": 1000,
    }
    out_of_scope = {"continuous": False}
    point = ProjectionPoint

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Return k and m of the projections."""
        return [(k, m) for k in self.points for m in self.dimensions]

    @property
    def counted(self) -> np.ndarray:
        """Return the numbers n of bits."""
        return np.arange(4, self.bits + 1)

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        axes = 2.0 ** -np.arange(1, AXES + 1)
        pixels = np.asarray(digits().x)
        sphere = rng.standard_normal((20_000, 3))
        bodies = [shell(np.array(PACKING_AXES), 2000, rng) for _ in range(self.clouds)]
        return Setting(
            np.stack([shell(axes, self.size, rng) for _ in range(self.clouds)]),
            np.stack([rng.permutation(body) for body in bodies]),
            sphere / np.linalg.norm(sphere, axis=1, keepdims=True),
            np.stack(
                [pixels[rng.choice(len(pixels), IMAGES, replace=False)] for _ in range(self.draws)]
            ),
        )

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [
            assume("steps", self.steps, ">=", 1000, "networks are then not trained"),
            assume(
                "shorter semi-axis",
                self.short,
                between=(0.45, 0.65),
                note="flatter ellipses take longer to learn, and rounder ones end elsewhere",
            ),
            assume(
                "step size", self.lr, between=(0.002, 0.03), note="networks are then not trained"
            ),
            assume(
                "codes that are continuous",
                self.continuous,
                "==",
                1,
                "cells in an order are a number too",
            ),
            assume(
                "smallest m of the projections",
                min(self.dimensions),
                ">=",
                64,
                "extremes of fewer spread",
            ),
            assume(
                "smallest k", min(self.points), ">=", 16, "the law is of extremes of many pairs"
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        axes = 2.0 ** -np.arange(1, AXES + 1)
        law = [projection_distortion(k, m) for k, m in self.sizes]
        k = 2**LINEAR_BITS
        return Prediction(
            low=("size", [low for low, _ in law]),
            high=("size", [high for _, high in law]),
            image_low=(
                "image_dimension",
                [projection_distortion(IMAGES, m).low for m in IMAGE_DIMENSIONS],
            ),
            image_high=(
                "image_dimension",
                [projection_distortion(IMAGES, m).high for m in IMAGE_DIMENSIONS],
            ),
            half=0.5,
            worst=self.short,
            error=self.short / np.sqrt(2),  # of the projection, root mean square over angles
            entropy=("bits", ellipsoid_entropy(axes, self.counted)),
            linear=np.sqrt(32 * LINEAR_BITS / k),
            packing=4.0,
            constant=np.sqrt(8) / 3,
            theorem=max(_theorem(rate) for rate in (0.5, 1.0, 2.0)),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        for_maps, for_networks = jax.random.split(key)
        rng = numpy_generator(for_maps)
        several = lambda x, m: [stretches(x, m, rng) for _ in range(self.draws)]
        projected = [several(k, m) for k, m in self.sizes]
        enough = [several(2**n, ceil(32 * log(2) * n)) for n in self.counted]
        few = [several(2**n, 4 * int(n)) for n in self.counted]
        real = [[stretches(x, m, rng) for x in setting.images] for m in IMAGE_DIMENSIONS]
        coverings = [farthest_points(cloud, 2**self.bits).radii for cloud in setting.cloud]
        errors = autoencoders(for_networks, self.short, self.networks, self.steps, self.lr)
        quantized = _quantized(self.short)
        given = errors if self.continuous else np.broadcast_to(quantized, errors.shape)
        corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3**1.5
        nearest = np.linalg.norm(setting.sphere[:, None] - corners, axis=-1).min(1)
        packings = [maximal_packing(body, 4 * PACKING) / PACKING for body in setting.bodies]
        lengths = shortest_images(32 * LINEAR_BITS, 2**LINEAR_BITS, rng)
        return Observation(
            projected=("size draw end", projected),
            enough=("bits draw end", enough),
            few=("bits draw end", few),
            image_dimensions=("image_dimension", IMAGE_DIMENSIONS),
            images=("image_dimension draw end", real),
            radii=("cloud bits", [radii[2**self.counted - 1] for radii in coverings]),
            errors=("power network angle", given),
            quantized=("angle", quantized),
            constant=nearest.max(),
            packings=("cloud", packings),
            linear=("map", lengths),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        low = (observed["projected"][..., 0] / predicted["low"][:, None]).mean(0)
        high = (observed["projected"][..., 1] / predicted["high"][:, None]).mean(0)
        kept = observed["enough"][..., 0] / observed["enough"][..., 1]
        worst = observed["errors"].max(-1)
        typical = np.sqrt((observed["errors"] ** 2).mean(-1))
        covered = (observed["radii"] / predicted["entropy"]).mean(1)
        return [
            bound(
                "worst",
                worst.min(),
                # the points of the boundary at which it is read are 0.3 % of the longer axis apart
                at_least=0.997 * float(predicted["worst"]),
                label="autoencoders: largest error of each, the least of them",
            ),
            equal(
                "best",
                float(predicted["worst"]),
                worst[1].min(),
                # trained, not optimal: one or two per cent above
                (0.997, 1.05),
                label="autoencoders of error⁸: largest error of the best",
            ),
            bound(
                "typical",
                typical[0].min() / float(predicted["error"]),
                at_most=0.5,
                label="best network of error²: mean error over the projection's, root mean square",
            ),
            equal(
                "entropy",
                np.ones(len(covered)),
                covered,
                # a greedy covering is at most twice as wide as the best; how far the bound is below that is not known
                (1.0, 2.0),
                label="a_i = 2^(−i): radius of greedy coverings over the bound of ε_n",
            ),
            equal("low", np.ones(len(low)), low, 0.03, label="smallest stretch over the law's"),
            equal("high", np.ones(len(high)), high, 0.03, label="largest stretch over the law's"),
            bound(
                "digits",
                (observed["images"][..., 0] / predicted["image_low"][:, None]).mean(0),
                at_least=0.9,  # smallest stretches of eight draws spread by 10 %
                label="digits in 8 to 64 dimensions: smallest stretch over the law's",
            ),
            bound(
                "half",
                kept.min(),
                at_least=float(predicted["half"]),
                label="2^n points in ⌈32 n ln 2⌉ dimensions: smallest over largest stretch, the least",
            ),
            idle(
                equal(
                    "linear",
                    float(predicted["linear"]),
                    observed["linear"].max(),
                    0.01,
                    label="linear maps of norm one: shortest image of 4096 unit vectors, the longest of two",
                ),
                "a harmonic frame attains √(m/k), and no map of norm one and rank m goes above it",
            ),
            idle(
                bound(
                    "packing",
                    observed["packings"].max(),
                    at_most=float(predicted["packing"]),
                    label="maximal packings by balls of radius 2δ: covering radius over δ",
                ),
                "a point farther off would be another centre",
            ),
            equal(
                "constant",
                float(predicted["constant"]),
                float(observed["constant"]),
                0.01,
                label="covering radius of the ball in space by 4 balls, ε_2",
            ),
            idle(
                bound(
                    "theorem",
                    float(predicted["theorem"]),
                    at_most=1.0,
                    label="a_(32n+1) over 3ε_n, at most",
                ),
                "both are formulas, and far apart",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        leading = np.array([8 * log(k) / m for k, m in self.sizes]) ** 0.5
        # extremes of k pairs, as if each point had one partner
        fewer = [projection_distortion(ceil((2 * k) ** 0.5), m) for k, m in self.sizes]
        partner = ceil((2 * IMAGES) ** 0.5)
        few_images = [projection_distortion(partner, m).low for m in IMAGE_DIMENSIONS]
        return [
            Rival(
                "neural_codes",
                predicted.replace(worst=self.short / 2),
                "curves of one number can pass near every point",
                label="a neural code halves the largest error",
            ),
            Rival(
                "equivalent",
                predicted.replace(entropy=("bits", 2.0 ** -(self.counted + 1))),
                "as printed in the notes",
                label="ε_n and δ_n are equivalent",
            ),
            Rival(
                "leading_order",
                predicted.replace(
                    low=("size", np.sqrt(np.maximum(1 - leading, 0.01))),
                    high=("size", np.sqrt(1 + leading)),
                ),
                "it is the lemma's own constant",
                label="squared stretches 1 ± √(8 ln k/m)",
            ),
            Rival(
                "points_for_pairs",
                predicted.replace(
                    low=("size", [low for low, _ in fewer]),
                    high=("size", [high for _, high in fewer]),
                    image_low=("image_dimension", few_images),
                ),
                "there are k points",
                label="extremes of k numbers, not of k²/2",
            ),
            Rival(
                "linear_lemma",
                predicted.replace(linear=0.5),
                "as printed in the notes",
                label="a linear map of norm one into 32n dimensions keeps half",
            ),
            Rival(
                "printed_packing",
                predicted.replace(packing=1.0),
                "as printed in the notes",
                label="a maximal packing by balls of radius 2δ covers by balls of radius δ",
            ),
            Rival(
                "no_constant",
                predicted.replace(constant=1.0),
                "a number is worth a bit at least",
                label="δ_n ≤ ε_n",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        cells = np.broadcast_to(observed["quantized"], observed["errors"].shape)
        errors = observed["errors"]
        return [
            Control(
                "cells",
                observed.replace(errors=("power network angle", cells)),
                "its code jumps",
                label=f"the nearest of {CELLS} points, numbered",
            ),
            Control(
                "eighth_power",
                observed.replace(errors=("power network angle", errors[::-1])),
                "another loss is small elsewhere",
                label="networks of error⁸ in place of error²",
            ),
            Control(
                "few_dimensions",
                observed.replace(enough=("bits draw end", observed["few"])),
                "the constant may be less than 32 ln 2, not 4",
                label="2^n points in 4n dimensions",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        angles = np.linspace(0, 360, observed["errors"].shape[-1], endpoint=False)
        errors = observed["errors"]
        best = [
            errors[0][np.argmin((errors[0] ** 2).mean(-1))],
            errors[1][np.argmin(errors[1].max(-1))],
        ]
        projected = np.abs(boundary(self.short, len(angles))[:, 1])
        bits = self.counted
        sizes = np.array([8 * log(k) / m for k, m in self.sizes]) ** 0.5
        order = np.argsort(sizes)
        across = np.linspace(0.05, 0.95, 50)
        means = observed["projected"].mean(1)
        images = observed["images"].mean(1)
        m = observed["image_dimensions"]
        return (
            panel(
                "No code of one number beats a₂",
                "angle on the ellipse",
                "error",
                observed_curve(angles, best[0], "trained on error²"),
                observed_curve(angles, best[1], "trained on error⁸", shade=1.0),
                context_curve(angles, projected, "projection"),
                predicted_curve(angles[[0, -1]], [self.short] * 2, "a₂"),
                ylim=(0, None),
            ),
            panel(
                "a_i = 2^(−i): n bits do less than n numbers",
                "n",
                "error",
                observed_curve(bits, observed["radii"], "greedy coverings", kind="points"),
                predicted_curve(bits, predicted["entropy"], "bound of ε_n"),
                rival_curve(bits, 2.0 ** -(bits + 1.0), "width δ_n"),
                log="y",
            ),
            panel(
                "Extreme stretches of unit vectors",
                "√(8 ln k/m)",
                "stretch",
                observed_curve(sizes, means[:, 0], "smallest", kind="points"),
                observed_curve(sizes, means[:, 1], "largest", kind="points", shade=1.0),
                predicted_curve(sizes[order], predicted["low"][order], "quantiles of χ²"),
                predicted_curve(sizes[order], predicted["high"][order]),
                rival_curve(across, np.sqrt(1 - across), "leading order"),
                rival_curve(across, np.sqrt(1 + across)),
            ),
            panel(
                f"{IMAGES} digits are stretched less",
                "m",
                "stretch",
                observed_curve(m, images[:, 0], "smallest", kind="points"),
                observed_curve(m, images[:, 1], "largest", kind="points", shade=1.0),
                predicted_curve(m, predicted["image_low"], "unit vectors"),
                predicted_curve(m, predicted["image_high"]),
                log="x",
            ),
        )


def _theorem(rate: float) -> float:
    """Return the largest a_(32n+1)/(3 × the bound of ε_n) of a_i = i^(−rate) over n ≤ 1000."""
    bits = np.arange(1, 1001)
    axes = np.arange(1.0, 4001.0) ** -rate
    widths = (32.0 * bits + 1) ** -rate
    return float((widths / (3 * ellipsoid_entropy(axes, bits))).max())


def _quantized(short: float) -> np.ndarray:
    """Return the distances of the boundary's points from the nearest of some of them, shape ``(angles,)``."""
    many = boundary(short, FINE)
    cells = many[:: FINE // CELLS]
    return np.linalg.norm(many[:, None] - cells, axis=-1).min(1)
