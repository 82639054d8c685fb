"""All saddles of two-layer linear networks are strict, but with three layers or more some are flat.

This is judged at balanced critical points. With three layers or more, a start of size α leaves the flat saddle at the
origin after a time that is a power of 1/α. The balanced critical points of ½‖W_L⋯W_1 − Y‖² carry a set S of the
singular pairs of Y. All eigenvalues of the Hessians at these points are known. With two layers each point but the best
has a direction of negative curvature. With three layers or more the Hessian detects only a wrong order, that is, a pair
in S that is smaller than a pair outside S. The Hessian does not detect that S is too small, as at the origin. There the
risk falls only at order L, and a start of size α takes a time of order α^(2 − L), not log(1/α).
"""

from typing import Annotated, NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent._tables import padded
from steepest.claims.descent.linear_network_landscape.experiment import (
    DEEPEST,
    LinearNetworkPointOfDiagram,
    time_to_learn,
)
from steepest.landscapes import (
    LinearNetworkPoint,
    balanced_weights,
    linear_network_point,
    linear_network_points,
    linear_network_risk,
    mode_time,
    strict_saddles,
)
from steepest.nn.types import Values

STEPS = np.geomspace(0.01, 0.04, 6)  # lengths at which the fall from a saddle is measured
MIDDLES = 4  # critical points with the middle layer alone
UNBALANCED = 1.5  # factor of the first layer, and inverse factor of the last
AWAY = ("value", "lowest", "index", "spectrum")


class Setting(NamedTuple):
    """Critical points and starts that theory and experiment both see."""

    left: Values  # singular vectors of Y, (d, d)
    right: Values  # singular vectors of Y, (d, d)
    points: list[tuple[Values, ...]]  # layers of all critical points, for each depth
    falls: list[list[Values]]  # layers of the saddle on the first pair, and a direction, stacked
    middles: Values  # W_2 of critical points with W_1 = W_3 = 0, (MIDDLES, h, h)
    starts: Values  # orthogonal layers, (seeds, layers, d, d)


@kit.claim
class LinearNetworkLandscape(kit.Claim[Setting]):
    """A target of three different singular values, in random bases, and networks of three depths."""

    singular: tuple[kit.Positive, ...] = kit.param(
        (3.0, 1.0, 0.5),
        "singular values of Y, the largest first",
        scope=kit.choices(
            (3.0, 1.0, 0.5),
            (2.5, 0.8, 0.3),
            (4.0, 1.2, 0.7),
            (3.0, 0.9),
            why="a second one nearer to the first is learned with it, which bends the line of two layers",
        ),
    )
    depths: tuple[Annotated[int, kit.Within(2, DEEPEST)], ...] = kit.param(
        (2, 3, 4), "layers L", unit="layers", scope=kit.choices((2, 3, 4), (2, 3), (2, 3, 5))
    )
    hidden: tuple[kit.Count, ...] = kit.param(
        (4, 3, 2),
        "width of all hidden layers, for each depth: wider than Y, as wide, and narrower",
        unit="neurons",
        scope=kit.choices((4, 3, 2), (5, 4, 3), (4,), (3, 2, 4)),
    )
    sizes: tuple[kit.Positive, ...] = kit.param(
        (0.03, 0.01, 0.003, 0.001),
        "α, size of the starts that leave the origin, decreasing",
        scope=kit.choices(
            (0.03, 0.01, 0.003, 0.001), (0.02, 0.005, 0.001), why="the law is for small starts"
        ),
    )
    share: kit.Fraction = kit.param(
        0.5, "share of the first mode that must be learned", scope=kit.between(0.4, 0.6)
    )
    seeds: kit.Seeds = kit.param(5, "random orthogonal starts")

    kind = "theorem"
    says = {
        "All saddles of two-layer linear networks are strict, but with three layers or more some are flat": (
            "lowest_curvature",
            "index",
        ),
        "leaves the flat saddle at the origin after a time that is a power of 1/α": (
            "mode_time",
            "power",
        ),
    }
    tiny = {"sizes": (0.1, 0.05, 0.03), "seeds": 3}
    full = {"seeds": 30, "sizes": (0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)}
    out_of_scope = {"sizes": (2.0, 1.5, 1.4)}
    point = LinearNetworkPointOfDiagram

    @property
    def widths(self) -> tuple[int, ...]:
        """Return the hidden width for each depth; the last one given serves all depths that follow."""
        return tuple(self.hidden[min(i, len(self.hidden) - 1)] for i in range(len(self.depths)))

    @property
    def middle(self) -> int:
        """Return which network has three layers, or −1."""
        return self.depths.index(3) if 3 in self.depths else -1

    @property
    def deep(self) -> tuple[int, ...]:
        """Return the depths of three layers and more."""
        return tuple(depth for depth in self.depths if depth > 2)

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
            "deep": self.deep,
            "step": tuple(STEPS),
            "scale": self.sizes,
            "from_scale": self.sizes[:-1],
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        d = len(self.singular)
        orthogonal = lambda *shape: np.linalg.qr(rng.normal(size=shape))[0]
        left, right = orthogonal(2, d, d)
        points = []
        falls = []
        for i, (depth, hidden) in enumerate(zip(self.depths, self.widths, strict=True)):
            turns = orthogonal(depth - 1, hidden, hidden)
            turned = lambda layers, turns=turns: _turn(layers, left, right, turns)
            layers = [
                turned(balanced_weights(self.singular, chosen, depth, hidden))
                for network, chosen in self.sets()
                if network == i
            ]
            points.append(tuple(np.stack(layer) for layer in zip(*layers, strict=True)))
            saddle = balanced_weights(self.singular, (0,), depth, hidden)
            # hidden neuron 1 carries the second pair: first from input 1, last to output 1
            direction = [np.zeros_like(layer) for layer in saddle]
            for move in direction:
                move[1, 1] = 1
            pairs = zip(turned(saddle), turned(direction), strict=True)
            falls.append([np.stack(pair) for pair in pairs])
        width = self.widths[self.middle] if self.middle >= 0 else d
        return Setting(
            left,
            right,
            points,
            falls,
            rng.normal(size=(MIDDLES, width, width)),
            orthogonal(self.seeds, max(self.depths), d, d),
        )

    def hypotheses(self, setting):
        gaps = -np.diff(self.singular)
        ends = [(self.share * self.singular[0]) ** (1 / depth) for depth in self.depths]
        yield kit.assume(
            "smallest gap between singular values",
            gaps.min(initial=np.inf),
            ">",
            0,
            "give them largest first; equal ones make more critical points",
        )
        yield kit.assume("singular values", len(self.singular), ">=", 2)
        yield kit.assume(
            "largest start α, relative to what is learned",
            max(self.sizes) / min(ends),
            "<=",
            0.1,
            "choose smaller --sizes: the law is for small starts",
        )
        yield kit.assume("narrowest hidden layer", min(self.hidden), ">=", 2)
        yield kit.assume("networks of two layers", self.depths.count(2), "==", 1)
        yield kit.assume("networks of three layers", self.depths.count(3), "==", 1)
        yield kit.assume("sizes of starts", len(self.sizes), ">=", 3, "a shape is judged over them")

    def predict(self, setting):
        points = self.all_points(self.depths)
        norms = np.linalg.norm(setting.middles, 2, axis=(1, 2))
        first = self.singular[0]
        sizes = np.array(self.sizes)
        times = [[mode_time(a, first, depth, self.share) for a in sizes] for depth in self.depths]
        smaller = sizes[:-1] / sizes[1:]
        return kit.law(
            value=("point", [point.value for point in points]),
            lowest=("point", [point.lowest for point in points]),
            index=("point", [float(point.index) for point in points]),
            # longer ones than any are filled with zeros
            spectrum=("point eigenvalue", padded([p.eigenvalues for p in points], fill=0.0)),
            # where W_1 = W_3 = 0 all of second order is −⟨Y, Δ₃W₂Δ₁⟩
            middle_lowest=("middle", -first * norms),
            # ½s² − ½(s − t^L)² along the missing mode, to first order in t^L
            fall=("depth step", [self.singular[1] * STEPS**depth for depth in self.depths]),
            time=("depth scale", times),
            # from one size of the start to the next
            # times go like log(1/α)/s_1 with two layers, and like α^(2 − L) with more
            added=("from_scale", np.log(smaller) / first),
            growth=("deep from_scale", [smaller ** (depth - 2) for depth in self.deep]),
        )

    def all_points(self, depths: tuple[int, ...]) -> list[LinearNetworkPoint]:
        """Return what theory says of the critical points of all networks, as if they had these depths."""
        return [
            linear_network_point(self.singular, chosen, depths[i], self.widths[i])
            for i, chosen in self.sets()
        ]

    def observe(self, setting, key):
        target = setting.left * np.array(self.singular) @ setting.right.T
        risk = linear_network_risk(target)
        certificates = []
        unbalanced = []
        middles = []
        for i, points in enumerate(setting.points):
            count = len(points[0])
            shifted = (UNBALANCED * points[0], *points[1:-1], points[-1] / UNBALANCED)
            groups = [points, shifted]
            if i == self.middle:
                zeros = [np.zeros((MIDDLES, *points[at].shape[1:])) for at in (0, 2)]
                groups.append((zeros[0], setting.middles, zeros[1]))
            together = tuple(np.concatenate(layer) for layer in zip(*groups, strict=True))
            of_network = strict_saddles(risk, together)
            certificates += of_network[:count]
            unbalanced += of_network[count : 2 * count]
            middles += of_network[2 * count :]
        spectra = lambda points: padded([point.eigenvalues for point in points], fill=0.0)
        times, arrived = self.times(setting)
        return kit.seen(
            value=("point", [point.value for point in certificates]),
            gradient=("point", [point.gradient for point in certificates]),
            lowest=("point", [point.lowest for point in certificates]),
            index=("point", [float(point.index) for point in certificates]),
            spectrum=("point eigenvalue", spectra(certificates)),
            unbalanced_lowest=("point", [point.lowest for point in unbalanced]),
            unbalanced_index=("point", [float(point.index) for point in unbalanced]),
            unbalanced_spectrum=("point eigenvalue", spectra(unbalanced)),
            middle_lowest=("middle", [point.lowest for point in middles]),
            middle_gradient=("middle", [point.gradient for point in middles]),
            fall=("depth step", [_fall(target, layers) for layers in setting.falls]),
            mode_time=("depth scale", times[..., 0]),
            time=("depth scale start", times[..., 1:]),
            arrived=("depth scale every", arrived),
        )

    def times(self, setting: Setting) -> tuple[Values, Values]:
        """Return when the first mode is learned, and whether it was: ``(depths, scales, 1 + seeds)`` each.

        The start on the first mode alone comes before the random ones.
        """
        d = len(self.singular)
        layers = max(self.depths)
        alone = np.zeros((1, layers, d, d))
        alone[..., 0, 0] = 1
        shapes = np.concatenate([alone, setting.starts])
        grid = (len(self.depths), len(self.sizes), len(shapes))
        scaled = np.array(self.sizes)[:, None, None, None, None] * shapes
        starts = np.broadcast_to(scaled, (*grid, layers, d, d)).reshape(-1, layers, d, d)
        depths = np.broadcast_to(np.array(self.depths)[:, None, None], grid).ravel()
        # in the singular vectors of Y, which changes no time
        target = np.diag(self.singular)
        one = lambda case: time_to_learn(case[0], case[1], target, self.share)
        every = kit.compiled(lambda starts, depths: jax.lax.map(one, (starts, depths)))
        times, arrived = every(starts, depths)
        return np.asarray(times).reshape(grid), np.asarray(arrived).reshape(grid)

    def run_conditions(self, observed):
        slopes = np.concatenate([observed["gradient"], observed["middle_gradient"]])
        yield kit.assume("‖∇f‖ at the constructed points", slopes.max(), "<", 1e-12)
        yield kit.assume("share of flows that arrived", observed["arrived"].mean(), "==", 1)

    def derive(self, law, seen):
        """Return deviations at the points, and how times grow from one size of the start to the next."""
        two = seen.time.sel(depth=2, drop=True)
        deep = seen.time.sel(depth=list(self.deep)).rename(depth="deep")
        next_size = lambda times: times.isel(scale=slice(1, None)).drop_vars("scale")
        this_size = lambda times: times.isel(scale=slice(None, -1)).drop_vars("scale")
        of_sizes = lambda pairs: pairs.rename(scale="from_scale").assign_coords(
            from_scale=list(self.sizes[:-1])
        )
        return {
            **{f"{name}_off": abs(seen[name] - law[name]) for name in AWAY},
            "unbalanced_index_off": abs(seen.unbalanced_index - law["index"]),
            "added": of_sizes(next_size(two) - this_size(two)),
            "growth": of_sizes(next_size(deep) / this_size(deep)),
        }

    def judge(self, law, seen):
        yield kit.agrees("value", seen.value_off, 1e-10, label="f at all balanced critical points")
        yield kit.agrees("lowest_curvature", seen.lowest_off, 1e-10, label="lowest curvature there")
        yield kit.agrees("index", seen.index_off, 0.0, label="number of directions that lead down")
        yield kit.agrees(
            "unbalanced_index",
            seen.unbalanced_index_off,
            0.0,
            label=f"the same where the first layer is {UNBALANCED:g} times as large",
        )
        yield kit.agrees(
            "spectrum", seen.spectrum_off, 1e-10, label="all eigenvalues of the Hessian"
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
        yield kit.follows(
            "mode_time",
            law.time,
            seen.mode_time,
            1e-4,  # the flow's tolerance is 1e-6 a step
            label="time to learn one mode",
        )
        yield kit.follows(
            "two_layers",
            law.added,
            seen.added,
            # of the second mode, α^(2 − 2s_2/s_1) is left: 0.9 % at α = 0.03
            0.02,
            label="time that a smaller start adds, two layers",
        )
        yield kit.follows(
            "power",
            law.growth,
            seen.growth,
            # the next order, with three layers, is α, a few times
            0.05,
            label="factor of the time for a smaller start, three layers or more",
        )

    def rivals(self, setting, law):
        yield from self.rivals_of_points(law)
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
            "the size of W_2 alone should not matter to the product, which is zero",
            middle_lowest=0 * law.middle_lowest - self.singular[0],
        )
        yield from self.rivals_of_times(law)

    def rivals_of_points(self, law):
        """Return wrong theories of the balanced critical points."""
        points = self.all_points(self.depths)
        twos = self.all_points(tuple(2 for _ in self.depths))
        levels = np.array(self.singular)
        omitted = [np.delete(levels, point.chosen) for point in points]
        network = np.array([i for i, _ in self.sets()])
        least = np.array([law.value.values[network == i].min() for i in network])
        top = np.array([left_out.max(initial=0) for left_out in omitted])
        bare = padded(
            [
                _without_factor(point.eigenvalues, levels, point.chosen, self.depths[i])
                for point, i in zip(points, network, strict=True)
            ],
            fill=0.0,
        )
        yield kit.rival(
            "f = ½(Σ_{i∉S} s_i)²",
            "the omitted part as one number",
            value=("point", [left_out.sum() ** 2 / 2 for left_out in omitted]),
        )
        yield kit.rival(
            "λ_min = −max s_v at every saddle",
            "right for two layers with an unused neuron",
            lowest=("point", np.where(law.value == least, 0, -top)),
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

    def rivals_of_times(self, law):
        """Return wrong theories of the time in which descent leaves the origin."""
        first = self.singular[0]
        depth = law.depth
        logs = np.log(1 / np.array(self.sizes))
        leading = law.scale ** (2.0 - depth) / (np.maximum(depth - 2, 1) * first)
        late = np.log(1 / law.scale) / first + 0 * depth
        yield kit.rival(
            "log(1/α)/s at every depth",
            "as from every strict saddle",
            time=late,
            growth=("from_scale", logs[1:] / logs[:-1]),
        )
        yield kit.rival(
            "α^(1 − L)/((L − 1)s), and log(1/α)/2s for two layers",
            "the gradient at the origin is of order α^(L − 1)",
            id="another_power",
            time=law.scale ** (1.0 - depth) / ((depth - 1) * first),
            growth=law.growth ** ((law.deep - 1) / (law.deep - 2)),
            added=law.added / 2,
        )
        yield kit.rival(
            "α^(2 − L)/((L − 2)s), or log(1/α)/s, without the rest",
            "the limit of small starts alone",
            id="leading_term",
            time=xarray.where(depth == 2, late, leading),
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
            "random layers in place of the first mode alone",
            "they start on all modes",
            mode_time=seen.time.isel(start=0),
        )
        yield kit.control(
            "two layers for three or more, and the deepest for two",
            "the power is that of the depth",
            id="depths_exchanged",
            time=(seen.time.dims, seen.time.values[::-1]),
            fall=(seen.fall.dims, seen.fall.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        network = np.array([i for i, _ in self.sets()])
        levels = np.unique(np.round(law.value.values, 9))
        lowest = []
        starts = []
        shades = np.linspace(0, 0.8, len(self.depths))  # as in the other panels
        for i, depth in enumerate(self.depths):
            of_depth = np.flatnonzero(network == i)
            place = np.searchsorted(levels, law.value.values[of_depth] - 1e-9)
            order = np.argsort(place)
            of_depth = of_depth[order]
            place = place[order]
            points = kit.observed_curve(
                place, seen.lowest[of_depth], f"{depth} layers", kind="points", shade=shades[i]
            )
            lowest += [
                points,
                kit.predicted_curve(place, law.lowest[of_depth], "" if i else "theory"),
            ]
            label = "" if i else "random starts"
            times = seen.time[i].transpose("start", "scale")
            starts.append(kit.observed_curve(self.sizes, times, label, shade=shades[i]))
        yield kit.panel(
            "With three layers or more, some saddles have no negative curvature",
            "critical points, best first",
            "lowest eigenvalue of the Hessian",
            *lowest,
        )
        yield kit.curves(
            "Along the missing mode f falls in order L",
            law.fall,
            seen.fall,
            over="step",
            by="depth",
            name="{} layers",
            x="t, length of the move",
            y="fall of f",
            log="xy",
        )
        yield kit.curves(
            "A flat saddle is left after a power of 1/α",
            law.time,
            seen.mode_time,
            over="scale",
            by="depth",
            name="one mode, {} layers",
            x="α, size of the start",
            y="time",
            more=tuple(starts),
            log="xy",
        )


def _turn(
    layers: tuple[Values, ...] | list[Values], left: Values, right: Values, turns: Values
) -> list[Values]:
    """Return the layers in other bases: of the input, of each hidden layer and of the output."""
    after = [*turns, left]
    before = [right, *turns]
    return [a @ layer @ b.T for a, layer, b in zip(after, layers, before, strict=True)]


def _fall(target: Values, layers: list[Values]) -> Values:
    """Return f at a saddle minus f a length t further along a direction, for each t of STEPS."""

    def value(step: float) -> float:
        product = np.eye(len(target))
        for saddle, direction in layers:
            product = (saddle + step * direction) @ product
        return ((product - target) ** 2).sum() / 2

    return np.array([value(0.0) - value(step) for step in STEPS])


def _without_factor(
    spectrum: Values, levels: Values, chosen: tuple[int, ...], depth: int
) -> Values:
    """Return a spectrum with s_u ± s_v for each s_u^(1 − 2/L) (s_u ± s_v)."""
    changed = spectrum.copy()
    for first in levels[list(chosen)]:
        for other in np.delete(levels, chosen):
            for pair in (first + other, first - other):
                at = int(np.argmin(np.abs(spectrum - first ** (1 - 2 / depth) * pair)))
                changed[at] = pair
    return np.sort(changed)
