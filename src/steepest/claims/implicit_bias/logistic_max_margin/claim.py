"""On separable data, logistic regression weights grow like log t in the max-margin direction.

So training never stops. Gradient flow on the logistic risk of separable data makes the risk fall like 1/(γ̂² t) and ‖w‖
grow like log t / γ̂, while the direction w/‖w‖ tends to the hard-margin separator at the slow rate 1/log t. A clock
that runs with the risk reaches margins that no plain number of steps reaches.
"""

from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias.logistic_max_margin.experiment import (
    Sets,
    clear_sets,
    draw_sets,
    real_flow,
    synthetic_flows,
    unit,
)
from steepest.claims.implicit_bias.logistic_max_margin.figure import panels_of_flows
from steepest.programs import MarginProgram, hard_margin

CANDIDATES = 5
"""Synthetic sets that are drawn for each one that is needed."""
CLEAR = 12.0
"""(θ − 1) log t at the first reading, at least: examples outside the support count by e^−12."""


class Setting(NamedTuple):
    """What theory and experiment both see, and the hard-margin programs of all sets, breast cancer's last."""

    sets: Sets
    programs: list[MarginProgram]


@kit.claim
class LogisticMaxMargin(kit.Claim[Setting]):
    """Synthetic separable sets, and breast cancer with a column of ones."""

    seeds: kit.Seeds = kit.param(6, "synthetic data sets")
    n: kit.Count = kit.param(40, "examples of a synthetic set", scope=kit.between(20, 100))
    dimension: kit.Count = kit.param(5, "their dimension d", scope=kit.between(3, 12))
    margin: kit.Positive = kit.param(
        0.5,
        "their margin by construction",
        unit="length",
        scope=kit.between(0.45, 1.0, "log t comes to γ̂² times the horizon"),
    )
    flipped: kit.Fraction = kit.param(
        0.0,
        "part of their labels that is flipped",
        scope=kit.choices(0.0, why="it ends separability"),
    )
    log_times: tuple[kit.Positive, ...] = kit.param(
        (2000.0, 4000.0, 8000.0, 16000.0),
        "log t at which synthetic flows are read",
        scope=kit.choices(
            (2000.0, 4000.0, 8000.0, 16000.0),
            (1500.0, 6000.0, 18000.0),
            (3000.0, 6000.0, 9000.0, 12000.0, 15000.0),
            why="examples near the margin count until (θ − 1) log t is large",
        ),
    )
    horizon: kit.Positive = kit.param(1e5, "reading of the risk clock at which they end")
    real_horizon: kit.Positive = kit.param(
        1e9, "reading of the risk clock at which the flow on breast cancer ends"
    )

    kind = "limit"
    says = {
        "training never stops": None,
        "weights grow like log t": "growth",
        "in the max-margin direction": "gap_exponent",
    }
    tiny = {
        "seeds": 3,
        "n": 10,
        "dimension": 3,
        "log_times": (100.0, 150.0, 220.0),
        "horizon": 1e3,
        "real_horizon": 1e3,
    }
    full = {"seeds": 30}
    out_of_scope = {"flipped": 0.2}

    def axes(self):
        return {
            "log_time": self.log_times,
            "later": self.log_times[1:],
            "unknown": tuple(range(1, self.dimension + 1)),
            "feature": tuple(range(1, 32)),
        }

    def check_fields(self) -> None:
        """Refuse times that do not rise, or too few for an exponent."""
        if len(self.log_times) < 3 or any(np.diff(self.log_times) <= 0):
            raise kit.UserError("log_times must be three or more, and rise; try 2000 4000 8000")

    def setting(self, key):
        drawn = draw_sets(
            key, CANDIDATES * self.seeds, self.n, self.dimension, self.margin, self.flipped
        )
        clear = CLEAR / min(self.log_times)
        chosen, programs = clear_sets(drawn, self.seeds, clear)
        real = hard_margin(np.asarray(drawn.real.x), np.asarray(drawn.real.y))
        return Setting(Sets(drawn.x[chosen], drawn.y[chosen], drawn.real), [*programs, real])

    def hypotheses(self, setting):
        real = setting.programs[-1]
        margin = real.margin if real.separable else 0.0
        yield kit.assume(
            "synthetic sets that are separable, with no example near the margin",
            len(setting.programs) - 1,
            ">=",
            self.seeds,
            "such flows have a finite limit, or need later --log_times",
        )
        yield kit.assume("maximal margin of breast cancer", margin, ">", 0, "it has no separator")

    def predict(self, setting):
        *synthetic, real = setting.programs
        margins = np.array([program.margin for program in synthetic])
        log_times = np.array(self.log_times)
        passed = log_times[1:] - log_times[0]
        return kit.law(
            # ‖∇R‖ ≈ γR in the end: R ∝ 1/t, and ‖w‖ grows by log t/γ
            growth=("seed later", passed / margins[:, None]),
            fall=("later", -passed),
            gap=("log_time", 1 / log_times),
            direction=("seed unknown", [program.direction for program in synthetic]),
            real_margin=float(real.margin),
            real_direction=("feature", real.direction),
            real_constant=1.0,
        )

    def observe(self, setting, key):
        return kit.seen(
            **synthetic_flows(setting.sets, self.horizon, self.log_times),
            **real_flow(setting.sets, self.real_horizon),
        )

    def run_conditions(self, observed):
        reached = float(observed["reached"].min())
        advice = "raise --horizon, or read earlier"
        yield kit.assume("log t that flows reach", reached, ">=", max(self.log_times), advice)

    def derive(self, law, seen):
        """Return what has changed since the first reading, and how far directions are from the predicted ones."""
        norm = np.sqrt((seen.weights**2).sum("unknown"))
        off = seen.weights / norm - law.direction
        return {
            "growth": _since_first(norm),
            "fall": _since_first(seen.log_risk),
            "gap": np.sqrt((off**2).sum("unknown")),
            "real_turn": np.sqrt(((seen.real_direction - law.real_direction) ** 2).sum()),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "growth",
            law.growth,
            seen.growth,
            0.005,  # what is left is of order 1/log² t; the rest is the integrator's
            over="later",
            each=True,
            label="growth of ‖w‖ since the first reading",
        )
        yield kit.follows(
            "fall",
            law.fall,
            seen.fall,
            0.005,
            over="later",
            each=True,
            label="fall of log R since the first reading",
        )
        yield kit.power(
            "gap_exponent",
            law.gap,
            seen.gap,
            0.02,
            over="log_time",
            label="direction gap against log t",
        )
        yield kit.follows(
            "real_margin",
            xarray.ones_like(law.real_margin),
            seen.real_margin / law.real_margin,
            (0.99, 1 + 1e-6),  # no margin exceeds the largest
            label="breast cancer: margin / γ̂",
        )
        yield kit.agrees(
            "real_direction", seen.real_turn, 0.01, label="breast cancer: distance of directions"
        )
        yield kit.follows(
            "real_constant",
            law.real_constant,
            seen.real_time_times_risk * law.real_margin**2,
            0.01,
            label="breast cancer: t R γ̂²",
        )

    def rivals(self, setting, law):
        pairs = _pairs(setting.sets)
        sparse = [unit(hard_margin(x, y, norm="l1").direction) for x, y in pairs]
        least = [(y * (x @ w)).min() for (x, y), w in zip(pairs, sparse, strict=True)]
        x, y = pairs[-1]
        means = x[y > 0].mean(0) - x[y < 0].mean(0)
        margins = xarray.DataArray(
            [program.margin for program in setting.programs[:-1]], dims="seed"
        )
        yield kit.rival(
            "the ℓ1 margin in place of γ̂",
            "it is the law of coordinate descent, also for rates",
            growth=law.growth * margins / xarray.DataArray(least[:-1], dims="seed"),
            direction=("seed unknown", sparse[:-1]),
            real_margin=least[-1],
            real_direction=("feature", sparse[-1]),
        )
        yield kit.rival("‖w‖ ~ log t/γ̂²", "the risk has this constant", growth=law.growth / margins)
        yield kit.rival(
            "the risk falls like t^−1.05",
            "two layers have 1/(t log t), whose exponent at log t = 20 it is",
            fall=1.05 * law.fall,
        )
        yield kit.rival(
            "the gap falls like (log t)^−1.05",
            "log log t/log t is printed for degenerate support vectors; in exponents it is near",
            gap=law.gap**1.05,
        )
        yield kit.rival(
            "R ~ 1/(γ̂ t)", "the multipliers' sum is mistaken for 1/γ̂", real_constant=law.real_margin
        )
        yield kit.rival(
            "ℓ1 margin direction",
            "coordinate descent finds this direction",
            id="l1_margin",
            real_direction=("feature", sparse[-1]),
        )
        yield kit.rival(
            "difference of class means",
            "it is where the flow starts to go",
            real_direction=("feature", unit(means)),
        )

    def controls(self, seen):
        yield kit.control(
            "each flow judged by the margin of another set",
            "another set has another margin",
            weights=seen.weights.roll(seed=1),
        )
        yield kit.control(
            "breast cancer at t = 10⁶",
            "what is left falls as 1/log t",
            real_direction=seen.plain_direction,
            real_margin=seen.plain_margin,
            real_time_times_risk=seen.plain_time_times_risk,
        )

    def figure(self, law, seen, rivals):
        return panels_of_flows(law, seen)


def _pairs(sets: Sets) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return inputs and labels of every set, breast cancer last."""
    return [*zip(sets.x, sets.y, strict=True), (np.asarray(sets.real.x), np.asarray(sets.real.y))]


def _since_first(values: xarray.DataArray) -> xarray.DataArray:
    """Return how much larger values are than at the first time, at each later one."""
    changes = values - values.isel(log_time=0, drop=True)
    return changes.isel(log_time=slice(1, None)).rename(log_time="later")
