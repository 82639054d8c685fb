"""Contrastive losses do not compare representations, because they charge the spread within classes.

A negative of the positive's own class costs more than one bit where classes have spread, by at most 1/(√3 log 2) times
the spread. So random features of many dimensions, scaled up, have a worse contrastive loss and make a better
classifier. The representation of least contrastive loss competes with others where they are charged their spread.
"""

from typing import Annotated

import numpy as np
import xarray

from steepest import kit
from steepest.claims.bayes_and_transfer._contrastive import (
    FEWEST,
    Draws,
    drawn,
    losses,
    matrices,
    zipf,
)
from steepest.measurement.quantities import SPREAD_CONSTANT


@kit.claim
class ContrastiveRanking(kit.Claim[Draws]):
    """Exact contrastive losses of random linear representations of digits at several scales."""

    per_class: Annotated[int, kit.Within(4, FEWEST)] = kit.param(
        20,
        "images that make up each class's distribution",
        unit="images",
        scope=kit.between(12, 30),
    )
    ks: tuple[kit.Count, ...] = kit.param(
        (4, 16, 64),
        "dimensions k of representations",
        scope=kit.choices(
            (4, 16, 64), (4, 8, 64), why="losses rank otherwise only in many dimensions"
        ),
    )
    amplitudes: tuple[kit.Positive, ...] = kit.param(
        (0.5, 2.0, 4.5),
        "scales a of f = aWᵀx, W ~ N(0, 1/k)",
        scope=kit.choices(
            (0.5, 2.0, 4.5), (0.4, 1.8, 4.0), why="at larger scales few have L^≠ < 1 < L_un"
        ),
    )
    skew: kit.NonNegative = kit.param(
        1.0, "shares of the classes ∝ c^(−skew), beside equal ones", scope=kit.between(0.5, 1.5)
    )
    seeds: kit.Seeds = kit.param(4, "choices of images and matrices")

    kind = "theorem"
    says = {"Contrastive losses do not compare representations": "ranking"}
    tiny = {"per_class": 6, "seeds": 3}
    full = {"per_class": 40, "seeds": 10}
    out_of_scope = {"amplitudes": (0.5, 2.0)}

    @property
    def compared(self) -> tuple[int, int]:
        """Return the places in the family of two scales of the widest representations: the second and the last."""
        start = self.ks.index(max(self.ks)) * len(self.amplitudes)
        return start + 1, start + len(self.amplitudes) - 1

    def axes(self):
        return {"term": ("L^≠", "L_sup")}

    def setting(self, key):
        return drawn(key, self.seeds, self.per_class, max(self.ks))

    def hypotheses(self, setting):
        yield kit.assume(
            "scales of random representations",
            len(self.amplitudes),
            ">=",
            3,
            "the second and the last are compared; give --amplitudes such as 0.5 2 4.5",
        )

    def predict(self, setting):
        return kit.law(
            ranking=-1.0,
            constant=SPREAD_CONSTANT,
            # what a competitor f is charged beside its spread
            charge=("term", [1.0, 0.0]),
            charge_constant=SPREAD_CONSTANT,
        )

    def observe(self, setting, key):
        family = [(k, scale) for k in self.ks for scale in self.amplitudes]
        shares = np.stack([zipf(0.0), zipf(self.skew)])
        measured = losses(setting.images, matrices(setting.noise, family), shares)
        return kit.seen(
            **{name: ("family seed shares", values) for name, values in measured._asdict().items()}
        )

    def run_conditions(self, observed):
        yield kit.assume(
            "random representations worse than zero by L_un",
            int((observed["un"][..., 0] > 1).sum()),
            ">=",
            1,
            "only these are competitors of zero; raise --amplitudes",
        )

    def derive(self, law, seen):
        """Return whether both losses rise, what the bound by the spread leaves, and what competitors need."""
        equal = seen.isel(shares=0, drop=True)
        earlier, later = (equal.isel(family=place) for place in self.compared)
        return {
            "order": np.sign((later.un - earlier.un) * (later.supervised - earlier.supervised)),
            "excess": seen.same - 1 - law.constant * seen.spread,
            "needed": self.needed(law, equal),
        }

    def needed(self, law: xarray.Dataset, equal: xarray.Dataset) -> xarray.DataArray:
        """Return the constant of spread at which the charge of a competitor f is L_sup(f̂) = 1.

        Only where zero has the smaller contrastive loss, L_un(f) > 1, and so is f̂, the better of zero and f; zero has
        one bit in every loss. Elsewhere it is zero.
        """
        charge = law.charge.values
        missing = 1 - charge[0] * equal.different - charge[1] * equal.supervised
        weight = equal.collision / (1 - equal.collision)
        return (missing / (weight * equal.spread)).where(equal.un > 1, 0.0)

    def judge(self, law, seen):
        first = self.amplitudes[1]
        last = self.amplitudes[-1]
        label = f"sign of ΔL_sup ΔL_un, k = {max(self.ks)}, scale {first:g} to {last:g}, off −1"
        yield kit.agrees("ranking", abs(seen.order - law.ranking), 0.0, label=label)
        label = "L^= − 1 less its bound by the spread"
        yield kit.at_most("spread", 0.0, seen.excess, each=True, label=label)
        label = "constant of spread that a competitor f needs, where f̂ = 0"
        yield kit.at_most("competitor", law.charge_constant, seen.needed, each=True, label=label)

    def rivals(self, setting, law):
        two_point = 1 / (2 * np.log(2))
        yield kit.rival(
            "L_un ranks representations by L_sup",
            "low L_un means low L_sup",
            id="ranks",
            ranking=1.0,
        )
        yield kit.rival(
            "constant of spread 1/(2 log 2)",
            "two values of equal weight have it",
            accepted="digits and random W are far from the sharp case; the constant is proved",
            constant=two_point,
            charge_constant=two_point,
        )
        yield kit.rival("L^= is one", "collisions cost one bit", constant=0.0)
        yield kit.rival(
            "L_sup(f̂) ≤ L_sup(f) for every f",
            "the talk's dream result with constant one",
            charge=("term", [0.0, 1.0]),
            charge_constant=0.0,
        )
        yield kit.rival(
            "L_sup(f̂) ≤ L^≠(f), without the spread", "f̂ has the least loss", charge_constant=0.0
        )

    def controls(self, seen):
        smaller = lambda array: (array.dims, np.roll(array.values, 1, 0))
        yield kit.control(
            "the next smaller scales",
            "there classes have little spread, and both losses fall",
            un=smaller(seen.un),
            supervised=smaller(seen.supervised),
        )

    def figure(self, law, seen, rivals):
        equal = seen.isel(shares=0).mean("seed")
        count = len(self.amplitudes)
        last = slice(self.compared[1] + 1 - count, self.compared[1] + 1)
        yield kit.panel(
            f"Scaled up, {max(self.ks)} random features classify better at a worse loss",
            "scale",
            "loss [bits]",
            kit.observed_curve(self.amplitudes, equal.un[last], "contrastive L_un"),
            kit.observed_curve(
                self.amplitudes, equal.supervised[last], "mean classifier L_sup", shade=1.0
            ),
            log="xy",
        )
