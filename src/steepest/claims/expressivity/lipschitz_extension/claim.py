"""Lipschitz maps between Euclidean spaces extend to more points with the same constant.

By Kirszbraun's theorem this holds for maps of any part of a Hilbert space into another. It fails in other norms. For
maps from the norm of the largest coordinate to d dimensions, the extension may need a constant √(2d/(d + 1)) times as
large.
"""

import numpy as np

from steepest import kit
from steepest.claims.expressivity.lipschitz_extension.experiment import climb, cube_constant

ROUNDING = 1e-6  # of constants of extension
TARGETS = (1, 2, 3, 4)  # dimensions into which corners of a cube are mapped


@kit.claim
class LipschitzExtension(kit.Claim[None]):
    """Searches for a map that does not extend, and corners of a cube."""

    searches: kit.Count = kit.param(30, "searches for a map that does not extend")
    across: kit.Count = kit.param(
        3,
        "dimension of a search's points, which are one more, and of their images",
        scope=kit.between(2, 3, "searches among more points take longer"),
    )
    order: kit.Positive = kit.param(
        2.0,
        "p of the norm of the points",
        scope=kit.choices(2.0, why="other norms are no Hilbert space's"),
    )

    kind = "theorem"
    says = {
        "extend to more points with the same constant": ("extension", "attained"),
        "the extension may need a constant √(2d/(d + 1)) times as large": "other_norm",
    }
    tiny = {"searches": 30, "across": 2}
    full = {"searches": 120}
    out_of_scope = {"order": 3.0}

    def axes(self):
        return {"target": TARGETS}

    def hypotheses(self, setting):
        yield kit.assume("|p − 2| of the norm", abs(self.order - 2), "<=", 0, "take --order 2")

    def predict(self, setting):
        # the radius of a regular simplex of edge 2
        radii = [np.sqrt(2 * d / (d + 1)) for d in TARGETS]
        return kit.law(same_constant=1.0, other_norm=("target", radii))

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        search = lambda order: [climb(self.across, order, rng) for _ in range(self.searches)]
        corners = lambda order: [cube_constant(dimension, order, rng) for dimension in TARGETS]
        return kit.seen(
            extension=("climb", search(self.order)),
            extension_of_largest=("climb", search(np.inf)),
            corners=("target", corners(self.order)),
            corners_of_largest=("target", corners(np.inf)),
        )

    def judge(self, law, seen):
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
        yield kit.rival(
            "Lipschitz maps extend with the same constant in any norm",
            "as the notes use it",
            id="any_norm",
            other_norm=1.0,
        )
        yield kit.rival(
            "constant of extension √d from the norm of the largest coordinate",
            "norms of the cube and of the ball differ by the factor √d",
            id="cube_and_ball",
            other_norm=law.target**0.5,
        )
        yield kit.rival(
            "constant of extension √d between Euclidean spaces",
            "each coordinate extends by itself, as numbers do",
            id="coordinates",
            same_constant=self.across**0.5,
        )

    def controls(self, seen):
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
        yield kit.curves(
            "From the norm of the largest coordinate maps need more",
            law.other_norm,
            seen.corners_of_largest,
            over="target",
            x="d, where corners of a cube are mapped",
            y="constant of extension",
            rivals={
                "√d": rivals["cube_and_ball"].other_norm,
                "same constant": rivals["any_norm"].other_norm,
            },
        )
