"""Between 2/λ₀ and 4/λ₀ the step size throws descent off its start and into a flatter minimum.

A two-layer linear network on one example obeys an exact recursion of its output and its tangent kernel λ. Below
γλ₀ = 2 it stays lazy; between 2 and 4 the loss first grows to the order of the width m, then λ falls below 2/γ and
descent converges to a flatter point; above 4 it diverges. ReLU networks are catapulted too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Positive, Seeds, keys
from steepest.claims.optimization._catapult_phases import CatapultPhases
from steepest.data import Dataset, digits, signs
from steepest.descent import Trajectory, descend, grid, stability_bracket
from steepest.judging import Check, Hypothesis, Rival, bound, equal, exponent, require
from steepest.kernels import catapult_map, ntk_top
from steepest.networks import Mlp, mlp
from steepest.panels import Panel, context, panel, seen, theory
from steepest.types import Key


class Setting(NamedTuple):
    """Initial networks, one a seed, and the two numbers that theory needs of each."""

    keys: Key
    output: jax.Array  # z_0, (seeds,)
    ntk: jax.Array  # λ_0, (seeds,)


@dataclass(frozen=True)
class Catapult(Claim):
    """Two-layer linear networks on one example, ReLU networks on two classes of digits."""

    multiple: Positive = 2.5  # γλ₀ of the trajectories compared with the recursion [1]
    multiples: tuple[Positive, ...] = (1.0, 1.5, 2.2, 2.8, 3.4, 3.8, 3.99, 4.01, 4.2)  # γλ₀ of the phases [1]
    width: Count = 1000  # hidden width m of the phases [neurons]
    widths: tuple[Count, ...] = (100, 300, 1000, 3000)  # hidden widths m of the scaling laws [neurons]
    dimension: Count = 4  # input dimension d [1]
    steps: Count = 1000  # steps of each descent [steps]
    seeds: Seeds = 10  # independent initial networks [1]
    relu_width: Count = 200  # hidden width of the ReLU networks [neurons]
    relu_multiples: tuple[Positive, ...] = (1.0, 3.0, 6.0, 12.0, 24.0, 48.0)  # γλ₀ for ReLU, the second is judged [1]
    relu_steps: Count = 200  # steps of the ReLU networks [steps]

    statement = (
        r"\frac{2}{\lambda_0}<\gamma<\frac{4}{\lambda_0}\;\Longrightarrow\;"
        r"\max_t L_t=\Theta(m),\quad \lambda_\infty<\frac{2}{\gamma}"
    )
    source = "ORF 543, lectures 10/5 and 11/7; Lewkowycz et al. 2020"
    corrections = (
        "The notes print the second equation of the recursion with γλ − 4/(z−y); the network obeys "
        "λ' = λ + γ a r (γλr − 4z) with r = z − y and a = ‖x‖²/(md), to rounding.",
    )
    remarks = (
        "For ReLU networks theory gives no threshold. The law of thumb 12/λ₀ is shown beside the measurement and not "
        "judged: where training ends depends on the data. On raw digits it is not even a divergence (the network "
        "dies: no neuron is active any more); on centred digits it is one, and earlier.",
    )
    beyond = {"multiple": 4.5}
    cell = CatapultPhases
    full = {"seeds": 30, "steps": 4000, "relu_width": 512, "relu_steps": 400}

    def setting(self, key: Key) -> Setting:
        seeds, net, x = keys(key, self.seeds), self.linear(self.width), jnp.ones((1, self.dimension))
        start = jax.vmap(net.init)(seeds)
        numbers = jax.jit(jax.vmap(lambda p: (net.apply(p, x)[0], ntk_top(net.apply, p, x))))
        return Setting(seeds, *numbers(start))

    def linear(self, width: int) -> Mlp:
        """The network v·(U x)/√(m d)."""
        return mlp((self.dimension, width, 1), "linear", parameterized="ntk", bias=False)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [
            require("distance of γλ₀ from 3", abs(self.multiple - 3), "<", 1, "choose --multiple between 2 and 4"),
            require("smallest width m", min(*self.widths, self.width), ">=", 50, "the theorem is for m ≫ 1"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        follow = jax.vmap(lambda z, ntk: catapult_map(z, ntk, 0.0, self.multiple / ntk, 1 / self.width, self.steps))
        z, ntk = follow(setting.output, setting.ntk)  # a = ‖x‖²/(m d) = 1/m
        return Prediction(
            loss=("seed step", z**2 / 2),
            steepness=("seed step", self.multiple * ntk / ntk[:, :1]),
            threshold=4.0,
            flatness=2.0,  # γλ_∞ at most
            peak_exponent=1.0,
            # |z| grows by the factor γλ₀ − 1 a step until it is of order √m
            peak_time_slope=("", 1 / np.log(self.multiple - 1), "steps"),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        one = Dataset(jnp.ones((1, self.dimension)), jnp.zeros(1), "one example")
        nets, net = [self.linear(m) for m in self.widths], self.linear(self.width)
        scaling = [_descend(each, one, setting.keys, (self.multiple,), 100, 1).risk[:, 0] for each in nets]
        trace = _descend(net, one, setting.keys, (self.multiple,), self.steps, 1)
        phases = _descend(net, one, setting.keys, self.multiples, self.steps, self.steps)
        raw, steps = signs(digits((3, 8), 30)), self.relu_steps
        centred = Dataset(raw.x - raw.x.mean(0), raw.y, "centred digits")
        relu_net = mlp((raw.d, self.relu_width, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
        relu = [_descend(relu_net, d, setting.keys[:3], self.relu_multiples, steps, steps) for d in (raw, centred)]
        return Observation(
            loss=("seed step", trace.risk[:, 0]),
            steepness=("seed step", trace.observed["steepness"][:, 0]),
            diverged=("seed multiple", phases.diverged),
            flatness=("seed multiple", phases.observed["steepness"][:, :, -1]),
            start_loss=("seed width", jnp.stack([loss[:, 0] for loss in scaling], 1)),
            peak_loss=("seed width", jnp.stack([loss.max(1) for loss in scaling], 1)),
            peak_time=("seed width", jnp.stack([loss.argmax(1) for loss in scaling], 1), "steps"),
            relu_loss=("data seed multiple", jnp.stack([run.risk[..., -1] / run.risk[..., 0] for run in relu])),
            relu_flatness=("data seed multiple", jnp.stack([run.observed["steepness"][..., -1] for run in relu])),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        paths = [(observed[name], predicted[name]) for name in ("loss", "steepness")]
        deviation = max(np.max(np.abs(a - b) / np.abs(b).max(1, keepdims=True)) for a, b in paths)
        thrown = (np.array(self.multiples) > 2) & ~observed["diverged"].any(0)
        growth = 0.5 * np.log(self.widths / observed["start_loss"])
        slopes = [np.polyfit(a, t, 1)[0] for a, t in zip(growth, observed["peak_time"], strict=True)]
        flat, relu = float(predicted["flatness"]), observed["relu_flatness"][0, :, 1]
        # both ends of every seed's bracket: a coarse grid then gives a wide interval, not a wrong number
        threshold, ends = stability_bracket(self.multiples, observed["diverged"]).ravel(), "both ends of each bracket"
        return [
            bound("largest relative deviation from the recursion", deviation, at_most=1e-9),
            equal("γλ₀ where divergence starts", predicted["threshold"], threshold, 0.01, over="each", note=ends),
            bound("γλ after the catapult", observed["flatness"][:, thrown].max(1), at_most=flat, over="each"),
            bound(f"γλ after γλ₀ = {self.relu_multiples[1]:g}, ReLU on digits", relu, at_most=flat, over="each"),
            exponent(
                "peak loss against width", float(predicted["peak_exponent"]), self.widths, observed["peak_loss"], 0.1
            ),
            equal("steps to the peak per log √(m/L₀)", predicted["peak_time_slope"], slopes, 0.15),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        why = "descent on the linearized network diverges there"
        return [Rival("divergence at 2/λ₀", predicted.replace(threshold=2.0), why)]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        steps, flat = np.arange(41), np.where(observed["diverged"], np.nan, observed["flatness"])
        peaks = observed["peak_loss"].mean(0)
        names = ("raw pixels", "centred pixels")
        relu = [seen(self.relu_multiples, y, names[i], shade=float(i)) for i, y in enumerate(observed["relu_loss"])]
        return (
            panel(f"At γλ₀ = {self.multiple:g} the loss grows, then falls", "step", "loss",
                seen(steps, observed["loss"][:4, :41], "networks"),
                theory(steps, predicted["loss"][0, :41], "recursion"), log="y", ylim=(1e-8, None)),
            panel("Descent ends where γλ < 2", "γλ₀", "γλ at the end", theory(self.multiples, 0 * flat[0] + 2, "2"),
                seen(self.multiples, flat[0], "one seed", kind="points")),
            panel("The peak grows with the width", "width m", "peak loss", seen(self.widths, peaks, kind="points"),
                theory(self.widths, peaks[0] * np.array(self.widths) / self.widths[0], "∝ m"), log="xy"),
            panel("ReLU on digits: where training ends is empirical", "γλ₀", "loss at the end / at the start",
                *relu, context((12, 12), (0, 1), "12", kind="dashed"), log="x"),
        )  # fmt: skip


def _descend(net: Mlp, data: Dataset, seeds: Key, multiples: Sequence[float], steps: int, record: int) -> Trajectory:
    """Descent on the mean squared loss at the step sizes multiple/λ₀; every array is (seeds, multiples, …)."""

    def one(key: Key, multiple: jax.Array) -> Trajectory:
        params = net.init(key)
        lr = multiple / ntk_top(net.apply, params, data.x)
        look = {"steepness": lambda p: lr * ntk_top(net.apply, p, data.x)}
        risk = lambda p: 0.5 * jnp.mean((net.apply(p, data.x) - data.y) ** 2)
        return descend(risk, params, optax.sgd(lr), steps, record=record, observe=look, ceiling=1e12)

    return grid(one, seeds, multiples)
