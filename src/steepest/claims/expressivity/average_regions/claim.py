"""A random ReLU network cuts the plane into as many regions on average as N random lines do.

N is the number of neurons. The lines are the borders of the neurons in the same network, with every ReLU gate replaced
by a fair coin. This holds at every width and depth: there are about N²/2 regions in all of the plane, never a number
exponential in the depth. In a disc of fixed size, deeper networks of as many neurons have fewer regions. If the network
is wide, the region that contains the origin is Crofton's cell, with π²/2 sides on average.
"""

from typing import Annotated, NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity._random_networks import SEED_OF_THEORY, random_network
from steepest.claims.expressivity.average_regions.experiment import (
    AverageRegionsPoint,
    cell_sides,
    counts,
    counts_in_plane,
    disc,
    euler_defect,
    even_widths,
    origin_jets,
    unbounded_ends,
)
from steepest.geometry import Layer, planar_regions
from steepest.kernels import (
    disc_regions,
    finite_crossings,
    origin_cell_vertices,
    plane_regions,
    random_hyperplane_scales,
    triangle_regions,
    wide_disc_regions,
)
from steepest.nn.data import digits
from steepest.nn.types import Values

DIGIT_WIDTHS = (8, 8)
DIGIT_C_B = 0.1
DEEP_CELL = (32, 32, 32, 32)
CERTIFIED = 20  # networks of each depth on which Euler's formula is checked
SOLID = 150  # planes in three dimensions
SIDED = 3.0  # mean of the weights of a changed world, in standard deviations
CELLS = ("one layer", "four layers", "three dimensions")
END_WIDTHS = (1, 2, 4)  # of networks whose borders' ends are counted
END_LAYERS = (2, 3)  # in which; borders of the first layer are lines


class Networks(NamedTuple):
    """Networks whose weights have one law."""

    disc: list[list[list[Layer]]]  # by depth
    plane: list[list[Layer]]
    digits: list[list[Layer]]  # one a triangle
    ends: list[list[list[Layer]]]  # by width


class Setting(NamedTuple):
    """All networks, and the networks of a changed world."""

    own: Networks
    sided: Networks  # with weights of a mean
    triangles: Values  # of images of different digits, (triangles, 3, 64)


@kit.claim
class AverageRegions(kit.Claim[Setting]):
    """The same number of neurons in one, two and four layers; narrow networks in all of R²; three digits' planes."""

    neurons: kit.Count = kit.param(
        24, "N, of each network in the disc", unit="neurons", scope=kit.between(20, 32)
    )
    depths: tuple[Annotated[int, kit.Within(1, 64)], ...] = kit.param(
        (1, 2, 4),
        "layers that they are divided among",
        unit="layers",
        scope=kit.choices(
            (1, 2, 4),
            (1, 4),
            why="from two to four counts change too little, and three layers hardly "
            "tell lines of the scales s_l apart",
        ),
    )
    c_w: kit.Positive = kit.param(
        2.0,
        "variance of the weights times their fan-in",
        scope=kit.between(1.6, 2.4, "of other scales deep networks scatter more"),
    )
    c_b: kit.NonNegative = kit.param(1.0, "variance of the biases", scope=kit.between(0.5, 1.5))
    radius: kit.Positive = kit.param(
        1.0, "radius of the disc", unit="length", scope=kit.between(0.7, 1.4)
    )
    networks: kit.Seeds = kit.param(450, "networks of each depth")
    narrow: kit.Count = kit.param(
        2,
        "width of the three layers whose regions in all of R² are counted",
        unit="neurons",
        scope=kit.between(2, 3),
    )
    lines: Annotated[int, kit.Within(20)] = kit.param(
        100,
        "neurons of the shallow network around the origin",
        unit="neurons",
        scope=kit.between(60, 120),
    )
    cells: kit.Seeds = kit.param(4000, "cells of the origin, of each kind")
    triangles: kit.Seeds = kit.param(
        500, "triangles of images of three digits, each with a network of its own"
    )
    samples: Annotated[int, kit.Within(100)] = kit.param(
        12_000, "coin networks over which theory averages: a standard error of 0.6 %"
    )
    borders: kit.Seeds = kit.param(2000, "networks of each width whose borders' ends are counted")
    shift: kit.NonNegative = kit.param(0.0, "mean of the weights, in standard deviations")

    kind = "theorem"
    says = {
        "as many regions on average as N random lines do": ("disc", "plane", "digits"),
        "deeper networks of as many neurons have fewer regions": "disc",
    }
    tiny = {
        "neurons": 8,
        "networks": 20,
        "cells": 20,
        "lines": 30,
        "triangles": 12,
        "samples": 500,
        "borders": 20,
    }
    full = {"networks": 2000, "cells": 5000, "triangles": 1500}
    out_of_scope = {"shift": 1.0}
    point = AverageRegionsPoint

    @property
    def layouts(self) -> list[tuple[int, ...]]:
        """Return hidden widths of each depth."""
        return [even_widths(self.neurons, depth) for depth in self.depths]

    @property
    def narrow_widths(self) -> tuple[int, ...]:
        """Return hidden widths of the networks on all of R²."""
        return (self.narrow,) * 3

    def axes(self):
        return {
            "depth": self.depths,
            "cell": CELLS,
            "end_width": END_WIDTHS,
            "end_layer": END_LAYERS,
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)

        def draw(shift: float) -> Networks:
            one = lambda widths, c_b: random_network(rng, widths, self.c_w, c_b, shift=shift)
            many = lambda number, widths, c_b: [one(widths, c_b) for _ in range(number)]
            return Networks(
                [many(self.networks, (2, *widths), self.c_b) for widths in self.layouts],
                many(self.networks, (2, *self.narrow_widths), self.c_b),
                many(self.triangles, (64, *DIGIT_WIDTHS), DIGIT_C_B),
                [many(self.borders, (2, n, n, n), self.c_b) for n in END_WIDTHS],
            )

        return Setting(draw(self.shift), draw(SIDED), _triangles(rng, self.triangles))

    def hypotheses(self, setting):
        yield kit.assume("mean of the weights", self.shift, "==", 0, "their law must be symmetric")
        yield kit.assume("variance of the biases", self.c_b, ">", 0, "all lines meet at the origin")

    def predict(self, setting):
        # where the hypotheses fail the numbers are those of the nearest law, and are not judged
        c_b = self.c_b or 1e-9
        rng = np.random.default_rng(SEED_OF_THEORY)
        inside = [
            disc_regions(widths, self.c_w, c_b, self.radius, rng, self.samples).mean
            for widths in self.layouts
        ]
        few = max(20, self.samples // len(setting.triangles))
        between = [
            triangle_regions(corners, DIGIT_WIDTHS, self.c_w, DIGIT_C_B, rng, few).mean
            for corners in setting.triangles
        ]
        # a simple polytope of v corners in three dimensions has 2 + v/2 sides
        sides = [
            origin_cell_vertices(self.lines, 2),
            origin_cell_vertices(sum(DEEP_CELL), 2),
            2 + origin_cell_vertices(SOLID, 3) / 2,
        ]
        widths = np.array(END_WIDTHS)[:, None]
        # a layer of n neurons is off with chance 2^(−n), and then no deeper border has an end
        ends = 2 * (1 - 2.0**-widths) ** (np.array(END_LAYERS) - 1)
        return kit.law(
            ends=("end_width end_layer", ends),
            disc=("depth", inside),
            plane=plane_regions(self.narrow_widths),
            digits=np.mean(between),
            sides=("cell", sides),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        polygon = disc(self.radius)
        sides = [
            cell_sides(origin_jets(rng, self.cells, widths, d, self.c_w, self.c_b or 1.0))
            for widths, d in (((self.lines,), 2), (DEEP_CELL, 2), ((SOLID,), 3))
        ]
        certified = [
            [euler_defect(planar_regions(layers, polygon)) for layers in kind[:CERTIFIED]]
            for kind in setting.own.disc
        ]
        arrays = {}
        for prefix, networks in (("", setting.own), ("sided_", setting.sided)):
            inside = [counts(kind, polygon) for kind in networks.disc]
            arrays[f"{prefix}disc"] = ("depth network", inside)
            arrays[f"{prefix}plane"] = ("network", counts_in_plane(networks.plane))
            arrays[f"{prefix}digits"] = ("triangle", counts(networks.digits, setting.triangles))
            ends = [unbounded_ends(kind)[:, 1:] for kind in networks.ends]
            arrays[f"{prefix}ends"] = ("end_width border end_layer", ends)
        return kit.seen(
            **arrays, euler=("depth certified", np.abs(certified)), sides=("cell draw", sides)
        )

    def run_conditions(self, observed):
        yield kit.assume(
            "regions − (1 + crossings + ends/2), largest",
            observed["euler"].max(),
            "<=",
            1e-9,
            "rounding has lost regions or corners; give a smaller --radius",
        )

    def judge(self, law, seen):
        yield kit.follows(
            "disc",
            law.disc,
            seen.disc,
            0.14,  # the interval is 3 % in one layer, 7 % in four
            label=f"regions in the disc, {self.neurons} neurons in so many layers",
        )
        yield kit.follows(
            "plane",
            law.plane,
            seen.plane,
            0.075,  # the interval is 3 %
            label=f"regions in all of R², widths {' '.join(map(str, self.narrow_widths))}",
        )
        yield kit.follows(
            "digits",
            law.digits,
            seen.digits,
            0.16,  # the interval is 6.5 %
            label="regions between three digits",
        )
        yield kit.follows(
            "cell",
            law.sides,
            seen.sides,
            0.02,  # the interval is 0.8 %, the correction of finite width 0.3 %
            label="sides of the origin's cell",
        )
        yield kit.follows(
            "ends",
            law.ends,
            seen.ends,
            0.2,  # the interval is 10 % at one neuron in layer three
            label="unbounded ends of a neuron's border",
        )

    def rivals(self, setting, law):
        c_b = self.c_b or 1e-9
        wide = [wide_disc_regions(widths, self.c_w, c_b, self.radius) for widths in self.layouts]
        most = [np.prod(np.array(widths) + 1.0) for widths in self.layouts]
        independent = [_independent(self._hits_of_disc(widths)) for widths in self.layouts]
        yield kit.rival(
            "1 + N + N(N − 1)/2 at every width and between digits",
            "lines in general position",
            plane=_general(sum(self.narrow_widths)),
            digits=_general(sum(DIGIT_WIDTHS)),
        )
        yield kit.rival(
            "two lines that both meet a domain meet in it: 1 + Σ p_i + Σ p_i p_j",
            "both lines pass through it",
            id="meet_independently",
            disc=("depth", independent),
            digits=_independent(self._hits_of_triangles(setting.triangles)).mean(),
        )
        yield kit.rival(
            "the origin's cell is like any other",
            "the mean over all cells of an arrangement",
            sides=("cell", [4.0, 4.0, 6.0]),
        )
        yield kit.rival(
            "independent lines of the scales s_l",
            "the limit of the law; deep networks of 24 neurons are narrow",
            disc=("depth", wide),
        )
        yield kit.rival(
            "two unbounded ends of every border",
            "borders of one layer are lines, which never close up",
            ends=2.0,
        )
        yield kit.rival(
            "2(1 − 2^(−n))^l ends in layer l",
            "a border could end where its own layer is off, too",
            ends=law.ends * (1 - 2.0**-law.end_width),
        )
        yield kit.rival(
            "as many regions at every depth",
            "as many neurons, as many lines",
            id="depth_is_nothing",
            disc=xarray.ones_like(law.disc) * law.disc[0],
        )
        yield kit.rival(
            "Π(n_l + 1) regions",
            "what a network made for it can have along a line",
            disc=("depth", most),
        )

    def _hits_of_disc(self, widths: tuple[int, ...]) -> Values:
        """Return the chance that a neuron's line meets the disc, of scale s_l, by neuron."""
        scales = random_hyperplane_scales(self.c_w, self.c_b or 1e-9, 2, len(widths))
        return np.repeat(self.radius / np.hypot(self.radius, scales), widths)

    def _hits_of_triangles(self, triangles: Values) -> Values:
        """Return the chance that a neuron's line meets a triangle, shape ``(triangles, neurons)``: half its ends."""
        edges = np.stack([triangles, np.roll(triangles, -1, axis=1)], 2)
        rng = np.random.default_rng(SEED_OF_THEORY)
        ends = finite_crossings(edges, DIGIT_WIDTHS, self.c_w, DIGIT_C_B, rng, 50).mean.sum(1)
        return np.repeat(ends / 2, DIGIT_WIDTHS, axis=1)

    def controls(self, seen):
        yield kit.control(
            f"weights with a mean of {SIDED:g} standard deviations",
            "signs of weights can be flipped no more",
            id="one_sided",
            disc=seen.sided_disc,
            plane=seen.sided_plane,
            digits=seen.sided_digits,
            ends=seen.sided_ends,
        )
        yield kit.control(
            "deep networks for shallow ones, and the other way round",
            "regions become fewer with depth",
            id="other_depth",
            disc=(seen.disc.dims, seen.disc.values[::-1]),
        )
        yield kit.control(
            "cells of three dimensions in the plane, and the other way round",
            "cells in three dimensions are others",
            id="other_cell",
            sides=(seen.sides.dims, seen.sides.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        depths = np.array(self.depths)
        c_b = self.c_b or 1e-9
        wide = [wide_disc_regions(widths, self.c_w, c_b, self.radius) for widths in self.layouts]
        shades = np.linspace(0, 1, len(depths))
        shares = np.linspace(0, 1, seen.sizes["network"])
        spread = [
            kit.observed_curve(
                np.sort(count),
                shares,
                f"{depth} layers" if depth > 1 else "1 layer",
                kind="steps",
                shade=float(shade),
            )
            for count, depth, shade in zip(seen.disc.values, depths, shades, strict=True)
        ]
        sides = np.arange(3, 11)
        share = lambda i: [float((seen.sides[i] == k).mean()) for k in sides]
        points = {"kind": "points"}
        yield kit.panel(
            f"{self.neurons} neurons in a disc, in more layers",
            "layers",
            "mean regions",
            kit.observed_curve(depths, seen.disc.mean("network"), "observed", **points),
            kit.predicted_curve(depths, law.disc, "lines of coin networks"),
            kit.rival_curve(depths, wide, "infinite width"),
            ylim=(0, None),
        )
        yield kit.panel("From network to network", "regions", "share of networks", *spread)
        yield kit.panel(
            "The cell of the origin, by its sides",
            "sides",
            "share of cells",
            kit.observed_curve(sides, share(0), "one layer", **points),
            kit.observed_curve(sides, share(1), "four layers", shade=1.0, **points),
            kit.predicted_curve(np.full(2, float(law.sides[0])), (0, 0.4), "predicted mean"),
            ylim=(0, 0.4),
        )


def _general(lines: int) -> float:
    """Return the cells of so many lines in general position."""
    return 1.0 + lines + lines * (lines - 1) / 2


def _independent(hits: Values) -> Values:
    """Return 1 + Σ p_i + Σ_{i<j} p_i p_j of chances p, over the last axis."""
    total = hits.sum(-1)
    return 1 + total + (total**2 - (hits**2).sum(-1)) / 2


def _triangles(rng: np.random.Generator, number: int) -> Values:
    """Draw three images of three different digits, shape ``(number, 3, 64)``."""
    images = digits()
    x = np.asarray(images.x)
    label = np.asarray(images.y).argmax(1)
    members = [np.flatnonzero(label == digit) for digit in range(10)]
    chosen = [
        [rng.choice(members[digit]) for digit in rng.permutation(10)[:3]] for _ in range(number)
    ]
    return x[np.array(chosen)]
