"""With noisy gradients, the error of descent on least squares vanishes only if the step sizes do.

The mean squared error obeys a recursion. It tends to zero if the steps vanish and their sum diverges, whether or not
the sum of their squares converges.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.vanishing_steps.experiment import noisy_descents
from steepest.dynamics import mean_square
from steepest.nn.types import Values

SPECTRUM = np.array([1.0, 0.5, 0.2])
"""Eigenvalues of the Hessian."""
FAST = 10.0
"""c of the steps c/(t + c λ_max) with 2 c λ_min = 4 > 1: the exponent is −1."""
SLOW = 1.0
"""c with 2 c λ_min = 0.4 < 1: the exponent is −0.4."""
SCHEDULES = ("fast 1/t", "slow 1/t", "t^−0.3", "t^−0.5", "constant", "t^−1.5")
CONSTANT = 4


@kit.claim
class VanishingSteps(kit.Claim[None]):
    """Descents with noisy gradients on a quadratic of three eigenvalues, by schedules of six kinds."""

    constant: kit.Positive = kit.param(
        0.1, "η of the schedule that keeps a floor", scope=kit.between(0.05, 0.2)
    )
    noise: kit.Positive = kit.param(
        0.5,
        "σ, standard deviation of each coordinate of the gradient's noise",
        scope=kit.between(0.3, 0.8),
    )
    times: kit.Count = kit.param(5000, "steps", unit="steps")
    runs: kit.Count = kit.param(2500, "descents for each schedule")
    groups: kit.Seeds = kit.param(50, "groups of descents, over which intervals are taken")

    kind = "theorem"
    says = {"vanishes only if the step sizes do": ("recursion", "power_3", "floor")}
    tiny = {"times": 60, "runs": 30, "groups": 3}
    full = {"runs": 5000}
    out_of_scope = {"constant": 2.1}

    @property
    def looks(self) -> Values:
        """Return the steps at which mean squares are compared."""
        return np.unique(np.geomspace(self.times // 8, self.times, 12).astype(int))

    def axes(self):
        return {"schedule": SCHEDULES, "time": tuple(self.looks)}

    def schedules(self) -> Values:
        """Return the steps of each schedule, ``(schedules, T)``."""
        t = np.arange(1, self.times + 1)
        rows = (
            FAST / (t + FAST),
            SLOW / (t + SLOW),
            0.9 * t**-0.3,
            0.9 * t**-0.5,
            np.full(self.times, self.constant),
            0.9 * t**-1.5,
        )
        return np.array(rows)

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        largest = self.constant * SPECTRUM.max()
        yield kit.assume("ηλ_max of constant steps", largest, "<", 2, "descent diverges from 2 on")

    def predict(self, setting):
        curves = [mean_square(SPECTRUM, steps, self.noise) for steps in self.schedules()]
        step = self.constant
        # v = (1 − ηλ)²v + η²σ² at rest, for each eigenvalue
        floor = (step * self.noise**2 / (SPECTRUM * (2 - step * SPECTRUM))).sum()
        # c/t leaves t^(−2cλ_min) where that is slower than 1/t; slow steps leave η_tσ²/2λ
        powers = np.array([-1.0, -2 * SLOW * SPECTRUM.min(), -0.3, -0.5, 0.0, 0.0])
        return kit.law(
            decay=("schedule time", np.power.outer(self.looks, powers).T),
            squares=("schedule time", np.array(curves)[:, self.looks]),
            floor=floor,
        )

    def observe(self, setting, key):
        size = max(1, self.runs // self.groups)
        rng = kit.numpy_generator(key)
        squares = noisy_descents(SPECTRUM, self.schedules(), self.noise, self.groups, size, rng)
        return kit.seen(
            squares=("schedule draw time", squares[..., self.looks]),
            every_square=("schedule draw every", squares),
            late=("schedule draw", squares[..., self.times // 2 :].mean(-1)),
        )

    def judge(self, law, seen):
        for i, name in enumerate(SCHEDULES):
            yield kit.power(
                f"power_{i}",
                law.decay.isel(schedule=i, drop=True),
                seen.squares.isel(schedule=i, drop=True),
                0.1,  # the interval over groups is 0.04, the exact curve 0.015 off its limit
                over="time",
                label=f"steps {name}: mean square against time",
            )
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
        decay = law.decay
        only = lambda *places: xarray.DataArray(
            np.isin(np.arange(len(SCHEDULES)), places), dims="schedule"
        )
        first_order = (self.constant * self.noise**2 / (2 * SPECTRUM)).sum()
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
            "another schedule",
            "how fast steps vanish decides",
            squares=seen.squares.roll(schedule=1, roll_coords=False),
            late=seen.late.roll(schedule=1, roll_coords=False),
        )

    def figure(self, law, seen, rivals):
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
        yield kit.panel(
            "Under noise steps must vanish, slowly",
            "step",
            "mean square",
            *schedules,
            *recursions,
            log="xy",
        )
