"""On any data logistic regression follows one ray plus one offset: a finite optimum here, the largest margin there.

The data split uniquely into a maximal part that can be separated without an error elsewhere, and the rest, which spans
a subspace S. In S the flow ends at the finite optimum of the rest; off S it leaves like log t along the maximal margin
of the separable part. Separable data are the case S = 0.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Fraction,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    Within,
    agreement,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import flow
from steepest.measurement.quantities import relative_distance
from steepest.nn.data import Dataset, digits
from steepest.nn.losses import logistic, margin_risk
from steepest.programs import LogisticSplit, hard_margin, logistic_split, split_coordinates

LATE = 8  # readings at the end over which velocities are fitted


class Setting(NamedTuple):
    """Synthetic sets, one a seed, the real set, all in the coordinates of their splits (real one last)."""

    x: Values  # (seeds, n, d), the first coordinates those in S
    y: Values  # (seeds, n)
    part: Values  # (seeds, n)
    real: Dataset
    splits: list[LogisticSplit]


@dataclass(frozen=True)
class LogisticRay(Claim):
    """Examples with random labels in a subspace, separable ones off it; and even against odd digits."""

    seeds: Seeds = 24  # synthetic data sets [1]
    apart: Count = 15  # examples off the subspace, separable there [1]
    rest: Count = 40  # examples in the subspace, with random labels [1]
    dimension: Count = 6  # dimension d of the inputs [1]
    inside: Count = 3  # dimension of the subspace S [1]
    margin: Positive = 0.5  # margin of the separable examples off S, by construction [length]
    # part of their labels that is flipped, which ends their separability [1]
    flipped: Fraction = 0.0
    horizon: Annotated[float, Within(16, 45)] = 40.0  # log(1 + t) at which the flows end [1]

    kind = "limit"
    statement = (
        r"\Pi_S\,w(t)\to\bar v=\arg\min_{v\in S}\sum_{i\notin P}\log(1+e^{-y_i\langle v,x_i\rangle}),\qquad"
        r"\frac{w(t)}{\log t}\to\frac{\bar u}{\gamma},\quad "
        r"\bar u=\arg\max_{u\perp S,\,\lVert u\rVert=1}\min_{i\in P}y_i\langle u,x_i\rangle"
    )
    source = "Telgarsky's lecture in the notes [@vodrahalli2019]; [@ji2018]"
    corrections = (
        "The lecture calls logistic regression strongly convex; it is so only on bounded sets and in S.",
        "The lecture's fixed offset is that in S. Off S there is a second constant beside ū log t/γ, which depends on "
        "the support vectors and is not a minimizer of anything simple.",
    )
    remarks = (
        "The split is one linear program; its multipliers prove that it is maximal. Of the 1797 digits, even against "
        "odd, 14 images alone light some pixel and can be separated for ever; the others span 57 of 64 dimensions.",
        "In S the distance to the optimum falls like 1/t, as the gradient of the separable part does; the exponent is "
        "fitted to log t from 15 to 25. On log t from 5 to 15, tried first, near-support vectors blur it (−0.95).",
        "The risk R_P of the part alone is what is left above the infimum, up to terms of order 1/t²; as on separable "
        "data t R_P γ² tends to 1.",
        "The flows run in coordinates of which the first span S: off S the rest's gradient would else cancel to "
        "rounding, and drown that of the part. In S it still does, which ends the horizon near t = e⁴⁰. The digits "
        "need that: at e²⁰, tried first and without these coordinates, their velocity is 50 % off, at e³² still 9 %.",
        "Version 2 has another implicit integrator and smaller tolerances, at which the fitted exponents are known to "
        "0.0001; those of version 1 were off by 0.01. At its first tolerances version 2 failed and was inconclusive.",
        "Version 3 has near misses for rivals: the optimum in S of all examples, the separator of the part alone, on "
        "the digits too, and the rate that strong convexity alone would give. Margins went from 0.1 to 0.05, and those "
        "of the digits from 1e-3 and 0.1 to 1e-6 and 0.01.",
        "Of twenty fresh seeds of version 3 sixteen held and four were inconclusive, as one of its six sets was bent: "
        "by an example of margin m over the maximal one, whose part falls only like t^(1 − m) beside that of the "
        "support vectors, or where the support vectors' pulls in S nearly cancel (−0.82 in one of 72 sets). Version 4 "
        "has 24 sets and leaves out none; margins and rivals are as they were. "
        "All ten of its seeds 4000 to 4009 hold.",
    )
    # 1 integrated with another implicit method at rtol 1e-4, 2 had zero times a thousandth for its rivals, 3 six sets
    version = 4
    headline = ("offset", "digits_offset", "velocity", "digits_velocity")
    full = {"seeds": 50}
    tiny = {"seeds": 3, "apart": 6, "rest": 12, "dimension": 4, "inside": 2, "horizon": 16.0}
    out_of_scope = {"flipped": 0.3}

    def setting(self, key: Key) -> Setting:
        images = digits()
        parity = np.asarray(images.y).argmax(1) % 2
        x, y = (np.asarray(part) for part in compiled(jax.vmap(self.draw))(keys(key, self.seeds)))
        sets = [*zip(x, y, strict=True), (np.asarray(images.x), np.where(parity == 0, 1.0, -1.0))]
        splits = [logistic_split(inputs, labels) for inputs, labels in sets]
        turned = [
            np.asarray(split_coordinates(split, inputs))
            for split, (inputs, _) in zip(splits, sets, strict=True)
        ]
        part = np.stack([split.part for split in splits[:-1]])
        real = Dataset(turned[-1], sets[-1][1], "digits, even against odd")
        return Setting(np.stack(turned[:-1]), y, part, real, splits)

    def draw(self, key: Key) -> tuple[jax.Array, jax.Array]:
        """One synthetic set, turned by a random rotation."""
        for_x, for_y, for_turn, for_flips = jax.random.split(key, 4)
        off = jnp.arange(self.apart + self.rest) < self.apart
        x = jax.random.normal(for_x, (off.size, self.dimension))
        y = jax.random.rademacher(for_y, (off.size,), float)
        pushed = y * (self.margin + jnp.abs(x[:, self.inside]))
        x = x.at[:, self.inside].set(pushed) * (
            off[:, None] | (jnp.arange(self.dimension) < self.inside)
        )
        turn = jnp.linalg.qr(jax.random.normal(for_turn, (self.dimension, self.dimension)))[0]
        wrong = off & (jax.random.uniform(for_flips, y.shape) < self.flipped)
        return x @ turn.T, jnp.where(wrong, -y, y)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        sizes = [split.part.mean() for split in setting.splits]
        return [
            assume(
                "smallest separable part",
                min(sizes),
                ">",
                0,
                "nothing is separable: all of the limit is finite",
            ),
            assume(
                "largest separable part",
                max(sizes),
                "<",
                1,
                "all is separable: there is no offset in S",
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        turned = [
            (split.turn.T @ split.offset, split.turn.T @ split.direction)
            for split in setting.splits
        ]
        *offsets, real_offset = [offset for offset, _ in turned]
        *rays, real_ray = [
            ray / split.margin for (_, ray), split in zip(turned, setting.splits, strict=True)
        ]
        return Prediction(
            offset=("seed unknown", offsets),
            velocity=("seed unknown", rays),
            margin=("seed", [split.margin for split in setting.splits[:-1]]),
            approach=-1.0,
            inside=("set", [split.basis.shape[1] for split in setting.splits]),
            real_offset=("pixel", real_offset),
            real_velocity=("pixel", real_ray),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        times = np.linspace(1.0, self.horizon, int(self.horizon))
        # The distance to the offset falls to 1e-9 where it is fitted; the digits are asked for 1e-3.
        fine = lambda lane: _follow(lane[0], lane[1], times, 1e-9)
        coarse = lambda x, y: _follow(x, y, times, 1e-6)
        # one after the other, not mapped: no set waits for the slowest
        weights, arrived = compiled(lambda x, y: jax.lax.map(fine, (x, y)))(setting.x, setting.y)
        real_weights, real_arrived = compiled(coarse)(setting.real.x, setting.real.y)
        outputs = np.einsum("snd,srd->srn", setting.x, np.asarray(weights))
        risks = np.logaddexp(0, -setting.y[:, None] * outputs)
        return Observation(
            log_time=("reading", times),
            weights=("seed reading unknown", weights),
            excess=("seed reading", (risks * setting.part[:, None]).mean(-1)),
            real_weights=("reading pixel", real_weights),
            arrived=("set", np.append(arrived, real_arrived)),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "flows that reached the horizon",
                observed["arrived"].mean(),
                "==",
                1,
                "lower --horizon",
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        time = observed["log_time"]
        away = _away(observed["weights"], predicted["offset"], predicted["inside"][0])
        apart, real_apart = (
            relative_distance(_velocity(time, observed[weights]), predicted[velocity])
            for weights, velocity in (("weights", "velocity"), ("real_weights", "real_velocity"))
        )
        middle = (time >= 3 / 8 * time[-1]) & (time <= 5 / 8 * time[-1])
        excess = observed["excess"][:, -1] * np.exp(time[-1]) * predicted["margin"] ** 2
        real = _away(observed["real_weights"], predicted["real_offset"], predicted["inside"][-1])
        return [
            agreement("offset", away[:, -1], 1e-6, label="distance to the offset in S, relative"),
            exponent(
                "approach",
                float(predicted["approach"]),
                np.exp(observed["log_time"][middle]),
                away[:, middle],
                # An example of margin m over the maximal one adds t^(1 − m), which bends one set by up to 1/(e log t) =
                # 0.02 times its weight; the interval over the sets takes another 0.02.
                0.05,
                label="distance to the offset against t",
            ),
            bound(
                "velocity",
                apart,
                # near-support vectors, relative t^(1 − m), still turn it by up to 1/log t = 0.025
                at_most=0.05,
                label="velocity dw/d log t: distance to ū/γ, relative",
            ),
            equal("part_risk", 1.0, excess, 0.05, label="risk of the part, t R_P γ²"),
            agreement(
                "digits_offset",
                real[-1],
                1e-6,
                label="digits: distance to the offset in S, relative",
            ),
            bound(
                "digits_velocity",
                real_apart,
                at_most=0.01,
                label="digits: velocity, distance to ū/γ, relative",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        inside, *_, real_inside = predicted["inside"].astype(int)
        sets = list(zip(*map(np.asarray, (setting.x, setting.y, setting.part)), strict=True))
        whole = [hard_margin(x[part], y[part]) for x, y, part in sets]
        through = [program.direction / program.margin for program in whole]
        real = setting.real
        real_part = setting.splits[-1].part
        real_whole = hard_margin(np.asarray(real.x)[real_part], np.asarray(real.y)[real_part])
        own = predicted.replace(
            velocity=("seed unknown", through),
            margin=("seed", [program.margin for program in whole]),
            real_velocity=("pixel", real_whole.direction / real_whole.margin),
        )
        everyone = predicted.replace(
            offset=("seed unknown", [_offset_of_all(x, y, inside) for x, y, _ in sets]),
            real_offset=(
                "pixel",
                _offset_of_all(np.asarray(real.x), np.asarray(real.y), real_inside),
            ),
        )
        return [
            Rival(
                "offset_of_all",
                everyone,
                "it is the minimum in S of the risk that the flow descends",
                label="the optimum in S of all examples",
            ),
            Rival(
                "own_separator",
                own,
                "it ignores that the ray must not disturb the rest",
                label="the part's own separator",
            ),
            Rival(
                "strong_convexity",
                predicted.replace(approach=-0.5),
                "the risk is 1/t above its infimum, and strongly convex in S",
                label="the distance in S falls like t^−½",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        time = observed["log_time"]
        real = observed["real_weights"]
        scale = predicted["margin"][:, None] ** 2
        away = _away(observed["weights"], predicted["offset"], predicted["inside"][0])
        along = np.einsum("srd,sd->sr", observed["weights"], predicted["velocity"]) * scale
        real_size = np.linalg.norm(predicted["real_velocity"])
        real_along = real @ predicted["real_velocity"] / real_size**2
        early = slice(0, 25)
        return (
            panel(
                "In S the flow ends at the optimum of the rest",
                "log(1 + t)",
                "relative distance",
                observed_curve(time[early], away[:, early]),
                predicted_curve(time[early], np.exp(-time[early]), "1/t"),
                log="y",
            ),
            panel(
                "Off S it leaves like log t",
                "log(1 + t)",
                "γ ⟨w, ū⟩",
                observed_curve(time, along),
                predicted_curve(time, time, "log t"),
            ),
            panel(
                "The risk of the part falls like 1/(γ² t)",
                "log(1 + t)",
                "t R_P γ²",
                observed_curve(time, observed["excess"] * scale * np.exp(time)),
                predicted_curve(time, 0 * time + 1, "1"),
            ),
            panel(
                "Even against odd digits",
                "log(1 + t)",
                "γ ⟨w, ū⟩",
                observed_curve(time, real_along, "flow"),
                predicted_curve(time, time, "log t"),
                rival_curve(time, 0 * time, "finite optimum"),
            ),
        )


def _follow(x: jax.Array, y: jax.Array, times: np.ndarray, rtol: float) -> tuple:
    """The flow from zero on the logistic risk; implicit, because the rest is stiff on the logarithmic clock."""
    risk = margin_risk(logistic, lambda w, x: x @ w, x, y)
    settings = {"solver": "stiff", "rtol": rtol, "atol": rtol / 1000, "max_steps": 20_000}
    path = flow(risk, jnp.zeros(x.shape[1]), times, "log", None, {"w": lambda w: w}, **settings)
    return path.observed["w"], path.ok


def _offset_of_all(x: np.ndarray, y: np.ndarray, inside: int) -> np.ndarray:
    """Return the finite optimum in S, the first coordinates, of all examples, zero off S."""
    offset = logistic_split(x[:, :inside], y).offset
    return np.append(offset, np.zeros(x.shape[1] - inside))


def _away(weights: np.ndarray, offset: np.ndarray, inside: int) -> np.ndarray:
    """``‖Π_S w - v̄‖ / ‖v̄‖`` at every reading."""
    moved = (weights - offset[..., None, :])[..., : int(inside)]
    return np.linalg.norm(moved, axis=-1) / np.linalg.norm(offset, axis=-1)[..., None]


def _velocity(log_time: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The slope of the weights in log t over the last readings."""
    late = log_time[-LATE:] - log_time[-LATE:].mean()
    return np.einsum("r,...rd->...d", late, weights[..., -LATE:, :]) / (late**2).sum()
