"""AdaBoost finds an ℓ1 margin of γ̄/4 in 8 ln n/γ̄² steps, and with smaller steps it tends to the largest, γ̄.

AdaBoost is coordinate descent on the exponential loss over a dictionary of classifiers, here all decision stumps.
Nothing in it mentions margins; the largest margin γ̄ is known from a linear program.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Within
from steepest.data import breast_cancer, digits, signs
from steepest.descent import Stumps, adaboost, decision_stumps, logarithmic
from steepest.judging import Check, Hypothesis, Rival, bound, equal, require
from steepest.margins import StumpMargin, hard_margin, stump_margin
from steepest.panels import Panel, context, panel, rival, seen, theory
from steepest.types import Key

Shrinkages = Annotated[tuple[float, ...], Within(0, 1, open=True)]
SETS = ("breast cancer", "digits 3, 8", "digits 4, 9")


class Setting(NamedTuple):
    """The sets, with all their stumps and the linear programs over them."""

    stumps: list[Stumps]
    labels: list[jax.Array]
    programs: list[StumpMargin]


@dataclass(frozen=True)
class AdaboostMargin(Claim):
    """Breast cancer and two pairs of digits, with all their decision stumps."""

    n: Annotated[int, Within(10)] = 200  # examples drawn from each set, at most all [1]
    contradictions: Annotated[int, Within(0)] = 0  # examples repeated with the other label: none separates them [1]
    shrinkages: Shrinkages = (1.0, 0.3, 0.1)  # ν, multiples of the exact step, decreasing from 1 [1]
    steps: Count = 8000  # steps of boosting at every ν [steps]
    readings: Count = 300  # steps at which the margin is recorded, evenly in their logarithm [1]

    statement = (
        r"t\ge\frac{8\ln n}{\bar\gamma^2}\ \Rightarrow\ "
        r"\min_i\frac{y_i f_t(x_i)}{\lVert w_t\rVert_1}\ge\frac{\bar\gamma}{4},\qquad "
        r"\nu\to0:\ \min_i\frac{y_i f_t(x_i)}{\lVert w_t\rVert_1}\to\bar\gamma"
        r"=\max_{\lVert w\rVert_1\le1}\min_i y_i\sum_h w_h h(x_i)"
    )
    source = "Telgarsky's talk (seeds 001); Telgarsky 2013; Zhang and Yu 2005; Schapire et al. 1998"
    remarks = (
        "For classifiers ±1 and the exact step the printed constants have room: the risk falls by √(1 − γ_t²) a step "
        "with γ_t ≥ γ̄, so that 4 ln n/γ̄² steps suffice for γ̄/4, and 8 ln n/γ̄² give 3γ̄/8.",
        "For every ν the same argument guarantees (−ln Z − ln n/t)/(να), Z = cosh(να) − γ̄ sinh(να), α = artanh γ̄, "
        "which tends to γ̄ as ν → 0 and νt → ∞. It is checked at the last step.",
        "Theory bounds every ν from below only, so no ranking is checked. At equal steps the smaller ν need not be "
        "nearer to γ̄, because of the term in ln n: two checks that asked for a ranking failed on some seeds and "
        "were dropped. The exact step may stop gaining, or lose again: seed 0 on digits 4 and 9, in 160 000 steps, has "
        "its gap to γ̄ grow from 2 % to 9 %, while that of ν = 0.1 falls to 0.05 %.",
        "The largest margin is a linear program over all stumps, solved by column generation: its last multipliers "
        "prove it for the whole dictionary. The sets are drawn by the seed; all of them count, none is averaged.",
        "The same path as scikit-learn's AdaBoostClassifier is one of the tests, for a base learner that minimizes the "
        "weighted error.",
    )
    full = {"n": 569, "shrinkages": (1.0, 0.3, 0.1, 0.03), "steps": 100_000}
    beyond = {"contradictions": 5}

    def setting(self, key: Key) -> Setting:
        sets = breast_cancer(), signs(digits(classes=(3, 8))), signs(digits(classes=(4, 9)))
        stumps, labels = [], []
        for data, k in zip(sets, jax.random.split(key, len(sets)), strict=True):
            chosen = jax.random.permutation(k, data.n)[: self.n]
            again = chosen[: self.contradictions]
            stumps.append(decision_stumps(data.x[jnp.append(chosen, again)]))
            labels.append(jnp.append(data.y[chosen], -data.y[again]))
        return Setting(stumps, labels, [stump_margin(s, y) for s, y in zip(stumps, labels, strict=True)])

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        margins = np.array([program.margin for program in setting.programs])
        found = [
            require("smallest γ̄ of the sets", margins.min(), ">", 0, "no combination of stumps separates them"),
            require("largest γ̄", margins.max(), "<", 1 - 1e-9, "one stump separates alone, and its step is infinite"),
            require("first shrinkage", self.shrinkages[0], "==", 1, "the theorem is about the exact step"),
        ]
        if margins.min() > 0:
            due = max(_due(setting))
            found.append(require("largest 8 ln n/γ̄²", due, "<=", self.steps, "raise --steps"))
        return found

    def predict(self, setting: Setting) -> Prediction:
        margin = np.array([program.margin for program in setting.programs])
        size = np.log([len(y) for y in setting.labels])
        moved = np.multiply.outer(np.arctanh(margin), self.shrinkages)  # να, (sets, shrinkages)
        falls = -np.log(np.cosh(moved) - margin[:, None] * np.sinh(moved))
        return Prediction(
            margin=("set", margin),
            due=("set", _due(setting), "steps"),
            quarter=("set", margin / 4),
            guarantee=("set shrinkage", (falls - size[:, None] / self.steps) / moved),
            limit=("set", margin),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        marks = logarithmic(self.steps, self.readings)[1:]

        @jax.jit
        def margins(stumps: Stumps, y: jax.Array) -> jax.Array:
            run = lambda shrinkage: adaboost(stumps, y, self.steps, shrinkage).margin[marks - 1]
            return jax.lax.map(run, jnp.array(self.shrinkages))

        paths = [margins(s, y) for s, y in zip(setting.stumps, setting.labels, strict=True)]
        return Observation(step=("reading", marks, "steps"), margin=("set shrinkage reading", jnp.stack(paths)))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        reached = observed["margin"] / predicted["margin"][:, None, None]
        first = np.searchsorted(observed["step"], predicted["due"])  # the first reading at or after the step due
        due = observed["margin"][np.arange(len(SETS)), 0, first]
        return [
            bound("margin after 8 ln n/γ̄² steps / (γ̄/4)", due / predicted["quarter"], at_least=1, over="each"),
            bound("margin in the end / its guarantee, worst ν",
                (observed["margin"][:, :, -1] / predicted["guarantee"]).min(1), at_least=1, over="each"),
            equal("margin at the smallest ν / limit", np.ones(len(SETS)),
                observed["margin"][:, -1, -1] / predicted["limit"], (0.95, 1 + 1e-6), over="each"),
            bound("largest margin of all / γ̄", reached.max((1, 2)), at_most=1 + 1e-6, over="each"),
        ]  # fmt: skip

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        pairs = list(zip(setting.stumps, setting.labels, strict=True))
        alone = [np.abs(stumps.edges(y / len(y))).max() for stumps, y in pairs]
        euclidean = [_euclidean(stumps, np.asarray(y)) for stumps, y in pairs]
        return [
            Rival(name, predicted.replace(limit=("set", limit)), why)
            for name, limit, why in (
                ("it stops at γ̄/2", predicted["margin"] / 2, "that much is all that Schapire et al. guarantee"),
                ("it finds the ℓ2 separator", euclidean, "it is what gradient descent on the same loss finds"),
                ("it keeps the best stump's edge", alone, "it is where boosting starts"),
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        steps, ends = observed["step"], (observed["step"][0], observed["step"][-1])
        shades = np.linspace(0, 1, len(self.shrinkages))
        return tuple(
            panel(f"{name.capitalize()}: γ̄ = {margin:.3f}", "step", "margin / γ̄",
                *(seen(steps, path / margin, f"ν = {nu:g}", shade=shade)
                  for path, nu, shade in zip(paths, self.shrinkages, shades, strict=True)),
                theory((due, ends[1]), (0.25, 0.25), "γ̄/4 from 8 ln n/γ̄² on"), theory(ends, (1, 1), "γ̄"),
                rival(ends, (0.5, 0.5), "γ̄/2"), context(ends, (0, 0)), log="x", ylim=(-1, 1.1))
            for name, margin, due, paths in zip(
                SETS, predicted["margin"], predicted["due"], observed["margin"], strict=True)
        )  # fmt: skip


def _due(setting: Setting) -> np.ndarray:
    """The number of steps after which the theorem speaks, one a set."""
    margin = np.array([program.margin for program in setting.programs])
    return np.ceil(8 * np.log([len(y) for y in setting.labels]) / margin**2).astype(int)


def _euclidean(stumps: Stumps, y: np.ndarray) -> float:
    """The ℓ1 margin of the combination of stumps with the largest ℓ2 margin, by its n multipliers."""
    signed = y[:, None] * stumps.matrix()
    values, vectors = np.linalg.eigh(signed @ signed.T)
    q = hard_margin(vectors * np.sqrt(np.maximum(values, 0)), np.ones(len(y))).dual
    w = q @ signed
    return float((signed @ w).min() / np.abs(w).sum())
