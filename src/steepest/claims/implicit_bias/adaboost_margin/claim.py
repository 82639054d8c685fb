"""AdaBoost comes close to the largest ℓ1 margin with small steps, and can miss it with exact steps.

With small steps the margin and the edges of the classifiers that AdaBoost picks meet at this largest margin γ̄. On one
matrix of votes exact steps stop at the margin 1/3, which is 8/9 of γ̄ there. AdaBoost is coordinate descent on the
exponential loss over a dictionary of classifiers, here all decision stumps. Nothing in this descent mentions margins.
The largest margin γ̄ is known from a linear program. No margin exceeds γ̄ and no edge falls below it, so small steps
close in on γ̄ from two sides. With ν times the exact step the edges settle where log R falls by γ̄ per unit of ‖w‖₁,
near γ̄/(1 − ν/2). On a matrix of Rudin, Daubechies and Schapire exact steps take three classifiers in turn for ever,
with edges (√5 − 1)/2 and the margin 1/3, where γ̄ = 3/8.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.dynamics import Boosting, adaboost, logarithmic
from steepest.nn.data import breast_cancer, digits, signs
from steepest.nn.types import Values
from steepest.programs import StumpMargin, Stumps, decision_stumps, hard_margin, stump_margin

Shrinkages = Annotated[tuple[float, ...], kit.Within(0, 1, open=True)]
SETS = ("breast cancer", "digits 3, 8", "digits 4, 9")
EARLY = 20  # the part of the steps after which the control looks
# Rudin, Daubechies and Schapire 2004: rows are examples, columns classifiers, +1 where a classifier is right
CYCLIC = np.array(
    [
        [-1, 1, 1, 1, 1, -1, -1, 1],
        [-1, 1, 1, -1, -1, 1, 1, 1],
        [1, -1, 1, 1, 1, -1, 1, 1],
        [1, -1, 1, 1, -1, 1, 1, 1],
        [1, -1, 1, -1, 1, 1, 1, -1],
        [1, 1, -1, 1, 1, 1, 1, -1],
        [1, 1, -1, 1, 1, 1, -1, 1],
        [1, 1, 1, 1, -1, -1, 1, -1],
    ],
    float,
)


class Setting(NamedTuple):
    """The subsets of every set in turn, with all their stumps and the linear programs over them."""

    stumps: list[Stumps]
    labels: list[Values]
    programs: list[StumpMargin]


@kit.claim
class AdaboostMargin(kit.Claim[Setting]):
    """Subsets of breast cancer and two pairs of digits, with all their decision stumps, and a matrix of eight."""

    n: Annotated[int, kit.Within(10)] = kit.param(
        110,
        "examples of a subset",
        scope=kit.between(105, 119, "of fewer one stump may separate all; the digits have no more"),
    )
    subsets: kit.Count = kit.param(3, "disjoint subsets drawn from each set")
    contradictions: Annotated[int, kit.Within(0)] = kit.param(
        0, "examples repeated with the other label: none separates them"
    )
    shrinkages: Shrinkages = kit.param(
        (1.0, 0.3, 0.1),
        "ν, multiples of the exact step, decreasing from 1",
        scope=kit.choices((1.0, 0.3, 0.1), (1.0, 0.4, 0.1), (1.0, 0.2, 0.1), (1.0, 0.3, 0.15)),
    )
    steps: kit.Count = kit.param(6000, "steps of boosting at every ν", unit="steps")
    readings: Annotated[int, kit.Within(2)] = kit.param(
        300, "steps at which the margin is recorded, evenly in their logarithm"
    )

    kind = "theorem"
    says = {
        "AdaBoost comes close to the largest ℓ1 margin with small steps": (
            "limit",
            "growth",
            "edges",
        ),
        "exact steps stop at the margin 1/3": kit.literal("cycle_margin", value=1 / 3),
    }
    tiny = {"n": 100, "subsets": 2, "shrinkages": (1.0, 0.2), "steps": 2000, "readings": 60}
    full = {"n": 178, "subsets": 2, "shrinkages": (1.0, 0.3, 0.1, 0.03), "steps": 100_000}
    out_of_scope = {"contradictions": 5}

    @property
    def marks(self) -> Values:
        """Return the steps that are recorded, those between which growth is taken among them."""
        judged = [self.steps // (2 * EARLY), self.steps // EARLY, self.steps // 2, self.steps]
        return np.union1d(logarithmic(self.steps, self.readings)[1:], judged)

    def axes(self):
        return {
            "set": SETS,
            "shrinkage": self.shrinkages,
            "small": self.shrinkages[1:],
            "reading": tuple(self.marks.tolist()),
        }

    def setting(self, key):
        sets = breast_cancer(), signs(digits(classes=(3, 8))), signs(digits(classes=(4, 9)))
        smallest = min(data.n for data in sets)
        if self.n * self.subsets > smallest:
            raise kit.UserError(
                f"{self.subsets} subsets of {self.n} examples are more than the {smallest} of the smallest set; "
                "lower n or subsets"
            )
        generator = kit.numpy_generator(key)
        stumps = []
        labels = []
        for data in sets:
            x = np.asarray(data.x)
            y = np.asarray(data.y)
            shuffled = generator.permutation(data.n)[: self.n * self.subsets]
            for chosen in shuffled.reshape(self.subsets, -1):
                again = chosen[: self.contradictions]
                stumps.append(decision_stumps(x[np.append(chosen, again)]))
                labels.append(np.append(y[chosen], -y[again]))
        programs = [stump_margin(s, y) for s, y in zip(stumps, labels, strict=True)]
        return Setting(stumps, labels, programs)

    def hypotheses(self, setting):
        margins = np.array([program.margin for program in setting.programs])
        assumed = [
            kit.assume(
                "smallest γ̄ of the subsets",
                margins.min(),
                ">",
                0,
                "no combination of stumps separates them",
            ),
            kit.assume(
                "largest γ̄",
                margins.max(),
                "<",
                1 - 1e-9,
                "one stump separates by itself, and its step is infinite",
            ),
            kit.assume(
                "first shrinkage",
                self.shrinkages[0],
                "==",
                1,
                "the theorem is about the exact step",
            ),
        ]
        if margins.min() > 0:
            due = max(_due(setting))
            assumed.append(kit.assume("largest 8 ln n/γ̄²", due, "<=", self.steps, "raise --steps"))
        return assumed

    def predict(self, setting):
        by_set = lambda values: np.reshape(values, (len(SETS), self.subsets, *np.shape(values)[1:]))
        margin = np.array([program.margin for program in setting.programs])
        size = np.log([len(y) for y in setting.labels])
        nu = np.array(self.shrinkages)
        # the exact step at the edge γ̄ is arctanh γ̄, and no edge is smaller
        moved = np.multiply.outer(np.arctanh(margin), nu)  # να, (subsets, shrinkages)
        guarantee = _fall(margin[:, None], nu) - size[:, None] / (self.steps * moved)
        golden = (np.sqrt(5) - 1) / 2
        return kit.law(
            due=("set draw", by_set(_due(setting))),
            quarter=("set draw", by_set(margin / 4)),
            guarantee=("set draw shrinkage", by_set(guarantee)),
            limit=("set draw", by_set(margin)),
            growth=("set draw small", by_set(np.repeat(margin[:, None], len(nu) - 1, 1))),
            edge=("set draw small", by_set(_edge(margin[:, None], nu[1:]))),
            cycle_edge=golden,
            cycle_margin=float(_fall(np.array(golden), np.ones(()))),
            cycle_limit=hard_margin(CYCLIC, np.ones(len(CYCLIC)), norm="l1").margin,
        )

    def observe(self, setting, key):
        marks = self.marks
        nu = np.array(self.shrinkages)

        def record(run: Boosting) -> jax.Array:
            size = jnp.abs(run.amount)
            sums = (run.log_risk, run.norm, size.cumsum(), (size * run.edge).cumsum())
            return jnp.stack((run.margin, *sums))[:, marks - 1]

        @kit.compiled
        def boost(stumps: Stumps, y: jax.Array) -> jax.Array:
            """Return the record of every subset at every shrinkage."""
            one = lambda pair, nu: record(adaboost(pair[0], pair[1], self.steps, nu))
            every = lambda pair: jax.lax.map(lambda nu: one(pair, nu), jnp.asarray(nu))
            return jax.lax.map(every, (stumps, y))

        @kit.compiled
        def cycle(votes: jax.Array) -> tuple[jax.Array, jax.Array]:
            """Return margins and last edges on the matrix of eight at every shrinkage."""

            def one(nu: jax.Array) -> tuple[jax.Array, jax.Array]:
                run = adaboost(votes, jnp.ones(len(CYCLIC)), self.steps, nu)
                return run.margin[marks - 1], run.edge[-3:]

            return jax.vmap(one)(jnp.asarray(nu))

        records = np.asarray(boost(_alike(setting.stumps), np.stack(setting.labels)))
        records = records.reshape(len(SETS), self.subsets, *records.shape[1:])
        margin, *sums = np.moveaxis(records, 3, 0)
        at = np.searchsorted(
            marks, [self.steps // (2 * EARLY), self.steps // EARLY, self.steps // 2]
        )
        growth, edge = _between(sums, at[2], len(marks) - 1)
        early_growth, early_edge = _between(sums, at[0], at[1])
        cycle_margin, cycle_edge = cycle(CYCLIC)
        return kit.seen(
            margin=("set draw shrinkage reading", margin),
            end=("set draw shrinkage", margin[..., -1]),
            early_end=("set draw shrinkage", margin[..., at[1]]),
            growth=("set draw small", growth[..., 1:]),
            exact_growth=("set draw", growth[..., 0]),
            early_growth=("set draw small", early_growth[..., 1:]),
            edge=("set draw small", edge[..., 1:]),
            exact_edge=("set draw", edge[..., 0]),
            early_edge=("set draw small", early_edge[..., 1:]),
            cycle_margin=("shrinkage reading", cycle_margin),
            cycle_edge=("shrinkage last", cycle_edge),
        )

    def derive(self, law, seen):
        """Return the margin at the first reading at or after the step due, of the exact step."""
        first = np.searchsorted(self.marks, law.due.values)
        exact = seen.margin.isel(shrinkage=0, drop=True).drop_vars("reading")
        at = xarray.DataArray(np.minimum(first, len(self.marks) - 1), dims=law.due.dims)
        return {"due_margin": exact.isel(reading=at)}

    def judge(self, law, seen):
        smallest = self.shrinkages[-1]
        yield kit.follows(
            "limit",
            law.limit,
            seen.end.isel(shrinkage=-1, drop=True),
            (0.95, 1 + 1e-6),
            each=True,
            label=f"margin at ν = {smallest:g}",
        )
        yield kit.follows(
            "growth",
            law.growth,
            seen.growth,
            # The sandwich alone leaves ν/2. Where the margin rises at all slowly the fall is nearer γ̄, as far as
            # the margin is from it, which is a few percent and shrinks over the window.
            0.01,
            each=True,
            label="late fall of log R a unit of ‖w‖₁",
        )
        yield kit.follows(
            "edges",
            law.edge,
            seen.edge,
            # as far as the growth, and the curvature of Υ_ν over the edges' scatter
            0.01,
            each=True,
            label="late mean edge",
        )
        yield from self.judge_cycle(law, seen)
        yield kit.at_least(
            "due_margin",
            law.quarter,
            seen.due_margin,
            each=True,
            label="margin after 8 ln n/γ̄² exact steps, at least γ̄/4",
        )
        yield kit.at_least(
            "guarantee",
            law.guarantee,
            seen.end,
            each=True,
            label="margin in the end, at least its guarantee",
        )
        yield kit.idle(
            kit.at_most(
                "largest_margin",
                law.limit * (1 + 1e-6),
                seen.margin.max(("shrinkage", "reading")),
                each=True,
                label="largest margin of all, at most γ̄",
            ),
            "γ̄ is the largest margin of any combination; it checks the linear program",
        )

    def judge_cycle(self, law, seen):
        """Judge the cycle of the exact step on the matrix of eight, and what small steps do there."""
        ends = seen.cycle_margin.isel(reading=-1, drop=True)
        yield kit.agrees(
            "cycle_edge",
            abs(seen.cycle_edge.isel(shrinkage=0) / law.cycle_edge - 1),
            1e-9,
            label="matrix of eight, exact step: edges over (√5 − 1)/2, less one",
        )
        yield kit.follows(
            "cycle_margin",
            law.cycle_margin,
            ends.isel(shrinkage=0, drop=True),
            # Υ_1 is the mean over all steps, and the 40 before the cycle are ln 8/‖w‖₁ = 0.0005 of them
            0.006,
            label="matrix of eight, exact step: margin",
        )
        yield kit.follows(
            "cycle_small_steps",
            law.cycle_limit,
            ends.isel(shrinkage=-1, drop=True),
            (0.95, 1 + 1e-6),
            label=f"matrix of eight, ν = {self.shrinkages[-1]:g}: margin",
        )

    def rivals(self, setting, law):
        nu = xarray.DataArray(np.array(self.shrinkages), dims="shrinkage")
        small = xarray.DataArray(np.array(self.shrinkages[1:]), dims="small")
        yield kit.rival(
            "AdaBoost maximizes the margin, whatever its steps",
            "small steps do, and it was long believed of all",
            cycle_margin=law.cycle_limit,
        )
        yield kit.rival(
            "small steps end at 1/3 too",
            "the exact step does, on this matrix",
            cycle_limit=law.cycle_margin,
        )
        yield kit.rival(
            "the edges are γ̄ at every ν",
            "the two are equal where both players of the game play best",
            id="edge_is_margin",
            cycle_edge=law.cycle_limit,
            edge=law.growth,
        )
        yield kit.rival(
            "the edges are γ̄/(1 − ν/4)",
            "a step's curvature counted half",
            id="quarter_step",
            edge=law.limit / (1 - small / 4),
        )
        yield kit.rival(
            "the risk falls by Υ_ν(γ̄) a unit, near (1 − ν/2) γ̄",
            "as edges are at least γ̄, no less is guaranteed",
            id="lower_side",
            growth=law.growth.copy(data=_fall(law.growth.values, small.values)),
        )
        yield kit.rival(
            "γ̄ after 8 ln n/γ̄² steps",
            "it is where the exact step stays for long",
            quarter=law.limit,
        )
        yield kit.rival(
            "3γ̄/8 after 8 ln n/γ̄² steps",
            "for classifiers ±1 the proof gives as much",
            accepted="which constant below 0.9 is right; it is a bound from below, and all of them are below",
            quarter=3 * law.limit / 8,
        )
        yield kit.rival(
            "every ν reaches γ̄", "the limit ν → 0 is easily forgotten", guarantee=law.limit * nu**0
        )
        yield from self.other_limits(setting, law)

    def other_limits(self, setting: Setting, law: xarray.Dataset) -> list[kit.Rival]:
        """Return theories of another margin in the end."""
        pairs = list(zip(setting.stumps, setting.labels, strict=True))
        alone = [np.abs(y / len(y) @ stumps.matrix()).max() for stumps, y in pairs]
        euclidean = [_euclidean(stumps, np.asarray(y)) for stumps, y in pairs]
        limits = (
            (
                "half",
                "that much is all that Schapire et al. guarantee",
                "it stops at γ̄/2",
                law.limit / 2,
            ),
            (
                "l2_separator",
                "it is what gradient descent on the same loss finds",
                "it finds the ℓ2 separator",
                law.limit.copy(data=np.reshape(euclidean, law.limit.shape)),
            ),
            (
                "best_stump",
                "it is where boosting starts",
                "it keeps the best stump's edge",
                law.limit.copy(data=np.reshape(alone, law.limit.shape)),
            ),
        )
        every = xarray.DataArray(np.ones(len(self.shrinkages) - 1), dims="small")
        return [
            kit.rival(label, why, id=id, limit=limit, growth=limit * every)
            for id, why, label, limit in limits
        ]

    def controls(self, seen):
        turned = lambda array: (array.dims, array.values[::-1])
        yield kit.control(
            "the exact step in place of small ones",
            "its edges stay near twice γ̄",
            growth=seen.exact_growth,
            edge=seen.exact_edge,
        )
        yield kit.control(
            f"after a part of 1/{EARLY} of the steps",
            "margins have not come near γ̄ yet",
            id="early",
            end=seen.early_end,
            growth=seen.early_growth,
            edge=seen.early_edge,
        )
        yield kit.control(
            "on the matrix of eight small steps in place of the exact one, and the other way round",
            "small steps take all classifiers, and no cycle of three",
            id="small_on_eight",
            cycle_edge=turned(seen.cycle_edge),
            cycle_margin=turned(seen.cycle_margin),
        )

    def figure(self, law, seen, rivals):
        steps = self.marks
        ends = (steps[0], steps[-1])
        shades = np.linspace(0, 1, len(self.shrinkages))
        margins = law.limit.values[:, 0]  # the first subset of each set
        of_sets = zip(SETS, margins, law.due.values[:, 0], seen.margin.values[:, 0], strict=True)
        lines = lambda paths: [
            kit.observed_curve(steps, path, f"ν = {nu:g}", shade=shade)
            for path, nu, shade in zip(paths, self.shrinkages, shades, strict=True)
        ]
        panels = [
            kit.panel(
                f"{name.capitalize()}: γ̄ = {margin:.3f}",
                "step",
                "margin / γ̄",
                *lines(paths / margin),
                kit.predicted_curve((due, ends[1]), (0.25, 0.25), "γ̄/4 from 8 ln n/γ̄² on"),
                kit.predicted_curve(ends, (1, 1), "γ̄"),
                kit.rival_curve(ends, (0.5, 0.5), "γ̄/2"),
                kit.context_curve(ends, (0, 0)),
                log="x",
                ylim=(-1, 1.1),
            )
            for name, margin, due, paths in of_sets
        ]
        limit = float(law.cycle_limit)
        cycle = float(law.cycle_margin)
        edges = np.concatenate([seen.exact_edge.values[..., None], seen.edge.values], -1)
        relative = (edges / law.limit.values[..., None]).reshape(-1, len(self.shrinkages))
        fine = np.linspace(0.01, 1, 60)
        middle = float(np.median(law.limit))
        yield from panels
        yield kit.panel(
            "The exact step can cycle",
            "step",
            "margin",
            *lines(seen.cycle_margin.values),
            kit.predicted_curve(ends, (limit, limit), "γ̄ = 3/8"),
            kit.predicted_curve(ends, (cycle, cycle), "1/3"),
            log="x",
            ylim=(0.2, 0.4),
        )
        yield kit.panel(
            "Edges fall to γ̄ with the step",
            "ν",
            "late mean edge / γ̄",
            kit.observed_curve(self.shrinkages, relative, kind="points"),
            kit.predicted_curve(fine, _edge(np.full(60, middle), fine) / middle, "fall γ̄ a unit"),
            kit.rival_curve(fine, 1 / (1 - fine / 4), "1/(1 − ν/4)"),
        )


def _fall(edge: Values, nu: Values) -> Values:
    """Return Υ_ν(γ), by how much log R falls for each unit that a step of edge γ adds to ‖w‖₁; the shape of both."""
    moved = nu * np.arctanh(edge)
    # R is multiplied by ½(1 + γ)e^(−να) + ½(1 − γ)e^(να) = cosh να − γ sinh να
    return -np.log(np.cosh(moved) - edge * np.sinh(moved)) / moved


def _edge(margin: Values, nu: Values) -> Values:
    """Return the edge γ at which Υ_ν(γ) is the margin, by bisection, which needs no more than that Υ_ν rises."""
    shape = np.broadcast_shapes(margin.shape, nu.shape)
    low = np.broadcast_to(margin, shape)
    high = np.full(shape, 1 - 1e-12)
    for _ in range(60):
        middle = (low + high) / 2
        below = _fall(middle, nu) < margin
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return (low + high) / 2


def _between(sums: list[Values], first: int, last: int) -> tuple[Values, Values]:
    """Return the fall of log R a unit of ‖w‖₁, and the mean edge, between two readings."""
    fall, norm, length, moved = (values[..., last] - values[..., first] for values in sums)
    return -fall / norm, moved / length


def _alike(stumps: list[Stumps]) -> Stumps:
    """Stack the stumps of several subsets, with the last repeated up to one number: of equal edges the first wins."""

    def filled(rows: tuple[Values, ...]) -> Values:
        longest = max(map(len, rows))
        widths = [(0, 0)] * (np.ndim(rows[0]) - 1)
        return np.stack(
            [np.pad(row, [(0, longest - len(row)), *widths], mode="edge") for row in rows]
        )

    return Stumps(*map(filled, zip(*stumps, strict=True)))


def _due(setting: Setting) -> Values:
    """Return the number of steps after which Telgarsky's bound speaks, one a subset."""
    margin = np.array([program.margin for program in setting.programs])
    return np.ceil(8 * np.log([len(y) for y in setting.labels]) / margin**2).astype(int)


def _euclidean(stumps: Stumps, y: Values) -> float:
    """Return the ℓ1 margin of the combination of stumps with the largest ℓ2 margin, by its n multipliers."""
    signed = y[:, None] * stumps.matrix()
    # the ℓ2 margin depends on examples by their Gram matrix alone, which VΛ^½ shares
    values, vectors = np.linalg.eigh(signed @ signed.T)
    q = hard_margin(vectors * np.sqrt(np.maximum(values, 0)), np.ones(len(y))).dual
    w = q @ signed
    return float((signed @ w).min() / np.abs(w).sum())
