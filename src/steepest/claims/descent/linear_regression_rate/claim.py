"""On least squares, the constant step size 2/(λ_max + λ_min) makes gradient descent fastest.

Momentum (heavy ball or Nesterov) reduces the number of steps from order κ to order √κ, where κ = λ_max/λ_min. With
noisy gradients, the error vanishes only if the step sizes do. Descent with step size η contracts by max |1 − ηλ|, at
best by (κ − 1)/(κ + 1). So it needs order κ steps where heavy ball and Nesterov need order √κ. With noisy gradients the
mean squared error obeys a recursion. It tends to zero if the steps vanish and their sum diverges, whether or not the
sum of their squares converges.
"""

from typing import Annotated, NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.linear_regression_rate.experiment import (
    LinearRegressionPoint,
    follow,
    noisy_descents,
)
from steepest.dynamics import mean_square, quadratic_rates
from steepest.nn.data import breast_cancer
from steepest.nn.types import Values

SPECTRUM = np.array([1.0, 0.5, 0.2])
"""Eigenvalues under noise."""
FAST = 10.0
"""c of the steps c/(t + c λ_max) with 2 c λ_min = 4 > 1: the exponent is −1."""
SLOW = 1.0
"""c with 2 c λ_min = 0.4 < 1: the exponent is −0.4."""
SCHEDULES = ("fast 1/t", "slow 1/t", "t^−0.3", "t^−0.5", "constant", "t^−1.5")
CONSTANT = 4
TARGET = 1e-6
"""Relative distance that is counted to."""
CONSTANT_STEP = 0.1
"""The step of the schedule that keeps a floor."""
RATIO = 1.95
"""ηλ_max of a step beyond the best one where κ is below 39."""
METHODS = ("descent", "heavy_ball", "nesterov")
WAYS = ("best", "long", "own")
"""Steps of descent: the best one, ηλ_max = RATIO, and that of the field."""


class Setting(NamedTuple):
    """Problems, one per seed for each κ, and problems from real data."""

    grams: Values  # H = XXᵀ, (kappa, seed, d, d)
    starts: Values  # θ_0 − θ*, (kappa, seed, d)
    real: tuple[Values, ...]  # H of each real set
    real_starts: tuple[Values, ...]


@kit.claim
class LinearRegressionRate(kit.Claim[Setting]):
    """Random least squares of given condition number, diabetes and breast cancer, and descents with noisy gradients."""

    kappas: tuple[Annotated[float, kit.Within(4)], ...] = kit.param(
        (10.0, 30.0, 100.0, 300.0, 1000.0),
        "κ",
        scope=kit.choices((10.0, 30.0, 100.0, 300.0, 1000.0), (20.0, 80.0, 400.0, 1200.0)),
    )
    kappa: kit.Positive = kit.param(10.0, "κ of the diagram")
    dimension: Annotated[int, kit.Within(2)] = kit.param(20, "d", scope=kit.between(12, 30))
    seeds: kit.Seeds = kit.param(24, "problems of each condition")
    step: kit.Positive = kit.param(
        1.0, "ηλ_max beside the best step: a share of 2", scope=kit.between(0.8, 1.4)
    )
    momentum: kit.Fraction = kit.param(0.5, "β of the diagram")
    horizon: kit.Count = kit.param(12, "steps in units of κ, and of √κ with momentum")
    noise: kit.Positive = kit.param(
        0.5,
        "σ, standard deviation of each coordinate of the gradient's noise",
        scope=kit.between(0.3, 0.8),
    )
    times: kit.Count = kit.param(5000, "steps under noise", unit="steps")
    runs: kit.Count = kit.param(2500, "descents under noise, for each schedule")
    groups: kit.Seeds = kit.param(50, "groups of descents, over which intervals are taken")

    kind = "theorem"
    says = {
        "the constant step size 2/(λ_max + λ_min) makes gradient descent fastest": (
            "best_rate",
            "own_rate",
        ),
        "reduces the number of steps from order κ to order √κ": (
            "descent_exponent",
            "heavy_ball_exponent",
            "nesterov_exponent",
        ),
        "the error vanishes only if the step sizes do": ("recursion", "power_3", "floor"),
    }
    tiny = {
        "kappas": (5.0, 10.0, 20.0),
        "dimension": 5,
        "seeds": 3,
        "times": 60,
        "runs": 30,
        "groups": 3,
    }
    full = {"kappas": (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0), "seeds": 32, "runs": 5000}
    out_of_scope = {"step": 2.1}
    point = LinearRegressionPoint

    @property
    def looks(self) -> Values:
        """Return the steps at which mean squares are compared."""
        return np.unique(np.geomspace(self.times // 8, self.times, 12).astype(int))

    def axes(self):
        return {
            "kappa": self.kappas,
            "rule": METHODS,
            "schedule": SCHEDULES,
            "time": tuple(self.looks),
        }

    def schedules(self) -> Values:
        """Return the steps of each schedule, ``(schedules, T)``."""
        t = np.arange(1, self.times + 1)
        rows = (
            FAST / (t + FAST),
            SLOW / (t + SLOW),
            0.9 * t**-0.3,
            0.9 * t**-0.5,
            np.full(self.times, CONSTANT_STEP),
            0.9 * t**-1.5,
        )
        return np.array(rows)

    def setting(self, key):
        rng = kit.numpy_generator(key)
        size = self.dimension
        shape = (len(self.kappas), self.seeds, size)
        turns = np.linalg.qr(rng.standard_normal((*shape, size)))[0]
        spectra = np.array([np.geomspace(1 / kappa, 1, size) for kappa in self.kappas])
        grams = np.einsum("ksij,kj,kslj->ksil", turns, spectra, turns)
        real = []
        for x in (_diabetes(), np.asarray(breast_cancer().x)):
            gram = x.T @ x / len(x)
            real.append(gram / np.linalg.eigvalsh(gram)[-1])
        starts = tuple(rng.standard_normal(len(gram)) for gram in real)
        return Setting(grams, rng.standard_normal(shape), tuple(real), starts)

    def hypotheses(self, setting):
        advice = "descent diverges from 2 on"
        yield kit.assume("ηλ_max", self.step, "<", 2, advice)
        yield kit.assume("values of κ", len(self.kappas), ">=", 3, "exponents are fitted over them")

    def predict(self, setting):
        kappas = np.array(self.kappas)
        best = [quadratic_rates([1 / kappa, 1]).descent.factor for kappa in self.kappas]
        of_step = lambda step: [-np.log(_factor(step, kappa)) for kappa in self.kappas]
        curves = [mean_square(SPECTRUM, steps, self.noise) for steps in self.schedules()]
        step = CONSTANT_STEP
        # v = (1 − ηλ)²v + η²σ² at rest, for each eigenvalue
        floor = (step * self.noise**2 / (SPECTRUM * (2 - step * SPECTRUM))).sum()
        real = quadratic_rates(np.linalg.eigvalsh(setting.real[0]))
        # c/t leaves t^(−2cλ_min) where that is slower than 1/t; slow steps leave η_tσ²/2λ
        powers = np.array([-1.0, -2 * SLOW * SPECTRUM.min(), -0.3, -0.5, 0.0, 0.0])
        return kit.law(
            best_rate=("kappa", -np.log(best)),
            long_rate=("kappa", of_step(RATIO)),
            own_rate=("kappa", of_step(self.step)),
            # of κ, up to a factor
            counts=("rule kappa", [kappas, kappas**0.5, kappas**0.5]),
            real_rate=-np.log(real.descent.factor),
            decay=("schedule time", np.power.outer(self.looks, powers).T),
            squares=("schedule time", np.array(curves)[:, self.looks]),
            floor=floor,
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        counts = []
        rates = []
        for kappa, grams, starts in zip(self.kappas, setting.grams, setting.starts, strict=True):
            best = quadratic_rates(np.linalg.eigvalsh(grams[0]))
            long = int(self.horizon * kappa)
            short = int(self.horizon * 4 * kappa**0.5)
            descents = [
                follow(grams, starts, step, 0.0, long)
                for step in (best.descent.step, RATIO, self.step)
            ]
            momenta = [
                follow(grams, starts, way.step, way.momentum, short, nesterov=i == 1)
                for i, way in enumerate((best.heavy_ball, best.nesterov))
            ]
            counts.append([_steps(path) for path in (descents[0], *momenta)])
            rates.append([_late_rate(path) for path in descents])
        of_way = {
            f"{way}_rate": ("kappa seed", np.array(rates)[:, i]) for i, way in enumerate(WAYS)
        }
        size = max(1, self.runs // self.groups)
        squares = noisy_descents(SPECTRUM, self.schedules(), self.noise, self.groups, size, rng)
        return kit.seen(
            **of_way,
            counts=("rule kappa seed", np.array(counts).swapaxes(0, 1)),
            squares=("schedule draw time", squares[..., self.looks]),
            every_square=("schedule draw every", squares),
            late=("schedule draw", squares[..., self.times // 2 :].mean(-1)),
            **self.real(setting),
        )

    def real(self, setting: Setting) -> dict[str, tuple[str, Values] | float]:
        """Return distances on the real sets along descent and heavy ball, and rates on diabetes at two steps."""
        diabetes, cancer = setting.real
        rates = quadratic_rates(np.linalg.eigvalsh(diabetes))
        ball = quadratic_rates(np.linalg.eigvalsh(cancer)).heavy_ball
        first, second = (start[None] for start in setting.real_starts)
        length = int(self.horizon * rates.condition)
        path = follow(diabetes[None], first, rates.descent.step, 0.0, length)
        shorter = follow(diabetes[None], first, 1.0, 0.0, length)
        along = follow(cancer[None], second, ball.step, ball.momentum, 6000)
        return {
            "diabetes": ("step", path[0]),
            "real_rate": float(_late_rate(path)[0]),
            "shorter_rate": float(_late_rate(shorter)[0]),
            "cancer": ("long", along[0]),
        }

    def run_conditions(self, observed):
        arrived = np.isfinite(observed["counts"]).mean()
        yield kit.assume("share of descents that came to 1e-6", arrived, "==", 1, "raise --horizon")

    def judge(self, law, seen):
        rates = [
            kit.follows(f"{way}_rate", law[f"{way}_rate"], seen[f"{way}_rate"], margin, label=label)
            for way, margin, label in (
                ("best", 0.03, "rate at the best step"),
                # the second eigenvalue, still alive where κ is small, adds up to 2 %
                ("long", 0.08, f"rate at ηλ_max = {RATIO:g}"),
                ("own", 0.15, f"rate at ηλ_max = {self.step:g}"),
            )
        ]
        exponents = [
            kit.power(
                f"{method}_exponent",
                law.counts.sel(rule=method, drop=True),
                seen.counts.sel(rule=method, drop=True),
                0.03 if method == "descent" else 0.06,  # the factor t of double roots adds 0.03
                over="kappa",
                label=f"{method.replace('_', ' ')}: steps to 1e-6 against κ",
            )
            for method in METHODS
        ]
        powers = [
            kit.power(
                f"power_{i}",
                law.decay.isel(schedule=i, drop=True),
                seen.squares.isel(schedule=i, drop=True),
                0.1,  # the interval over groups is 0.04, the exact curve 0.015 off its limit
                over="time",
                label=f"steps {name}: mean square against time",
            )
            for i, name in enumerate(SCHEDULES)
        ]
        yield from rates
        yield from exponents
        yield kit.follows(
            "real_rate",
            law.real_rate,
            seen.real_rate,
            0.01,
            label="diabetes: rate at the best step",
        )
        yield from powers
        yield kit.follows(
            "recursion",
            law.squares,
            seen.squares,
            0.25,  # 50 groups of 50 runs know a mean square to 10 %, at 72 points at once
            label="mean squares, by schedule and time",
        )
        yield kit.follows(
            "floor",
            law.floor,
            seen.late.isel(schedule=CONSTANT, drop=True),
            0.03,
            label="floor of constant steps",
        )

    def rivals(self, setting, law):
        kappa = law.kappa
        method = xarray.DataArray(np.array(METHODS) == "descent", dims="rule")
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
        yield kit.rival(
            "momentum needs κ steps too",
            "momentum only changes the step to η/(1 − β)",
            counts=law.counts.isel(rule=0, drop=True),
        )
        yield kit.rival(
            "descent needs √κ steps",
            "the bound for conjugate gradients",
            counts=xarray.where(method, kappa**0.5, law.counts),
        )
        yield from self.rivals_of_noise(law)

    def rivals_of_noise(self, law):
        """Return wrong theories of the mean square under noise."""
        decay = law.decay
        only = lambda *places: xarray.DataArray(
            np.isin(np.arange(len(SCHEDULES)), places), dims="schedule"
        )
        first_order = (CONSTANT_STEP * self.noise**2 / (2 * SPECTRUM)).sum()
        # E‖ξ‖ in three dimensions
        triangle = 8 / np.pi * self.noise**2 / SPECTRUM.min() ** 2
        steps = np.power.outer(self.looks, [-1, -1, -0.3, -0.5, -0.3, -1.5]).T
        yield kit.rival(
            "every c/t gives 1/t",
            "1/t, as for averages",
            decay=xarray.where(only(1), decay[0], decay),
        )
        yield kit.rival(
            "t^−0.3 and t^−0.5 do not converge",
            "as printed, Σ η² < ∞",
            decay=xarray.where(only(2, 3), 1.0, decay),
        )
        yield kit.rival(
            "the floor (E‖ξ‖/λ_min)² for every schedule",
            "the notes' bound, which adds lengths",
            decay=decay**0.0,
            squares=0 * law.squares + triangle,
        )
        yield kit.rival(
            "the mean square falls like the steps, always",
            "the floor of constant steps follows η_t",
            decay=("schedule time", steps),
        )
        yield kit.rival(
            "floor Σ ησ²/λ", "the square of a step's noise, summed", floor=2 * first_order
        )
        yield kit.rival(
            "floor Σ ησ²/(2λ)",
            "η → 0",
            accepted="2 % less than the floor, where these runs tell 4 %",
            floor=first_order,
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
        yield kit.control(
            "another schedule",
            "how fast steps vanish decides",
            squares=seen.squares.roll(schedule=1, roll_coords=False),
            late=seen.late.roll(schedule=1, roll_coords=False),
        )

    def figure(self, law, seen, rivals):
        kappas = np.array(self.kappas)
        counts = seen.counts.mean("seed")
        goal = -np.log(TARGET)
        long = np.arange(0, seen.sizes["step"], 20)
        diabetes = seen.diabetes.values[long] / float(seen.diabetes[0])
        cancer = seen.cancer.values[::20] / float(seen.cancer[0])
        points = {"kind": "points"}
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
            f"Beyond the best step, ηλ_max = {RATIO:g}",
            "κ",
            "rate",
            kit.observed_curve(kappas, seen.long_rate.mean("seed"), "observed", **points),
            kit.predicted_curve(kappas, law.long_rate, "−log max|1 − ηλ|"),
            kit.rival_curve(kappas, -np.log(1 - RATIO / kappas), "printed, −log(1 − ηλ_min)"),
            log="xy",
        )
        yield self.noise_panel(seen)
        yield kit.panel(
            "Real data: diabetes and breast cancer",
            "step",
            "distance, relative",
            kit.observed_curve(long, diabetes, "diabetes, descent"),
            kit.observed_curve(
                20 * np.arange(len(cancer)), cancer, "breast cancer, heavy ball", shade=1.0
            ),
            kit.predicted_curve(
                long, np.exp(-float(law.real_rate) * long), "diabetes, predicted slope"
            ),
            log="y",
            ylim=(1e-12, 2),
        )

    def noise_panel(self, seen: xarray.Dataset) -> kit.Panel:
        """Draw mean squares under noise by schedule, and their recursion."""
        times = np.unique(np.geomspace(1, self.times, 60).astype(int))
        exact = [mean_square(SPECTRUM, steps, self.noise)[times] for steps in self.schedules()]
        square = seen.every_square.mean("draw").values[:, times]
        schedules = [
            kit.observed_curve(times, square[i], name, shade=i / len(SCHEDULES))
            for i, name in enumerate(SCHEDULES)
        ]
        recursions = [
            kit.predicted_curve(times, curve, "" if i else "recursion")
            for i, curve in enumerate(exact)
        ]
        return kit.panel(
            "Under noise steps must vanish, slowly",
            "step",
            "mean square",
            *schedules,
            *recursions,
            log="xy",
        )


def _factor(step: float, kappa: float) -> float:
    """Return max |1 − ηλ| over eigenvalues from 1/κ to 1."""
    return max(abs(1 - step), abs(1 - step / kappa))


def _steps(path: Values) -> Values:
    """Return the step from which each distance stays below ``TARGET`` of its first; infinite where there is none."""
    above = path > TARGET * path[:, :1]
    last = above.shape[1] - np.argmax(above[:, ::-1], axis=1)
    return np.where(above[:, -1], np.inf, last.astype(float))


def _late_rate(path: Values) -> Values:
    """Return the rate at which each distance falls, over the last quarter of what is above 1e-11, ``(problems,)``."""
    rates = []
    for lengths in path:
        end = int((lengths > 1e-11 * lengths[0]).sum())
        steps = np.arange(3 * end // 4, end)
        rates.append(-np.polyfit(steps, np.log(lengths[steps]), 1)[0])
    return np.array(rates)


def _diabetes() -> Values:
    """Return the standardized inputs of scikit-learn's diabetes set, 442 × 10."""
    from sklearn.datasets import load_diabetes

    x = np.asarray(load_diabetes(return_X_y=True)[0], float)
    return (x - x.mean(0)) / x.std(0)
