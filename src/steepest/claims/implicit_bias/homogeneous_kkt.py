"""Homogeneous networks never lose margin once they fit, and their direction tends to a KKT point of its maximum.

Gradient flow with the exponential loss on a network of degree L keeps raising the smoothed margin
log(1/Σe^{-u_i}) / ‖θ‖^L from the moment that the sum is below one, and its normalized weights tend to points where the
optimality conditions of min ½‖θ‖² under margins of one hold. No convexity is needed, and none is there.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Positive, Seeds, Within, keys
from steepest.data import balanced, digits, signs
from steepest.descent import exponential, flow, log_margin_risk, margin_risk
from steepest.judging import Check, Hypothesis, Rival, bound, exponent, require
from steepest.margins import kkt_from_gradients
from steepest.networks import Mlp, mlp
from steepest.panels import Panel, context, panel, rival, seen
from steepest.types import Key

EVERY = 4  # of how many readings one has its KKT residuals computed


class Setting(NamedTuple):
    """Images with labels ±1, and starts, one a seed."""

    x: jax.Array  # (n, d)
    y: jax.Array  # (n,)
    starts: tuple  # layers {"w": (seeds, n_{l+1}, n_l)}


@dataclass(frozen=True)
class HomogeneousKkt(Claim):
    """ReLU networks without biases, threes against eights."""

    layers: Annotated[int, Within(2)] = 2  # layers of weights, the degree L of homogeneity [1]
    width: Count = 16  # of every hidden layer [1]
    each: Count = 20  # images of a class [1]
    activation: str = "relu"  # homogeneous of degree one: relu, or leaky-relu [name]
    bias: bool = False  # whether there are biases, which end homogeneity [bool]
    horizon: Positive = 1000.0  # by how much the logarithm of the risk falls [1]
    seeds: Seeds = 5  # starts [1]

    statement = (
        r"\frac{d}{dt}\frac{\log(1/\sum_i e^{-u_i(\theta)})}{\lVert\theta\rVert^L}\ge0,\qquad"
        r"\frac{\theta}{\lVert\theta\rVert}\to\ \text{KKT points of}\ \min\tfrac12\lVert\theta\rVert^2"
        r"\ \text{s.t.}\ u_i(\theta)=y_if(x_i;\theta)\ge1"
    )
    source = "Talks of J. Lee and of Gunasekar (seeds 004); Lyu and Li 2020; Ji and Telgarsky 2020"
    remarks = (
        "A KKT point of this problem need not be its solution: different starts end at different margins.",
        "Multipliers are the best ones, by non-negative least squares; the loss is not used. The residuals are the "
        "distance of θ from the cone of the gradients, and the weight on examples off the margin; at the flow's own "
        "multipliers theory bounds the second by a constant over log(1/R).",
    )
    full = {"layers": 3, "each": 40, "width": 32, "seeds": 10}
    beyond = {"bias": True}

    def network(self) -> Mlp:
        widths = (64, *[self.width] * (self.layers - 1), 1)
        return mlp(widths, self.activation, bias=self.bias, c_w=2.0, c_b=0.1 * self.bias)

    def setting(self, key: Key) -> Setting:
        for_data, for_starts = jax.random.split(key)
        data = signs(balanced(digits((3, 8)), self.each, for_data))
        return Setting(data.x, data.y, jax.vmap(self.network().init)(keys(for_starts, self.seeds)))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        net, doubled = self.network(), jax.tree.map(lambda w: 2 * w, setting.starts)
        outputs, scaled = (jax.vmap(net.apply, (0, None))(p, setting.x) for p in (setting.starts, doubled))
        departure = jnp.abs(scaled / 2**self.layers - outputs).max() / jnp.abs(outputs).max()
        return [require("departure from homogeneity", departure, "<=", 1e-10, "use relu and no biases")]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(degree=self.layers, residual_exponent=-1.0)

    def observe(self, setting: Setting, key: Key) -> Observation:
        net, falls = self.network(), jnp.concatenate([jnp.linspace(0.5, 9.5, 10), jnp.geomspace(10, self.horizon, 25)])
        risks = [make(exponential, net.apply, setting.x, setting.y) for make in (margin_risk, log_margin_risk)]
        margins = lambda p: setting.y * net.apply(p, setting.x)

        def follow(start: tuple) -> tuple:
            seen = {"u": margins, "params": lambda p: p}
            path = flow(risks[0], start, falls, "fall", risks[1], seen, max_steps=60_000)
            params = jax.tree.map(lambda leaf: leaf[10::EVERY], path.observed["params"])
            slopes = jax.vmap(jax.jacrev(margins))(params)  # (readings, n, *leaf)
            ravel = lambda tree, axes: jnp.concatenate(
                [leaf.reshape(*leaf.shape[:axes], -1) for leaf in jax.tree.leaves(tree)], -1)  # fmt: skip
            size = jnp.linalg.norm(ravel(path.observed["params"], 1), axis=-1)
            return path.observed["u"], size, path.log_risk, path.ok, ravel(params, 1), ravel(slopes, 2)

        u, size, log_risk, arrived, params, slopes = (np.asarray(a) for a in jax.jit(jax.vmap(follow))(setting.starts))
        n, places = len(setting.y), range(params.shape[1])
        found = [
            [kkt_from_gradients(params[s, r], u[s, 10 + EVERY * r], slopes[s, r], self.layers) for r in places]
            for s in range(self.seeds)
        ]
        return Observation(
            fall=("reading", falls),
            log_sum=("seed reading", log_risk + np.log(n)),  # log Σ e^{-u_i}
            size=("seed reading", size),
            least=("seed reading", u.min(-1)),
            kkt_at=("moment", falls[10::EVERY]),
            stationarity=("seed moment", [[each.stationarity for each in row] for row in found]),
            complementarity=("seed moment", [[each.complementarity for each in row] for row in found]),
            arrived=("seed", arrived),
        )

    def premises(self, observed: Observation) -> list[Hypothesis]:
        return [
            require("flows that reached the horizon", observed["arrived"].mean(), "==", 1, "lower --horizon"),
            require("least margin at the end", observed["least"][:, -1].min(), ">", 0, "raise --width"),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        at = observed["kkt_at"]
        late = slice(len(at) // 2, None)
        weight = observed["complementarity"]
        return [
            bound("largest relative drop of the smoothed margin", _drop(observed, float(predicted["degree"])),
                at_most=1e-6, over="each"),
            bound("stationarity at the end", observed["stationarity"][:, -1], at_most=0.05),
            bound("weight off the margin at the end", weight[:, -1], at_most=0.05),
            exponent("weight off the margin against log(1/R)", float(predicted["residual_exponent"]),
                at[late], weight[:, late], 0.3),
        ]  # fmt: skip

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        return [
            Rival("one degree more", predicted.replace(degree=self.layers + 1.0), "biases would raise the degree"),
            Rival("no approach", predicted.replace(residual_exponent=0.0), "the problem is not convex"),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        fall, at = observed["fall"], observed["kkt_at"]
        smoothed, plain = (_smoothed(observed, self.layers), observed["least"] / observed["size"] ** self.layers)
        fits = observed["log_sum"].max(0) < 0
        return (
            panel("The smoothed margin never falls", "fall of log R", "margin / ‖θ‖^L",
                seen(fall[fits], smoothed[:, fits], "smoothed"), context(fall[fits], plain[:, fits].mean(0), "least"),
                log="x"),
            panel("Normalized by one degree more it would", "fall of log R", "log(1/Σe^{-u}) / ‖θ‖^{L+1}",
                rival(fall[fits], smoothed[:, fits] / observed["size"][:, fits]), log="x"),
            panel("Distance of θ from the cone of gradients", "fall of log R", "relative distance",
                seen(at, observed["stationarity"]), log="xy"),
            panel("Weight on examples off the margin", "fall of log R", "relative weight",
                seen(at, observed["complementarity"]), log="xy"),
        )  # fmt: skip


def _smoothed(observed: Observation, degree: float) -> np.ndarray:
    return -observed["log_sum"] / observed["size"] ** degree


def _drop(observed: Observation, degree: float) -> np.ndarray:
    """The largest relative decrease between readings from the first one on at which Σe^{-u} < 1, by seed."""
    margin, fits = _smoothed(observed, degree), observed["log_sum"] < 0
    fallen = np.where(fits[:, :-1], 1 - margin[:, 1:] / margin[:, :-1], -np.inf)
    return np.maximum(fallen.max(1), 0.0)
