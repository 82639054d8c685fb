"""Descent on p-ReLU networks ends at class averages if p < 2, and at single cluster centres if p > 2.

Starts are small, and both ends are KKT points of the margin problem. At its KKT points, if p ≠ 2, all neurons that see
a centre give it the same weight. One example sits at each of k orthogonal centres μ_i, half of them of each class. At a
KKT point of the margin problem each centre has one weight m_i > 0, the same for all neurons. Neurons are w_j ∝ Σ m_i
μ_i over some centres of a class with Σ m_i² = 1. Strengths are s_j = |v_j|‖w_j‖, with Σ s_j m_i^p = 1 over the neurons
that see centre i. Groups that share no centre are one case: single centres, class averages and every partition between
them. Neurons may also share centres: where each sees one centre of its own and all see another, the shared centre has
weight (k/2 − 1)^(−1/p).

Such networks differ only in their margin. Groups of m centres cost m^(p/2), so one group per class is best for p < 2,
and single centres are best for p > 2. At p = 2 any weights are possible, once margins are equal.
"""

from typing import Annotated

import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.prelu_kkt.experiment import (
    NETWORKS,
    Setting,
    descents,
    draw_setting,
    measure_ends,
    measure_networks,
    search,
    starts_that_miss_a_class,
)
from steepest.claims.features.prelu_kkt.figure import panel_of_ends, panel_of_residuals
from steepest.claims.features.prelu_kkt.theory import disagreement, margins, residuals_of_two_to_one

EXACT = 1e-6  # a residual that counts as none; non-negative least squares leave 1e-9
NO_KKT = 0.1  # residual that rivals predict where there is none
Power = Annotated[float, kit.Within(1, 10)]
Clusters = Annotated[int, kit.Within(6, 64)]
TrainedClusters = Annotated[int, kit.Within(4, 16)]


@kit.claim
class PreluKkt(kit.Claim[Setting]):
    """Two-layer networks Σ v relu⟨w, x⟩^p/‖w‖^{p−1} on k orthonormal examples, half of each class."""

    powers: tuple[Power, ...] = kit.param(
        (1.0, 1.5, 1.8, 2.0, 2.2, 3.0, 4.0),
        "p of exact and of random networks",
        scope=kit.choices(
            (1.0, 1.5, 1.8, 2.0, 2.2, 3.0, 4.0),
            (1.2, 1.9, 2.1, 5.0),
            (1.0, 1.4, 2.0, 2.5, 6.0),
            why="any powers from 1 on",
        ),
    )
    clusters: tuple[Clusters, ...] = kit.param(
        (6, 8, 16),
        "k of these networks, even",
        scope=kit.choices((6, 8, 16), (6, 12), (8, 10, 20), why="any even number from 6 on"),
    )
    trained_powers: tuple[Power, ...] = kit.param(
        (1.0, 1.5, 1.8, 2.2, 3.0, 4.0),
        "p of descents",
        scope=kit.choices(
            (1.0, 1.5, 1.8, 2.2, 3.0, 4.0),
            (1.2, 1.8, 2.2, 2.6),
            (1.4, 1.75, 2.3, 5.0),
            why="nearer to 2 the start would have to be smaller than numbers are",
        ),
    )
    trained_clusters: tuple[TrainedClusters, ...] = kit.param(
        (4, 8),
        "k of descents, even",
        scope=kit.choices((4, 8), (4, 6), (6, 8), why="more centres need more neurons"),
    )
    width: kit.Count = kit.param(
        256,
        "width of networks that descend",
        unit="neurons",
        scope=kit.between(256, 512, "some neuron must see all centres of its class"),
    )
    scale: kit.Positive = kit.param(
        1e-30,
        "ε, norm of the input weights at the start, about",
        scope=kit.between(1e-40, 1e-30, "neurons grow apart while they are small"),
    )
    steps: kit.Count = kit.param(
        450, "steps of descent on log R", unit="steps", scope=kit.between(450, 1000)
    )
    tries: kit.Count = kit.param(100, "random networks at each power")
    overlap: kit.NonNegative = kit.param(
        0.0, "cosine of two centres", scope=kit.choices(0.0, why="centres are orthogonal")
    )
    spread: kit.NonNegative = kit.param(
        0.0,
        "α, about the distance of an example from its centre",
        scope=kit.choices(0.0, why="examples sit at the centres"),
    )
    seeds: kit.Seeds = kit.param(5, "independent starts")

    kind = "conjecture"
    says = {
        "are KKT points of the margin problem": "residual",
        "all neurons that see a centre give it the same weight": (
            "others",
            "no_farther",
            "unequal",
        ),
        "ends at class averages if p < 2, and at single cluster centres if p > 2": "end",
    }
    tiny = {
        "powers": (1.0, 2.0, 3.0),
        "clusters": (6, 8),
        "trained_powers": (1.0, 3.0),
        "trained_clusters": (4, 6),
        "width": 100,
        "steps": 150,
        "tries": 5,
        "seeds": 3,
    }
    full = {"clusters": (6, 8, 16, 32), "steps": 2000, "tries": 1000, "seeds": 20}
    out_of_scope = {"spread": 0.1, "overlap": 0.1}

    @property
    def other_powers(self) -> tuple[float, ...]:
        """Return the powers that are not 2, where the characterization holds."""
        return tuple(power for power in self.powers if power != 2)

    def axes(self):
        return {
            "network": NETWORKS,
            "power": self.powers,
            "clusters": self.clusters,
            "other_power": self.other_powers,
            "trained_power": self.trained_powers,
            "trained_clusters": self.trained_clusters,
        }

    def check_fields(self) -> None:
        for name in ("clusters", "trained_clusters"):
            odd = [k for k in getattr(self, name) if k % 2]
            if odd:
                flag = name.replace("_", "-")
                raise kit.UserError(f"--{flag} must be even, half of each class, got {odd[0]}")
        if not self.other_powers:
            raise kit.UserError("--powers must hold a power other than 2, such as 1.5")
        if not min(self.trained_powers) < 2 < max(self.trained_powers):
            raise kit.UserError("--trained-powers must hold a power below 2 and one above")

    def setting(self, key):
        return draw_setting(
            key,
            clusters=max(*self.clusters, *self.trained_clusters),
            dimension=max(self.trained_clusters),
            width=self.width,
            scale=self.scale,
            seeds=self.seeds,
            overlap=self.overlap,
            spread=self.spread,
        )

    def hypotheses(self, setting):
        products = setting.x @ setting.x.T
        np.fill_diagonal(products, 0.0)
        yield kit.assume(
            "largest product of two examples",
            np.abs(products).max(),
            "<=",
            1e-12,
            "examples sit at orthogonal centres; set --overlap and --spread to 0",
        )
        yield kit.assume(
            "size of the second fastest neurons when the fastest are of size one",
            self.left_behind(),
            "<=",
            0.2,
            "choose a smaller --scale, or trained powers farther from 2, where ties stay",
        )
        yield kit.assume(
            "starts without a neuron that sees all centres of its class",
            starts_that_miss_a_class(setting.starts, self.trained_clusters),
            "==",
            0,
            "raise --width",
        )

    def left_behind(self) -> float:
        """Return ε^(1 − g), the largest over descents, where g is the ratio of the two largest rates of growth.

        Neurons that see m of k/2 centres grow at a rate ∝ m^(1 − p/2).
        """
        half = max(self.trained_clusters) / 2
        ratios = [
            (1 - 1 / half) ** (1 - power / 2) if power < 2 else 2 ** (1 - power / 2)
            for power in self.trained_powers
        ]
        return float(self.scale ** (1 - max(ratios)))

    def predict(self, setting):
        power = np.array(self.other_powers)
        exact = margins(self.powers, self.clusters)
        of_networks = "network power clusters"
        return kit.law(
            residual=(of_networks, np.zeros((len(NETWORKS), *exact["centres"].shape))),
            unequal=("power clusters", residuals_of_two_to_one(self.powers, self.clusters)),
            nearest=("other_power", np.minimum(1.0, power / np.sqrt(2))),
            farthest=("other_power", np.maximum(1.0, power / np.sqrt(2))),
            margin=(of_networks, np.stack([exact[name] for name in NETWORKS])),
            end=("trained_power trained_clusters", np.maximum(self.averages(), 1.0)),
        )

    def averages(self) -> np.ndarray:
        """Return the margin of averages over that of centres, for networks that descend."""
        power = np.array(self.trained_powers)[:, None]
        return (np.array(self.trained_clusters) / 2) ** (1 - power / 2)

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        powers = self.trained_powers
        problems = self.trained_clusters
        ends = descents(setting, powers, problems, self.steps)
        end, end_residual = measure_ends(setting, ends, powers, problems)
        return kit.seen(
            **measure_networks(setting, self.powers, self.clusters),
            **search(setting, self.other_powers, self.clusters[0], self.tries, rng),
            end=("seed trained_power trained_clusters", end),
            end_residual=("seed trained_power trained_clusters", end_residual),
        )

    def derive(self, law, seen):
        apart = disagreement(seen.random_w, seen.random_v, seen.other_power)
        # R and D of a network that agrees are both rounding, and one bound lies below 1, the other above
        return {"over_disagreement": (seen.random + EXACT) / (apart + EXACT)}

    def judge(self, law, seen):
        yield kit.follows(
            "residual",
            law.residual,
            seen.residual,
            EXACT,
            absolute=True,
            label="KKT residual of exact networks",
        )
        yield kit.at_least(
            "others",
            law.nearest * (1 - EXACT),
            seen.over_disagreement,
            each=True,
            label="KKT residual over disagreement of random networks",
        )
        yield kit.at_most(
            "no_farther",
            law.farthest * (1 + EXACT),
            seen.over_disagreement,
            each=True,
            label="the same, from above",
        )
        yield kit.follows(
            "unequal",
            law.unequal,
            seen.unequal,
            EXACT,
            absolute=True,
            label="KKT residual of neurons with weights 2 : 1 : 1 …",
        )
        yield kit.follows(
            "margin", law.margin, seen.margin, EXACT, label="margin / margin of the centres"
        )
        yield kit.follows(
            "end",
            law.end,
            seen.end,
            0.03,
            label="margin where descent ends / margin of the centres",
        )
        yield kit.at_most(
            "arrived",
            0.05,
            seen.end_residual,
            over="trained_power trained_clusters",
            label="KKT residual where descent ends",
        )

    def rivals(self, setting, law):
        yield from self.rivals_of_kkt_points(law)
        yield from self.rivals_of_margins(law)
        yield from self.rivals_of_ends(law)

    def rivals_of_kkt_points(self, law: xarray.Dataset) -> list[kit.Rival]:
        """Return wrong theories of which networks are KKT points."""
        only = lambda *names: law.residual.where(law.network.isin(names), NO_KKT)
        at_two = law.power == 2
        rivals = [
            kit.rival(
                "the centres are the only KKT points",
                "the discussion expects the centres for higher p",
                residual=only("centres"),
            ),
            kit.rival(
                "the averages are the only KKT points",
                "ReLU networks are known to end there",
                residual=only("averages"),
            ),
            kit.rival(
                "groups that share a centre are no KKT point",
                "a neuron that is dead on a centre ends at the average of the centres that it sees",
                residual=only("centres", "uneven", "averages"),
            ),
            kit.rival(
                "the residual of only the input weights, between 1 and p times D",
                "output weights are an afterthought",
                id="input_weights_alone",
                nearest=np.minimum(1.0, law.other_power).rename("nearest"),
                farthest=np.maximum(1.0, law.other_power).rename("farthest"),
            ),
        ]
        if at_two.any():
            no_ties = kit.rival(
                "unequal weights are no KKT point at p = 2 either",
                "p = 2 as every other power",
                unequal=law.unequal.where(~at_two, NO_KKT),
            )
            rivals.append(no_ties)
        return rivals

    def rivals_of_margins(self, law):
        """Return wrong theories of the margins of KKT points."""
        half = law.clusters / 2
        averages = law.network == "averages"
        uneven = law.network == "uneven"
        of_both = law.clusters ** (1 - law.power / 2)
        linear = half ** (1 - law.power)
        linear_uneven = half / (1 + (half - 1) ** law.power)
        in_order = law.margin.dims
        yield kit.rival(
            "margins differ by k^(1 − p/2)",
            "k counts the centres of both classes",
            margin=law.margin.where(~averages, of_both).transpose(*in_order),
        )
        yield kit.rival(
            "groups of m cost m^p: margins differ by (k/2)^(1 − p)",
            "weights 1/m for each of m centres, and not 1/√m, make an average",
            margin=law.margin.where(~averages, linear)
            .where(~uneven, linear_uneven)
            .transpose(*in_order),
        )

    def rivals_of_ends(self, law):
        """Return wrong theories of where descent ends."""
        averages = (law.trained_clusters / 2) ** (1 - law.trained_power / 2)
        averages = averages.transpose(*law.end.dims)
        centres = xarray.ones_like(law.end)
        crossing = lambda at: averages.where(law.trained_power < at, 1.0)
        yield kit.rival(
            "descent ends at the smaller margin",
            "both are KKT points, and a KKT point need be no solution",
            id="other_end",
            end=np.minimum(averages, 1.0),
        )
        yield kit.rival("descent ends at centres for every p", "examples sit there", end=centres)
        yield kit.rival(
            "descent ends at averages for every p",
            "simplicity bias: as few directions as fit",
            end=averages,
        )
        yield kit.rival(
            "from averages to centres at p = 1.6",
            "descent may prefer centres before their margin is larger",
            id="early_crossing",
            end=crossing(1.6),
        )
        yield kit.rival(
            "from averages to centres at p = 2.9",
            "descent may prefer averages after their margin is smaller",
            id="late_crossing",
            end=crossing(2.9),
        )

    def controls(self, seen):
        in_place = lambda array, of: array.broadcast_like(of).transpose(*of.dims)
        tied = {
            "random_w": in_place(seen.tied_w, seen.random_w),
            "random_v": in_place(seen.tied_v, seen.random_v),
        }
        controls = [
            kit.control(
                "one neuron a class that weighs a centre twice",
                "margins differ, and the examples with the larger ones may not carry the weights",
                id="lopsided",
                residual=in_place(seen.lopsided, seen.residual),
            ),
            kit.control(
                "a random network, of median residual",
                "nothing made them optimal",
                id="random",
                residual=xarray.full_like(seen.residual, seen.random.median()),
                end_residual=xarray.full_like(seen.end_residual, seen.random.median()),
            ),
            kit.control(
                "networks of unequal weights at p = 2",
                "a gradient turns no direction in the span of its centres there",
                unequal=seen.tied,
                random=in_place(seen.tied_random, seen.random),
                **tied,
            ),
            kit.control(
                "networks whose margins are equal at p = 2, at other powers",
                "examples off the margin may carry no weights",
                id="uneven_margins",
                random=seen.tied_elsewhere,
                **tied,
            ),
            kit.control(
                "descents at the largest power in the place of the smallest, and so on",
                "what ends best at one power does not at another",
                id="other_powers",
                end=seen.end.isel(trained_power=slice(None, None, -1)),
            ),
        ]
        if 1.0 in self.powers:
            far_side = kit.control(
                "the gradients of the active side at kinks of ReLU",
                "ReLU has kinks at the centres of other neurons, and one side's gradient is not Clarke's",
                id="far_side",
                residual=seen.far_side,
            )
            controls.append(far_side)
        return controls

    def figure(self, law, seen, rivals):
        wrong = {"the smaller one": "other_end", "crossing at 2.9": "late_crossing"}
        shown = {label: rivals[id].end for label, id in wrong.items() if id in rivals}
        yield panel_of_residuals(law, seen)
        yield kit.curves(
            "Margins cross at p = 2",
            law.margin.sel(network="averages"),
            seen.margin.sel(network="averages"),
            over="clusters",
            by="power",
            x="centres k",
            y="margin of averages / of centres",
            name="p = {}",
            log="xy",
        )
        yield panel_of_ends(law, seen, shown)
