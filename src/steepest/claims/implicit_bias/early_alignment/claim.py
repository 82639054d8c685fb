"""From small initial weights, ReLU neurons first turn to the sum of one class's inputs, then grow.

Take two-layer ReLU networks on μ-orthogonally separable data, started balanced at scale ε. While all norms stay of
order √ε and the loss is flat, every living neuron turns toward the sum x_± of the examples of its output weight's sign.
Once the neuron sees all of these examples, tan(θ/2) of its angle θ to x_± falls like exp(−Ct) and its norm grows like
exp(Ct), with C = ‖x_±‖/n. After a time of log(1/ε)/C the loss falls, in the end like 1/(t log t).
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias._small_starts import (
    CLASSES,
    OnSeparableSets,
    by_class,
    flows,
    logarithm,
    separable_sets,
)
from steepest.claims.implicit_bias.early_alignment.experiment import (
    Setting,
    over_class_mean,
    polar,
)
from steepest.claims.implicit_bias.early_alignment.figure import panels_of_alignment
from steepest.claims.implicit_bias.early_alignment.theory import (
    relative_lengths,
    rivals_of_window,
)
from steepest.nn.data import orthogonal_separability
from steepest.nn.networks import two_layer
from steepest.nn.types import Values

BETWEEN = (0.5, 0.9)  # parts of the window between which neurons turn and grow at their rate
EVEN = 6.0  # readings are even in time up to this many log(1/ε), past the fall of the loss, and then in log(1 + t)
LATER = 0.3  # of all readings, by which a changed world is looked at later
LATE = 0.8  # part of the horizon from which on the risk is followed


@kit.claim
class EarlyAlignment(OnSeparableSets[Setting]):
    """Gradient flow of the exponential loss at several scales of the start."""

    scales: tuple[kit.Positive, ...] = kit.param(
        (1e-8, 1e-7, 1e-6, 1e-5),
        "ε, scales of the start, rising, the first is looked into",
        scope=kit.choices(
            (1e-8, 1e-7, 1e-6, 1e-5),
            (1e-9, 1e-8, 1e-7, 1e-5),
            why="with larger ones the loss falls before all neurons see their class",
        ),
    )
    horizon: kit.Positive = kit.param(20.0, "log(1 + t) at the end of the flow")
    readings: kit.Count = kit.param(400, "points of each path")

    kind = "limit"
    says = {
        "first turn to the sum of one class's inputs": ("cosine", "turning", "lengths"),
        "then grow": ("growing", "delay"),
    }
    tiny = {
        "scales": (1e-5, 1e-4),
        "width": 16,
        "n": 6,
        "dimension": 3,
        "seeds": 3,
        "readings": 60,
    }
    full = {"width": 100, "n": 60, "dimension": 20, "seeds": 15}
    out_of_scope = {"flipped": 0.3}

    @property
    def log_times(self) -> Values:
        """Return log(1 + t) of the readings: even in t at first, then in itself, ``(readings,)``."""
        early = self.readings * 3 // 5
        even = np.log1p(np.linspace(0, EVEN * np.log(1 / self.scales[0]), early))
        return np.append(even, np.linspace(even[-1], self.horizon, self.readings - early + 1)[1:])

    @property
    def late(self) -> Values:
        """Return which readings are late, ``(readings,)``."""
        return self.log_times >= LATE * self.horizon

    def axes(self):
        return {
            "class": CLASSES,
            "unknown": tuple(range(self.dimension)),
            "smaller": self.scales[:-1],
            "example": tuple(range(1, self.n + 1)),
            "late": tuple(np.exp(self.log_times[self.late])),
        }

    def setting(self, key):
        def draw(key: kit.Key) -> tuple:
            for_data, for_start, for_flips = jax.random.split(key, 3)
            x, y = separable_sets(for_data, self.seeds, self.n, self.dimension, self.mu)
            y = jnp.where(jax.random.uniform(for_flips, y.shape) < self.flipped, -y, y)
            init = two_layer(self.dimension, self.width).init
            return x, y, jax.vmap(init)(kit.keys(for_start, self.seeds))

        return Setting(*jax.tree.map(np.asarray, kit.compiled(draw)(key)))

    def hypotheses(self, setting):
        mu = kit.compiled(jax.vmap(orthogonal_separability))(setting.x, setting.y)
        # tan(angle/2) shrinks like exp(−Ct), so by √ε over the window
        turn = np.sqrt(self.scales[0])
        yield kit.assume(
            "μ of the data", np.min(mu), ">", 0, "the data are not orthogonally separable"
        )
        yield kit.assume(
            "shrinkage √ε of the angles in the window",
            turn,
            "<=",
            0.01,
            "choose a smaller first scale",
        )

    def predict(self, setting):
        x = setting.x
        y = setting.y
        sums = np.stack([(x * (y == sign)[..., None]).sum(1) for sign in (1, -1)], 1)
        sizes = np.linalg.norm(sums, axis=-1, keepdims=True)  # (seeds, 2, 1)
        rate = sizes[..., 0] / self.n
        fastest = rate.max(1)
        scales = np.array(self.scales)
        late = self.log_times[self.late]
        return kit.law(
            target=("seed class unknown", sums / sizes),
            turning=("seed class", rate),
            growing=("seed class", 2 * rate),  # of ‖w‖²
            # the loss falls when ε² exp(2Ct) is of order one
            delay=("seed smaller", np.log(scales[-1] / scales[:-1]) / fastest[:, None]),
            length=("seed example", relative_lengths(x, y, sums)),
            alive=1.0,
            # ‖∇R‖² ∝ R² log(1/R), as margins have the degree two: 1/R grows like t log t
            late_risk=("late", np.exp(-late) / late),
        )

    def observe(self, setting, key):
        readings = self.log_times
        over_seeds = flows(two_layer(self.dimension, self.width))
        scales = np.array(self.scales)
        log_risk, every_scale = map(np.asarray, over_seeds(*setting, readings, scales))
        x, y, start = setting
        weights = every_scale[:, 0]  # (seeds, readings, h, d)
        features = np.maximum(np.einsum("srhd,snd->srhn", weights, x), 0.0)
        active = features > 0
        own_class = y[:, None] * start.v[..., None] > 0
        return kit.seen(
            log_risk=("seed scale reading", log_risk),
            weights=("seed reading neuron unknown", weights),
            positive=("seed neuron", start.v > 0),
            alive=("seed reading neuron", active.any(-1)),
            own=("seed neuron", (active[:, 0] & own_class).any(-1)),
            feature_size=("seed reading example", np.linalg.norm(features, axis=2)),
            label=("seed example", y),
            late_risk=("seed late", np.exp(log_risk[:, 0, self.late])),
        )

    def derive(self, law, seen):
        """Return what neurons are at the window's end, the rates at which they turn and grow, and when losses fall."""
        seeds = np.arange(self.seeds)
        time = np.expm1(self.log_times)
        window = self.window(law).values
        places = np.array([self.reading_at(part * window) for part in (*BETWEEN, 1.0)])
        last = places[2]
        weights = seen.weights.values
        positive = seen.positive.values
        size, cosine, tangent = polar(weights[seeds, places], by_class(law.target, positive))
        alive = seen.alive.values[seeds, places]
        counted = seen.own.values & alive[1]
        classes = np.stack([positive & counted, ~positive & counted], 1)

        def rate(logs: Values) -> xarray.DataArray:
            """Return the rate of each class, in the mean over its neurons."""
            with np.errstate(invalid="ignore", divide="ignore"):  # a class may have no neuron
                paces = (logs[1] - logs[0]) / (time[places[1]] - time[places[0]])[:, None]
                means = np.where(classes, paces[:, None], 0.0).sum(-1) / classes.sum(-1)
            return xarray.DataArray(means, {"class": list(CLASSES)}, ["seed", "class"])

        # the time at which the loss has fallen by a tenth in the logarithm
        falls = [[np.interp(0.1, -path, time) for path in paths] for paths in seen.log_risk.values]
        delays = np.array(falls)[:, :-1] - np.array(falls)[:, -1:]
        living = alive[2]
        grown = size[2] / np.linalg.norm(weights[:, 0], axis=-1)
        lengths = over_class_mean(seen.feature_size.values[seeds, last], seen["label"].values)
        per_neuron = ["seed", "neuron"]
        return {
            "unaligned": xarray.DataArray(np.where(living, 1 - cosine[2], 0.0), dims=per_neuron),
            "turning": -rate(tangent),
            "growing": 2 * rate(logarithm(size)),
            "delay": xarray.DataArray(delays, {"smaller": law.smaller}, ["seed", "smaller"]),
            "living": xarray.DataArray(
                (living & seen.own.values).sum(1) / seen.own.values.sum(1), dims="seed"
            ),
            "grown": xarray.DataArray(self.scales[0] * (grown**2).max(-1), dims="seed"),
            "length": seen["feature_size"].isel(reading=0, drop=True).copy(data=lengths),
        }

    def window(self, law: xarray.Dataset) -> xarray.DataArray:
        """Return how long norms² stay below ε‖w₀‖², ``(seeds,)``."""
        return np.log(1 / self.scales[0]) / (2 * law.turning.max("class"))

    def reading_at(self, time: Values) -> Values:
        """Return the last reading before a time of each seed, neither the first nor the last of all."""
        place = np.searchsorted(self.log_times, np.log1p(time), side="right") - 1
        return place.clip(1, self.readings - 2)

    def judge(self, law, seen):
        yield from self.judge_window(law, seen)
        yield kit.power(
            "late_exponent",
            law.late_risk,
            seen.late_risk,
            0.02,  # the next term is of order 1/log² t = 0.003
            over="late",
            label="risk against time in the end",
        )

    def judge_window(self, law, seen):
        """Compare how neurons turn, grow and live in the window, and when the loss falls after it."""
        yield kit.agrees(
            "cosine",
            seen.unaligned,
            # tan(angle/2) has shrunk by √ε = 1e-4 in the stronger class, by ε^(C₋/2C) in the weaker one; cosines
            # are quadratic in it
            1e-3,
            label="1 − cosine of living neurons at the window's end",
        )
        yield kit.follows(
            "turning",
            law.turning,
            seen.turning,
            0.02,  # neurons that do not see all of their class yet turn more slowly, by 0.001 in the mean
            each=True,
            label="rate at which log tan(θ/2) falls in the window",
        )
        yield kit.follows(
            "growing",
            law.growing,
            seen.growing,
            0.02,
            each=True,
            label="rate at which log ‖w‖² rises in the window",
        )
        yield kit.follows(
            "delay",
            law.delay,
            seen.delay,
            0.05,
            label=f"time of the fall after that at ε = {self.scales[-1]:g}",
        )
        yield from self.judge_end(law, seen)

    def judge_end(self, law, seen):
        """Compare features, neurons that live and norms at the window's end."""
        yield kit.follows(
            "lengths",
            law.length,
            seen.length,
            # angles of 0.03, which a cosine of 1 − 1e-3 leaves to the weaker class, take up to this
            0.02,
            each=True,
            absolute=True,
            label="length of an example's features over the mean of its class, at the window's end",
        )
        yield kit.follows(
            "alive",
            law.alive,
            seen.living,
            0.0,
            each=True,
            label="share of the neurons that start on their class and live",
        )
        yield kit.at_most(
            "growth",
            1.0,
            seen.grown,
            each=True,
            label="‖w‖² at the window's end over ε‖w₀‖², largest of the neurons",
        )

    def rivals(self, setting, law):
        yield from rivals_of_window(setting, law)

    def controls(self, seen):
        last = self.readings - 1
        places = np.minimum(np.arange(self.readings) + round(LATER * self.readings), last)
        places[0] = 0  # norms are compared with those of the start
        yield kit.control(
            "the neurons much later",
            "after the fall of the loss the network turns to its margin",
            id="late",
            weights=(seen.weights.dims, seen.weights.values[:, places]),
            feature_size=(seen.feature_size.dims, seen.feature_size.values[:, places]),
        )
        yield kit.control(
            "each start with the losses of the next larger start",
            "the smaller the start, the later the fall",
            id="other_scales",
            log_risk=(seen.log_risk.dims, np.roll(seen.log_risk.values, -1, 1)),
        )

    def figure(self, law, seen, rivals):
        window = float(self.window(law)[0])
        return panels_of_alignment(self.scales, self.log_times, window, law, seen)
