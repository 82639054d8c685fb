"""On least squares, momentum reduces the number of descent's steps from order κ to order √κ.

Here κ = λ_max/λ_min is the condition of the Hessian. Descent at its best step 2/(λ_max + λ_min) contracts by
(κ − 1)/(κ + 1) a step, so it needs order κ steps. Heavy ball and Nesterov's momentum need order √κ.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent._least_squares import (
    TARGET,
    LeastSquares,
    Setting,
    follow,
    steps_to_target,
)
from steepest.dynamics import quadratic_rates

METHODS = ("descent", "heavy_ball", "nesterov")
LONG = 6000  # steps of heavy ball on breast cancer


@kit.claim
class MomentumRate(LeastSquares):
    """Random least squares of given condition number, and breast cancer."""

    kind = "theorem"
    says = {
        "reduces the number of descent's steps from order κ to order √κ": (
            "descent_exponent",
            "heavy_ball_exponent",
            "nesterov_exponent",
        ),
    }
    tiny = {"kappas": (5.0, 10.0, 20.0), "dimension": 5, "seeds": 3}
    full = {"kappas": (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0), "seeds": 32}
    out_of_scope = {"kappas": (10.0, 100.0)}

    def axes(self):
        return {"kappa": self.kappas, "rule": METHODS}

    def hypotheses(self, setting):
        yield kit.assume("values of κ", len(self.kappas), ">=", 3, "exponents are fitted over them")

    def predict(self, setting):
        kappas = np.array(self.kappas)
        # of κ, up to a factor
        return kit.law(counts=("rule kappa", [kappas, kappas**0.5, kappas**0.5]))

    def observe(self, setting, key):
        counts = []
        for kappa, grams, starts in zip(self.kappas, setting.grams, setting.starts, strict=True):
            best = quadratic_rates(np.linalg.eigvalsh(grams[0]))
            long = int(self.horizon * kappa)
            short = int(self.horizon * 4 * kappa**0.5)
            paths = [follow(grams, starts, best.descent.step, 0.0, long)]
            for i, way in enumerate((best.heavy_ball, best.nesterov)):
                with_momentum = (way.step, way.momentum, short)
                paths.append(follow(grams, starts, *with_momentum, nesterov=i == 1))
            counts.append([steps_to_target(path) for path in paths])
        return kit.seen(
            counts=("rule kappa seed", np.array(counts).swapaxes(0, 1)),
            cancer=("long", self.on_breast_cancer(setting)),
        )

    def on_breast_cancer(self, setting: Setting) -> kit.Values:
        """Return distances along heavy ball."""
        cancer = setting.real[1]
        ball = quadratic_rates(np.linalg.eigvalsh(cancer)).heavy_ball
        return follow(cancer[None], setting.real_starts[1][None], ball.step, ball.momentum, LONG)[0]

    def run_conditions(self, observed):
        yield self.have_arrived(observed["counts"])

    def judge(self, law, seen):
        for method in METHODS:
            yield kit.power(
                f"{method}_exponent",
                law.counts.sel(rule=method, drop=True),
                seen.counts.sel(rule=method, drop=True),
                0.03 if method == "descent" else 0.06,  # the factor t of double roots adds 0.03
                over="kappa",
                label=f"{method.replace('_', ' ')}: steps to 1e-6 against κ",
            )

    def rivals(self, setting, law):
        method = xarray.DataArray(np.array(METHODS) == "descent", dims="rule")
        yield kit.rival(
            "momentum needs κ steps too",
            "momentum only changes the step to η/(1 − β)",
            counts=law.counts.isel(rule=0, drop=True),
        )
        yield kit.rival(
            "descent needs √κ steps",
            "the bound for conjugate gradients",
            counts=xarray.where(method, law.kappa**0.5, law.counts),
        )

    def controls(self, seen):
        yield kit.control(
            "plain descent for heavy ball, and Nesterov's momentum for descent",
            "momentum decides",
            id="other_method",
            counts=seen.counts.roll(rule=1, roll_coords=False),
        )
        yield kit.control(
            "plain descent for Nesterov's momentum",
            "momentum decides",
            counts=(seen.counts.dims, seen.counts.values[[0, 1, 0]]),
        )

    def figure(self, law, seen, rivals):
        kappas = np.array(self.kappas)
        counts = seen.counts.mean("seed")
        goal = -np.log(TARGET)
        points = {"kind": "points"}
        cancer = seen.cancer.values[::20] / float(seen.cancer[0])
        yield kit.panel(
            "Momentum takes the root of κ",
            "κ",
            "steps to 1e-6",
            kit.observed_curve(kappas, counts[0], "descent", **points),
            kit.observed_curve(kappas, counts[1], "heavy ball", shade=0.5, **points),
            kit.observed_curve(kappas, counts[2], "Nesterov", shade=1.0, **points),
            kit.predicted_curve(kappas, goal * kappas / 2, "κ log(10⁶)/2"),
            kit.predicted_curve(kappas, goal * kappas**0.5 / 2, "√κ log(10⁶)/2", shade=0.5),
            kit.predicted_curve(kappas, goal * kappas**0.5, "√κ log(10⁶)", shade=1.0),
            log="xy",
        )
        yield kit.panel(
            "Real data: breast cancer, κ = 10⁵",
            "step",
            "distance, relative",
            kit.observed_curve(20 * np.arange(len(cancer)), cancer, "heavy ball"),
            log="y",
            ylim=(1e-12, 2),
        )
