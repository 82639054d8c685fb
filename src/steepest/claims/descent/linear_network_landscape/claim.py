"""All saddles of two-layer linear networks are strict, but with three layers or more some are flat.

This is judged at balanced critical points. The balanced critical points of ½‖W_L⋯W_1 − Y‖² carry a set S of the
singular pairs of Y. All eigenvalues of the Hessians at these points are known. With two layers each point but the best
has a direction of negative curvature. With three layers or more the Hessian detects only a wrong order, that is, a pair
in S that is smaller than a pair outside S. The Hessian does not detect that S is too small, as at the origin. There the
risk falls only at order L.
"""

from typing import Annotated, NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.descent._tables import padded
from steepest.claims.descent.linear_network_landscape.experiment import (
    STEPS,
    UNBALANCED,
    certificates,
    fall,
    orthogonal,
    turned_points,
)
from steepest.claims.descent.linear_network_landscape.theory import without_factor
from steepest.landscapes import LinearNetworkPoint, linear_network_point, linear_network_points
from steepest.nn.types import Values

MIDDLES = 4  # critical points of which only the middle layer is not zero


class Setting(NamedTuple):
    """Critical points that theory and experiment both see."""

    left: Values  # singular vectors of Y, (d, d)
    right: Values  # singular vectors of Y, (d, d)
    points: tuple[tuple[Values, ...], ...]  # layers of all critical points, for each depth
    falls: tuple[
        list[Values], ...
    ]  # layers of the saddle on the first pair, and a direction, stacked
    middles: Values  # W_2 of critical points with W_1 = W_3 = 0, (MIDDLES, h, h)


@kit.claim
class LinearNetworkLandscape(kit.Claim[Setting]):
    """A target of three different singular values, in random bases, and networks of three depths."""

    singular: tuple[kit.Positive, ...] = kit.param(
        (3.0, 1.0, 0.5),
        "singular values of Y, the largest first",
        scope=kit.choices((3.0, 1.0, 0.5), (2.5, 0.8, 0.3), (4.0, 1.2, 0.7), (3.0, 0.9)),
    )
    depths: tuple[Annotated[int, kit.Within(2, 6)], ...] = kit.param(
        (2, 3, 4), "layers L", unit="layers", scope=kit.choices((2, 3, 4), (2, 3), (2, 3, 5))
    )
    hidden: tuple[kit.Count, ...] = kit.param(
        (4, 3, 2),
        "width of all hidden layers, for each depth: wider than Y, as wide, and narrower",
        unit="neurons",
        scope=kit.choices((4, 3, 2), (5, 4, 3), (4,), (3, 2, 4)),
    )

    kind = "theorem"
    says = {
        "All saddles of two-layer linear networks are strict": ("lowest_curvature", "index"),
        "with three layers or more some are flat": ("lowest_curvature", "index"),
    }
    tiny = {"depths": (2, 3), "hidden": (3,)}
    out_of_scope = {"singular": (1.0, 1.0, 0.5)}

    @property
    def widths(self) -> tuple[int, ...]:
        """Return the hidden width for each depth; the last one given serves all depths that follow."""
        return tuple(self.hidden[min(i, len(self.hidden) - 1)] for i in range(len(self.depths)))

    def sets(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return which network, and which set S, each of the critical points belongs to."""
        return [
            (i, point.chosen)
            for i, (depth, hidden) in enumerate(zip(self.depths, self.widths, strict=True))
            for point in linear_network_points(self.singular, depth, hidden)
        ]

    def axes(self):
        names = [
            f"L = {self.depths[i]}, S = {{{' '.join(str(u + 1) for u in chosen)}}}"
            for i, chosen in self.sets()
        ]
        weights = [
            2 * len(self.singular) * hidden + (depth - 2) * hidden**2
            for depth, hidden in zip(self.depths, self.widths, strict=True)
        ]
        return {
            "point": tuple(names),
            "eigenvalue": tuple(range(max(weights))),
            "middle": tuple(range(MIDDLES)),
            "depth": self.depths,
            "step": tuple(STEPS),
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        d = len(self.singular)
        left, right = orthogonal(rng, 2, d, d)
        networks = [
            turned_points(self.singular, depth, hidden, left, right, rng)
            for depth, hidden in zip(self.depths, self.widths, strict=True)
        ]
        points, falls = zip(*networks, strict=True)
        of_three = dict(zip(self.depths, self.widths, strict=True)).get(3, d)
        middles = rng.normal(size=(MIDDLES, of_three, of_three))
        return Setting(left, right, points, falls, middles)

    def hypotheses(self, setting):
        gaps = -np.diff(self.singular)
        yield kit.assume(
            "smallest gap between singular values",
            gaps.min(initial=np.inf),
            ">",
            0,
            "give them largest first; equal ones make more critical points",
        )
        yield kit.assume("singular values", len(self.singular), ">=", 2)
        yield kit.assume("narrowest hidden layer", min(self.hidden), ">=", 2)
        yield kit.assume("networks of two layers", self.depths.count(2), "==", 1)
        yield kit.assume("networks of three layers", self.depths.count(3), "==", 1)

    def predict(self, setting):
        points = self.all_points(self.depths)
        norms = np.linalg.norm(setting.middles, 2, axis=(1, 2))
        first = self.singular[0]
        return kit.law(
            lowest=("point", [point.lowest for point in points]),
            index=("point", [float(point.index) for point in points]),
            # longer ones than any are filled with zeros
            spectrum=("point eigenvalue", padded([p.eigenvalues for p in points], fill=0.0)),
            # where W_1 = W_3 = 0 all of second order is −⟨Y, Δ₃W₂Δ₁⟩
            middle_lowest=("middle", -first * norms),
            # ½s² − ½(s − t^L)² along the missing mode, to first order in t^L
            fall=("depth step", [self.singular[1] * STEPS**depth for depth in self.depths]),
        )

    def all_points(self, depths: tuple[int, ...]) -> list[LinearNetworkPoint]:
        """Return what theory says of the critical points of all networks, as if they had these depths."""
        return [
            linear_network_point(self.singular, chosen, depths[i], self.widths[i])
            for i, chosen in self.sets()
        ]

    def observe(self, setting, key):
        target = setting.left * np.array(self.singular) @ setting.right.T
        balanced, unbalanced, middles = certificates(target, setting.points, setting.middles)
        spectra = lambda points: padded([point.eigenvalues for point in points], fill=0.0)
        return kit.seen(
            gradient=("point", [point.gradient for point in balanced]),
            lowest=("point", [point.lowest for point in balanced]),
            index=("point", [float(point.index) for point in balanced]),
            spectrum=("point eigenvalue", spectra(balanced)),
            unbalanced_lowest=("point", [point.lowest for point in unbalanced]),
            unbalanced_index=("point", [float(point.index) for point in unbalanced]),
            unbalanced_spectrum=("point eigenvalue", spectra(unbalanced)),
            middle_lowest=("middle", [point.lowest for point in middles]),
            middle_gradient=("middle", [point.gradient for point in middles]),
            fall=("depth step", [fall(target, layers) for layers in setting.falls]),
        )

    def run_conditions(self, observed):
        slopes = np.concatenate([observed["gradient"], observed["middle_gradient"]])
        yield kit.assume("‖∇f‖ at the constructed points", slopes.max(), "<", 1e-12)

    def judge(self, law, seen):
        off = lambda name, of_law: abs(seen[name] - law[of_law])
        yield kit.agrees(
            "lowest_curvature", off("lowest", "lowest"), 1e-10, label="lowest curvature there"
        )
        yield kit.agrees(
            "index", off("index", "index"), 0.0, label="number of directions that lead down"
        )
        yield kit.agrees(
            "unbalanced_index",
            off("unbalanced_index", "index"),
            0.0,
            label=f"the same where the first layer is {UNBALANCED:g} times as large",
        )
        yield kit.agrees(
            "spectrum", off("spectrum", "spectrum"), 1e-10, label="all eigenvalues of the Hessian"
        )
        yield kit.follows(
            "middle",
            law.middle_lowest,
            seen.middle_lowest,
            1e-10,
            label="lowest curvature where W_1 = W_3 = 0",
        )
        yield kit.follows(
            "fall",
            law.fall,
            seen.fall,
            # the next order is t^(2L)/2
            1.1 * STEPS[-1] ** 2 / (2 * self.singular[1]),
            label="fall of f along the missing mode",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "f falls in second order",
            "a saddle has negative curvature",
            fall=law.fall.sel(depth=2, drop=True) + 0 * law.fall,
        )
        yield kit.rival(
            "f falls in order 2L",
            "the product is of order t^L, and f is a square",
            fall=law.fall**2,
        )
        yield kit.rival(
            "λ_min = −s_1 whatever W_2",
            "the product is zero whatever the size of W_2 is",
            middle_lowest=0 * law.middle_lowest - self.singular[0],
        )
        points = self.all_points(self.depths)
        twos = self.all_points(tuple(2 for _ in self.depths))
        levels = np.array(self.singular)
        network = [i for i, _ in self.sets()]
        omitted = [np.delete(levels, point.chosen).max(initial=0) for point in points]
        values = np.array([point.value for point in points])
        least = [values[np.equal(network, i)].min() for i in network]
        bare = padded(
            [
                without_factor(point.eigenvalues, levels, point.chosen, self.depths[i])
                for point, i in zip(points, network, strict=True)
            ],
            fill=0.0,
        )
        yield kit.rival(
            "λ_min = −max s_v at every saddle",
            "right for two layers with an unused neuron",
            lowest=("point", np.where(values == least, 0, np.negative(omitted))),
        )
        yield kit.rival(
            "the index of two layers at every depth",
            "as if depth changed the path and not the landscape",
            index=("point", [float(point.index) for point in twos]),
        )
        yield kit.rival(
            "λ_min = s_u − s_v at every depth, without s_u^(1 − 2/L)",
            "right for s_u = 1 and for two layers",
            id="bare_gaps",
            lowest=("point", np.min(bare, 1)),
            spectrum=("point eigenvalue", bare),
        )

    def controls(self, seen):
        place = {key: at for at, key in enumerate(self.sets())}
        following = lambda i: (*range(i + 1, len(self.depths)), *range(i))
        # a narrow network does not have all sets
        swapped = [
            next((place[j, chosen] for j in following(i) if (j, chosen) in place), place[i, chosen])
            for i, chosen in place
        ]
        yield kit.control(
            "networks of another depth, on the same pairs",
            "depth decides which saddles are strict",
            lowest=("point", seen.lowest.values[swapped]),
            index=("point", seen["index"].values[swapped]),
            unbalanced_index=("point", seen.unbalanced_index.values[swapped]),
            spectrum=("point eigenvalue", seen.spectrum.values[swapped]),
        )
        yield kit.control(
            f"first layer {UNBALANCED:g} times as large, last layer as much smaller",
            "balance sets the size of the eigenvalues",
            id="unbalanced",
            lowest=seen.unbalanced_lowest,
            spectrum=seen.unbalanced_spectrum,
        )
        yield kit.control(
            "two layers for three or more, and the deepest for two",
            "the power depends on the depth",
            id="depths_exchanged",
            fall=(seen.fall.dims, seen.fall.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        network = np.array([i for i, _ in self.sets()])
        # f at the points, by which they are ordered
        values = np.round([point.value for point in self.all_points(self.depths)], 9)
        curves = []
        for i, depth in enumerate(self.depths):
            of_depth = np.flatnonzero(network == i)
            of_depth = of_depth[np.argsort(values[of_depth], kind="stable")]
            place = np.searchsorted(np.unique(values), values[of_depth])
            shade = 0.8 * i / max(len(self.depths) - 1, 1)
            measured = seen.lowest[of_depth]
            curves += [
                kit.observed_curve(place, measured, f"{depth} layers", kind="points", shade=shade),
                kit.predicted_curve(place, law.lowest[of_depth], "" if i else "theory"),
            ]
        yield kit.panel(
            "With three layers or more, some saddles have no negative curvature",
            "critical points, best first",
            "lowest eigenvalue of the Hessian",
            *curves,
        )
