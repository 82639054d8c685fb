"""Full-batch descent raises the sharpness until it reaches 2/η, and keeps it there.

The sharpness is the largest eigenvalue of the Hessian of the risk. On a quadratic, descent with step size η is stable
only below 2/η. On a network the sharpness rises by itself along gradient flow; descent follows until 2/η, where the
flow would go on, and then hovers there while the risk keeps falling.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Positive, Seeds, keys
from steepest.claims.optimization._edge_diagram import MARGIN, EdgeDiagram
from steepest.curvature import sharpness
from steepest.data import Dataset, digits
from steepest.descent import Trajectory, descend, flow, grid, mean_risk, squared
from steepest.judging import Check, Hypothesis, Rival, bound, equal, require
from steepest.networks import Mlp, mlp
from steepest.panels import Panel, context, panel, rival, seen, theory
from steepest.types import Key, Params, Risk

RECORDS = 25  # points of each path at which the sharpness is measured


class Setting(NamedTuple):
    """Network, risk and one initial point a seed."""

    net: Mlp
    risk: Risk
    keys: Key


@dataclass(frozen=True)
class EdgeOfStability(Claim):
    """A tanh network on centred digits, squared loss, three step sizes, and gradient flow."""

    lr: Positive = 0.36  # η, the middle one of three step sizes [1/sharpness]
    ratio: Positive = 1.3  # ratio of neighbouring step sizes [1]
    steps: Count = 900  # steps of descent [steps]
    width: Count = 50  # neurons in each hidden layer [neurons]
    depth: Count = 4  # hidden layers [layers]
    c_w: Positive = 0.5  # initial weight variance times fan-in [1]
    n: Count = 200  # images [1]
    seeds: Seeds = 3  # initial networks [1]
    products: Count = 12  # Hessian products for each sharpness [1]

    statement = r"\lambda_{\max}\!\left(\nabla^2 R(\theta_t)\right)\;\longrightarrow\;\frac{2}{\eta}"
    source = "ORF 543, lecture 10/5; Cohen et al. 2021"
    remarks = (
        "The loss is ½‖f − y‖² summed over the ten outputs and averaged over images.",
        "Weights start small (C_W = ½, four hidden layers) and pixels are centred, so that the sharpness starts below "
        "2/η and has room to rise; from the usual start on raw pixels it begins at 57 and large step sizes diverge.",
        "The step sizes put 2/η between the sharpness at the start (about 3) and what gradient flow reaches (10 to 13 "
        "by the same time). Below that window descent never meets the edge: at η = 0.2 it had not for some seeds.",
    )
    full = {"n": 300, "steps": 3000, "width": 64, "seeds": 5, "products": 20}
    beyond = {"lr": 3.0, "steps": 20}
    precision = "float32"
    cell = EdgeDiagram

    @property
    def step_sizes(self) -> tuple[float, ...]:
        """The three step sizes η, smallest first."""
        return (self.lr / self.ratio, self.lr, self.lr * self.ratio)

    def setting(self, key: Key) -> Setting:
        raw = digits(n=self.n)
        data = Dataset(raw.x - raw.x.mean(0), raw.y, "centred digits")
        net = mlp((data.d, *[self.width] * self.depth, 10), "tanh", c_w=self.c_w)
        return Setting(net, mean_risk(squared, net.apply, data.x, data.y), keys(key, self.seeds))

    def sharpness(self, risk: Risk, params: Params) -> dict[str, jax.Array]:
        """The sharpness and its residual relative to it."""
        pair = sharpness(risk, params, jax.random.key(0), self.products)
        return {"value": pair.value, "residual": pair.residual / jnp.abs(pair.value)}

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(sharpness=("step_size", 2 / np.array(self.step_sizes)))

    def observe(self, setting: Setting, key: Key) -> Observation:
        paths = grid(lambda key, lr: self.path(setting, key, lr), setting.keys, self.step_sizes)
        times = jnp.linspace(0, self.steps * min(self.step_sizes), 16)  # as long as the slowest descent
        starts, look = jax.vmap(setting.net.init)(setting.keys), {"sharpness": partial(self.sharpness, setting.risk)}
        limit = jax.jit(jax.vmap(lambda p: flow(setting.risk, p, times, observe=look, rtol=1e-3, atol=1e-6)))(starts)
        return Observation(
            step=("record", paths.steps[0, 0], "steps"),
            risk=("seed step_size record", paths.risk),
            sharpness=("seed step_size record", paths.observed["sharpness"]["value"]),
            residual=("seed step_size record", paths.observed["sharpness"]["residual"]),
            flow_time=("time", times),
            flow_sharpness=("seed time", limit.observed["sharpness"]["value"]),
        )

    def path(self, setting: Setting, key: Key, lr: jax.Array) -> Trajectory:
        """Descent with one step size from one initial point, with its sharpness."""
        cadence, look = max(1, self.steps // RECORDS), {"sharpness": partial(self.sharpness, setting.risk)}
        return descend(setting.risk, setting.net.init(key), optax.sgd(lr), self.steps, record=cadence, observe=look)

    def premises(self, observed: Observation) -> list[Hypothesis]:
        return self.assumed(observed["sharpness"][:, :, 0] * np.array(self.step_sizes) / 2, observed["residual"])

    def assumed(self, start: np.ndarray, residual: np.ndarray) -> list[Hypothesis]:
        """Of the sharpness at the start in units of 2/η, and of all residuals."""
        return [
            require("largest sharpness at the start / (2/η)", start.max(), "<", 1, "choose a smaller --lr or --c_w"),
            require("largest relative residual of a sharpness", np.nanmax(residual), "<=", 0.2, "raise --products"),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        late = self.late(observed["sharpness"])  # (seeds, step sizes)
        checks = [
            equal(f"late sharpness, η = {lr:.3g}", predicted["sharpness"][i], late[:, i], MARGIN)
            for i, lr in enumerate(self.step_sizes)
        ]
        flow_end = observed["flow_sharpness"].max(1)
        return [
            *checks,
            bound("sharpness along gradient flow", flow_end, at_least=2 / min(self.step_sizes), over="each"),
        ]

    def late(self, sharpness: np.ndarray) -> np.ndarray:
        """Mean over the last fifth of the records ``(..., records)``."""
        return sharpness[..., -(sharpness.shape[-1] // 5) :].mean(-1)

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        half = predicted.replace(sharpness=("step_size", predicted["sharpness"] / 2))
        flow_only = predicted.replace(sharpness=("step_size", np.full(3, predicted["sharpness"].max())))
        return [
            Rival("the sharpness stops at 1/η", half, "there a step along the top eigenvector lands on the minimum"),
            Rival("the sharpness does not depend on η", flow_only, "it is a property of the minimum alone"),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        rises, falls, first = [], [], observed["sharpness"][0]
        for i, lr in enumerate(self.step_sizes):
            shade = i / 2
            time, edge = lr * observed["step"], predicted["sharpness"][i]
            rises += [
                seen(time, first[i], f"η = {lr:.3g}", shade=shade),
                theory(time[[0, -1]], (edge, edge), shade=shade),
            ]
            falls.append(seen(time, observed["risk"][0, i], f"η = {lr:.3g}", shade=shade))
        rises.append(context(observed["flow_time"], observed["flow_sharpness"][0], "gradient flow"))
        scaled = [seen(observed["step"], first[i] * lr / 2, shade=i / 2) for i, lr in enumerate(self.step_sizes)]
        return (
            panel("The sharpness rises to 2/η (dashed) and stays", "time η × step", "sharpness", *rises),
            panel("In units of 2/η", "step", "sharpness × η/2", *scaled,
                theory(observed["step"][[0, -1]], (1, 1), "2/η"), rival(observed["step"][[0, -1]], (0.5, 0.5), "1/η")),
            panel("The risk keeps falling", "time η × step", "risk", *falls, log="y"),
        )  # fmt: skip
