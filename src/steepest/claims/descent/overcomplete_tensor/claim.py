"""Ascent of Σ⟨a_i, x⟩⁴ over random a_1 … a_n in R^d ends near some ±a_i, for d = 128 and n ≤ d²/8; not for d = 32.

How near follows from pairs of components: each of the others, at overlap c, pulls the maximum away by an angle θ(c), c³
to first order, and the squares of the tangents add up. Two components whose overlap exceeds ½ share one maximum.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Fraction,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Prediction,
    Rival,
    Seeds,
    Values,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.descent.overcomplete_tensor.experiment import (
    NEAR,
    OvercompleteTensorPoint,
    merging_overlap,
)
from steepest.landscapes import MERGE, pair_angle, tensor_ascent

SMALL_SEEDS = 8  # tensors of each small dimension


class Setting(NamedTuple):
    """Components and starts of the judged tensors, one set a number of components, with the seeds first."""

    components: tuple[Values, ...]  # (seeds, n, d)
    starts: tuple[Values, ...]  # (seeds, starts, d)


@dataclass(frozen=True)
class OvercompleteTensor(Claim):
    """Random unit components in high dimension, power iteration from random starts; and in low dimensions."""

    d: Count = 128  # dimension [1]
    counts: tuple[Count, ...] = (512, 1024, 2048)  # numbers n of components [1]
    seeds: Seeds = 12  # tensors of each number [1]
    starts: Count = 12  # random starts on each tensor [1]
    steps: Count = 80  # of each ascent [steps]
    small: tuple[Count, ...] = (16, 24, 48, 64)  # dimensions at n = d²/8, which are shown [1]
    failing: Count = 32  # dimension at n = d²/8 where it does not hold [1]
    ratio: Fraction = 0.125  # largest n/d² [1]

    precision = "float32"
    kind = "empirical law"
    statement = (
        r"\arg\max_{\|x\|=1}\sum_{i=1}^n\langle a_i,x\rangle^4\text{ (local)}\approx\pm a_k,\qquad "
        r"\tan^2\angle(x,a_k)\approx\sum_{i\ne k}\tan^2\theta(|\langle a_i,a_k\rangle|),\qquad "
        r"\frac{f}{\mathbb E f}\approx1+\frac{1}{\mathbb E f},\quad \mathbb E f=\frac{3n}{d(d+2)}"
    )
    source = "Ge's lecture of 27 January in the notes [@vodrahalli2019], open problems; [@ge2017b]"
    corrections = (
        "The notes: “empirically, gradient ascent always finds one of the a_i”. So it does at d = 128 and n ≤ d²/8. At "
        "d = 32 and n = d²/8 a third to two thirds of the starts do, and so it is at d = 64 and n = d²/4.",
    )
    remarks = (
        "The conjecture is about d → ∞ and all local maxima; here are d = 128 and those that random starts find. "
        "Their number and small values are not searched: Ge and Ma prove that none but those near ±a_i has "
        "f ≥ (1 + ε) E f, and below that nothing is proved.",
        "The first-order law √(15n/d³) of the angle is a factor 1.5 too small in its square at d = 128 and 2.5 at "
        "d = 64: what counts are the few nearest components, whose pull is no longer c³. The exact angle θ(c) of two "
        "components, summed over all pairs, is within 8 %. It uses the components, and has nothing fitted.",
        "Two components merge at an overlap of ½ (60°). Among n random ones the largest overlap with a given one is "
        "near √(2 log n/d): 0.34 for d = 128 and n = 2048, 0.55 for d = 32 and n = 128.",
        "An end counts as near ±a_i where the overlap is at least 0.9.",
        "Near n = d²/4 convergence slows; there the ascent is shown and not judged.",
    )
    headline = ("share_0", "share_1", "share_2", "small_share")
    full = {"seeds": 16, "starts": 48, "steps": 150}
    tiny = {"d": 24, "counts": (18, 36, 54), "seeds": 3, "starts": 4, "steps": 20, "small": (8, 12)}
    out_of_scope = {"counts": (512, 1024, 4096)}
    point = OvercompleteTensorPoint

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        components = tuple(_units(rng, self.seeds, n, self.d) for n in self.counts)
        starts = tuple(_units(rng, self.seeds, self.starts, self.d) for _ in self.counts)
        return Setting(components, starts)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        ratios = np.array(self.counts) / self.d**2
        return [
            assume("largest n/d²", ratios.max(), "<=", self.ratio, "components must be few"),
            assume("numbers of components", len(self.counts), ">=", 3, "an exponent is fitted"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        squares = {}
        for i, sets in enumerate(setting.components):
            squares[f"squares_{i}"] = (
                f"seed component_{i}",
                [_pair_squares(components) for components in sets],
            )
        counts = np.array(self.counts)
        mean = 3 * counts / (self.d * (self.d + 2))
        return Prediction(
            **squares,
            share=1.0,
            exponent=1.0,
            value=("count", 1 + 1 / mean),
            merge=MERGE,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        rng = numpy_generator(key)
        arrays = {}
        for i, (components, starts) in enumerate(
            zip(setting.components, setting.starts, strict=True)
        ):
            ends = compiled(self.ascend)(components, starts)
            overlap, nearest, value, moved = (np.asarray(values) for values in ends)
            mean = 3 * self.counts[i] / (self.d * (self.d + 2))
            arrays[f"overlap_{i}"] = (f"seed start_{i}", overlap)
            arrays[f"nearest_{i}"] = (f"seed start_{i}", nearest)
            arrays[f"value_{i}"] = (f"seed start_{i}", value / mean)
            arrays[f"moved_{i}"] = (f"seed start_{i}", moved)
        shown = (*self.small, self.failing)
        overlaps = [self.overlaps(rng, d, d * d // 8) for d in shown]
        dense = self.overlaps(rng, self.d // 2, self.d**2 // 16)
        return Observation(
            **arrays,
            shares=("shown tensor", [(rows >= NEAR).mean(1) for rows in overlaps]),
            failing=("tensor small_start", overlaps[-1]),
            dense=("tensor", (dense >= NEAR).mean(1)),
            merge=merging_overlap(),
        )

    def ascend(self, components: jax.Array, starts: jax.Array) -> tuple[jax.Array, ...]:
        """Return overlap with the nearest component, which it is, f and the last move, ``(seeds, starts)`` each."""

        def one(rows: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
            ends = tensor_ascent(rows[0], rows[1], self.steps)
            overlaps = jnp.abs(ends.points @ rows[0].T)
            return overlaps.max(1), overlaps.argmax(1), ends.value, ends.moved

        return jax.lax.map(one, (components, starts))

    def overlaps(self, rng: np.random.Generator, d: int, n: int) -> Values:
        """Return the overlap of ends with the nearest component, of several tensors, ``(SMALL_SEEDS, starts)``."""
        components = _units(rng, SMALL_SEEDS, n, d)
        starts = _units(rng, SMALL_SEEDS, 2 * self.starts, d)
        return np.asarray(compiled(self.ascend)(components, starts)[0])

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        moved = [np.quantile(observed[f"moved_{i}"], 0.9) for i in range(len(self.counts))]
        return [assume("last move of nine ascents in ten", max(moved), "<", 1e-3, "raise --steps")]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = []
        for i, n in enumerate(self.counts):
            overlap = observed[f"overlap_{i}"]
            checks.append(
                equal(
                    f"share_{i}",
                    float(predicted["share"]),
                    (overlap >= NEAR).mean(1),
                    0.01,
                    aggregate="all",
                    label=f"share of starts that end near ±a_i, d = {self.d}, n = {n}",
                )
            )
        for i, n in enumerate(self.counts):
            squares = observed[f"overlap_{i}"].astype(float) ** -2.0 - 1
            theory = np.take_along_axis(
                predicted[f"squares_{i}"], observed[f"nearest_{i}"].astype(int), 1
            )
            value = observed[f"value_{i}"].astype(float)
            checks += [
                equal(
                    f"angle_{i}",
                    1.0,
                    np.median(squares / theory, axis=1),
                    0.2,  # pairs leave out terms of order n/d² = ⅛; the interval over tensors is 6 %
                    label=f"tan² of the angle over the sum over pairs, n = {n}",
                ),
                equal(
                    f"value_{i}",
                    predicted["value"][i],
                    np.median(value, axis=1),
                    0.08,  # the maximum is above f(a_i), by up to 4 % at n = d²/8; the interval is 2 %
                    label=f"f/E f at the ends, n = {n}",
                ),
            ]
        distance = [
            np.median(1 - observed[f"overlap_{i}"].astype(float), axis=1)
            for i in range(len(self.counts))
        ]
        return [
            *checks,
            exponent(
                "exponent",
                float(predicted["exponent"]),
                self.counts,
                np.transpose(distance),
                0.25,  # first order; what is above it grows faster by up to n/d², and the interval is 0.1
                label="1 − overlap against n",
            ),
            equal(
                "merge", predicted["merge"], observed["merge"], 0.005, label="overlap of merging"
            ),
            bound(
                "small_share",
                observed["shares"][-1],
                at_most=0.9,
                label=f"share near ±a_i at d = {self.failing}, n = d²/8: it fails there",
            ),
            bound(
                "dense_share",
                observed["dense"],
                at_most=0.9,
                label=f"share near ±a_i at d = {self.d // 2}, n = d²/4: it fails there",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        d = self.d
        shapes = [predicted[f"squares_{i}"] for i in range(len(self.counts))]

        def squares(law: list[float]) -> dict[str, tuple[str, Values]]:
            return {
                f"squares_{i}": (f"seed component_{i}", np.full_like(shape, number))
                for i, (shape, number) in enumerate(zip(shapes, law, strict=True))
            }

        counts = np.array(self.counts)
        mean = 3 * counts / (d * (d + 2))
        return [
            Rival(
                "first_order",
                predicted.replace(**squares([15 * n / d**3 for n in counts]), merge=2 / 27**0.5),
                "ε = (c + ε)³ with ε = c³ at first",
                label="tan² = 15 n/d³; components merge where ε = (c + ε)³ ends, at 0.385",
            ),
            Rival(
                "squared_overlaps",
                predicted.replace(**squares([3 * n / d**2 for n in counts])),
                "the mean of Σ c⁴",
                label="tan² = 3 n/d²",
            ),
            Rival(
                "orthogonal",
                predicted.replace(value=("count", 1 / mean), exponent=0.0),
                "random vectors are nearly orthogonal",
                label="the others add nothing",
            ),
            Rival(
                "root",
                predicted.replace(exponent=0.5),
                "angles add up like √n",
                label="1 − overlap ∝ √n",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        large = np.ones_like(observed["dense"])
        shares = observed["shares"].copy()
        shares[-1] = (observed["overlap_0"] >= NEAR).mean()
        low = {}
        for i in range(len(self.counts)):
            shape = observed[f"overlap_{i}"].shape
            low[f"overlap_{i}"] = (f"seed start_{i}", np.resize(observed["failing"], shape))
        return [
            Control(
                "large_dimension",
                observed.replace(
                    shares=("shown tensor", shares), dense=("tensor", large * shares[-1, 0])
                ),
                "there it does not fail",
                label=f"d = {self.d} in place of the small dimensions",
            ),
            Control(
                "small_dimension",
                observed.replace(**low),
                "pairs merge",
                label=f"shares of d = {self.failing} in place of those of d = {self.d}",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        counts = np.array(self.counts)
        curves = []
        first = []
        for i, n in enumerate(self.counts):
            shade = i / len(self.counts)
            measured = observed[f"overlap_{i}"].astype(float) ** -2.0 - 1
            theory = np.take_along_axis(
                predicted[f"squares_{i}"], observed[f"nearest_{i}"].astype(int), 1
            )
            look = {"kind": "points", "shade": shade}
            curves.append(observed_curve(theory.ravel(), measured.ravel(), f"n = {n}", **look))
            first.append(15 * n / self.d**3)
        ends = np.array([curves[0].x.min(), curves[-1].x.max()])
        order = np.argsort([*self.small, self.failing])
        dimensions = np.append([*self.small, self.failing], self.d)[[*order, -1]]
        shares = observed["shares"].mean(1)
        last = len(self.counts) - 1
        shares = np.append(shares, (observed[f"overlap_{last}"] >= NEAR).mean())[[*order, -1]]
        values = [np.median(observed[f"value_{i}"], axis=1) for i in range(len(self.counts))]
        overlap = np.linspace(0, 0.9, 200)
        return (
            panel(
                "How far from its component each end is",
                "sum of tan² over pairs",
                "tan² of the angle",
                *curves,
                predicted_curve(ends, ends, "equal"),
                rival_curve(first, first, "15 n/d³", kind="points"),
                log="xy",
            ),
            panel(
                "In low dimension it fails (n = d²/8)",
                "dimension d",
                "share of starts near ±a_i",
                observed_curve(dimensions, shares, "observed", kind="points"),
                predicted_curve(dimensions, 0 * shares + 1, "all"),
                ylim=(0, 1.05),
            ),
            panel(
                "Two components merge at an overlap of ½",
                "overlap c",
                "angle to its maximum [degrees]",
                predicted_curve(overlap, np.degrees(pair_angle(overlap)), "θ(c)"),
                rival_curve(overlap[:120], np.degrees(np.arctan(overlap[:120] ** 3)), "c³"),
                observed_curve(2 * [float(observed["merge"])], (0, 45), "merged, by bisection"),
            ),
            panel(
                "How high the ends are",
                "components n",
                "f / E f",
                observed_curve(counts, np.transpose(values), "tensors", kind="points"),
                predicted_curve(counts, predicted["value"], "1 + 1/E f"),
                rival_curve(counts, predicted["value"] - 1, "the component alone"),
                log="xy",
            ),
        )


def _units(rng: np.random.Generator, *shape: int) -> Values:
    """Draw unit vectors in single precision, along the last axis."""
    rows = rng.standard_normal(shape, np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def _pair_squares(components: Values) -> Values:
    """Return for each component the sum of tan² θ(c) over all others, ``(n, d)`` to ``(n,)``."""
    overlaps = np.abs(components @ components.T)
    np.fill_diagonal(overlaps, 0)
    # a table of 20 000 overlaps is enough for sums over hundreds
    table = np.tan(pair_angle(np.linspace(0, 1, 20_001))) ** 2
    rows = np.rint(np.minimum(overlaps, 1.0) * 20_000).astype(np.int32)
    return table[rows].sum(1)
