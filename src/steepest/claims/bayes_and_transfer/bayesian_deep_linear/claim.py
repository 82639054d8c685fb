"""The posterior of a deep linear network that fits its data mixes Gaussians over one random scale.

For data larger than the prior expects, the evidence has a best depth. All hidden layers enter through one number, the
squared length s of their product. Given s the weights are Gaussian. P examples weigh s by s^(−P/2)e^(−PA/2s), which
depends on the data only through their size A. So posterior and evidence are integrals over s, exact at finite size.
Depth acts like learning the prior's variance, but at finite P depth has a cost: for data larger than the prior expects,
A > 1, the evidence rises with depth and then falls. A prediction f(x) is not Gaussian, though the notes print a
Gaussian law. Its variance is E s‖x_⊥‖²/n_0, where x_⊥ is the part of x off the data's span, and its fourth moment is
larger than a Gaussian's by the factor E s²/(E s)².

A Gibbs chain over all matrices tests the posterior. The chain knows only X, y and the Gaussian prior, and uses no
integral. The evidence is a mean over networks from the prior, each weighed by the Gaussian density of y given its upper
layers.

With many data and many layers s tends to e^u, where u = λ(Ae^(−u) − 1) and λ = PΣ1/n_l. This limit is not tested here,
because such a test compares the exact integral with its limit and samples nothing. Tests of the library do this.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray

from steepest import kit
from steepest.claims.bayes_and_transfer.bayesian_deep_linear import theory
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.data import Data
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.experiment import (
    KINDS,
    draw_setting,
    measure_evidence,
    sample_posterior,
    sample_prior,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.figure import (
    panel_of_depth,
    panel_of_evidence,
    panel_of_scale,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.point import BayesianDeepLinearPoint

Counts = tuple[kit.Count, ...]
Sizes = tuple[kit.Positive, ...]
Setting = tuple[Data, ...]


@kit.claim
class BayesianDeepLinear(kit.Claim[Setting]):
    """Whole networks from the posterior by Gibbs, and evidences from networks of the prior."""

    layers: Counts = kit.param((1, 2), "hidden layers L of the networks", unit="layers")
    widths: Counts = kit.param(
        (18, 15),
        "width n of all their layers",
        unit="neurons",
        scope=kit.choices((18, 15), (16, 14), (20, 15), why="all layers are wider than the data"),
    )
    uneven: Counts = kit.param(
        (14, 35),
        "widths of one more network, first layer first",
        unit="neurons",
        scope=kit.choices((14, 35), (35, 14), (15, 40), why="as above"),
    )
    sizes: Sizes = kit.param(
        (3.0, 0.3),
        "A = n_0‖θ_∥‖²/P of their data, Gaussian and digits",
        scope=kit.choices((3.0, 0.3), (4.0, 0.4), (2.0, 0.3)),
    )
    points: kit.Count = kit.param(
        10, "data P", scope=kit.between(8, 12, "layers are wider than the data")
    )
    inputs: kit.Count = kit.param(20, "input dimension n_0", scope=kit.between(18, 24))
    chains: kit.Seeds = kit.param(64, "Gibbs chains for each data and network")
    sweeps: kit.Count = kit.param(600, "sweeps of each chain", unit="sweeps")
    burn: kit.Count = kit.param(120, "sweeps that are not recorded", unit="sweeps")
    evidence_layers: Counts = kit.param(
        (1, 2, 4, 8, 16), "depths L at which the evidence is measured", unit="layers"
    )
    evidence_points: kit.Count = kit.param(
        8, "P and width of these networks", scope=kit.between(7, 8, "as for the size of the data")
    )
    evidence_size: kit.Positive = kit.param(
        3.0,
        "A of their data",
        scope=kit.between(
            2.8,
            3.1,
            "smaller data want one layer; the evidence of larger data rests on rare networks",
        ),
    )
    networks: kit.Count = kit.param(6000, "networks of the prior in each group")
    groups: kit.Seeds = kit.param(20, "groups, over which the evidence has an interval")

    kind = "theorem"
    says = {
        "The posterior of a deep linear network that fits its data mixes Gaussians over one random scale": (
            "scale",
            "perp",
            "spread",
        ),
        "the evidence has a best depth": ("evidence", "evidence_order"),
    }
    tiny = {"chains": 8, "sweeps": 200, "networks": 100, "groups": 3}
    full = {"layers": (1, 2, 4), "widths": (18, 15, 15), "sweeps": 2000, "networks": 20_000}
    out_of_scope = {"points": 20}
    point = BayesianDeepLinearPoint

    # ------------------------------------------------------------------------------------------- the design

    @property
    def architectures(self) -> list[tuple[int, ...]]:
        """Return the hidden widths of each network, the uneven one last."""
        even = [(n,) * layers for n, layers in zip(self.widths, self.layers, strict=True)]
        return [*even, self.uneven]

    @property
    def off(self) -> int:
        """Return n_0 − P, the number of directions off the data's span."""
        return self.inputs - self.points

    def axes(self):
        return {
            "kind": KINDS,
            "size": self.sizes,
            "network": tuple(f"n = {', '.join(map(str, widths))}" for widths in self.architectures),
            "layers": self.evidence_layers,
        }

    def check_fields(self) -> None:
        kit.same_lengths(self, "layers", "widths")
        if len(self.evidence_layers) < 3:
            raise kit.UserError(
                f"bayesian-deep-linear: expected three depths or more whose evidence is compared, got evidence_layers "
                f"= {self.evidence_layers}; try 1 4 16"
            )
        if self.sweeps <= self.burn + 1:
            raise kit.UserError(
                f"bayesian-deep-linear: expected two records or more beyond burn, got sweeps = {self.sweeps} and burn "
                f"= {self.burn}; raise the sweeps"
            )

    def setting(self, key):
        return draw_setting(key, self.inputs, self.points, self.sizes)

    def hypotheses(self, setting):
        size = self.evidence_size
        # of s^(−P/2) e^(−PA/2s + PA/2), at s = A
        heaviest = self.evidence_points / 2 * (size - 1 - np.log(size))
        best = int(np.argmax(self.evidences()))
        yield kit.assume(
            "data P",
            self.points,
            "<",
            self.inputs,
            "as many data as inputs leave at most one interpolant; lower --points",
        )
        yield kit.assume(
            "narrowest hidden layer",
            min(map(min, self.architectures)),
            ">",
            self.points,
            "no update moves s where layers are no wider than the data; raise --widths",
        )
        yield kit.assume(
            "least singular value of X",
            min(data.conditioning for data in setting),
            ">",
            1e-6,
            "X must have full rank",
        )
        yield kit.assume(
            "logarithm of the largest weight in the evidence",
            heaviest,
            "<=",
            4,
            "rare networks would decide; lower --evidence-size or --evidence-points",
        )
        yield kit.assume(
            "depths measured on either side of the best",
            min(best, len(self.evidence_layers) - 1 - best),
            ">",
            0,
            "the evidence turns outside of them; choose other --evidence-layers",
        )

    # ------------------------------------------------------------------------------------------------ theory

    def predict(self, setting):
        return kit.law(
            **self.of_networks(self.architectures, self.points),
            evidence=("layers", self.evidences()),
        )

    def of_networks(self, architectures: Sequence[Sequence[float]], power: float) -> dict[str, Any]:
        """Return the laws of all networks, with s weighted by s^(−power/2)e^(−PA/2s); kinds of data do not differ."""
        moments = [
            [theory.scale_moments(widths, self.points, size, power) for widths in architectures]
            for size in self.sizes
        ]
        first, second = np.moveaxis(np.array([moments] * len(KINDS)), -1, 0)
        laws = {
            # θ_⊥ is N(0, (s/n_0)I) given s, and f(x) − θ_∥ᵀx is N(0, s‖x_⊥‖²/n_0),
            # whose fourth moment is three times the square of its second
            "scale": first,
            "perp": first * self.off / self.inputs,
            "spread": theory.spread(first, second, self.off),
            "prediction": first / self.inputs,
            "tails": 3 * second / first**2,
        }
        return {name: ("kind size network", law) for name, law in laws.items()}

    def evidences(self, fewer: int = 0) -> list[float]:
        """Return Z(L)/Z(0) of the networks of the evidence, or of some with fewer layers."""
        return [
            theory.evidence_ratio(layers - fewer, self.evidence_points, self.evidence_size)
            for layers in self.evidence_layers
        ]

    def limit_evidence_at(self, layers: int) -> float:
        """Return what the limit of many data says of it."""
        return theory.limit_evidence(layers, self.evidence_points, self.evidence_size)

    # -------------------------------------------------------------------------------------------- experiment

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        posterior = sample_posterior(
            setting,
            self.architectures,
            chains=self.chains,
            sweeps=self.sweeps,
            burn=self.burn,
            rng=rng,
        )
        prior = sample_prior(self.architectures, self.inputs, self.off, self.chains, rng)
        evidence = measure_evidence(
            self.evidence_layers,
            self.evidence_points,
            self.evidence_size,
            groups=self.groups,
            networks=self.networks,
            rng=rng,
        )
        return kit.seen(**posterior, **prior, **evidence)

    def run_conditions(self, observed):
        yield kit.assume(
            "sweeps not recorded over correlation time",
            self.burn / observed["time"].max(),
            ">",
            5,
            "raise --burn",
        )
        yield kit.assume(
            "largest ‖Xᵀθ − y‖/‖y‖",
            observed["residual"].max(),
            "<",
            1e-9,
            "networks must interpolate",
        )

    # ------------------------------------------------------------------------------------------- the verdict

    def judge(self, law, seen):
        yield from self.judge_posterior(law, seen)
        yield from self.judge_evidence(law, seen)

    def judge_posterior(self, law, seen):
        """Compare moments of whole networks with the law, at all data and networks."""
        # 3 % is about twice the half-width of intervals that hold at all points at once
        yield kit.follows("scale", law.scale, seen.scale, 0.03, label="E s")
        yield kit.follows("perp", law.perp, seen.perp, 0.03, label="E‖θ_⊥‖²")
        yield kit.follows("spread", law.spread, seen.spread, 0.03, label="E‖θ_⊥‖⁴/(E‖θ_⊥‖²)²")
        yield kit.follows(
            "prediction",
            law.prediction,
            seen.prediction,
            0.04,  # the interval is 2 %
            label="E(f(x) − θ_∥ᵀx)²/‖x_⊥‖² at new inputs",
        )
        yield kit.follows(
            "tails",
            law.tails,
            seen.tails,
            0.05,  # the interval is 2 to 2.5 %, and a normal law is 16 % away
            label="its fourth moment over the square",
        )

    def judge_evidence(self, law, seen):
        """Compare the evidence of every depth, and of the first, the best and the last depth in their order."""
        turns = sorted({0, int(np.argmax(law.evidence.values)), law.sizes["layers"] - 1})
        yield kit.follows(
            "evidence",
            law.evidence,
            seen.evidence,
            0.06,  # intervals are 1.5 to 3 %, the widest at the deepest
            label=f"evidence Z(L)/Z(0), P = n = {self.evidence_points}",
        )
        yield kit.ranks(
            "evidence_order",
            law.evidence.isel(layers=turns),
            seen.evidence.isel(layers=turns),
            over="layers",
            label="evidence rises with depth, then falls",
        )

    # ------------------------------------------------------------------------- wrong theories, changed worlds

    def rivals(self, setting, law):
        yield from self.rivals_of_layers(law)
        yield from self.rivals_of_posterior(law)

    def rivals_of_layers(self, law):
        """Return wrong theories of how the layers enter."""
        no_layers = [()] * len(self.architectures)
        fewer = [widths[1:] for widths in self.architectures]
        averaged = [(float(np.mean(widths)),) * len(widths) for widths in self.architectures]
        limit = [self.limit_evidence_at(layers) for layers in self.evidence_layers]
        yield kit.rival(
            "the kernel's posterior, s = 1",
            "wide networks are Gaussian processes",
            id="kernel",
            **self.of_networks(no_layers, self.points),
            evidence=xarray.ones_like(law.evidence),
        )
        yield kit.rival(
            "a hidden layer fewer",
            "a network of L + 1 matrices has L − 1 inner ones",
            **self.of_networks(fewer, self.points),
            evidence=("layers", self.evidences(fewer=1)),
        )
        yield kit.rival(
            "the mean width in place of each layer's own",
            "L/n with the mean width",
            **self.of_networks(averaged, self.points),
        )
        yield kit.rival(
            "evidence of the limit, which grows with depth",
            "it is so as P → ∞",
            evidence=("layers", limit),
        )

    def rivals_of_posterior(self, law):
        """Return wrong theories of the weight of s, and of θ given s."""
        yield kit.rival(
            "one Gaussian in place of a mixture",
            "it has the right mean square",
            spread=xarray.full_like(law.spread, (self.off + 2) / self.off),
        )
        yield kit.rival(
            "a normal law of each prediction",
            "so the notes; it has the right variance",
            tails=xarray.full_like(law.tails, 3.0),
        )
        yield kit.rival(
            "θ_⊥ of one length, in any direction",
            "a direction by chance, and ‖θ_⊥‖ that is nearly constant",
            tails=xarray.full_like(law.tails, 3 * self.off / (self.off + 2)),
        )
        yield kit.rival(
            "weight s^(−(P−1)/2)e^(−PA/2s)",
            "a direction less is constrained",
            id="power_less",
            **self.of_networks(self.architectures, self.points - 1),
        )
        yield kit.rival(
            "weight s^(−(P+1)/2)e^(−PA/2s)",
            "a direction more is constrained",
            id="power_more",
            **self.of_networks(self.architectures, self.points + 1),
        )
        yield kit.rival(
            "‖θ_⊥‖² without the factor 1 − α",
            "the factor that the printed limit of infinite depth lacks, here at finite depth",
            perp=law.scale,
        )

    def controls(self, seen):
        on_all_data = lambda untaught: untaught.broadcast_like(seen.scale)
        yield kit.control(
            "networks of the prior",
            "they never saw the data",
            id="prior",
            scale=on_all_data(seen.prior_scale),
            perp=on_all_data(seen.prior_perp),
            spread=on_all_data(seen.prior_spread),
            prediction=on_all_data(seen.prior_prediction),
            tails=on_all_data(seen.prior_tails),
        )
        yield kit.control(
            "evidence of data as large as the prior expects, A = 1",
            "depth has nothing to learn there, and each layer lowers the evidence",
            id="expected_size",
            evidence=seen.expected_evidence,
        )

    # --------------------------------------------------------------------------------------------- the figure

    def figure(self, law, seen, rivals):
        layers = list(range(1, max(self.evidence_layers) + 1))
        effective = [self.points * sum(1 / n for n in widths) for widths in self.architectures]
        yield panel_of_depth(effective, law, seen)
        yield panel_of_scale(self.architectures[0], self.points, self.sizes[0], seen)
        yield panel_of_evidence(
            f"Evidence has a best depth, P = n = {self.evidence_points}",
            layers,
            [theory.evidence_ratio(n, self.evidence_points, self.evidence_size) for n in layers],
            [self.limit_evidence_at(n) for n in layers],
            seen,
        )
