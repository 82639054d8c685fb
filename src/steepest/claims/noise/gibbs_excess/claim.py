"""On the line, the mean of f under exp(−βf) exceeds its minimum by 1/2β + a/β² for large β.

Here a = 5f‴²/24f″³ − f⁗/8f″² at the minimum. The excess has no logarithm. The bound (1/2β) log[(eM/m)(bβ + 1)] has one;
it is for functions with |f″| ≤ M and xf′ ≥ mx² − b.
"""

import numpy as np

from steepest import kit
from steepest.claims.noise.gibbs_excess.rugged import rugged_bound, rugged_excess, rugged_second

COLD = 20.0  # β from which the excess is expanded


@kit.claim
class GibbsExcess(kit.Claim[None]):
    """Integrals over exp(−βf) for a parabola with ripples."""

    betas: tuple[kit.Positive, ...] = kit.param(
        (2.0, 5.0, 20.0, 40.0, 100.0),
        "β",
        unit="1/height",
        scope=kit.choices((2.0, 5.0, 20.0, 40.0, 100.0), (1.0, 4.0, 25.0, 60.0, 200.0)),
    )

    kind = "limit"
    says = {"exceeds its minimum by 1/2β + a/β² for large β": "excess"}
    tiny = {"betas": (2.0, 20.0, 40.0)}
    out_of_scope = {"betas": (2.0, 5.0)}

    def axes(self):
        return {"beta": self.betas}

    def hypotheses(self, setting):
        yield kit.assume(
            "largest β", max(self.betas), ">=", COLD, "the excess is expanded in 1/β; raise --betas"
        )

    def predict(self, setting):
        betas = np.array(self.betas)
        return kit.law(
            excess=("beta", 1 / (2 * betas) + rugged_second() / betas**2),
            excess_bound=("beta", rugged_bound(betas)),
        )

    def observe(self, setting, key):
        return kit.seen(
            excess=("beta", [rugged_excess(beta) for beta in self.betas]),
            smooth_excess=("beta", [rugged_excess(beta, 0.0) for beta in self.betas]),
        )

    def judge(self, law, seen):
        cold = np.flatnonzero(np.array(self.betas) >= COLD)
        yield kit.follows(
            "excess",
            law.excess.isel(beta=cold),
            seen.excess.isel(beta=cold),
            0.005,  # the next order is 0.002 at β = 20
            label="rugged parabola: excess E f − f*",
        )
        yield kit.at_most(
            "excess_bound",
            law.excess_bound,
            seen.excess,
            label="rugged parabola: excess against the paper's bound",
        )

    def rivals(self, setting, law):
        betas = law.beta
        yield kit.rival(
            "E f − f* is (d/β) log(β/d)", "as the talk says", excess=np.log(betas) / betas
        )
        yield kit.rival(
            "E f − f* is d/2β",
            "it is the leading order for large β",
            excess=1 / (2 * betas),
            excess_bound=1 / (2 * betas),
        )

    def controls(self, seen):
        yield kit.control(
            "the parabola without its ripples", "its excess is d/2β", excess=seen.smooth_excess
        )

    def figure(self, law, seen, rivals):
        betas = self.betas
        yield kit.panel(
            "Rugged parabola: E f − f*",
            "β",
            "excess",
            kit.observed_curve(betas, seen.excess, "under exp(−βf)", kind="points"),
            kit.predicted_curve(betas, law.excess_bound, "bound"),
            kit.predicted_curve(betas, law.excess, "d/2β + a/β²", shade=1.0),
            kit.rival_curve(betas, rivals["e_f_f_is_d_beta_log_beta_d"].excess, "(d/β) log(β/d)"),
            log="xy",
        )
