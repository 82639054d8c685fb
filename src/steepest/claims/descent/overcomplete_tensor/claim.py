"""Power iteration on a random tensor of n ≤ d²/8 components ends near one of them for d = 128.

The tensor is of order four. Power iteration is ascent of Σ⟨a_i, x⟩⁴ on the sphere, with random components a_1 … a_n in
R^d, and it ends near some ±a_i. For d = 32 only about half of the ascents do. The same is true for n = d²/4 at d = 64.
The distance from the component follows from pairs of components. Each other component, at overlap c, pulls the maximum
away by an angle θ(c), which is c³ to first order, and the squares of the tangents add up. Two components whose overlap
exceeds ½ share one maximum.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.overcomplete_tensor.experiment import (
    NEAR,
    OvercompleteTensorPoint,
    merging_overlap,
)
from steepest.landscapes import MERGE, pair_angle, tensor_ascent
from steepest.nn.types import Values

SMALL_SEEDS = 20  # tensors of each small dimension
LOW = ("few dimensions", "many components")  # where it fails: d = 32, and n = d²/4


class Setting(NamedTuple):
    """Components and starts of the judged tensors, one set for each number of components, with the seeds first."""

    components: tuple[Values, ...]  # (seeds, n, d)
    starts: tuple[Values, ...]  # (seeds, starts, d)


@kit.claim
class OvercompleteTensor(kit.Claim[Setting]):
    """Random unit components in a high dimension and in low dimensions, power iteration from random starts."""

    d: kit.Count = kit.param(
        128, "dimension", scope=kit.between(128, 160, "below, some ends are not near a component")
    )
    counts: tuple[kit.Count, ...] = kit.param(
        (512, 1024, 2048),
        "numbers n of components",
        scope=kit.choices((512, 1024, 2048), (400, 800, 1600), (500, 800, 1800)),
    )
    seeds: kit.Seeds = kit.param(16, "tensors of each number")
    starts: kit.Count = kit.param(12, "random starts on each tensor")
    steps: kit.Count = kit.param(80, "steps of each ascent", unit="steps")
    small: tuple[kit.Count, ...] = kit.param(
        (16, 24, 48, 64), "dimensions at n = d²/8, which are shown"
    )
    failing: kit.Count = kit.param(
        32, "dimension at n = d²/8 where it does not hold", scope=kit.choices(32)
    )
    dense: kit.Count = kit.param(
        64, "dimension at n = d²/4 where it does not hold", scope=kit.choices(64)
    )
    ratio: kit.Fraction = kit.param(0.125, "largest n/d²")

    kind = "empirical law"
    says = {
        "n ≤ d²/8 components ends near one of them for d = 128": ("near", "angle"),
        "For d = 32 only about half of the ascents do": "low_share",
    }
    tiny = {"d": 24, "counts": (18, 36, 54), "seeds": 3, "starts": 4, "steps": 20, "small": (8, 12)}
    full = {"seeds": 24, "starts": 48, "steps": 150}
    out_of_scope = {"counts": (512, 1024, 4096)}
    precision = "float32"
    point = OvercompleteTensorPoint

    def axes(self):
        return {"n": self.counts, "component": tuple(range(max(self.counts))), "low": LOW}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        components = tuple(_units(rng, self.seeds, n, self.d) for n in self.counts)
        starts = tuple(_units(rng, self.seeds, self.starts, self.d) for _ in self.counts)
        return Setting(components, starts)

    def hypotheses(self, setting):
        ratios = np.array(self.counts) / self.d**2
        yield kit.assume("largest n/d²", ratios.max(), "<=", self.ratio, "components must be few")
        yield kit.assume(
            "numbers of components", len(self.counts), ">=", 3, "an exponent is fitted"
        )

    def predict(self, setting):
        mean = self._mean()
        return kit.law(
            squares=("n seed component", self._sums(setting, lambda c: np.tan(pair_angle(c)) ** 2)),
            angle=("n", np.ones(len(self.counts))),
            distance=("n", np.array(self.counts, float)),
            # f(a_i) is one and the mean of the others
            value=("n", 1 + 1 / mean),
            low_share=("low", np.full(len(LOW), 0.5)),
            merging=MERGE,
        )

    def _mean(self) -> Values:
        """Return E f of a random point, at each n."""
        # E ⟨a, x⟩⁴ = 3/(d(d + 2)) on the sphere
        return 3 * np.array(self.counts) / (self.d * (self.d + 2))

    def _sums(self, setting: Setting, square: Callable[[Values], Values]) -> Values:
        """Return for each component the sum over all others of a function of |overlap|, filled up with zeros."""
        sums = np.zeros((len(self.counts), self.seeds, max(self.counts)))
        for i, sets in enumerate(setting.components):
            sums[i, :, : self.counts[i]] = [
                sum_over_pairs(components, square) for components in sets
            ]
        return sums

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        runs = [kit.compiled(self.ascend)(*lane) for lane in zip(*setting, strict=True)]
        overlap, nearest, value, moved = (
            np.stack([np.asarray(part, float) for part in parts])
            for parts in zip(*runs, strict=True)
        )
        shown = [self.overlaps(rng, d, d * d // 8) for d in (*self.small, self.failing)]
        dense = self.overlaps(rng, self.dense, self.dense**2 // 4)
        dims = "n seed start"
        return kit.seen(
            overlap=(dims, overlap),
            nearest=(dims, nearest.astype(int)),
            value=(dims, value / self._mean()[:, None, None]),
            moved=(dims, moved),
            shown=("shown tensor", [(rows >= NEAR).mean(1) for rows in shown]),
            low_overlap=("low tensor small_start", [shown[-1], dense]),
            merging=merging_overlap(),
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
        return np.asarray(kit.compiled(self.ascend)(components, starts)[0])

    def run_conditions(self, observed):
        moved = np.quantile(observed["moved"], 0.9, axis=(1, 2)).max()
        yield kit.assume("last move of nine ascents in ten", moved, "<", 1e-3, "raise --steps")

    def derive(self, law, seen):
        """Return tan² of the angles and what pairs predict of them, and shares of ends near a component."""
        measured = seen.overlap**-2.0 - 1  # tan² = 1/cos² − 1
        of_nearest = np.take_along_axis(law.squares.values, seen.nearest.values.astype(int), 2)
        theory = measured.copy(data=of_nearest)
        return {
            "tan_square": measured,
            "theory": theory,
            "angle": (measured / theory).median("start"),
            "near": (seen.overlap >= NEAR).astype(float).mean("start"),
            "distance": (1 - seen.overlap).median("start"),
            "height": seen.value.median("start"),
            "low_share": (seen.low_overlap >= NEAR)
            .astype(float)
            .mean("small_start")
            .rename(tensor="draw"),
        }

    def judge(self, law, seen):
        yield kit.excluded(
            "near",
            NEAR,
            seen.overlap,
            label=f"overlap of each end with the nearest ±a_i, d = {self.d}",
        )
        yield kit.follows(
            "angle",
            law.angle,
            seen.angle,
            # pairs leave out terms of order n/d² = ⅛, which pull the same way; the interval over tensors is 6 %
            (0.88, 1.2),
            label="tan² of the angle over the sum over pairs",
        )
        yield kit.follows(
            "value",
            law.value,
            seen.height,
            0.08,  # the maximum is above f(a_i), by up to 4 % at n = d²/8; the interval is 2 %
            label="f/E f at the ends",
        )
        yield kit.power(
            "exponent",
            law.distance,
            seen.distance,
            0.25,  # first order; what is above it grows faster by up to n/d², and the interval is 0.1
            over="n",
            label="1 − overlap against n",
        )
        yield kit.follows("merging", law.merging, seen.merging, 0.005, label="overlap of merging")
        yield kit.follows(
            "low_share",
            law.low_share,
            seen.low_share,
            0.25,
            absolute=True,
            label=f"share near ±a_i at d = {self.failing}, n = d²/8, and at d = {self.dense}, n = d²/4",
        )

    def rivals(self, setting, law):
        counts = np.array(self.counts)
        flat = lambda numbers: numbers * xarray.ones_like(law.squares)
        n = xarray.DataArray(counts, dims="n")
        yield kit.rival(
            "tan² = 15 n/d³; components merge where ε = (c + ε)³ ends, at 0.385",
            "ε = (c + ε)³ with ε = c³ at first",
            id="first_order",
            squares=flat(15 * n / self.d**3),
            merging=2 / 27**0.5,
        )
        yield kit.rival(
            "tan² = Σ c⁶, with the components' own overlaps",
            "each of the others pulls by c³",
            squares=(law.squares.dims, self._sums(setting, lambda c: c**6)),
        )
        yield kit.rival(
            "tan² = Σ c⁶(1 + 6c²)",
            "it is the same law to the next order in c",
            accepted="it differs from the sum of tan²θ(c) by less than terms that pairs leave out",
            squares=(law.squares.dims, self._sums(setting, lambda c: c**6 * (1 + 6 * c**2))),
        )
        yield kit.rival("tan² = 3 n/d²", "the mean of Σ c⁴", squares=flat(3 * n / self.d**2))
        yield kit.rival(
            "the others add nothing",
            "random vectors are nearly orthogonal",
            value=law.value - 1,
            distance=law.distance**0.0,
        )
        yield kit.rival("1 − overlap ∝ √n", "angles add up like √n", distance=law.distance**0.5)
        yield kit.rival(
            "all ends are near ±a_i at d = 32, and at n = d²/4",
            "“empirically, gradient ascent always finds one of the a_i”",
            low_share=xarray.ones_like(law.low_share),
        )

    def controls(self, seen):
        few = seen.low_overlap.isel(low=0).values
        many = seen.overlap.isel(n=0).values
        yield kit.control(
            f"d = {self.d} in place of the small dimensions",
            "there it does not fail",
            id="large_dimension",
            low_overlap=(seen.low_overlap.dims, np.resize(many, seen.low_overlap.shape)),
        )
        yield kit.control(
            f"ends of d = {self.failing} in place of ends of d = {self.d}",
            "pairs merge",
            id="small_dimension",
            overlap=(seen.overlap.dims, np.resize(few, seen.overlap.shape)),
        )
        yield kit.control(
            "ends in the other order of n",
            "each component is pulled by its own neighbours",
            value=(seen.value.dims, seen.value.values[::-1]),
            overlap=(seen.overlap.dims, seen.overlap.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        counts = np.array(self.counts)
        points = [
            kit.observed_curve(
                seen.theory[i].values.ravel(),
                seen.tan_square[i].values.ravel(),
                f"n = {n}",
                kind="points",
                shade=i / len(counts),
            )
            for i, n in enumerate(self.counts)
        ]
        first = 15 * counts / self.d**3
        ends = np.array([seen.theory.min(), seen.theory.max()])
        shown = np.array([*self.small, self.failing])
        order = np.argsort(shown)
        dimensions = np.append(shown[order], self.d)
        largest = float(seen.near[-1].mean())
        shares = np.append(seen.shown.mean("tensor").values[order], largest)
        overlap = np.linspace(0, 0.9, 200)
        yield kit.panel(
            "How far from its component each end is",
            "sum of tan² over pairs",
            "tan² of the angle",
            *points,
            kit.predicted_curve(ends, ends, "equal"),
            kit.rival_curve(first, first, "15 n/d³", kind="points"),
            log="xy",
        )
        yield kit.panel(
            "In low dimension it fails (n = d²/8)",
            "dimension d",
            "share of starts near ±a_i",
            kit.observed_curve(dimensions, shares, "observed", kind="points"),
            kit.predicted_curve(dimensions, 0 * shares + 1, "all"),
            ylim=(0, 1.05),
        )
        yield kit.panel(
            "Two components merge at an overlap of ½",
            "overlap c",
            "angle to its maximum [degrees]",
            kit.predicted_curve(overlap, np.degrees(pair_angle(overlap)), "θ(c)"),
            kit.rival_curve(overlap[:120], np.degrees(np.arctan(overlap[:120] ** 3)), "c³"),
            kit.observed_curve(2 * [float(seen.merging)], (0, 45), "merged, by bisection"),
        )
        yield kit.panel(
            "How high the ends are",
            "components n",
            "f / E f",
            kit.observed_curve(
                counts, seen.height.transpose("seed", "n"), "tensors", kind="points"
            ),
            kit.predicted_curve(counts, law.value, "1 + 1/E f"),
            kit.rival_curve(counts, law.value - 1, "only the component"),
            log="xy",
        )


def _units(rng: np.random.Generator, *shape: int) -> Values:
    """Draw unit vectors in single precision, along the last axis."""
    rows = rng.standard_normal(shape, np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def sum_over_pairs(components: Values, square: Callable[[Values], Values]) -> Values:
    """Return for each component the sum of a function of |overlap| over all others, ``(n, d)`` to ``(n,)``."""
    overlaps = np.abs(components @ components.T)
    np.fill_diagonal(overlaps, 0)
    # a table of 20 000 overlaps is enough for sums over hundreds
    table = square(np.linspace(0, 1, 20_001))
    rows = np.rint(np.minimum(overlaps, 1.0) * 20_000).astype(np.int32)
    return table[rows].sum(1)
