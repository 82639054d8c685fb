"""Double wells that are tied together have a spectral gap that falls exponentially with their number.

Independent wells have the gap of one well. So how fast Langevin dynamics forgets its start need not depend on the
dimension.
"""

import numpy as np

from steepest import kit
from steepest.claims.noise._double_well_walk import well_gap
from steepest.claims.noise.tied_wells.wells import WARM, tied_gap, wells_gap

DIMENSIONS = (1, 2, 3)
TIES = ("apart", "tied")  # of as many wells
# the next order is 1/k²: of βΣu⁴/4 with u² of 1/βk the part that depends on x̄ is 0.6 % of a rate at k = 10
WELLS = 0.01


@kit.claim
class TiedWells(kit.Claim[None]):
    """Eigenvalues of up to three double wells, with springs between their places and without."""

    spring: kit.Positive = kit.param(
        10.0,
        "k of ½k Σ(x_i − x̄)²",
        unit="curvature",
        scope=kit.between(8.0, 14.0, "theory is of first order in 1/k"),
    )

    kind = "limit"
    says = {
        "have a spectral gap that falls exponentially with their number": "wells",
        "Independent wells have the gap of one well": "wells",
    }
    out_of_scope = {"spring": 0.5}
    tiny = {"spring": 12.0}

    def axes(self):
        return {"ties": TIES, "dimension": DIMENSIONS}

    def hypotheses(self, setting):
        yield kit.assume(
            "k", self.spring, ">", 1, "the wells' saddles are steeper; choose a larger --spring"
        )

    def predict(self, setting):
        tied = [tied_gap(dimension, self.spring) for dimension in DIMENSIONS]
        return kit.law(wells=("ties dimension", [np.full(len(DIMENSIONS), well_gap(WARM)), tied]))

    def observe(self, setting, key):
        gaps = lambda *springs: [[wells_gap(d, spring) for d in DIMENSIONS] for spring in springs]
        return kit.seen(
            wells=("ties dimension", gaps(0.0, self.spring)),
            looser_wells=("ties dimension", gaps(self.spring / 10, self.spring / 2)),
        )

    def judge(self, law, seen):
        yield kit.follows(
            "wells", law.wells, seen.wells, WELLS, label="spectral gap of several wells"
        )

    def rivals(self, setting, law):
        independent, tied = law.wells.values
        exponential = np.array([well_gap(WARM * dimension) for dimension in DIMENSIONS])
        yield kit.rival(
            "gaps fall exponentially with the dimension in any case",
            "as the talk says",
            id="generically_exponential",
            wells=("ties dimension", [exponential, tied]),
        )
        yield kit.rival(
            "gaps never depend on the dimension",
            "the constant of a product is the constant of one factor",
            wells=("ties dimension", [independent, independent]),
        )
        yield kit.rival(
            "tied wells have one well's gap at dβ",
            "all move as one",
            wells=("ties dimension", [independent, exponential]),
        )

    def controls(self, seen):
        yield kit.control(
            "a tenth of the spring for none, and half of it",
            "the wells of the first set have springs, and the wells of the second hang together less",
            wells=seen.looser_wells,
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "Springs make the gap fall with the number of wells",
            law.wells,
            seen.wells,
            over="dimension",
            by="ties",
            x="number of wells",
            y="spectral gap",
            rivals={"one well at dβ": rivals["generically_exponential"].wells},
            log="y",
        )
