"""On quadratics, Langevin dynamics with momentum forgets its start in √κ steps instead of κ.

Here κ is the condition number, a step takes one gradient, and constant factors are left out. At best it forgets as fast
as the heavy ball converges, at the best step and friction. Discretized by BAOAB with step size h and friction γ, the
factor μ of the mean along an eigenvector of eigenvalue λ obeys μ² − (1 + c)(1 − h²λ/2)μ + c = 0 with c = e^{−γh}. This
is the polynomial of Polyak's heavy ball of momentum c and step size (1 + c)h²/2. So the mean is stable if and only if h
< 2/√λ_max. The friction 2√λ_min at h = 1/√λ_max forgets as e^{−n/√κ} in n steps, and the best spectral radius over all
h and γ is (√κ − 1)/(√κ + 1). Places have the right variance at every stable step size, while walkers without momentum
at the step size 1/λ_max miss it by a factor of two.
"""

from typing import Annotated, NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.noise.hamiltonian_langevin.experiment import (
    FALL,
    Lane,
    Radii,
    arrival,
    exact_mean,
    in_data,
    with_momentum,
    without_momentum,
)
from steepest.nn.data import breast_cancer
from steepest.nn.types import Values
from steepest.noise import baoab_rate

LIMIT = 0.02  # by which the exact exponents may miss those of large κ
STRETCHES = np.linspace(0.1, 2.4, 24)  # h√λ_max in the figure


class Setting(NamedTuple):
    """Hessian of ridge regression on the data, and the synthetic quadratics with it as the last lane."""

    hessian: Values  # (d, d)
    lanes: Lane  # fields of shape (kappas + 1,)


@kit.claim
class HamiltonianLangevin(kit.Claim[Setting]):
    """Quadratics of several condition numbers, and ridge regression on the breast-cancer data."""

    kappas: tuple[Annotated[float, kit.Within(2)], ...] = kit.param(
        (10.0, 100.0, 1000.0),
        "λ_max/λ_min",
        scope=kit.choices((10.0, 100.0, 1000.0), (20.0, 80.0, 500.0), (15.0, 60.0, 240.0, 800.0)),
    )
    top: kit.Positive = kit.param(
        4.0, "λ_max of these quadratics", unit="curvature", scope=kit.between(1.0, 10.0)
    )
    stretch: kit.Positive = kit.param(
        1.0,
        "step h of the walkers with momentum times √λ_max",
        scope=kit.between(0.6, 1.5, "at 2 they are unstable"),
    )
    ridge: kit.Positive = kit.param(
        0.1, "μ of the ridge regression", unit="curvature", scope=kit.between(0.05, 0.3)
    )
    beta: kit.Positive = kit.param(
        4.0, "inverse temperature β", unit="1/height", scope=kit.between(1.0, 10.0)
    )
    walkers: kit.Count = kit.param(128, "walkers in each group")
    seeds: kit.Seeds = kit.param(8, "groups of walkers")

    kind = "theorem"
    says = {
        "instead of κ": ("plain", "plain_steps"),
        "with momentum forgets its start in √κ steps": ("momentum", "steps"),
        "At best it forgets as fast as the heavy ball converges": "heavy_ball",
    }
    tiny = {"kappas": (20.0, 90.0, 400.0), "walkers": 4, "seeds": 3}
    full = {"kappas": (10.0, 100.0, 1000.0, 10_000.0), "walkers": 200, "seeds": 16}
    out_of_scope = {"stretch": 2.1}

    def axes(self):
        lanes = [f"κ = {kappa:g}" for kappa in self.kappas]
        return {"kappa": self.kappas, "lane": (*lanes, "the data")}

    def check_fields(self) -> None:
        if len(self.kappas) < 3:
            raise kit.UserError(
                f"exponents are fitted over three --kappas or more, got {self.kappas}; try 10 100 1000"
            )

    def setting(self, key):
        x = np.asarray(breast_cancer().x, float)
        hessian = x.T @ x / len(x) + self.ridge * np.eye(x.shape[1])
        spectrum = np.linalg.eigvalsh(hessian)
        slow = np.append(self.top / np.array(self.kappas), spectrum[0])
        fast = np.append(np.full(len(self.kappas), self.top), spectrum[-1])
        return Setting(hessian, Lane(slow, fast, self.stretch / np.sqrt(fast), 2 * np.sqrt(slow)))

    def hypotheses(self, setting):
        lanes = setting.lanes
        predicted = self.predict(setting)
        logs = np.log(self.kappas)
        exponent = lambda name: float(np.polyfit(logs, np.log(predicted[name]), 1)[0])
        note = "steps to a twentieth are not yet powers of κ: take larger κ, or shorter steps"
        yield kit.assume(
            "largest h√λ_max",
            float((lanes.step * np.sqrt(lanes.fast)).max()),
            "<",
            2,
            "longer steps have no stationary law",
        )
        yield kit.assume(
            "exponent of the exact steps with momentum against κ: distance to 1/2",
            abs(exponent("steps") - 0.5),
            "<=",
            LIMIT,
            note,
        )
        yield kit.assume(
            "exponent of the exact steps without momentum against κ: distance to 1",
            abs(exponent("plain_steps") - 1),
            "<=",
            LIMIT,
            note,
        )

    def times(self, lanes: Lane) -> tuple[int, int]:
        """Return steps enough for the mean to fall to ``FALL``, with momentum and without."""
        kappa = float((lanes.fast / lanes.slow).max())
        # with momentum time is h√λ_min n: critical motion from rest falls to a twentieth at 4.74
        return int(6 * np.sqrt(kappa) / self.stretch) + 20, int(3.2 * kappa) + 20

    def predict(self, setting):
        lanes = setting.lanes
        steps, _ = self.times(lanes)
        courses = [exact_mean(lane[0], *lane[2:], steps) for lane in zip(*lanes, strict=True)]
        arrivals = np.array([arrival(course) for course in courses])
        kappas = lanes.fast / lanes.slow
        root = np.sqrt(kappas)
        return kit.law(
            steps=("kappa", arrivals[:-1]),
            data_steps=float(arrivals[-1]),
            plain_steps=("kappa", np.log(FALL) / np.log1p(-1 / kappas[:-1])),  # (1 − 1/κ)^n
            heavy_ball=("lane", (root - 1) / (root + 1)),
            radius=("lane", [baoab_rate(lane[:2], *lane[2:]) for lane in zip(*lanes, strict=True)]),
            # h√λ_max = 2 is Verlet's limit; BAOAB samples x of a quadratic exactly,
            # and βv² with the mean 1 − h²λ/4
            threshold=2.0,
            place=1.0,
            velocity=1 - self.stretch**2 / 4,
            # Euler's 1/(1 − ελ/2) at ελ = 1
            plain_place=2.0,
        )

    def observe(self, setting, key):
        lanes = setting.lanes
        steps, long_steps = self.times(lanes)
        synthetic = Lane(*(field[:-1] for field in lanes))
        data = Lane(*(field[-1] for field in lanes))
        rng = kit.numpy_generator(key)
        shape = (self.seeds, self.walkers)
        moving = with_momentum(synthetic, self.beta, *shape, steps, key)
        plain = without_momentum(rng, synthetic, self.beta, *shape, long_steps)
        real = in_data(setting.hessian, data, self.beta, *shape, steps, key)
        radii = Radii()
        stretched = STRETCHES / np.sqrt(lanes.fast[1])
        ones = np.ones(25)  # of one length, for one program
        curve = radii(
            lanes.slow[1] * ones,
            lanes.fast[1] * ones,
            np.append(stretched, stretched[-1]),
            lanes.friction[1] * ones,
        )
        pairs = [radii.best(lane[0], lane[1]) for lane in zip(*lanes, strict=True)]
        thresholds = [
            radii.threshold(slow, fast, friction) * np.sqrt(fast)
            for slow, fast, _, friction in zip(*lanes, strict=True)
        ]
        many = np.resize(np.arange(len(lanes.slow)), 25)
        courses = np.concatenate([moving["mean"], real[None]])
        arrived = arrival(courses)
        plain_arrived = arrival(plain["mean"])
        return kit.seen(
            course=("lane seed step", courses),
            plain_course=("kappa seed long_step", plain["mean"]),
            steps=("kappa seed", arrived[:-1]),
            data_steps=("seed", arrived[-1]),
            plain_steps=("kappa seed", plain_arrived),
            place=("seed", moving["place"][0]),
            velocity=("seed", moving["velocity"][0]),
            plain_place=("seed", plain["place"][0]),
            radius=("lane", radii(*(field[many] for field in lanes))[: len(lanes.slow)]),
            best=("lane pair", pairs),
            threshold=("lane", thresholds),
            curve=("stretch", curve[:-1]),
        )

    def run_conditions(self, observed):
        came = [np.isfinite(arrival(observed[name])).mean() for name in ("course", "plain_course")]
        yield kit.assume(
            "share of groups whose mean falls to a twentieth, with momentum and without",
            min(came),
            ">=",
            1,
            "the times to fall need all of them",
        )

    def judge(self, law, seen):
        yield from self.judge_steps(law, seen)
        yield from self.judge_radii(law, seen)
        # the intervals of variances are 1 to 2 %
        yield from (
            kit.follows(name, law[name], seen[name], 0.04, label=label)
            for name, label in (
                ("place", "βλ times the variance of places, fastest direction"),
                ("velocity", "β times the variance of velocities, fastest direction"),
                ("plain_place", "βλ times the variance of places without momentum"),
            )
        )

    def judge_steps(self, law, seen):
        """Compare the steps to a twentieth, and their growth with κ."""
        yield kit.power(
            "momentum",
            law.steps,
            seen.steps,
            0.02,
            over="kappa",
            label="steps to a twentieth with momentum, against κ",
        )
        yield kit.power(
            "plain",
            law.plain_steps,
            seen.plain_steps,
            0.02,
            over="kappa",
            label="steps to a twentieth without momentum, against κ",
        )
        # the intervals of steps are 0.3 to 1 %
        yield from (
            kit.follows(name, law[name], seen[name], 0.03, label=f"steps to a twentieth {of}")
            for name, of in (
                ("steps", "with momentum"),
                ("data_steps", "with momentum, the data"),
                ("plain_steps", "without momentum"),
            )
        )

    def judge_radii(self, law, seen):
        """Compare spectral radii, and the step at which they pass one."""
        yield kit.follows(
            "heavy_ball",
            law.heavy_ball,
            seen.best.isel(pair=2, drop=True),
            1e-6,
            absolute=True,
            label="least radius over h and γ",
        )
        yield kit.follows(
            "radius",
            law.radius,
            seen.radius,
            1e-9,
            absolute=True,
            label=f"radius at h = {self.stretch:g}/√λ_max, γ = 2√λ_min",
        )
        yield kit.agrees(
            "threshold",
            abs(seen.threshold - law.threshold),
            1e-6,
            label="h√λ_max at which the radius passes one: distance to 2",
        )

    def rivals(self, setting, law):
        lanes = setting.lanes
        kappas = lanes.fast / lanes.slow
        root = np.sqrt(kappas)
        growth = law.kappa / law.kappa[0]
        yield kit.rival(
            "κ steps with momentum too",
            "the walkers wait for the slowest direction either way",
            steps=law.plain_steps,
            heavy_ball=("lane", (kappas - 1) / (kappas + 1)),
        )
        yield kit.rival(
            "√κ steps without momentum too",
            "a random walk does not know its speed",
            plain_steps=law.steps,
        )
        yield kit.rival(
            "κ^⅓ steps",
            "schemes of higher order have d^⅓ in dimension",
            steps=law.steps[0] * growth ** (1 / 3),
        )
        yield kit.rival(
            "least radius 1 − 1/√κ",
            "it is the rate of Nesterov's momentum",
            heavy_ball=("lane", 1 - 1 / root),
        )
        yield kit.rival(
            "least radius e^{−1/√κ}",
            "critical friction at h = 1/√λ_max is the best",
            heavy_ball=("lane", np.exp(-1 / root)),
        )
        yield self.half_friction(lanes)
        yield kit.rival(
            "velocities exact, places off; no bias without momentum; h < √2/√λ_max",
            "places are off by h²λ/4 and velocities exact, as for leapfrogs with noise in between kicks; "
            "small steps of any scheme are exact",
            id="euler",
            threshold=np.sqrt(2),
            place=4 / 3,
            velocity=1.0,
            plain_place=1.0,
        )

    def half_friction(self, lanes: Lane) -> kit.Rival:
        """Return the theory that critical friction is √λ_min."""
        steps, _ = self.times(lanes)
        arrivals = [
            arrival(exact_mean(slow, step, friction / 2, 2 * steps))
            for slow, _, step, friction in zip(*lanes, strict=True)
        ]
        radii = [baoab_rate(lane[:2], lane[2], lane[3] / 2) for lane in zip(*lanes, strict=True)]
        return kit.rival(
            "friction √λ_min, critical by another convention",
            "friction enters the velocity once",
            id="half_friction",
            radius=("lane", radii),
            steps=("kappa", [float(arrival) for arrival in arrivals[:-1]]),
            data_steps=float(arrivals[-1]),
        )

    def controls(self, seen):
        best = seen.best.values.copy()
        best[:, 2] = seen.radius.values
        yield kit.control(
            "walkers without momentum in place of those with it",
            "they have no momentum",
            id="plain",
            steps=seen.plain_steps,
            place=seen.plain_place,
        )
        yield kit.control(
            "walkers with momentum in place of those without",
            "they have momentum",
            id="momentum",
            plain_steps=seen.steps,
            plain_place=seen.place,
        )
        yield kit.control(
            "the step 1/√λ_max with critical friction in place of the best",
            "it is twice as slow as the best",
            id="usual_step",
            best=("lane pair", best),
        )

    def figure(self, law, seen, rivals):
        kappas = np.array(self.kappas)
        slow = self.top / kappas[1]
        radii = [
            baoab_rate([slow, self.top], h / np.sqrt(self.top), 2 * np.sqrt(slow))
            for h in STRETCHES
        ]
        best = seen.best.values[:-1, 2]
        wide = np.geomspace(kappas.min(), kappas.max(), 50)
        yield self.course_panel(seen)
        yield kit.curves(
            "Steps to a twentieth of the start",
            law.steps,
            seen.steps,
            over="kappa",
            x="condition number κ",
            y="gradient evaluations",
            more=(
                kit.observed_curve(
                    kappas, seen.plain_steps.mean("seed"), "without", kind="points", shade=1.0
                ),
                kit.predicted_curve(kappas, law.plain_steps, "∝ κ", shade=1.0),
                kit.rival_curve(
                    kappas, float(law.steps[0]) * (kappas / kappas[0]) ** (1 / 3), "∝ κ^⅓"
                ),
            ),
            log="xy",
        )
        yield kit.panel(
            f"Radius of a step, κ = {kappas[1]:g}, γ = 2√λ_min",
            "h√λ_max",
            "spectral radius",
            kit.observed_curve(STRETCHES, seen.curve, "the library's step", kind="points"),
            kit.predicted_curve(STRETCHES, radii, "formula"),
            kit.rival_curve([np.sqrt(2), np.sqrt(2)], [0.7, 1.5], "√2"),
            ylim=(0.8, 1.4),
        )
        yield kit.panel(
            "The best step and friction",
            "condition number κ",
            "1 − radius",
            kit.observed_curve(kappas, 1 - best, "searched", kind="points"),
            kit.predicted_curve(wide, 2 / (np.sqrt(wide) + 1), "heavy ball, 2/(√κ + 1)"),
            kit.rival_curve(wide, 1 / np.sqrt(wide), "Nesterov, 1/√κ"),
            kit.rival_curve(wide, 2 / (wide + 1), "no momentum, 2/(κ + 1)"),
            log="xy",
        )

    def course_panel(self, seen: xarray.Dataset) -> kit.Panel:
        """Return how the mean of the second κ forgets its start."""
        kappa = self.kappas[1]
        moving = seen.course[1].mean("seed").values
        steps = np.arange(len(moving))
        plain = seen.plain_course[1].mean("seed").values[: len(moving)]
        slow = self.top / kappa
        step = self.stretch / np.sqrt(self.top)
        exact = exact_mean(slow, step, 2 * np.sqrt(slow), len(moving) - 1)
        return kit.panel(
            f"Forgetting the start, κ = {kappa:g}",
            "gradient evaluations",
            "mean / start",
            kit.observed_curve(steps, moving, "with momentum"),
            kit.observed_curve(steps, plain, "without", shade=1.0),
            kit.predicted_curve(steps, exact, "exact mean"),
            kit.predicted_curve(steps, (1 - 1 / kappa) ** steps, "(1 − 1/κ)ⁿ"),
            xlim=(0, 8 * np.sqrt(kappa)),
        )
