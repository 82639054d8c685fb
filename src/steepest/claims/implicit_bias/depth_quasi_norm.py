"""Diagonal networks of depth L: margins in ℓ_{2/L} on exponential losses, but ℓ1 on the squared loss, at every L ≥ 2.

The care that the literature's "ℓ_{2/L}" needs, in one sentence: it is true of margins, where the weights grow without
end, and with squared loss and small starts every depth tends to the ℓ1 interpolant, only faster the deeper.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Fraction, Positive, Seeds, Within, keys
from steepest.data import separable
from steepest.descent import exponential, flow, log_margin_risk, margin_risk, mean_risk, squared
from steepest.judging import Check, Hypothesis, Rival, bound, equal, order, require
from steepest.margins import (
    depth_interpolation,
    hard_margin,
    kkt_from_gradients,
    quasi_norm_interpolation,
    quasi_norm_margins,
)
from steepest.networks import diagonal, diagonal_weights
from steepest.panels import Panel, panel, seen, theory
from steepest.types import Key

DEPTHS = (2, 3, 4)
TRIES = 100  # problems drawn for each that is kept, at most
MIDDLE = -5  # the reading with which the end is compared, two thirds of the way on a logarithmic scale


class Setting(NamedTuple):
    """Regression problems and separable sets, one of each a seed."""

    x: jax.Array  # (seeds, n, d)
    y: jax.Array  # (seeds, n)
    inputs: jax.Array  # (seeds, m, features)
    labels: jax.Array  # (seeds, m)


@dataclass(frozen=True)
class DepthQuasiNorm(Claim):
    """Depths 2, 3 and 4 on Gaussian regression with more unknowns than equations, and on separable sets."""

    n: Count = 4  # equations of a regression problem [1]
    dimension: Count = 10  # its unknowns d [1]
    examples: Count = 5  # of a separable set, m [1]
    features: Count = 5  # of its inputs [1]
    largest: Positive = 0.3  # α, largest scale of the start on the squared loss [1]
    smallest: tuple[Positive, ...] = (1e-6, 1.5e-3, 3e-2)  # α, smallest scale, by depth [1]
    points: Annotated[int, Within(3)] = 4  # scales for each depth, evenly spaced in log α [1]
    start: Positive = 0.03  # α on the exponential loss [1]
    horizons: tuple[Positive, ...] = (5000.0, 1000.0, 1000.0)  # fall of the log of the exponential risk, by depth [1]
    slack: Fraction = 0.7  # largest dual coefficient |z_i| off the support of an ℓ1 solution [1]
    seeds: Seeds = 8  # problems of each kind [1]
    horizon: Positive = 40.0  # longest log(1 + t) of the flow on the squared loss [1]

    statement = (
        r"\beta=\theta_+^L-\theta_-^L:\quad\text{squared loss, }\theta_\pm(0)=\alpha:\ "
        r"\beta_i(\infty)=\alpha^L h_L(\langle x_{\cdot i},\nu\rangle),\ "
        r"h_L(z)=(1-z)^{-\frac{L}{L-2}}-(1+z)^{-\frac{L}{L-2}},\quad \beta(\infty)\to\arg\min_{X\beta=y}\lVert\beta"
        r"\rVert_1\ (\alpha\to0);\qquad\text{exponential loss: }\frac{\beta}{\lVert\beta\rVert}\to\text{stationary for}"
        r"\ \min\lVert\beta\rVert_{2/L}\ \text{s.t.}\ y_i\langle\beta,x_i\rangle\ge1"
    )
    source = (
        "Arora's and Gunasekar's talks (seeds 003, 004); Woodworth et al. 2020, §6; Gunasekar, Lee, Soudry and Srebro "
        "2018; Moroshko et al. 2020; Lyu and Li 2020"
    )
    corrections = (
        "The notes say that depth L regularizes by ℓ_{2/L}, whatever the loss. It is so for margins on losses with an "
        "exponential tail; on the squared loss every depth L ≥ 2 tends to the ℓ1 interpolant as the start shrinks.",
    )
    remarks = (
        "Each interpolant with at most n nonzero entries is a local minimum of ℓ_{2/L} for L ≥ 3, so that conditions "
        "of stationarity say nothing on the squared loss: the rival's prediction is the global minimum, by enumeration "
        "of all vertices.",
        "For margins all local minima of ℓ_{2/L} are enumerated too, and the flow must end at one of them. For L ≥ 3 "
        "theory does not say at which.",
        "Problems are drawn until the theories differ: the ℓ1 interpolant is not that of least ℓ_{2/3} or ℓ_{1/2}, and "
        "the direction of the ℓ1 margin is not a local minimum of either. They also have slack: dual coefficients off "
        "the support of the ℓ1 solution are below --slack, as the speed of approach depends on them.",
        "Exponents are those of the weight with the largest dual coefficient off the support, between the two smallest "
        "scales. Two layers have α^{2(1 − |z|)} and need much smaller scales than the others to show it.",
        "With a start of another shape, αθ₀, depths L ≥ 3 tend to the ℓ1 norm with weights θ₀^{2 − L}; only two layers "
        "forget the shape.",
    )
    full = {"n": 5, "dimension": 14, "seeds": 20, "horizons": (20_000.0, 3000.0, 3000.0)}
    beyond = {"n": 12}

    @property
    def alphas(self) -> np.ndarray:
        """Scales of the start, decreasing, shape ``(depths, points)``."""
        return np.stack([np.geomspace(self.largest, smallest, self.points) for smallest in self.smallest])

    @property
    def falls(self) -> np.ndarray:
        """Readings of the flow on the exponential loss, shape ``(depths, readings)``."""
        return np.stack([np.geomspace(1.0, horizon, 13) for horizon in self.horizons])

    def setting(self, key: Key) -> Setting:
        many = TRIES * self.seeds
        for_x, for_y, for_sets = jax.random.split(key, 3)
        x, y = jax.random.normal(for_x, (many, self.n, self.dimension)), jax.random.normal(for_y, (many, self.n))
        draw = jax.jit(jax.vmap(lambda k: (lambda one: (one.x, one.y))(separable(k, self.examples, self.features))))
        kept = []
        for problems, wanted in (((x, y), self.regression), (draw(keys(for_sets, many)), self.classification)):
            every = zip(*(np.asarray(part) for part in problems), strict=True)
            found = (i for i, problem in enumerate(every) if wanted(*problem))
            chosen = np.array([i for i, _ in zip(found, range(self.seeds), strict=False)], int)
            kept += [part[chosen] for part in problems]
        return Setting(*kept)

    def regression(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether the ℓ1 interpolant has slack, and is not the one of least ℓ_{2/L} at a larger depth."""
        if self.n > self.dimension:
            return True
        sparse, dual = _sparse(x, y)
        return np.abs(dual[sparse == 0]).max(initial=0.0) <= self.slack and not any(
            np.allclose(sparse, quasi_norm_interpolation(x, y, 2 / depth)) for depth in DEPTHS[1:]
        )

    def classification(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether the direction of the ℓ1 margin has slack, and is no local minimum of ℓ_{2/L} at a larger depth."""
        (best,) = quasi_norm_margins(x, y, 1.0)
        on, support = y * (x @ best) < 1 + 1e-9, best != 0
        signed = (y[:, None] * x)[on]
        pull = np.linalg.lstsq(signed[:, support].T, np.sign(best[support]))[0] @ signed
        return np.abs(pull[~support]).max(initial=0.0) <= self.slack and not any(
            np.allclose(best, one) for depth in DEPTHS[1:] for one in quasi_norm_margins(x, y, 2 / depth)
        )

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        # More equations than unknowns have no interpolant, unless by accident; then there is nothing to choose from.
        found = min(len(setting.y), len(setting.labels))
        rank = min((int(jnp.linalg.matrix_rank(x)) for x in setting.x), default=0)
        return [
            require("problems of each kind with slack", found, "==", self.seeds, "raise --slack"),
            require("smallest rank of X", rank, ">=", self.n, "choose --n at most --dimension"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        problems, sets = (list(zip(*(np.asarray(part) for part in pair), strict=True))
                          for pair in (setting[:2], setting[2:]))  # fmt: skip
        sparse, dual = (np.stack(part) for part in zip(*(_sparse(*one) for one in problems), strict=True))
        z = np.abs(dual) * (sparse == 0)
        minima = [[_unit(quasi_norm_margins(*one, 2 / depth)) for one in sets] for depth in DEPTHS]
        programs = [hard_margin(*one, "l1") for one in sets]
        return Prediction(
            beta=("depth seed scale unknown", [
                [[depth_interpolation(*one, depth, a).beta for a in row] for one in problems]
                for depth, row in zip(DEPTHS, self.alphas, strict=True)]),
            limit=("depth seed unknown", [sparse] * len(DEPTHS)),
            slowest=("seed", z.argmax(1)),
            power=("depth seed", [2 * (1 - z.max(1)), *(np.full(len(z), depth) for depth in DEPTHS[1:])]),
            minima=("depth seed minimum feature", _padded(minima)),
            margin=("seed", [program.margin for program in programs]),
        )  # fmt: skip

    def observe(self, setting: Setting, key: Key) -> Observation:
        depths, alphas, falls = jnp.array(DEPTHS, float), jnp.asarray(self.alphas), jnp.asarray(self.falls)
        times = jnp.linspace(self.horizon / 20, self.horizon, 20)

        def regress(x: jax.Array, y: jax.Array, depth: jax.Array, alpha: jax.Array) -> tuple:
            # What is integrated is the displacement from the start, as is told in the claim diagonal-network.
            start = diagonal(self.dimension, alpha).init(key)
            weights = lambda moved: diagonal_weights(jax.tree.map(jnp.add, start, moved), depth)
            risk = mean_risk(squared, lambda moved, x: x @ weights(moved), x, y)
            settings = {"clock": "log", "solver": "stiff", "rtol": 1e-5, "atol": 1e-5 * alpha, "floor": 1e-16}
            path = flow(risk, jax.tree.map(jnp.zeros_like, start), times, max_steps=20_000, **settings)
            return weights(path.params), path.steps

        def classify(x: jax.Array, y: jax.Array, depth: jax.Array, falls: jax.Array) -> tuple:
            apply = lambda params, x: x @ diagonal_weights(params, depth)
            risk, log_risk = margin_risk(exponential, apply, x, y), log_margin_risk(exponential, apply, x, y)
            seen = {"weights": lambda params: diagonal_weights(params, depth)}
            start = diagonal(self.features, self.start).init(key)
            path = flow(risk, start, falls, "fall", log_risk, seen, rtol=1e-6, atol=1e-9, max_steps=1_000_000)
            return path.observed["weights"], jnp.stack(path.params), path.ok, path.steps

        over = lambda one, x, y: lambda rest: jax.vmap(lambda a, b: one(a, b, *rest))(x, y)  # the slowest lane decides
        pairs = jnp.repeat(depths, self.points), alphas.ravel()
        found = jax.jit(lambda x, y: jax.lax.map(over(regress, x, y), pairs))(setting.x, setting.y)
        beta, steps = (jnp.moveaxis(a.reshape(*alphas.shape, *a.shape[1:]), 1, 2) for a in found)
        sets = setting.inputs, setting.labels
        weights, params, arrived, taken = jax.jit(lambda x, y: jax.lax.map(over(classify, x, y), (depths, falls)))(
            *sets
        )
        residual = jnp.einsum("snd,Lsad->Lsan", setting.x, beta) - setting.y[:, None]
        margins = setting.labels * jnp.einsum("smf,Lsrf->Lrsm", setting.inputs, weights)
        return Observation(
            beta=("depth seed scale unknown", beta),
            risk=("depth seed scale", 0.5 * (residual**2).mean(-1)),
            steps=("depth seed scale", steps, "steps"),
            weights=("depth seed reading feature", weights),
            ratio=("depth seed reading", jnp.moveaxis(margins.min(-1), 1, 2) / jnp.abs(weights).sum(-1)),
            residual=("depth seed", _residuals(setting, np.asarray(params))),
            arrived=("depth seed", arrived),
            taken=("depth seed", taken, "steps"),
        )

    def premises(self, observed: Observation) -> list[Hypothesis]:
        return [
            require("largest risk at the end", observed["risk"].max(), "<=", 1e-12, "raise --horizon"),
            require("flows that reached their fall", observed["arrived"].mean(), "==", 1, "lower --horizons"),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        to_program = _distance(observed["beta"], predicted["beta"]).max(-1)
        to_limit = _distance(observed["beta"], predicted["limit"][:, :, None])[..., -1]
        last, away = self.slowest(observed["beta"], predicted)[..., -2:], np.log10(self.away(predicted, observed))
        exponents = np.diff(np.log(last))[..., 0] / np.diff(np.log(self.alphas[:, -2:]))
        off = np.log10(np.maximum(1 - observed["ratio"][0] / predicted["margin"][:, None], 1e-12))
        return [
            *(bound(f"squared loss, {L} layers: distance to the program", to_program[i], at_most=1e-4, over="each")
              for i, L in enumerate(DEPTHS)),
            *(bound(f"squared loss, {L} layers: distance to ℓ1 at the smallest α", to_limit[i], at_most=0.01,
                over="each") for i, L in enumerate(DEPTHS)),
            *(equal(f"squared loss, {L} layers: α-exponent of a weight off the support, less the predicted",
                0.0, exponents[i] - predicted["power"][i], within=0.2, absolute=True) for i, L in enumerate(DEPTHS)),
            bound("exponential loss, 2 layers: log₁₀ of the missing part of the ℓ1 margin", off[:, -1], at_most=-2.0),
            order("exponential loss, 2 layers: the missing part of the ℓ1 margin falls", ["end", "middle"],
                {"end": off[:, -1], "middle": off[:, MIDDLE]}),
            *(bound(f"exponential loss, {L} layers: log₁₀ of the distance to a local minimum of ℓ_{{2/{L}}}",
                away[i, :, -1], at_most=-2.0) for i, L in enumerate(DEPTHS) if L > 2),
            *(bound(f"exponential loss, {L} layers: log₁₀ of the KKT residual",
                np.log10(observed["residual"][i]), at_most=-1.0)
              for i, L in enumerate(DEPTHS)),
        ]  # fmt: skip

    def slowest(self, beta: np.ndarray, predicted: Prediction) -> np.ndarray:
        """The weight off the support with the largest dual coefficient, shape ``(depths, seeds, scales)``."""
        return np.abs(beta[:, np.arange(self.seeds), :, predicted["slowest"].astype(int)]).swapaxes(0, 1)

    def away(self, predicted: Prediction, observed: Observation) -> np.ndarray:
        """Distance of the direction to the nearest of the predicted ones, shape ``(depths, seeds, readings)``."""
        gaps = _unit(observed["weights"])[..., None, :] - predicted["minima"][:, :, None]
        return np.nan_to_num(np.linalg.norm(gaps, axis=-1), nan=np.inf).min(-1)

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        problems = [(np.asarray(x), np.asarray(y)) for x, y in zip(*setting[:2], strict=True)]
        sets = [(np.asarray(x), np.asarray(y)) for x, y in zip(*setting[2:], strict=True)]
        sparsest = [[quasi_norm_interpolation(*one, 2 / depth) for one in problems] for depth in DEPTHS]
        margins = lambda norm: [[[_unit(hard_margin(*one, norm).direction)] for one in sets]] * len(DEPTHS)
        names = "depth seed minimum feature"
        return [
            Rival("ℓ_{2/L} on the squared loss", predicted.replace(limit=("depth seed unknown", sparsest)),
                "it is the law of margins"),
            Rival("the approach to ℓ1 does not depend on depth", predicted.replace(
                power=("depth seed", [predicted["power"][0]] * len(DEPTHS))), "the limit does not"),
            Rival("ℓ1 margin at every depth", predicted.replace(minima=(names, margins("l1"))),
                "it is so on the squared loss"),
            Rival("ℓ2 margin at every depth", predicted.replace(minima=(names, margins("l2"))),
                "the function is linear"),
        ]  # fmt: skip

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        away, depths, features = self.away(predicted, observed), range(len(DEPTHS)), np.arange(self.features)
        flows, programs = (self.slowest(each["beta"], predicted)[:, 0] for each in (observed, predicted))
        ends, line = _unit(observed["weights"][:, 0, -1]), self.alphas[0] ** 0
        names, shades = [f"L = {depth}" for depth in DEPTHS], np.linspace(0, 1, len(DEPTHS))
        distance = _distance(observed["beta"], predicted["beta"])
        return (
            panel("Squared loss: the flow ends at the program's solution", "α", "relative distance",
                *(seen(self.alphas[i], distance[i], names[i], shade=shades[i]) for i in depths),
                theory(self.alphas[0], 1e-4 * line, "margin"), log="xy"),
            panel("A weight off the ℓ1 support vanishes, at every depth", "α", "|β| of one weight",
                *(theory(self.alphas[i], programs[i], "program" * (i == 0)) for i in depths),
                *(seen(self.alphas[i], flows[i], names[i], kind="points", shade=shades[i]) for i in depths), log="xy"),
            panel("Exponential loss: the direction ends at a local minimum of ℓ_{2/L}", "fall of log R",
                "distance to the nearest", *(seen(self.falls[i], away[i], names[i], shade=shades[i]) for i in depths),
                log="xy"),
            panel("One separable set: deeper is sparser", "weight", "direction of β",
                theory(features, predicted["minima"][0, 0, 0], "largest ℓ1 margin"),
                *(seen(features, ends[i], names[i], kind="points", shade=shades[i]) for i in depths)),
        )  # fmt: skip


def _sparse(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ℓ1 interpolant, a vertex, and its dual coefficients ``Xᵀν``: signs on the support, below one off it."""
    beta = quasi_norm_interpolation(x, y, 1.0)
    support = beta != 0
    return beta, x.T @ np.linalg.lstsq(x[:, support].T, np.sign(beta[support]))[0]


def _residuals(setting: Setting, params: np.ndarray) -> np.ndarray:
    """KKT residuals of the networks' weights, params of shape ``(depths, seeds, 2, features)``."""
    found = []
    for depth, at_depth in zip(DEPTHS, params, strict=True):
        row = []
        for x, y, (plus, minus) in zip(np.asarray(setting.inputs), np.asarray(setting.labels), at_depth, strict=True):
            slopes = depth * y[:, None] * np.hstack([x * plus ** (depth - 1), -x * minus ** (depth - 1)])
            margins, theta = y * (x @ (plus**depth - minus**depth)), np.append(plus, minus)
            row.append(
                kkt_from_gradients(theta, margins, slopes, depth).largest if np.isfinite(theta).all() else np.nan
            )
        found.append(row)
    return np.array(found)


def _padded(rows: list[list[np.ndarray]]) -> np.ndarray:
    """Vectors of lists of different lengths, shape ``(depths, seeds, longest, features)``, with NaN for what is not."""
    longest = max(len(each) for row in rows for each in row)
    fill = lambda each: np.pad(each, ((0, longest - len(each)), (0, 0)), constant_values=np.nan)
    return np.stack([[fill(each) for each in row] for row in rows])


def _unit(w: np.ndarray) -> np.ndarray:
    return w / np.linalg.norm(w, axis=-1, keepdims=True)


def _distance(beta: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Relative ℓ2 distance along the last axis."""
    return np.linalg.norm(beta - reference, axis=-1) / np.linalg.norm(reference, axis=-1)
