"""From a small start the neurons of a ReLU network first turn to the sums of their classes, then grow.

Two-layer ReLU networks on μ-orthogonally separable data, started balanced at scale ε: while all norms stay of order
√ε and the loss is flat, every living neuron turns toward the sum of the positive examples if its output weight is
positive, of the negative ones if it is negative. After a time of order log(1/ε) the norms grow and the loss falls
like 1/t.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Fraction, Positive, Seeds, keys
from steepest.data import orthogonal_separability, orthogonally_separable
from steepest.descent import FlowPath, exponential, flow, log_margin_risk, margin_risk
from steepest.judging import Check, Hypothesis, Rival, bound, equal, exponent, require
from steepest.margins import hard_margin
from steepest.measures import alignment
from steepest.networks import Neurons, two_layer
from steepest.panels import Panel, panel, seen, theory
from steepest.types import Key


class Setting(NamedTuple):
    """Data and initial networks of scale one, one a seed."""

    x: jax.Array  # (seeds, n, d)
    y: jax.Array  # (seeds, n)
    start: Neurons  # (seeds, h, d) and (seeds, h)


@dataclass(frozen=True)
class EarlyAlignment(Claim):
    """Gradient flow of the exponential loss at several scales of the start."""

    scales: tuple[Positive, ...] = (1e-8, 1e-7, 1e-6, 1e-5)  # ε, scales of the start, the first is looked into [1]
    width: Count = 30  # neurons h [neurons]
    n: Count = 20  # examples [1]
    dimension: Count = 8  # input dimension d [1]
    mu: Fraction = 0.1  # least y_i y_j cos(x_i, x_j) aimed at by the data [1]
    flipped: Fraction = 0.0  # part of the labels that is flipped, which ends separability [1]
    seeds: Seeds = 6  # data sets with a network each [1]
    horizon: Positive = 20.0  # log(1 + t) at the end of the flow [1]
    readings: Count = 160  # points of each path [1]

    statement = (
        r"\frac{w_j}{\lVert w_j\rVert}\to\frac{x_\pm}{\lVert x_\pm\rVert},\quad x_\pm=\sum_{y_i=\pm1}x_i,"
        r"\qquad t\le\frac{1}{2C}\log\frac1\varepsilon,\quad C=\frac{\max\lVert x_\pm\rVert}{n}"
    )
    source = "the talk of seeds 003; Min, Mallada and Vidal 2024"
    corrections = (
        "The window is stated with the constant n max‖x_i‖ for the summed loss; the best constant for the mean loss is "
        "C = max‖x_±‖/n, reached by aligned neurons, and norms² grow at most like exp(2Ct).",
    )
    remarks = (
        "With two homogeneous layers the risk falls like 1/(t log t): the local exponent is −1 − 1/log t, −1.05 at "
        "log t = 20, inside the margin of 0.1.",
        "A neuron that is inactive on all examples has no gradient and never moves; one that starts active only on the "
        "other class may die. Neurons that start active on their own class all live.",
    )
    full = {"width": 100, "n": 60, "dimension": 20, "seeds": 15}
    beyond = {"flipped": 0.3}

    def setting(self, key: Key) -> Setting:
        for_data, for_start, for_flips = jax.random.split(key, 3)
        sets = [orthogonally_separable(k, self.n, self.dimension, self.mu) for k in keys(for_data, self.seeds)]
        x, y = jnp.stack([s.x for s in sets]), jnp.stack([s.y for s in sets])
        y = jnp.where(jax.random.uniform(for_flips, y.shape) < self.flipped, -y, y)
        return Setting(x, y, jax.vmap(two_layer(self.dimension, self.width).init)(keys(for_start, self.seeds)))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        mu = jax.vmap(orthogonal_separability)(setting.x, setting.y)
        turn = np.sqrt(self.scales[0])  # tan(angle/2) shrinks like exp(−Ct), so by √ε over the window
        return [
            require("μ of the data", float(mu.min()), ">", 0, "the data are not orthogonally separable"),
            require("shrinkage √ε of the angles in the window", turn, "<=", 0.01, "choose a smaller first scale"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        x, y = np.asarray(setting.x), np.asarray(setting.y)
        sums = np.stack([(x * (y == sign)[..., None]).sum(1) for sign in (1, -1)], 1)  # (seeds, 2, d)
        rate = np.linalg.norm(sums, axis=-1).max(1) / self.n
        return Prediction(
            targets=("seed class unknown", sums / np.linalg.norm(sums, axis=-1, keepdims=True)),
            window=("seed", np.log(1 / self.scales[0]) / (2 * rate), "time"),
            delay=("seed", 1 / rate, "time"),  # the loss falls when ε² exp(2Ct) is of order one
            late_exponent=-1.0,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        net, readings = two_layer(self.dimension, self.width), jnp.linspace(0, self.horizon, self.readings)

        def follow(x: jax.Array, y: jax.Array, start: Neurons, scale: jax.Array) -> FlowPath:
            params = jax.tree.map(lambda leaf: scale * leaf, start)
            risks = [make(exponential, net.apply, x, y) for make in (margin_risk, log_margin_risk)]
            settings = {"observe": {"w": lambda p: p.w}, "rtol": 1e-4, "atol": 1e-12}
            return flow(risks[0], params, readings, "log", risks[1], **settings)

        over_scales = jax.vmap(follow, (None, None, None, 0))
        path = jax.jit(jax.vmap(over_scales, (0, 0, 0, None)))(*setting, jnp.array(self.scales))
        weights = path.observed["w"][:, 0]  # (seeds, readings, h, d)
        active = jnp.einsum("srhd,snd->srhn", weights, setting.x) > 0
        return Observation(
            log_time=("reading", readings),
            log_risk=("seed scale reading", path.log_risk),
            weights=("seed reading neuron unknown", weights),
            positive=("seed neuron", setting.start.v > 0),
            alive=("seed reading neuron", active.any(-1)),
            own=("seed neuron", (active[:, 0] & (setting.y[:, None] * setting.start.v[..., None] > 0)).any(-1)),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        time = np.expm1(observed["log_time"])
        last = np.searchsorted(time, predicted["window"], side="right") - 1  # the last reading inside the window
        seeds = np.arange(len(last))
        turned = _turned(observed, predicted["targets"])[seeds, last]  # (seeds, neurons)
        alive, log_risk = observed["alive"][seeds, last], observed["log_risk"]
        falls = np.array([[np.interp(0.1, -path, time) for path in paths] for paths in log_risk])
        delays = [np.polyfit(np.log(1 / np.array(self.scales)), times, 1)[0] for times in falls]
        late = slice(-self.readings // 5, None)
        late_time, late_risk = np.exp(observed["log_time"][late]), np.exp(log_risk[:, 0, late])
        return [
            bound(
                "least cosine of a living neuron at the window's end", np.where(alive, turned, 1).min(1), at_least=0.99
            ),
            equal(
                "neurons that start on their class and live",
                1.0,
                (alive & observed["own"]).sum(1) / observed["own"].sum(1),
                0.0,
                over="each",
            ),
            bound(
                "risk at the window's end / at the start", np.exp(log_risk[seeds, 0, last]), at_least=0.95, over="each"
            ),
            equal("delay of the fall per log(1/ε)", predicted["delay"], delays, 0.1),
            exponent("risk against time in the end", float(predicted["late_exponent"]), late_time, late_risk, 0.1),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        best = [hard_margin(np.asarray(x), np.asarray(y)).direction for x, y in zip(setting.x, setting.y, strict=True)]
        margin = predicted.replace(targets=("seed class unknown", [(w, -w) for w in best]))
        linear = predicted.replace(delay=("seed", predicted["delay"] / 2, "time"))
        return [
            Rival("neurons turn to the maximal margin", margin, "that is where linear classifiers end"),
            Rival("the fall comes at the window's end", linear, "norms are then still of order √ε"),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        few = observed["log_time"] <= 6
        time, window = np.expm1(observed["log_time"][few]), predicted["window"][0]
        turned = _turned(observed, predicted["targets"])[0].T[:, few]
        norms = np.linalg.norm(observed["weights"][0], axis=-1).T[:, few]
        risks = [
            seen(observed["log_time"], np.exp(observed["log_risk"][0, i]), f"ε = {scale:g}", shade=i / len(self.scales))
            for i, scale in enumerate(self.scales)
        ]
        law = np.exp(observed["log_risk"][0, 0, -1] + observed["log_time"][-1] - observed["log_time"])
        end = theory((window, window), (-1, 1), "end of the window")
        return (
            panel("Neurons turn to the sum of their class", "time", "cosine", seen(time, turned, "neurons"), end),
            panel("Meanwhile norms stay small", "time", "‖w‖", seen(time, norms, "neurons"),
                theory((window, window), (norms.min(), 1), "end of the window"), log="y"),
            panel("The smaller the start, the later the fall; then 1/t", "log(1 + t)", "risk", *risks,
                theory(observed["log_time"], law, "1/t"), log="y", ylim=(1e-9, 3)),
        )  # fmt: skip


def _turned(observed: Observation, targets: np.ndarray) -> np.ndarray:
    """Cosine of each neuron with its class's direction, shape (seeds, readings, neurons)."""
    mine = np.where(observed["positive"][..., None], targets[:, :1], targets[:, 1:])
    return np.asarray(alignment(jnp.asarray(observed["weights"]), jnp.asarray(mine[:, None])))
