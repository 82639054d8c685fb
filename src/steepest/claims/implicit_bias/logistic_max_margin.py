"""On separable data logistic regression never stops: its weights grow like log t along the maximal margin.

Gradient flow on the logistic risk of separable data makes the risk fall like 1/(γ̂² t) and ‖w‖ grow like log t / γ̂,
while the direction w/‖w‖ tends to the hard-margin separator at the slow rate 1/log t. A clock that runs with the risk
reaches margins that no plain number of steps does.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Fraction, Positive, Seeds, keys
from steepest.data import Dataset, breast_cancer, separable
from steepest.descent import Clock, FlowPath, flow, log_margin_risk, logistic, margin_risk
from steepest.judging import Check, Hypothesis, Rival, bound, equal, exponent, require
from steepest.margins import MarginProgram, hard_margin, linear_margin
from steepest.panels import Panel, context, panel, rival, seen, theory
from steepest.types import Key

LAST = 8  # readings at the end of the synthetic flows over which rates are fitted


class Setting(NamedTuple):
    """Synthetic sets, one a seed, the real set, and the hard-margin programs of all (real set last)."""

    x: jax.Array  # (seeds, n, d)
    y: jax.Array  # (seeds, n)
    real: Dataset
    programs: list[MarginProgram]


@dataclass(frozen=True)
class LogisticMaxMargin(Claim):
    """Synthetic separable sets, and breast cancer with a column of ones."""

    seeds: Seeds = 6  # synthetic data sets [1]
    n: Count = 40  # examples of a synthetic set [1]
    dimension: Count = 5  # their dimension d [1]
    margin: Positive = 0.5  # their margin by construction [length]
    flipped: Fraction = 0.0  # part of their labels that is flipped, which ends separability [1]
    horizon: Positive = 1e5  # reading of the risk clock at which synthetic flows end [1]
    real_horizon: Positive = 1e9  # reading of the risk clock at which the flow on breast cancer ends [1]

    statement = (
        r"\frac{w(t)}{\lVert w(t)\rVert}=\hat w+O\!\left(\frac{1}{\log t}\right),\quad"
        r"\lVert w(t)\rVert\sim\frac{\log t}{\hat\gamma},\quad R(t)\sim\frac{1}{\hat\gamma^2\,t}"
    )
    source = "ORF 543, lecture 11/14; Soudry et al. 2018; Telgarsky's lectures (seeds 001)"
    corrections = (
        "The notes print the set of support vectors as {i : a_i = 0}; support vectors have a_i > 0.",
        "In the proof θ is the smallest margin outside the support, and must exceed 1; ŵ there is no unit vector.",
    )
    remarks = (
        "Breast cancer with its 30 standardized features is not linearly separable through the origin; with a column "
        "of ones it is. The margin is that of the flow's own geometry, where the weight of that column counts.",
        "The risk obeys a sharp constant, not only a rate: t R γ̂² → 1, because the multipliers of the hard-margin "
        "program sum to 1/γ̂².",
    )
    full = {"seeds": 30}
    beyond = {"flipped": 0.2}

    def setting(self, key: Key) -> Setting:
        for_data, for_flips = jax.random.split(key)
        sets = [separable(k, self.n, self.dimension, self.margin) for k in keys(for_data, self.seeds)]
        x, y = jnp.stack([s.x for s in sets]), jnp.stack([s.y for s in sets])
        y = jnp.where(jax.random.uniform(for_flips, y.shape) < self.flipped, -y, y)
        cancer = breast_cancer()
        real = Dataset(jnp.column_stack([cancer.x, jnp.ones(cancer.n)]), cancer.y, "breast cancer with ones")
        pairs = [*zip(x, y, strict=True), (real.x, real.y)]
        return Setting(x, y, real, [hard_margin(np.asarray(a), np.asarray(b)) for a, b in pairs])

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        margins = [program.margin if program.separable else 0.0 for program in setting.programs]
        advice = "the data are not separable: the flow has a finite limit"
        return [
            require("smallest maximal margin of the synthetic sets", min(margins[:-1]), ">", 0, advice),
            require("maximal margin of breast cancer", margins[-1], ">", 0, advice),
        ]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(
            margin=("set", [program.margin for program in setting.programs]),
            direction=("unknown", setting.programs[-1].direction),
            risk_exponent=-1.0,
            gap_exponent=-1.0,
            synthetic=("seed unknown", [program.direction for program in setting.programs[:-1]]),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        synthetic = jax.jit(jax.vmap(lambda x, y: _follow(x, y, self.horizon, "risk")))(setting.x, setting.y)
        real = _follow(setting.real.x, setting.real.y, self.real_horizon, "risk")
        plain = _follow(setting.real.x, setting.real.y, float(np.log1p(1e6)), "log")
        weights = real.observed["w"]
        return Observation(
            log_time=("seed reading", synthetic.log_time),
            log_risk=("seed reading", synthetic.log_risk),
            weights=("seed reading unknown", synthetic.observed["w"]),
            real_clock=("reading", real.clock),
            real_log_time=("reading", real.log_time),
            real_log_risk=("reading", real.log_risk),
            real_margin=("reading", real.observed["margin"]),
            real_direction=("unknown", weights[-1] / jnp.linalg.norm(weights[-1])),
            plain_log_time=("reading", plain.log_time),
            plain_margin=("reading", plain.observed["margin"]),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        *margins, real_margin = predicted["margin"]
        log_time, weights = observed["log_time"][:, -LAST:], observed["weights"][:, -LAST:]
        log_risk, norm = observed["log_risk"][:, -LAST:], np.linalg.norm(weights, axis=-1)
        gap = np.linalg.norm(weights / norm[..., None] - predicted["synthetic"][:, None], axis=-1)
        growth = [np.polyfit(t, size, 1)[0] for t, size in zip(log_time, norm, strict=True)]
        falling = [np.polyfit(t, r, 1)[0] for t, r in zip(log_time, log_risk, strict=True)]
        constant = observed["real_log_time"][-1] + observed["real_log_risk"][-1] + 2 * np.log(real_margin)
        turn = np.linalg.norm(observed["real_direction"] - predicted["direction"])
        return [
            equal("growth of ‖w‖ per log t, times γ̂", np.divide(1, margins), growth, 0.02, over="each"),
            equal("exponent of the risk in t", predicted["risk_exponent"], falling, 0.02, over="each"),
            exponent("direction gap against log t", float(predicted["gap_exponent"]), log_time, gap, 0.1),
            bound("breast cancer: margin / γ̂", observed["real_margin"][-1] / real_margin, at_least=0.99),
            bound("breast cancer: distance of directions", turn, at_most=0.1),
            equal("breast cancer: t R γ̂²", 1.0, np.exp(constant), 0.01),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        x, y = np.asarray(setting.real.x), np.asarray(setting.real.y)
        sparse = hard_margin(x, y, norm="l1").direction
        means = x[y > 0].mean(0) - x[y < 0].mean(0)
        return [
            Rival(name, predicted.replace(direction=("unknown", w / np.linalg.norm(w))), why)
            for name, w, why in (
                ("ℓ1 margin direction", sparse, "it is what coordinate descent finds"),
                ("difference of class means", means, "it is where the flow starts to go"),
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        time, weights = observed["log_time"][:, 1:], observed["weights"][:, 1:]
        norm, best = np.linalg.norm(weights, axis=-1), predicted["margin"][-1]
        gap = np.linalg.norm(weights / norm[..., None] - predicted["synthetic"][:, None], axis=-1)
        late = 1 - observed["real_margin"][1:] / best, 1 - observed["plain_margin"][1:] / best
        clock, ends = observed["real_clock"][1:], (observed["real_clock"][1], observed["real_clock"][-1])
        return (
            panel("Breast cancer: the margin on the risk clock", "risk clock s = ∫ R dt", "margin / γ̂",
                seen(clock, observed["real_margin"][1:] / best, "flow"), theory(ends, (1, 1), "hard margin"),
                rival(ends, (0.99, 0.99), "0.99"), log="x", ylim=(-1, 1.1)),
            panel("At t = 10⁶ plain time does not even separate", "log t", "1 − margin / γ̂",
                seen(observed["real_log_time"][1:], late[0], "risk clock"),
                context(observed["plain_log_time"][1:], late[1], "plain time"), log="xy"),
            panel("Synthetic sets: ‖w‖ grows like log t / γ̂", "log(1 + t)", "‖w‖ γ̂", theory(time[0], time[0], "log t"),
                *(seen(time[i], norm[i] * predicted["margin"][i]) for i in range(len(time)))),
            panel("Synthetic sets: the direction is late", "log(1 + t)", "‖w/‖w‖ − ŵ‖",
                *(seen(t, g) for t, g in zip(time, gap, strict=True)),
                theory(time[0, -20:], gap[0, -1] * time[0, -1] / time[0, -20:], "1/log t"), log="xy"),
        )  # fmt: skip


def _follow(x: jax.Array, y: jax.Array, end: float, clock: Clock) -> FlowPath:
    """The flow from zero on the logistic risk, recorded 40 times; implicit, because the risk clock is stiff."""
    apply = lambda w, x: x @ w
    risk, log_risk = margin_risk(logistic, apply, x, y), log_margin_risk(logistic, apply, x, y)
    readings = jnp.geomspace(0.1, end, 39) if clock == "risk" else jnp.linspace(0.1, end, 39)
    times = jnp.concatenate([jnp.zeros(1), readings])
    look = {"w": lambda w: w, "margin": lambda w: linear_margin(w, x, y)}
    settings = {"solver": "stiff", "rtol": 1e-6, "atol": 1e-8, "max_steps": 20_000}
    return flow(risk, jnp.zeros(x.shape[1]), times, clock, log_risk, look, **settings)
