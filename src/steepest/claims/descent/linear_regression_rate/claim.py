"""On least squares, the constant step size 2/(λ_max + λ_min) makes gradient descent fastest.

Descent with step size η contracts by max |1 − ηλ| over the eigenvalues λ of the Hessian, at best by (κ − 1)/(κ + 1),
where κ = λ_max/λ_min.
"""

import numpy as np

from steepest import kit
from steepest.claims.descent._least_squares import (
    LeastSquares,
    Setting,
    follow,
    steps_to_target,
)
from steepest.claims.descent.linear_regression_rate.experiment import (
    LinearRegressionPoint,
    late_rate,
)
from steepest.dynamics import quadratic_rates
from steepest.nn.types import Values

RATIO = 1.95
"""ηλ_max of a step beyond the best one where κ is below 39."""
WAYS = ("best", "long", "own")
"""Steps of descent: the best one, ηλ_max = RATIO, and that of the field."""


@kit.claim
class LinearRegressionRate(LeastSquares):
    """Random least squares of given condition number, and diabetes."""

    kappa: kit.Positive = kit.param(10.0, "κ of the diagram")
    step: kit.Positive = kit.param(
        1.0, "ηλ_max beside the best step: a share of 2", scope=kit.between(0.8, 1.4)
    )
    momentum: kit.Fraction = kit.param(0.5, "β of the diagram")

    kind = "theorem"
    says = {
        "the constant step size 2/(λ_max + λ_min) makes gradient descent fastest": (
            "best_rate",
            "own_rate",
        ),
    }
    tiny = {"kappas": (5.0, 10.0, 20.0), "dimension": 5, "seeds": 3}
    full = {"kappas": (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0), "seeds": 32}
    out_of_scope = {"step": 2.1}
    point = LinearRegressionPoint

    def axes(self):
        return {"kappa": self.kappas}

    def hypotheses(self, setting):
        yield kit.assume("ηλ_max", self.step, "<", 2, "descent diverges from 2 on")

    def predict(self, setting):
        best = [quadratic_rates([1 / kappa, 1]).descent.factor for kappa in self.kappas]
        of_step = lambda step: [-np.log(_factor(step, kappa)) for kappa in self.kappas]
        real = quadratic_rates(np.linalg.eigvalsh(setting.real[0]))
        return kit.law(
            best_rate=("kappa", -np.log(best)),
            long_rate=("kappa", of_step(RATIO)),
            own_rate=("kappa", of_step(self.step)),
            real_rate=-np.log(real.descent.factor),
        )

    def observe(self, setting, key):
        counts = []
        rates = []
        for kappa, grams, starts in zip(self.kappas, setting.grams, setting.starts, strict=True):
            best = quadratic_rates(np.linalg.eigvalsh(grams[0])).descent.step
            steps = int(self.horizon * kappa)
            paths = [follow(grams, starts, step, 0.0, steps) for step in (best, RATIO, self.step)]
            counts.append(steps_to_target(paths[0]))
            rates.append([late_rate(path) for path in paths])
        of_way = {
            f"{way}_rate": ("kappa seed", np.array(rates)[:, i]) for i, way in enumerate(WAYS)
        }
        return kit.seen(counts=("kappa seed", counts), **of_way, **self.real(setting))

    def real(self, setting: Setting) -> dict[str, tuple[str, Values] | float]:
        """Return distances on diabetes along descent, and rates at two steps."""
        gram = setting.real[0][None]
        start = setting.real_starts[0][None]
        rates = quadratic_rates(np.linalg.eigvalsh(gram[0]))
        length = int(self.horizon * rates.condition)
        path = follow(gram, start, rates.descent.step, 0.0, length)
        shorter = follow(gram, start, 1.0, 0.0, length)
        return {
            "diabetes": ("step", path[0]),
            "real_rate": float(late_rate(path)[0]),
            "shorter_rate": float(late_rate(shorter)[0]),
        }

    def run_conditions(self, observed):
        yield self.have_arrived(observed["counts"])

    def judge(self, law, seen):
        for way, margin, label in (
            ("best", 0.03, "rate at the best step"),
            # the second eigenvalue, still alive where κ is small, adds up to 2 %
            ("long", 0.08, f"rate at ηλ_max = {RATIO:g}"),
            ("own", 0.15, f"rate at ηλ_max = {self.step:g}"),
        ):
            rate = f"{way}_rate"
            yield kit.follows(rate, law[rate], seen[rate], margin, label=label)
        yield kit.follows(
            "real_rate",
            law.real_rate,
            seen.real_rate,
            0.01,
            label="diabetes: rate at the best step",
        )

    def rivals(self, setting, law):
        kappa = law.kappa
        yield kit.rival(
            "the factor 1 − ηλ_min beyond the best step",
            "as printed, for every η < 2/λ_max",
            long_rate=-np.log(1 - RATIO / kappa),
        )
        yield kit.rival(
            "rate ηλ_min/2",
            "as printed",
            best_rate=1 / (kappa + 1),
            own_rate=self.step / 2 / kappa,
            real_rate=law.real_rate / 2,
        )

    def controls(self, seen):
        yield kit.control(
            "descent with another step",
            "the step decides",
            best_rate=seen.own_rate,
            long_rate=seen.own_rate,
            own_rate=seen.best_rate,
            real_rate=seen.shorter_rate,
        )

    def figure(self, law, seen, rivals):
        kappas = np.array(self.kappas)
        rate = seen.long_rate.mean("seed")
        yield kit.panel(
            f"Beyond the best step, ηλ_max = {RATIO:g}",
            "κ",
            "rate",
            kit.observed_curve(kappas, rate, "observed", kind="points"),
            kit.predicted_curve(kappas, law.long_rate, "−log max|1 − ηλ|"),
            kit.rival_curve(kappas, -np.log(1 - RATIO / kappas), "printed, −log(1 − ηλ_min)"),
            log="xy",
        )
        times = np.arange(0, seen.sizes["step"], 20)
        diabetes = seen.diabetes.values[times] / float(seen.diabetes[0])
        slope = np.exp(-float(law.real_rate) * times)
        yield kit.panel(
            "Real data: diabetes",
            "step",
            "distance, relative",
            kit.observed_curve(times, diabetes, "descent"),
            kit.predicted_curve(times, slope, "predicted slope"),
            log="y",
            ylim=(1e-12, 2),
        )


def _factor(step: float, kappa: float) -> float:
    """Return max |1 − ηλ| over eigenvalues from 1/κ to 1."""
    return max(abs(1 - step), abs(1 - step / kappa))
