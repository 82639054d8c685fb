"""The largest stable step is 2/λ_max of the tangent kernel: 1/n for weights, n⁰ for biases; depth as the kernel says.

Close to a network that fits its targets, descent on the mean of ½(f − y)² multiplies residuals by 1 − ηΘ/P. The risk
never rises where η < 2/λ_max(Θ/P), and rises from every start beyond. The limit kernel says how this step depends on
width and depth. In the standard parameterization it is like 1/n for the weights and does not depend on n for the
biases; in the NTK parameterization it does not depend on n. With depth it falls as the kernel of the activation says.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Values,
    Within,
    assume,
    compiled,
    equal,
    exponent,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.kernels import gram
from steepest.nn.activations import activation
from steepest.nn.data import digits
from steepest.nn.networks import Limit, Mlp, mlp, parameterization
from steepest.nn.types import Params

CRITICAL = {"relu": 2.0, "linear": 1.0, "tanh": 1.0}  # C_W that preserves signals
# of the width law: parameterization, and what is trained
LAWS = {"standard": ("standard", "w"), "ntk": ("ntk", "w"), "biases": ("standard", "b")}
TOO_LONG = (0.97, 1.05)  # a step is too long by 2 %, see the remarks, and bisection has 0.7 %


class Case(NamedTuple):
    """A network, and which of its parameters are trained: the weights ``"w"`` or the biases ``"b"``."""

    net: Mlp
    trained: str
    sigma: str

    def moving(self, start: Params) -> list[Array]:
        """Return the parameters that are trained."""
        return [layer[self.trained] for layer in start]

    def apply(self, start: Params, moving: list[Array], x: Array) -> Array:
        """Evaluate the network with these in place of what is trained."""
        layers = zip(start, moving, strict=True)
        return self.net.apply(tuple({**layer, self.trained: part} for layer, part in layers), x)

    @property
    def shape(self) -> tuple[tuple[int, ...], str]:
        """Return widths and name of the activation: the networks of one shape share their functions at the start."""
        return self.net.widths, self.sigma

    @property
    def factors(self) -> list[float]:
        """Return the deviation of the weights of every layer, (C_W/fan-in)^½, where the network is standard; else 1."""
        if self.net.parameterization == parameterization("ntk"):
            return [1.0] * (len(self.net.widths) - 1)
        return [(CRITICAL[self.sigma] / n) ** 0.5 for n in self.net.widths[:-1]]

    def start(self, drawn: Params) -> Params:
        """Return initial networks, made of Gaussian weights of variance one and of biases."""
        kept = ("w", "b") if self.trained == "b" else ("w",)
        layers = [
            {"w": factor * layer["w"], "b": layer["b"]}
            for factor, layer in zip(self.factors, drawn, strict=True)
        ]
        return tuple({kind: layer[kind] for kind in kept} for layer in layers)

    def kernel(self, parts: Float[np.ndarray, "n layers 2 P P"]) -> Float[np.ndarray, "n P P"]:
        """Add up the tangent kernel of what is trained, from its parts in the NTK parameterization."""
        if self.trained == "b":
            return parts[:, :, 1].sum(1)
        # with W = c w, a derivative with respect to W is that with respect to w over c
        return np.einsum("l,nlij->nij", np.array(self.factors) ** -2.0, parts[:, :, 0])

    def limit(self) -> Limit:
        """Return the infinitely wide network, with the tangent kernel of what is trained."""
        limit = self.net.limit()
        if self.trained == "w":
            return limit
        return replace(limit, layers=tuple(layer._replace(t_w=0.0) for layer in limit.layers))


class Setting(NamedTuple):
    """Inputs ``(P, 16)``, direction of the residual ``(P,)``, initial networks, and the top of their Θ/P."""

    x: Values
    direction: Values
    starts: list[Params]  # of every case, seeds first
    top: Values  # λ_max of networks at the start, (case, seed, sibling); the first sibling is trained
    share: float  # smallest share of the initial risk along the top eigenvector


@dataclass(frozen=True)
class StableStep(Claim):
    """Networks of many widths and depths close to their targets, on digits pooled to 4×4 pixels."""

    widths: tuple[Count, ...] = (128, 512, 1024)  # widths n of the width laws [neurons]
    depth: Count = 1  # hidden layers of the width laws [layers]
    # activations of the depth laws: relu, linear, tanh [name]
    activations: tuple[str, ...] = ("relu",)
    depths: tuple[Count, ...] = (1, 2, 4)  # hidden layers of the depth laws [layers]
    width: Count = 128  # width n of the depth laws [neurons]
    examples: Count = 8  # digits 0 and 1, P of them [examples]
    residual: Positive = 0.01  # size of the residual at the start, ε [1]
    steps: Count = 30  # steps in which the risk must not rise [steps]
    smallest: Positive = 1e-4  # lower end of the bisection [1]
    largest: Positive = 100.0  # upper end of the bisection [1]
    halvings: Count = 11  # halvings of the bisection, on a logarithmic scale [1]
    # networks at the start whose λ_max stands beside that of each trained one, with it [1]
    siblings: Count = 32
    seeds: Annotated[int, Within(8, 10_000)] = 32  # independent trained networks [1]

    kind = "limit"
    statement = (
        r"\eta_{\max}=\frac{2}{\lambda_{\max}(\Theta/P)},\quad"
        r"\eta_{\max}\propto n^{-1}\text{ (standard, weights)},\; n^0\text{ (standard, biases; NTK)}"
    )
    source = "Lecture 7, on learning rates, in [@hanin2022]; [@jacot2018]"
    corrections = (
        "The notes print η_w = O(1/√n); with W ~ N(0, C_W/n) the largest stable step scales as 1/n. Their "
        "η_b = O(1) is right.",
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
        "Exponents are those of the limit kernel at the same widths and depths: in depth −0.87 for ReLU on these "
        "inputs, of which −1 is a rival.",
        "The limit is the mean of finite kernels, and networks differ, in depth 4 by a quarter. The mean of 1/step is "
        "therefore estimated by its ratio to λ_max: the step is measured by descent on one network a seed, λ_max at "
        "the start on it and on 31 siblings, which costs little. The estimate holds whatever the ratio is.",
        "Version 3 measured the mean of 1/step on groups of four networks: its depth exponent had an interval of "
        "± 0.07 in a margin of ± 0.12 and was inconclusive at two of three fresh seeds, and the printed −1 was "
        "accepted. Version 4 has the siblings, narrower margins, and the biases.",
        "Biases are trained alone here, from zero, with the weights held. The full preset adds tanh and linear.",
    )
    version = 4  # 1 took the largest depth over the smallest width, 3 had no siblings, 2 wider margins too
    headline = (
        "step_over_edge",
        "width_exponent_standard",
        "width_exponent_biases",
        "depth_exponent_0",
    )
    tiny = {
        "widths": (64, 96, 128),
        "depths": (1, 2, 3),
        "width": 64,
        "examples": 4,
        "steps": 5,
        "halvings": 5,
        "siblings": 2,
        "seeds": 8,
    }
    out_of_scope = {"residual": 3.0}
    full = {
        "widths": (64, 256, 1024),
        "depth": 2,
        "activations": ("relu", "linear", "tanh"),
        "width": 256,
        "depths": (1, 2, 4, 8),
    }
    precision = "float32"

    def cases(self) -> list[Case]:
        """Return the networks: the width law of each kind, then the depth law of each activation."""

        def build(n: int, depth: int, sigma: str, law: str) -> Case:
            parameterized, trained = LAWS[law]
            net = mlp(
                (16, *[n] * depth, 1),
                sigma,
                parameterized=parameterized,
                c_w=CRITICAL[sigma],
                bias=trained == "b",
            )
            return Case(net, trained, sigma)

        wide = [build(n, self.depth, "relu", law) for law in LAWS for n in self.widths]
        return wide + [
            build(self.width, d, sigma, "ntk") for sigma in self.activations for d in self.depths
        ]

    def setting(self, key: Key) -> Setting:
        data = digits((0, 1), self.examples)
        pixels = np.asarray(data.x)
        x = pixels.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)  # mean of 2×2 pixels
        x = x / np.sqrt((x**2).mean())
        labels = np.asarray(data.y)[:, 0]
        direction = labels / np.sqrt((labels**2).mean())

        cases = self.cases()
        shapes = sorted({case.shape for case in cases})

        def draw(key: Key) -> list[tuple[Params, Array]]:
            seeds = keys(key, self.seeds)
            return [
                jax.lax.map(partial(_siblings, shape, self.siblings, x), seeds) for shape in shapes
            ]

        drawn = dict(zip(shapes, compiled(draw)(key), strict=True))
        starts = [case.start(drawn[case.shape][0]) for case in cases]
        parts = {shape: np.array(both[1], float) for shape, both in drawn.items()}
        parts = {shape: part.reshape(-1, *part.shape[2:]) for shape, part in parts.items()}
        kernels = np.array([case.kernel(parts[case.shape]) for case in cases]) / len(x)
        kernels = kernels.reshape(len(cases), self.seeds, self.siblings, len(x), len(x))
        values, vectors = np.linalg.eigh(kernels)
        shares = (vectors[:, :, 0, :, -1] @ direction) ** 2 / len(x)
        return Setting(x, direction, starts, values[..., -1], float(np.min(shares)))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        narrow = min(*self.widths, self.width)
        deep = max(self.depth / min(self.widths), max(self.depths) / self.width)
        return [
            assume(
                "residual ε/√n",
                self.residual / narrow**0.5,
                "<=",
                0.01,
                "the network must be linear there",
            ),
            assume(
                "share of the risk along the top eigenvector",
                setting.share,
                ">=",
                0.05,
                "take more steps",
            ),
            assume("largest depth/width", deep, "<=", 0.1, "the kernel is for n ≫ depth"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        x = np.asarray(setting.x, float)
        limits = [replace(case.limit(), name="") for case in self.cases()]
        tops = {limit: np.linalg.eigvalsh(gram(limit, x).ntk)[-1] for limit in set(limits)}
        limit = [2 * len(x) / tops[limit] for limit in limits]
        by_width, by_depth = self.split(np.array(limit))
        slopes = lambda sizes, steps: np.polyfit(np.log(sizes), np.log(steps).T, 1)[0]
        return Prediction(
            step=("case seed", 2 / setting.top[..., 0]),
            limit_width=("law width", by_width),
            limit_depth=("activation depth", by_depth),
            width_exponent=("law", slopes(self.widths, by_width).round(12)),
            depth_exponent=("activation", slopes(np.add(self.depths, 1), by_depth)),
        )

    def split(self, steps: Float[np.ndarray, "cases ..."]) -> tuple[np.ndarray, np.ndarray]:
        """Return cases as law × width, and activation × depth."""
        at = len(LAWS) * len(self.widths)
        seeds = steps.shape[1:]
        by_width = steps[:at].reshape(len(LAWS), len(self.widths), *seeds)
        return by_width, steps[at:].reshape(len(self.activations), len(self.depths), *seeds)

    def observe(self, setting: Setting, key: Key) -> Observation:
        def search(starts: list[Params]) -> list[Array]:
            def of_case(case: Case, starts: Params) -> Array:
                return jax.lax.map(lambda start: self.largest_step(case, start, setting), starts)

            return [of_case(*pair) for pair in zip(self.cases(), starts, strict=True)]

        step = np.array(compiled(search)(setting.starts), float)
        # The mean of 1/step by its ratio to λ_max, which costs so little that many networks can have it. Whatever
        # the ratio is, its mean times that of λ_max is the mean of 1/step, but for their covariance.
        inverse = setting.top.mean(-1) / (step * setting.top[..., 0])
        return Observation(step=("case seed", step), mean_step=("case seed", 1 / inverse))

    def largest_step(self, case: Case, start: Params, setting: Setting) -> Array:
        """Search by bisection for the largest step size at which the risk stays at or below its start."""
        x = setting.x
        apply = partial(case.apply, start)
        y = case.net.apply(start, x) - self.residual * setting.direction
        risk = jax.value_and_grad(lambda moving: 0.5 * jnp.mean((apply(moving, x) - y) ** 2))

        def stays(lr: Array) -> Array:
            """Descend for as long as the risk is not above its start; NaN compares false."""

            def step(state: tuple) -> tuple:
                taken, moving, first, _ = state
                last, slope = risk(moving)
                moved = jax.tree.map(lambda p, g: p - lr * g, moving, slope)
                return taken + 1, moved, jnp.where(taken == 0, last, first), last

            # the risk is read before each step: one reading more than there are steps
            going = lambda state: (state[0] <= self.steps) & (state[3] <= state[2])
            begin = (0, case.moving(start), jnp.inf, 0.0)
            _, _, first, last = jax.lax.while_loop(going, step, begin)
            return jnp.less_equal(last, first)

        def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = (ends[0] + ends[1]) / 2
            stable = stays(jnp.exp(middle))
            return jnp.where(stable, middle, ends[0]), jnp.where(stable, ends[1], middle)

        ends = jnp.log(self.smallest), jnp.log(self.largest)
        return jnp.exp(sum(jax.lax.fori_loop(0, self.halvings, halve, ends)) / 2)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        by_width, by_depth = self.split(observed["mean_step"])
        checks = [self.judge_edge(predicted, observed)]
        for law, power, steps, limit in zip(
            LAWS, predicted["width_exponent"], by_width, predicted["limit_width"], strict=True
        ):
            checks.append(
                exponent(
                    f"width_exponent_{law}",
                    power,
                    self.widths,
                    steps.T,
                    0.03,  # kernels at 128 neurons are 1 or 2 % from the limit: 0.01 over log 8, and the interval
                    label=f"{law}: step against width n",
                )
            )
            checks.append(
                equal(
                    f"limit_step_{law}",
                    1.0,
                    steps[-1] / limit[-1],
                    TOO_LONG,
                    label=f"{law}: step / limit kernel's, n = {self.widths[-1]}",
                )
            )
        for i, (sigma, power, steps) in enumerate(
            zip(self.activations, predicted["depth_exponent"], by_depth, strict=True)
        ):
            checks.append(
                exponent(
                    f"depth_exponent_{i}",
                    power,
                    np.add(self.depths, 1),
                    steps.T,
                    # λ_max at depth L is of order L/n from the limit: 0.03 at 4/128, over log(5/2), and the interval
                    0.08,
                    label=f"{sigma}: step against depth L + 1",
                )
            )
        return checks

    def judge_edge(self, predicted: Prediction, observed: Observation) -> Check:
        """Compare the largest stable step of every network with 2/λ_max."""
        return equal(
            "step_over_edge",
            1.0,
            (observed["step"] / predicted["step"]).ravel(),
            TOO_LONG,
            aggregate="all",
            note="all trained networks",
            label="step · λ_max/2",
        )

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        powers = np.array([-0.5, 0.0, 0.0])
        flat = np.zeros(len(self.activations))
        return [
            Rival(
                "inverse_root",
                predicted.replace(width_exponent=("law", powers)),
                "printed in the notes",
                label="1/√n",
            ),
            Rival(
                "depth_is_nothing",
                predicted.replace(depth_exponent=("activation", flat)),
                "the forward pass keeps its size at criticality",
                label="depth does not matter",
            ),
            Rival(
                "inverse_depth",
                predicted.replace(depth_exponent=("activation", flat - 1)),
                "printed in the notes; it is so for linear networks",
                label="1/depth for every activation",
            ),
            Rival(
                "width_is_nothing",
                predicted.replace(width_exponent=("law", 0 * powers)),
                "it is so in the NTK parameterization",
                label="n⁰ for all three",
            ),
            Rival(
                "inverse_width",
                predicted.replace(width_exponent=("law", 0 * powers - 1)),
                "it is so for the weights in the standard parameterization",
                label="1/n for all three",
            ),
            Rival(
                "half_the_edge",
                predicted.replace(
                    step=("case seed", predicted["step"] / 2),
                    limit_width=("law width", predicted["limit_width"] / 2),
                ),
                "the step that converges fastest along the top eigenvector",
                label="1/λ_max",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        by_width, by_depth = self.split(observed["step"])
        layers = np.add(self.depths, 1)
        wide = []
        deep = []
        for i, law in enumerate(LAWS):
            wide.append(
                observed_curve(
                    self.widths, by_width[i].T, law, kind="points", shade=i / (len(LAWS) - 1)
                )
            )
            wide.append(
                predicted_curve(
                    self.widths,
                    predicted["limit_width"][i],
                    "2/λ_max of the limit" if not i else "",
                )
            )
        for i, sigma in enumerate(self.activations):
            shade = i / max(1, len(self.activations) - 1)
            deep.append(observed_curve(layers, by_depth[i].T, sigma, kind="points", shade=shade))
            deep.append(
                predicted_curve(
                    layers, predicted["limit_depth"][i], "2/λ_max of the limit" if not i else ""
                )
            )
        slow = predicted["limit_width"][0, 0] * np.sqrt(self.widths[0] / np.array(self.widths))
        return (
            panel(
                "The largest stable step against width",
                "width n",
                "step size",
                *wide,
                rival_curve(self.widths, slow, "1/√n"),
                log="xy",
            ),
            panel("and against depth", "L + 1", "step size", *deep, log="xy"),
        )


def _siblings(
    shape: tuple[tuple[int, ...], str], siblings: int, x: Array | np.ndarray, key: Key
) -> tuple[Params, Float[Array, "siblings layers 2 P P"]]:
    """Draw networks in the NTK parameterization; return the first, and all their tangent kernels in parts.

    The parts are those of the weights and of the biases of each layer.
    """
    widths, sigma = shape
    net = mlp(widths, sigma, parameterized="ntk", c_w=CRITICAL[sigma])
    drawn = jax.vmap(net.init)(keys(key, siblings))

    def parts(params: Params) -> Array:
        weights = [layer["w"] for layer in params]
        biases = [layer["b"] for layer in params]

        def output(biases: list[Array], x: Array) -> Array:
            layers = zip(weights, biases, strict=True)
            return net.apply(tuple({"w": w, "b": b} for w, b in layers), x)

        # ∂f/∂b of a layer is Δ = ∂f/∂z, and ∂f/∂w the product of Δ and what enters the layer, m A
        slopes = jax.vmap(jax.grad(output), (None, 0))(biases, x)
        entering = [x, *(activation(sigma)(z) for z in net.preactivations(params, x)[:-1])]
        kernels = []
        for features, slope in zip(entering, slopes, strict=True):
            through = slope @ slope.T
            squared_multiplier = CRITICAL[sigma] / features.shape[1]
            kernels.append([squared_multiplier * features @ features.T * through, through])
        return jnp.array(kernels)

    return jax.tree.map(lambda leaf: leaf[0], drawn), jax.vmap(parts)(drawn)
