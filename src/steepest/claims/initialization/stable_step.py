"""The largest stable step is 2/λ_max of the tangent kernel: 1/n in width and, for scale-free σ, 1/depth.

Close to a network that fits its targets, descent on the mean of ½(f − y)² multiplies residuals by 1 − ηΘ/P. The risk
never rises where η < 2/λ_max(Θ/P), and rises from every start beyond. The limit kernel says how this step depends on
width and depth: like 1/n in the standard parameterization, not at all in the NTK parameterization, and with depth as
the kernel of the activation does.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Positive, Within, keys
from steepest.data import digits
from steepest.descent import descend
from steepest.judging import Check, Hypothesis, Rival, equal, exponent, require
from steepest.kernels import empirical_ntk, gram
from steepest.networks import Mlp, mlp
from steepest.panels import Panel, panel, rival, seen, theory
from steepest.types import Key, Params

CRITICAL = {"relu": 2.0, "linear": 1.0, "tanh": 1.0}  # C_W that preserves signals
LAWS = ("standard", "ntk")  # parameterizations of the width law
GROUP = 4  # networks whose 1/step is averaged before a logarithm is taken


class Setting(NamedTuple):
    """Inputs ``(P, 16)``, direction of the residual ``(P,)``, initial networks, and the top of their Θ/P."""

    x: Array
    direction: Array
    starts: list[Params]  # of every case, seeds first
    top: np.ndarray  # λ_max, (case, seed)
    share: float  # smallest share of the initial risk along the top eigenvector


@dataclass(frozen=True)
class StableStep(Claim):
    """Networks of many widths and depths close to their targets, on digits pooled to 4×4 pixels."""

    widths: tuple[Count, ...] = (128, 512, 1024)  # widths n of the width laws [neurons]
    depth: Count = 1  # hidden layers of the width laws [layers]
    activations: tuple[str, ...] = ("relu",)  # activations of the depth laws: relu, linear, tanh [name]
    depths: tuple[Count, ...] = (1, 2, 4)  # hidden layers of the depth laws [layers]
    width: Count = 128  # width n of the depth laws [neurons]
    examples: Count = 8  # digits 0 and 1, P of them [examples]
    residual: Positive = 0.01  # size of the residual at the start, ε [1]
    steps: Count = 30  # steps in which the risk must not rise [steps]
    smallest: Positive = 1e-4  # lower end of the bisection [1]
    largest: Positive = 100.0  # upper end of the bisection [1]
    halvings: Count = 11  # halvings of the bisection, on a logarithmic scale [1]
    seeds: Annotated[int, Within(8, 10_000)] = 64  # independent networks [1]

    statement = (
        r"\eta_{\max}=\frac{2}{\lambda_{\max}(\Theta/P)},\quad"
        r"\eta_{\max}\propto n^{-1}\text{ (standard)},\; n^0\text{ (NTK)},\; (L+1)^{-1}\text{ (scale-free kernels)}"
    )
    source = "ORF 543, lecture on learning rates; Jacot, Gabriel and Hongler 2018"
    corrections = (
        "The notes print η_w = O(1/√n); with W ~ N(0, C_W/n) the largest stable step scales as 1/n.",
        "The notes' 1/L is exact, with L + 1 for L, at one input and for linear networks. On several inputs ReLU "
        "decorrelates them with depth, which slows the decay; for tanh at criticality without biases Θ tends to a "
        "constant, and the step does not fall with depth at all.",
    )
    remarks = (
        "Stable means that the risk does not rise above its start within the given steps, from a residual ε so small "
        "that the network is linear. From a residual of order one a nonlinear network can survive larger steps by "
        "moving to a flatter place: see catapult.",
        "A share q of the risk along the top eigenvector needs log(1/q)/2T above λη = 2 to show in T steps: the "
        "measured step is too long by up to log(1/q)/4T, about 2 %, and the margin of the ratio, −3 % to +5 %, allows "
        "for that and for the bisection's 0.7 %.",
        "Exponents are those of the limit kernel at the same widths and depths. The margin in depth is 0.2, since "
        "networks of depth/width 1/16 fluctuate by half of λ_max; in width it is 0.1.",
        "The limit is the mean of finite kernels, and log λ_max of a deep narrow network lies below the logarithm of "
        "the mean: 1/step is averaged over groups of four networks before logarithms are taken. Networks one by one "
        "gave ReLU the exponent −0.71 ± 0.15 at seed 0 where the limit has −0.84: inconclusive, as was a run of 24 "
        "networks of depth up to 8 at seed 1; depths up to 4 replaced them. With 24 networks ReLU's exponent in depth "
        "was inconclusive at 11 of 20 seeds and never wrong: 64 replaced them. The full preset adds tanh and linear.",
    )
    version = 2  # 1 took the largest depth over the smallest width, of different experiments
    beyond = {"residual": 3.0}
    full = {
        "widths": (64, 256, 1024),
        "depth": 2,
        "activations": ("relu", "linear", "tanh"),
        "width": 256,
        "depths": (1, 2, 4, 8),
        "seeds": 64,
    }
    precision = "float32"

    def cases(self) -> list[Mlp]:
        """The networks: the width law of each parameterization, then the depth law of each activation."""
        build = lambda n, depth, sigma, law: mlp(
            (16, *[n] * depth, 1), sigma, parameterized=law, c_w=CRITICAL[sigma], bias=False
        )
        wide = [build(n, self.depth, "relu", law) for law in LAWS for n in self.widths]
        return wide + [build(self.width, d, sigma, "ntk") for sigma in self.activations for d in self.depths]

    def setting(self, key: Key) -> Setting:
        data = digits((0, 1), self.examples)
        x = data.x.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)  # mean of 2×2 pixels
        x, seeds = x / jnp.sqrt((x**2).mean()), keys(key, self.seeds)
        direction = data.y[:, 0] / jnp.sqrt((data.y[:, 0] ** 2).mean())
        starts = [jax.vmap(net.init)(seeds) for net in self.cases()]  # eager: layers of one shape compile once
        tops, shares = [], []
        for net, start in zip(self.cases(), starts, strict=True):
            kernel = jax.vmap(lambda p, net=net: empirical_ntk(net, p, x))(start) / len(x)
            values, vectors = np.linalg.eigh(np.asarray(kernel, float))
            tops.append(values[:, -1])
            shares.append((np.asarray(direction) @ vectors[..., -1].T) ** 2 / len(x))
        return Setting(x, direction, starts, np.array(tops), float(np.min(shares)))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        narrow = min(*self.widths, self.width)
        deep = max(self.depth / min(self.widths), max(self.depths) / self.width)
        return [
            require("residual ε/√n", self.residual / narrow**0.5, "<=", 0.01, "the network must be linear there"),
            require("share of the risk along the top eigenvector", setting.share, ">=", 0.05, "take more steps"),
            require("largest depth/width", deep, "<=", 0.1, "the kernel is for n ≫ depth"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        x = np.asarray(setting.x, float)
        limit = [2 * len(x) / np.linalg.eigvalsh(gram(net.limit(), x).ntk)[-1] for net in self.cases()]
        by_width, by_depth = self.split(np.array(limit))
        slopes = lambda sizes, steps: np.polyfit(np.log(sizes), np.log(steps).T, 1)[0]
        return Prediction(
            step=("case seed", 2 / setting.top),
            limit_width=("parameterization width", by_width),
            limit_depth=("activation depth", by_depth),
            width_exponent=("parameterization", slopes(self.widths, by_width).round(12)),
            depth_exponent=("activation", slopes(np.add(self.depths, 1), by_depth)),
        )

    def split(self, steps: Float[np.ndarray, "cases ..."]) -> tuple[np.ndarray, np.ndarray]:
        """Cases as parameterization × width, and activation × depth."""
        at, rest = len(LAWS) * len(self.widths), steps.shape[1:]
        by_width = steps[:at].reshape(len(LAWS), len(self.widths), *rest)
        return by_width, steps[at:].reshape(len(self.activations), len(self.depths), *rest)

    def observe(self, setting: Setting, key: Key) -> Observation:
        find = lambda net, start: jax.jit(jax.vmap(lambda p: self.largest_step(net, p, setting)))(start)
        found = [find(net, start) for net, start in zip(self.cases(), setting.starts, strict=True)]
        return Observation(step=("case seed", np.array(found)))

    def largest_step(self, net: Mlp, start: Params, setting: Setting) -> Array:
        """By bisection: the largest step size at which the risk stays at or below its start."""
        x = setting.x
        y = net.apply(start, x) - self.residual * setting.direction
        risk = lambda p: 0.5 * jnp.mean((net.apply(p, x) - y) ** 2)

        def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = (ends[0] + ends[1]) / 2
            path = descend(risk, start, optax.sgd(jnp.exp(middle)), self.steps).risk
            stays = jnp.all(path <= path[0])  # NaN compares false
            return jnp.where(stays, middle, ends[0]), jnp.where(stays, ends[1], middle)

        ends = jnp.log(self.smallest), jnp.log(self.largest)
        return jnp.exp(sum(jax.lax.fori_loop(0, self.halvings, halve, ends)) / 2)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        by_width, by_depth = self.split(observed["step"])
        groups = lambda steps: 1 / (1 / steps[:, : self.seeds // GROUP * GROUP]).reshape(len(steps), -1, GROUP).mean(2)
        ratio, checks = (observed["step"] / predicted["step"]).ravel(), []
        checks.append(equal("step · λ_max/2", 1.0, ratio, (0.97, 1.05), over="each", note="all networks"))
        for law, power, steps, limit in zip(
            LAWS, predicted["width_exponent"], by_width, predicted["limit_width"], strict=True
        ):
            checks.append(exponent(f"{law}: step against width n", power, self.widths, groups(steps).T, 0.1))
            checks.append(
                equal(f"{law}: step / limit kernel's, n = {self.widths[-1]}", 1.0, steps[-1] / limit[-1], 0.1)
            )
        for sigma, power, steps in zip(self.activations, predicted["depth_exponent"], by_depth, strict=True):
            layers = np.add(self.depths, 1)
            checks.append(exponent(f"{sigma}: step against depth L + 1", power, layers, groups(steps).T, 0.2))
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        powers, flat = np.array([-0.5, 0.0]), np.zeros(len(self.activations))
        return [
            Rival("1/√n", predicted.replace(width_exponent=("parameterization", powers)), "printed in the notes"),
            Rival("depth does not matter", predicted.replace(depth_exponent=("activation", flat)),
                "the forward pass keeps its size at criticality"),
            *[Rival("1/depth for every activation", predicted.replace(depth_exponent=("activation", flat - 1)),
                "it is so for linear networks")] * ("tanh" in self.activations),
            Rival("1/λ_max", predicted.replace(step=("case seed", predicted["step"] / 2)),
                "the step that converges fastest along the top eigenvector"),
        ]  # fmt: skip

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        (by_width, by_depth), layers, wide, deep = self.split(observed["step"]), np.add(self.depths, 1), [], []
        for i, law in enumerate(LAWS):
            wide.append(seen(self.widths, by_width[i].T, law, kind="points", shade=float(i)))
            wide.append(theory(self.widths, predicted["limit_width"][i], "2/λ_max of the limit" if not i else ""))
        for i, sigma in enumerate(self.activations):
            shade = i / max(1, len(self.activations) - 1)
            deep.append(seen(layers, by_depth[i].T, sigma, kind="points", shade=shade))
            deep.append(theory(layers, predicted["limit_depth"][i], "2/λ_max of the limit" if not i else ""))
        slow = predicted["limit_width"][0, 0] * np.sqrt(self.widths[0] / np.array(self.widths))
        return (
            panel("The largest stable step against width", "width n", "step size", *wide,
                rival(self.widths, slow, "1/√n"), log="xy"),
            panel("and against depth", "L + 1", "step size", *deep, log="xy"),
        )  # fmt: skip
