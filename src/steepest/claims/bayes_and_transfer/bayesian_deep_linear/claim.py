"""The posterior of an interpolating deep linear network mixes Gaussians of one scale, in the limit set by PΣ1/n_l.

All hidden layers enter through one number, the squared length s of their product: given s the weights are Gaussian, and
the data weigh s by s^(−P/2)e^(−PA/2s). Posterior and evidence are therefore integrals over s, exact at finite size. The
limit knows the data by their size A alone, and the network by its effective depth. Depth acts like learning the prior's
variance; at finite P it is not free, and the evidence has a best depth.

Two samplers judge it. A Gibbs chain over all matrices knows only X, y and the Gaussian prior, and integrates nothing.
Elliptical slices, for more shapes, assume the weight s^(−P/2)e^(−PA/2s): there W^(1) is integrated by theory, so that
they test the law of s under that weight, not the weight itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray

from steepest import kit
from steepest.claims.bayes_and_transfer.bayesian_deep_linear import theory
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.experiment import (
    KINDS,
    Setting,
    draw_setting,
    measure_evidence,
    read_rows,
    read_untaught,
    sample_by_gibbs,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.figure import (
    panel_of_best_variance,
    panel_of_depth,
    panel_of_evidence,
    panel_of_scale,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.point import BayesianDeepLinearPoint
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.slices import EVERY, sample_all_rows

BEST_LAYERS = (1, 4)  # of the networks of width P whose best prior variance is found
FEW_POINTS = 8  # P of networks that are far from the limit
Counts = tuple[kit.Count, ...]
Sizes = tuple[kit.Positive, ...]


@kit.claim
class BayesianDeepLinear(kit.Claim[Setting]):
    """Weights from the posterior by Gibbs and by elliptical slices, evidences from networks of the prior, limits."""

    layers: Counts = kit.param(
        (2, 2, 4, 1), "hidden layers L of the networks sampled by slices", unit="layers"
    )
    widths: Counts = kit.param((10, 10, 5, 10), "width n of all their layers", unit="neurons")
    sizes: Sizes = kit.param(
        (3.0, 0.3, 0.3, 3.0),
        "A = n_0‖θ_∥‖²/P of their data",
        scope=kit.choices(
            (3.0, 0.3, 0.3, 3.0),
            (2.0, 0.4, 0.3, 4.0),
            why="data much smaller than the prior expects take longer chains",
        ),
    )
    uneven: Counts = kit.param(
        (3, 12),
        "widths of one more network, first layer first",
        unit="neurons",
        scope=kit.choices((3, 12), (4, 16), (12, 3)),
    )
    uneven_size: kit.Positive = kit.param(
        3.0,
        "A of its data, of those of the evidence and of the limit",
        scope=kit.between(2.0, 3.0, "the evidence of larger data rests on rare networks"),
    )
    points: kit.Count = kit.param(
        10, "data P", scope=kit.between(8, 12, "layers of the Gibbs chain are wider than the data")
    )
    inputs: kit.Count = kit.param(20, "input dimension n_0", scope=kit.between(18, 24))
    chains: kit.Seeds = kit.param(32, "chains for each network")
    sweeps: kit.Count = kit.param(1300, "of each chain", unit="sweeps")
    burn: kit.Count = kit.param(100, "sweeps that are not recorded", unit="sweeps")
    gibbs_widths: Counts = kit.param(
        (15, 15),
        "of the networks sampled by Gibbs",
        unit="neurons",
        scope=kit.choices((15, 15), (20, 14), (18,), why="all layers are wider than the data"),
    )
    gibbs_sizes: Sizes = kit.param(
        (3.0, 0.3),
        "A of their data, Gaussian and digits",
        scope=kit.choices((3.0, 0.3), (4.0, 0.4), (2.0, 0.3)),
    )
    gibbs_chains: kit.Seeds = kit.param(64, "for each data")
    gibbs_sweeps: kit.Count = kit.param(700, "of each chain", unit="sweeps")
    gibbs_burn: kit.Count = kit.param(100, "of them not recorded", unit="sweeps")
    evidence_layers: Counts = kit.param(
        (1, 2, 4, 8, 16), "depths L at which the evidence is measured", unit="layers"
    )
    evidence_points: kit.Count = kit.param(
        8, "P and width of these networks", scope=kit.between(6, 8, "as for the size of the data")
    )
    networks: kit.Count = kit.param(3000, "of the prior in each group")
    groups: kit.Seeds = kit.param(20, "groups, over which the evidence has an interval")
    depths: Sizes = kit.param(
        (0.5, 2.0, 8.0),
        "λ = PΣ1/n_l of the limit",
        scope=kit.choices((0.5, 2.0, 8.0), (0.3, 1.0, 4.0)),
    )
    limit_points: kit.Count = kit.param(
        256, "P of the networks compared with the limit", scope=kit.between(256, 1024)
    )

    kind = "theorem"
    says = {
        "The posterior of an interpolating deep linear network mixes Gaussians of one scale": (
            "gibbs_scale",
            "gibbs_perp",
            "gibbs_spread",
            "perp",
            "spread",
        ),
        "in the limit set by PΣ1/n_l": "limit",
    }
    statement = (
        r"\theta=\theta_\parallel+\theta_\perp,\qquad "
        r"\theta_\perp\,|\,s\sim N\big(0,\tfrac{s}{n_0}\Pi_\perp\big),\qquad "
        r"p(s\,|\,X,y)\propto s^{-P/2}e^{-PA/2s}\,p\Big(s=\prod_{l=1}^{L}\frac{\chi^2_{n_l}}{n_l}\Big),\qquad "
        r"s\to e^{u},\quad u=\lambda\,(Ae^{-u}-1),\quad \lambda=P\sum_l\frac1{n_l}"
    )
    source = "Lecture of 7 December in [@hanin2022]; [@hanin2023]"
    corrections = (
        "The notes let ‖θ_⊥‖ tend to ‖θ_∥‖²/α as λ → ∞ (as far as the scan can be read). It is "
        "‖θ_⊥‖² → ‖θ_∥‖²(1 − α)/α; ‖θ_∥‖²/α is the best prior variance, α = P/n_0.",
        "The notes call λ → ∞ optimal. That is so as P → ∞; at finite P the evidence has a best depth and falls "
        "beyond it.",
        "The best prior variance is A for every architecture only as P → ∞. At finite size its logarithm is larger by "
        "m − q/m, m = 1/P + Σ1/n_l and q = 1/P² + Σ1/n_l², to leading order: by L/P where n_l = P.",
    )
    remarks = (
        "Variances are one over fan-in (σ = 1); another σ only rescales A.",
        "The Gibbs chain draws every matrix in turn from its Gaussian conditional on exact interpolation of X and y, "
        "given the others; Gaussian data and digits. The digits' targets are labels, scaled to the size A, and their "
        "inputs are the most variable pixels.",
        "Elliptical slices sample W^(2) to W^(L+1) with W^(1) integrated over; W^(1) is drawn from its conditional "
        "Gaussian afterwards, and θ is read off the product. Only A enters these chains.",
        "The checks of limits and of the best variance compare the exact law with its limit and sample nothing; the "
        "networks above are what the exact law is tested on.",
        "With P = n = 20 and A = 3 the evidence is largest near L = 8: log Z(L)/Z(0) = 4.7, 6.4, 6.6, 6.5, 5.5 for "
        "L = 1, 4, 8, 16, 64. At P = n = 8 it is largest between 2 and 4. Where A = 1 every hidden layer lowers it.",
        "The Gibbs chain needs n_l > P. Where n_l ≤ P, W^(l)⋯W^(1)X has rank n_l, and interpolation pins the row "
        "W^(L+1)⋯W^(l+1) above it: no update moves it, and the chain is reducible. That of l = 1 has squared length s, "
        "so that s keeps its first value if and only if n_1 ≤ P.",
        "Where only an upper layer is narrow, n_l ≤ P < n_1, s moves, but with that row fixed, and its law is not the "
        "posterior. Tests show all three cases.",
    )
    history = (
        kit.Version(
            1,
            "margins of 3.5 and 5 % for the two moments of θ_⊥ by slices",
            seeds="15 of 20 hold, 5 are inconclusive",
        ),
        kit.Version(
            2,
            "margins of 4.5 and 6.5 % there",
            "five of twenty seeds of version 1 were inconclusive",
        ),
        kit.Version(
            3,
            "a Gibbs chain over all layers",
            "no check tested the weight s^(−P/2)e^(−PA/2s) by data: the samplers assumed it",
            seeds="17 of 20 hold, 3 are inconclusive",
        ),
        kit.Version(
            4,
            "one law over all data and one over all networks, with intervals that hold at once; margins are 2.5, 3 and "
            "4 % by Gibbs, 5 and 6.5 % by slices; Gaussian data and digits at both sizes, longer Gibbs chains; the "
            "deepest network sees small data and the shallow one large",
            "the law of the Gibbs chains held when reversed, as its first and last data had one size; a constant "
            "spread over the networks would have passed",
            seeds="4 of 6 hold, 2 are inconclusive",
        ),
    )
    shared = {
        "steepest.bayes._scale_mixture.scale_mixture": (
            "no sampler calls it: what is observed with it are large networks, which are compared with the limit alone"
        ),
        "steepest.bayes._scale_mixture.limit_scale": (
            "observed is the distance of finite networks to it, which would not fall if it were wrong"
        ),
    }
    tiny = {
        "chains": 4,
        "sweeps": 400,
        "burn": 200,
        "gibbs_chains": 8,
        "gibbs_sweeps": 150,
        "networks": 100,
        "groups": 3,
    }
    full = {
        "layers": (2, 2, 4, 1, 8),
        "widths": (10, 10, 5, 10, 10),
        "sizes": (3.0, 0.3, 0.3, 3.0, 3.0),
        "sweeps": 4000,
        "burn": 200,
        "gibbs_sweeps": 2000,
        "networks": 10_000,
        "depths": (0.5, 2.0, 8.0, 32.0),
        "limit_points": 1024,
    }
    out_of_scope = {"points": 20}
    point = BayesianDeepLinearPoint

    # ------------------------------------------------------------------------------------------- the design

    @property
    def architectures(self) -> list[tuple[int, ...]]:
        """Return the hidden widths of each network sampled by slices, the uneven one last."""
        even = [(n,) * layers for n, layers in zip(self.widths, self.layers, strict=True)]
        return [*even, self.uneven]

    @property
    def all_sizes(self) -> tuple[float, ...]:
        """Return A of the data of each of these networks."""
        return (*self.sizes, self.uneven_size)

    @property
    def names(self) -> list[str]:
        """Return what these networks are called."""
        return [
            f"L = {len(widths)}, n = {', '.join(map(str, sorted(set(widths))))}, A = {size:g}"
            for widths, size in zip(self.architectures, self.all_sizes, strict=True)
        ]

    @property
    def off(self) -> int:
        """Return n_0 − P, the number of directions off the data's span."""
        return self.inputs - self.points

    @property
    def limit_sizes(self) -> tuple[float, float]:
        """Return A of the data of the limit, larger and smaller than the prior expects."""
        return (self.uneven_size, 1 / self.uneven_size)

    @property
    def many(self) -> tuple[float, ...]:
        """Return the numbers of data P at which the distance to limits is found."""
        return tuple(self.limit_points * factor for factor in (0.25, 0.5, 1.0, 2.0))

    def axes(self) -> dict[str, Any]:
        return {
            "kind": KINDS,
            "gibbs_size": self.gibbs_sizes,
            "network": tuple(self.names),
            "layers": self.evidence_layers,
            "architecture": ("equal widths", "two widths in turn"),
            "limit_size": self.limit_sizes,
            "depth": self.depths,
            "many": self.many,
            "best_layers": BEST_LAYERS,
        }

    def check_fields(self) -> None:
        kit.same_lengths(self, "layers", "widths", "sizes")
        if len(self.evidence_layers) < 2:
            raise kit.UserError(
                f"bayesian-deep-linear: expected two depths or more whose evidence is compared, got evidence_layers = "
                f"{self.evidence_layers}; try 1 4 16"
            )
        if self.gibbs_sweeps <= self.gibbs_burn + 1 or self.sweeps < self.burn + 2 * EVERY:
            raise kit.UserError(
                f"bayesian-deep-linear: expected two records or more beyond burn, got gibbs_sweeps = "
                f"{self.gibbs_sweeps}, gibbs_burn = {self.gibbs_burn}, sweeps = {self.sweeps} and burn = {self.burn}; "
                "raise the sweeps"
            )

    def setting(self, key: kit.Key) -> Setting:
        return draw_setting(key, self.inputs, self.points, self.all_sizes, self.gibbs_sizes)

    def hypotheses(self, setting: Setting) -> list[kit.Hypothesis]:
        worst = min(data.conditioning for data in (*setting.slices, *setting.gibbs))
        narrowest = min(self.limit_points / depth for depth in self.depths)
        size = self.uneven_size
        # of s^(−P/2) e^(−PA/2s + PA/2), at s = A
        heaviest = self.evidence_points / 2 * (size - 1 - np.log(size))
        return [
            kit.assume(
                "data P",
                self.points,
                "<",
                self.inputs,
                "as many data as inputs leave at most one interpolant; lower --points",
            ),
            kit.assume(
                "width of the Gibbs chain's networks",
                min(self.gibbs_widths),
                ">",
                self.points,
                "no update moves s where layers are no wider than the data; raise --gibbs-widths",
            ),
            kit.assume("least singular value of X", worst, ">", 1e-6, "X must have full rank"),
            kit.assume(
                "logarithm of the largest weight in the evidence",
                heaviest,
                "<=",
                4,
                "rare networks would decide; lower --uneven-size or --evidence-points",
            ),
            kit.assume(
                "widths of the limit over λ",
                theory.LIMIT_LAYERS * narrowest,
                ">",
                100,
                "raise --limit-points",
            ),
        ]

    # ------------------------------------------------------------------------------------------------ theory

    def predict(self, setting: Setting) -> kit.Prediction:
        limit = theory.limit_scales(self.depths, self.limit_sizes)
        evidence = [self.evidence_at(layers) for layers in self.evidence_layers]
        many = np.array(self.many)
        return kit.law(
            **self.of_gibbs(self.gibbs_widths, self.points),
            **self.of_networks(self.architectures),
            evidence=("layers", evidence),
            limit=("architecture limit_size depth", np.stack([limit, limit])),
            gap=("many", 1 / many),  # up to a factor
            best_variance=("best_layers many", np.array(BEST_LAYERS)[:, None] / many),
        )

    def of_gibbs(self, widths: tuple[int, ...], power: float) -> dict[str, Any]:
        """Return the laws of the Gibbs chains, with s weighted by s^(−power/2)e^(−PA/2s)."""
        moments = [
            theory.scale_moments(widths, self.points, size, power) for size in self.gibbs_sizes
        ]
        first, second = np.array(moments).T
        on_both = lambda law: ("kind gibbs_size", np.stack([law] * len(KINDS)))
        return {
            "gibbs_scale": on_both(first),
            "gibbs_perp": on_both(first * self.off / self.inputs),
            "gibbs_spread": on_both(theory.spread(first, second, self.off)),
        }

    def of_networks(self, architectures: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Return the laws of networks sampled by slices."""
        moments = [
            theory.scale_moments(widths, self.points, size)
            for widths, size in zip(architectures, self.all_sizes, strict=True)
        ]
        first, second = np.array(moments).T
        return {
            "perp": ("network", first * self.off / self.inputs),
            "spread": ("network", theory.spread(first, second, self.off)),
        }

    def evidence_at(self, layers: int) -> float:
        """Return Z(L)/Z(0) of the networks of the evidence."""
        return theory.evidence_ratio(layers, self.evidence_points, self.uneven_size)

    def limit_evidence_at(self, layers: int) -> float:
        """Return what the limit of many data says of it."""
        return theory.limit_evidence(layers, self.evidence_points, self.uneven_size)

    # -------------------------------------------------------------------------------------------- experiment

    def observe(self, setting: Setting, key: kit.Key) -> kit.Observation:
        rng = kit.numpy_generator(key)
        rows = sample_all_rows(
            self.architectures,
            self.points,
            self.all_sizes,
            key,
            chains=self.chains,
            sweeps=self.sweeps,
            burn=self.burn,
        )
        posterior = read_rows(rows, setting.slices, rng)
        whole = sample_by_gibbs(
            setting.gibbs,
            self.gibbs_widths,
            chains=self.gibbs_chains,
            sweeps=self.gibbs_sweeps,
            burn=self.gibbs_burn,
            rng=rng,
        )
        untaught = read_untaught(
            self.architectures,
            self.gibbs_widths,
            self.inputs,
            self.off,
            rng,
            chains=self.chains,
            gibbs_chains=self.gibbs_chains,
        )
        evidence = measure_evidence(
            self.evidence_layers,
            self.evidence_points,
            self.uneven_size,
            groups=self.groups,
            networks=self.networks,
            rng=rng,
        )
        middle = self.depths[len(self.depths) // 2]
        return kit.seen(
            **posterior,
            **whole,
            **untaught,
            evidence=("group layers", evidence),
            limit=("architecture limit_size depth", self.finite_scales(self.limit_points)),
            far=("architecture limit_size depth", self.finite_scales(FEW_POINTS)),
            gap=("many", theory.gaps_to_limit(self.many, middle, self.uneven_size)),
            best_variance=(
                "best_layers many",
                theory.excess_of_best_variance(self.many, BEST_LAYERS, self.uneven_size),
            ),
        )

    def finite_scales(self, points: int) -> kit.Values:
        """Return the exact E s of networks with many layers and P data, at every size and effective depth."""
        return theory.finite_scales(points, self.depths, self.limit_sizes)

    def run_conditions(self, observed: kit.Observation) -> list[kit.Hypothesis]:
        return [
            kit.assume(
                "Gibbs sweeps not recorded over correlation time",
                self.gibbs_burn / observed["gibbs_time"].max(),
                ">",
                5,
                "raise --gibbs-burn",
            ),
            kit.assume(
                "sweeps not recorded over correlation time",
                self.burn / (EVERY * observed["time"].max()),
                ">",
                5,
                "raise --burn",
            ),
        ]

    # ------------------------------------------------------------------------------------------- the verdict

    def judge(self, law: xarray.Dataset, seen: xarray.Dataset) -> list[kit.Check]:
        return [
            *self.judge_samplers(law, seen),
            *self.judge_evidence(law, seen),
            *self.judge_limits(law, seen),
            *self.judge_programs(seen),
        ]

    def judge_samplers(self, law: xarray.Dataset, seen: xarray.Dataset) -> list[kit.Check]:
        """Compare moments of whole networks with the law, by Gibbs and by slices."""
        # margins are about twice the half-width of intervals that hold at all points at once
        return [
            kit.follows(
                "gibbs_scale",
                law.gibbs_scale,
                seen.gibbs_scale,
                0.025,
                label="E s by Gibbs over all layers",
            ),
            kit.follows(
                "gibbs_perp",
                law.gibbs_perp,
                seen.gibbs_perp,
                0.03,
                label="E‖θ_⊥‖² by Gibbs over all layers",
            ),
            kit.follows(
                "gibbs_spread",
                law.gibbs_spread,
                seen.gibbs_spread,
                0.04,
                label="E‖θ_⊥‖⁴/(E‖θ_⊥‖²)² by Gibbs over all layers",
            ),
            kit.follows("perp", law.perp, seen.perp, 0.05, label="E‖θ_⊥‖² by slices"),
            kit.follows(
                "spread", law.spread, seen.spread, 0.065, label="E‖θ_⊥‖⁴/(E‖θ_⊥‖²)² by slices"
            ),
        ]

    def judge_evidence(self, law: xarray.Dataset, seen: xarray.Dataset) -> list[kit.Check]:
        """Compare the evidence of every depth, and of the first, the best and the last depth in their order."""
        best = int(np.argmax(law.evidence.values))
        turns = sorted({0, best, law.sizes["layers"] - 1})
        return [
            kit.follows(
                "evidence",
                law.evidence,
                seen.evidence,
                0.06,  # intervals are 1 to 3 %, the widest at the deepest
                label=f"evidence Z(L)/Z(0), P = n = {self.evidence_points}",
            ),
            kit.ranks(
                "evidence_order",
                law.evidence.isel(layers=turns),
                seen.evidence.isel(layers=turns),
                over="layers",
                label="evidence rises with depth, then falls",
            ),
        ]

    def judge_limits(self, law: xarray.Dataset, seen: xarray.Dataset) -> list[kit.Check]:
        """Compare exact values at finite size with their limits."""
        return [
            kit.follows(
                "limit",
                law.limit,
                seen.limit,
                0.005,  # P and L are finite: 1/P is 0.004
                label="exact E s of large networks",
            ),
            kit.power(
                "rate",
                law.gap,
                seen.gap,
                0.03,
                over="many",
                label="distance to the limit against P",
            ),
            kit.follows(
                "best_variance",
                law.best_variance,
                seen.best_variance,
                0.01,  # of order 1/P
                label="log(σ̃²/A) at the largest evidence, n = P",
            ),
        ]

    def judge_programs(self, seen: xarray.Dataset) -> list[kit.Check]:
        """Check what holds by construction: these test the programs, not the theory."""
        why = "W^(1) is drawn so: it tests the program, not the theory"
        residual = np.append(seen.residual, seen.gibbs_residual)
        interpolates = kit.agrees(
            "interpolates", xarray.DataArray(residual), 1e-9, label="‖Xᵀθ − y‖/‖y‖"
        )
        direction = kit.follows(
            "direction",
            0.0,
            seen.along.mean("network"),
            0.02,
            absolute=True,
            label="mean component of θ_⊥ along one direction",
        )
        return [kit.idle(interpolates, why), kit.idle(direction, why)]

    # ------------------------------------------------------------------------- wrong theories, changed worlds

    def rivals(self, setting: Setting, law: xarray.Dataset) -> list[kit.Rival]:
        return [
            *self.rivals_of_architecture(law),
            *self.rivals_of_posterior(law),
            *self.rivals_of_limits(law),
        ]

    def rivals_of_architecture(self, law: xarray.Dataset) -> list[kit.Rival]:
        """Return wrong theories of how the layers enter."""
        no_layers = [()] * len(self.architectures)
        fewer = [widths[1:] for widths in self.architectures]
        averaged = [(float(np.mean(widths)),) * len(widths) for widths in self.architectures]
        harmonic_over_mean = 4 * theory.RATIO / (1 + theory.RATIO) ** 2
        return [
            kit.rival(
                "kernel",
                "wide networks are Gaussian processes",
                label="the kernel's posterior, s = 1",
                **self.of_networks(no_layers),
                **self.of_gibbs((), self.points),
                evidence=xarray.ones_like(law.evidence),
                limit=self.limit_at(1e-9, 1e-9),
            ),
            kit.rival(
                "one_layer_fewer",
                "a network of L + 1 matrices has L − 1 inner ones",
                label="a hidden layer fewer",
                **self.of_networks(fewer),
                **self.of_gibbs(self.gibbs_widths[1:], self.points),
                evidence=("layers", [self.evidence_at(n - 1) for n in self.evidence_layers]),
            ),
            kit.rival(
                "mean_width",
                "L/n with the mean width",
                label="the mean width in place of Σ1/n_l",
                **self.of_networks(averaged),
                limit=self.limit_at(1.0, harmonic_over_mean),
            ),
            kit.rival(
                "no_points",
                "the prior's effective depth",
                label="effective depth Σ1/n_l without P",
                limit=self.limit_at(1 / self.limit_points, 1 / self.limit_points),
            ),
        ]

    def limit_at(self, equal: float, in_turn: float) -> tuple[str, np.ndarray]:
        """Return s of the limit at multiples of λ, one for each architecture."""
        scales = [
            theory.limit_scales([factor * depth for depth in self.depths], self.limit_sizes)
            for factor in (equal, in_turn)
        ]
        return ("architecture limit_size depth", np.stack(scales))

    def rivals_of_posterior(self, law: xarray.Dataset) -> list[kit.Rival]:
        """Return wrong theories of the weight of s, and of θ given s."""
        one_scale = (self.off + 2) / self.off
        return [
            kit.rival(
                "one_gaussian",
                "it has the right mean square",
                label="one Gaussian in place of a mixture",
                spread=xarray.full_like(law.spread, one_scale),
                gibbs_spread=xarray.full_like(law.gibbs_spread, one_scale),
            ),
            kit.rival(
                "power_less",
                "a direction less is constrained",
                label="weight s^(−(P−1)/2)e^(−PA/2s)",
                **self.of_gibbs(self.gibbs_widths, self.points - 1),
            ),
            kit.rival(
                "power_more",
                "a direction more is constrained",
                label="weight s^(−(P+1)/2)e^(−PA/2s)",
                **self.of_gibbs(self.gibbs_widths, self.points + 1),
            ),
            kit.rival(
                "no_share",
                "the factor that the printed limit of infinite depth lacks, here at finite depth",
                label="‖θ_⊥‖² without the factor 1 − α",
                perp=law.perp * self.inputs / self.off,
                gibbs_perp=law.gibbs_scale,
            ),
        ]

    def rivals_of_limits(self, law: xarray.Dataset) -> list[kit.Rival]:
        """Return wrong theories of evidence, rate and best variance."""
        limit = [self.limit_evidence_at(layers) for layers in self.evidence_layers]
        return [
            kit.rival(
                "deeper_is_better",
                "it is so as P → ∞",
                label="evidence of the limit, which grows with depth",
                evidence=("layers", limit),
            ),
            kit.rival(
                "half_rate",
                "the spread of s is of order P^−½",
                label="distance to the limit ∝ P^−½",
                gap=law.gap**0.5,
            ),
            kit.rival(
                "exact_variance",
                "the printed limit of the best variance, taken at finite P",
                label="the best prior variance is A at every P",
                best_variance=1e-9 * law.best_variance,
            ),
            kit.rival(
                "mean_for_mode",
                "it takes the mean of log σ̃² for its mode",
                label="P log(σ̃²/A) = L + 1",
                best_variance=law.best_variance * (law.best_layers + 1) / law.best_layers,
            ),
        ]

    def controls(self, seen: xarray.Dataset) -> list[kit.Control]:
        on_all_data = lambda untaught: untaught.broadcast_like(seen.gibbs_scale)
        return [
            kit.control(
                "prior",
                "they never saw the data",
                label="networks of the prior",
                perp=seen.prior_perp,
                spread=seen.prior_spread,
                gibbs_scale=on_all_data(seen.prior_gibbs_scale),
                gibbs_perp=on_all_data(seen.prior_gibbs_perp),
                gibbs_spread=on_all_data(seen.prior_gibbs_spread),
            ),
            kit.control(
                "few_points",
                "the limit is one of many data",
                label=f"networks of the same effective depths, P = {FEW_POINTS}",
                limit=seen.far,
            ),
        ]

    # --------------------------------------------------------------------------------------------- the figure

    def figure(
        self, law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
    ) -> tuple[kit.Panel, ...]:
        layers = list(range(1, max(self.evidence_layers) + 1))
        effective = [self.points * sum(1 / n for n in widths) for widths in self.architectures]
        return (
            panel_of_depth(effective, self.all_sizes, law, seen, self.inputs / self.off),
            panel_of_scale(
                self.names[0], self.architectures[0], self.points, self.all_sizes[0], seen
            ),
            panel_of_evidence(
                f"Evidence has a best depth, P = n = {self.evidence_points}",
                layers,
                [self.evidence_at(n) for n in layers],
                [self.limit_evidence_at(n) for n in layers],
                seen,
            ),
            panel_of_best_variance(law, seen),
        )
