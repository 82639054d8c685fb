"""On a moment curve, h threshold units make as many dichotomies as halfspaces of hd dimensions.

A threshold unit on top reads the h units. A hyperplane meets the curve in at most d points, so along the curve labels
change at most hd times, and each labelling that does so is made. Off a curve, two units separate a group of up to d
points from all others, so 2⌈r/d⌉ units are enough for r points of the rarer label.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.expressivity._halfspaces import digit_scores
from steepest.claims.expressivity.threshold_units.experiment import (
    dichotomies_of_layers,
    group_units,
    moment_curve,
)
from steepest.geometry import central_cell_count, general_position
from steepest.nn.types import Values

HALF = 0.5  # counts are whole numbers
LAYERS = ((1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2))
"""d and h of layers of threshold units."""
CURVES = tuple((d, h, n) for d, h in LAYERS for n in range(h * d, h * d + 4))
"""The same with the numbers of points on a moment curve."""
MOST = 3
"""The largest d of LAYERS."""
SIZES = (7, 10, 13, 20, 25)
"""Numbers of digits that are separated in groups."""


class Setting(NamedTuple):
    """Points on a moment curve, and digits in a few principal components."""

    places: Values  # on the curve, in [−1, 1], (seeds, most)
    digits: Values  # (seeds, most, MOST or more)


@kit.claim
class ThresholdUnits(kit.Claim[Setting]):
    """All dichotomies by layers of up to three units, and digits that pairs of units separate in groups."""

    dimension: kit.Count = kit.param(
        3, "principal components of the digits that are separated", scope=kit.choices(2, 3)
    )
    seeds: kit.Seeds = kit.param(3, "draws of points")

    kind = "theorem"
    says = {"make as many dichotomies as halfspaces of hd dimensions": "thresholds"}
    tiny = {"seeds": 3}
    full = {"seeds": 10}
    out_of_scope = {"dimension": 7}

    def axes(self):
        return {
            "curve": tuple(f"d = {d}, {h} units, {n} points" for d, h, n in CURVES),
            "n": SIZES,
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        even = np.linspace(-1, 1, max(n for *_, n in CURVES))
        near = even + rng.uniform(-0.3, 0.3, (self.seeds, even.size)) * (even[1] - even[0])
        scores = digit_scores()
        chosen = [rng.permutation(len(scores))[: SIZES[-1]] for _ in range(self.seeds)]
        kept = scores[np.array(chosen), : max(MOST, self.dimension)]
        return Setting(rng.permuted(near, axis=1), kept / scores.std())

    def hypotheses(self, setting):
        grouped = setting.digits[..., : self.dimension]
        least = min(general_position(draw, np.ones(len(draw))) for draw in grouped)
        yield kit.assume(
            "dimension of the digits", self.dimension, "<", min(SIZES), "fewer points span less"
        )
        yield kit.assume(
            "least singular value of d + 1 digits",
            least,
            ">",
            0,
            "the points are not in general position",
        )

    def predict(self, setting):
        return kit.law(
            # along the curve a labelling changes at most hd times, as a hyperplane meets the curve at d points; any
            # labelling that does so is made, by units whose signs change in turn
            thresholds=("curve", [float(central_cell_count(n, h * d + 1)) for d, h, n in CURVES]),
            # a hyperplane through d points of the rarer label meets none of the others (Baum)
            groups=("n", [2.0 * -(-(n // 2) // self.dimension) for n in SIZES]),
        )

    def observe(self, setting, key):
        dimensions = range(1, MOST + 1)
        curves = [[moment_curve(draw, d) for draw in setting.places] for d in dimensions]
        scattered = [setting.digits[..., :d] for d in dimensions]
        grouped = setting.digits[..., : self.dimension]
        line = grouped[..., :1] * np.ones(self.dimension)
        return kit.seen(
            thresholds=("curve draw", dichotomies_of_layers(curves, CURVES)),
            scattered=("curve draw", dichotomies_of_layers(scattered, CURVES)),
            groups=("n draw", group_units(grouped, SIZES)),
            groups_on_a_line=("n draw", group_units(line, SIZES)),
        )

    def judge(self, law, seen):
        for id, label in (
            ("thresholds", "dichotomies of a moment curve by h threshold units"),
            ("groups", "threshold units that separate n digits in groups"),
        ):
            yield kit.follows(id, law[id], seen[id], HALF, absolute=True, each=True, label=label)

    def rivals(self, setting, law):
        r = law.n // 2
        yield kit.rival(
            "h units shatter hd points of a curve, and no more",
            "h units around groups of d take hd points of both labels",
            thresholds=("curve", [float(central_cell_count(n, h * d)) for d, h, n in CURVES]),
        )
        yield kit.rival(
            "h units make all dichotomies of a curve",
            "there are h(d + 2) + 1 of them, no fewer than the points",
            thresholds=("curve", [2.0**n for *_, n in CURVES]),
        )
        yield kit.rival(
            "d + 1 points a group",
            "a halfspace has d + 1 parameters",
            groups=2 * np.ceil(r / (self.dimension + 1)),
        )
        yield kit.rival(
            "one unit a group", "a hyperplane is one unit", groups=np.ceil(r / self.dimension)
        )

    def controls(self, seen):
        yield kit.control(
            "digits in place of points of a curve",
            "no order of the points says how often labels change",
            thresholds=seen.scattered,
        )
        yield kit.control(
            "digits on a line",
            "a hyperplane through two of them has all",
            groups=seen.groups_on_a_line,
        )
