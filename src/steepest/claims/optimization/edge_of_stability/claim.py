"""Full-batch descent raises the sharpness until it reaches 2/η, and keeps it there.

The sharpness is the largest eigenvalue of the Hessian of the risk. On a quadratic, descent with step size η is stable
only below 2/η. On a network the sharpness rises by itself along gradient flow; descent follows until 2/η, where the
flow would go on, and then hovers there. The risk goes on falling meanwhile: that is drawn, not judged.
"""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Curve,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    assume,
    bound,
    compiled,
    context_curve,
    equal,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.optimization._digits_network import MARGIN, Setting
from steepest.claims.optimization.edge_of_stability.experiment import (
    EdgePoint,
    had_time,
    late_mean,
    starts_below_the_edge,
)
from steepest.dynamics import Trajectory, flow

Measured = dict[str, jax.Array]  # sharpness and residual, by name
WORDS = ("small", "middle", "large")  # the three step sizes


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

    kind = "empirical law"
    statement = (
        r"\lambda_{\max}\!\left(\nabla^2 R(\theta_t)\right)\;\longrightarrow\;\frac{2}{\eta}"
    )
    source = "Lecture of 5 October in [@hanin2022]; [@cohen2021]"
    remarks = (
        "The loss is ½‖f − y‖² summed over the ten outputs and averaged over images.",
        "Weights start small (C_W = ½, four hidden layers) and pixels are centred, so that the sharpness starts below "
        "2/η and has room to rise; from the usual start on raw pixels it begins at 57 and large step sizes diverge.",
        "The step sizes put 2/η between the sharpness at the start (about 3) and what gradient flow reaches (10 to 13 "
        "by the same time). Below that window descent never meets the edge: at η = 0.2 it had not for some seeds. "
        "Such a run is out of range, and says how many steps would do.",
        "Version 2 asks the flow for more than counts as the edge, 1.15 times 2/η, and has a control for it.",
    )
    version = 2  # 1 asked the flow for 2/η
    tiny = {"lr": 0.1, "steps": 25, "width": 8, "depth": 2, "n": 20, "seeds": 3, "products": 8}
    full = {"n": 300, "steps": 3000, "width": 64, "seeds": 5, "products": 20}
    out_of_scope = {"lr": 3.0, "steps": 20}
    precision = "float32"
    point = EdgePoint

    @property
    def step_sizes(self) -> tuple[float, ...]:
        """Return the three step sizes η, smallest first."""
        return (self.lr / self.ratio, self.lr, self.lr * self.ratio)

    def setting(self, key: Key) -> Setting:
        return EdgePoint.of(self).networks(key)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        time = self.steps * max(self.step_sizes)
        return [assume("flow time η × steps", time, "<=", 1e5, "choose a smaller --lr")]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(sharpness=("step_size", 2 / np.array(self.step_sizes)))

    def observe(self, setting: Setting, key: Key) -> Observation:
        point = EdgePoint.of(self)
        # as long as the slowest descent
        times = np.linspace(0, self.steps * min(self.step_sizes), 16)
        visited = {"params": lambda params: params}

        def follow(seed: Key) -> tuple[Trajectory, Measured, Measured]:
            """Descend with every step size, follow the flow, then measure the sharpness of all that was visited."""
            start = setting.net.init(seed)
            descend_at = lambda lr: point.path(setting, start, lr, visited)
            paths = jax.lax.map(descend_at, jnp.array(self.step_sizes))
            limit = flow(setting.risk, start, times, observe=visited, rtol=1e-3, atol=1e-6)
            descents = paths.observed.pop("params")
            shape = paths.risk.shape
            join = lambda a, b: jnp.concatenate([a.reshape(-1, *b.shape[1:]), b])
            points = jax.tree.map(join, descents, limit.observed["params"])
            measured = jax.lax.map(partial(point.sharpness, setting.risk), points)
            cut = math.prod(shape)
            of_descents = {name: value[:cut].reshape(shape) for name, value in measured.items()}
            return paths, of_descents, {name: value[cut:] for name, value in measured.items()}

        every = compiled(lambda seeds: jax.lax.map(follow, seeds))(setting.keys)
        paths, of_descents, of_flow = jax.tree.map(np.asarray, every)
        return Observation(
            step=("record", paths.steps[0, 0], "steps"),
            risk=("seed step_size record", paths.risk),
            sharpness=("seed step_size record", of_descents["value"]),
            residual=("seed step_size record", of_descents["residual"]),
            flow_time=("time", times),
            flow_sharpness=("seed time", of_flow["value"]),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        in_units = observed["sharpness"] * np.array(self.step_sizes)[:, None] / 2
        return [
            *starts_below_the_edge(in_units[..., 0], observed["residual"]),
            had_time(in_units, self.steps),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        flow_end = observed["flow_sharpness"][:, -1]
        return [
            *self.judge_descents(predicted, observed),
            bound(
                "flow_sharpness",
                flow_end,
                at_least=MARGIN[1] * 2 / min(self.step_sizes),  # above what counts as the edge
                aggregate="all",
                label="sharpness at the end of gradient flow",
            ),
        ]

    def judge_descents(self, predicted: Prediction, observed: Observation) -> list[Check]:
        """Compare the late sharpness of every descent with 2/η."""
        late = late_mean(observed["sharpness"])  # (seeds, step sizes)
        return [
            equal(
                f"late_sharpness_{WORDS[i]}",
                predicted["sharpness"][i],
                late[:, i],
                MARGIN,
                label=f"late sharpness, η = {lr:.3g}",
            )
            for i, lr in enumerate(self.step_sizes)
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        half = predicted.replace(sharpness=("step_size", predicted["sharpness"] / 2))
        flow_only = predicted.replace(
            sharpness=("step_size", np.full(3, predicted["sharpness"].max()))
        )
        return [
            Rival(
                "half_the_edge",
                half,
                "there a step along the top eigenvector lands on the minimum",
                label="the sharpness stops at 1/η",
            ),
            Rival(
                "no_step_size",
                flow_only,
                "it is a property of the minimum alone",
                label="the sharpness does not depend on η",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        # the flow's readings are as many steps of the smallest size apart as the horizon has room for
        smallest = observed["sharpness"][:, int(np.argmin(self.step_sizes))]
        return [
            Control(
                "descent",
                observed.replace(flow_sharpness=("seed record", smallest)),
                "descent stops at 2/η, where the flow goes on",
                label="the descent with the smallest step in the place of the flow",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        flow = context_curve(observed["flow_time"], observed["flow_sharpness"][0], "gradient flow")
        return self.panels_of_descents(predicted, observed, flow)

    def panels_of_descents(
        self, predicted: Prediction, observed: Observation, *more: Curve
    ) -> tuple[Panel, ...]:
        """Draw the descents of the first seed, with more curves beside their sharpness."""
        rises = []
        falls = []
        first = observed["sharpness"][0]
        for i, lr in enumerate(self.step_sizes):
            shade = i / 2
            time = lr * observed["step"]
            edge = predicted["sharpness"][i]
            rises += [
                observed_curve(time, first[i], f"η = {lr:.3g}", shade=shade),
                predicted_curve(time[[0, -1]], (edge, edge), shade=shade),
            ]
            falls.append(observed_curve(time, observed["risk"][0, i], f"η = {lr:.3g}", shade=shade))
        scaled = [
            observed_curve(observed["step"], first[i] * lr / 2, shade=i / 2)
            for i, lr in enumerate(self.step_sizes)
        ]
        return (
            panel(
                "The sharpness rises to 2/η (dashed) and stays",
                "time η × step",
                "sharpness",
                *rises,
                *more,
            ),
            panel(
                "In units of 2/η",
                "step",
                "sharpness × η/2",
                *scaled,
                predicted_curve(observed["step"][[0, -1]], (1, 1), "2/η"),
                rival_curve(observed["step"][[0, -1]], (0.5, 0.5), "1/η"),
            ),
            panel("The risk keeps falling", "time η × step", "risk", *falls, log="y"),
        )
