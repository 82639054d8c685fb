"""The scale of the start decides which interpolant a diagonal network finds: ℓ1 when small, weighted ℓ2 when large.

Gradient flow on the squared loss of β = θ₊² − θ₋², started at θ± = αθ₀, ends at the interpolant that minimizes an
explicit convex function Q_α. It tends to the ℓ1 norm as α → 0 and to the ℓ2 norm with weights 1/θ₀² as α → ∞.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, NonNegative, Positive, Seeds, keys
from steepest.claims.implicit_bias._diagonal_diagram import RESOLVED, DiagonalDiagram, limits
from steepest.data import sparse_regression
from steepest.descent import flow, mean_risk, squared
from steepest.judging import Check, Hypothesis, Rival, bound, order, require
from steepest.margins import hypentropy_interpolation
from steepest.measures import relative_distance
from steepest.networks import diagonal, diagonal_weights
from steepest.panels import Panel, panel, rival, seen, theory
from steepest.types import Key


class Setting(NamedTuple):
    """Regression problems and shapes of the start, one a seed."""

    x: jax.Array  # (seeds, n, d)
    y: jax.Array  # (seeds, n)
    shape: jax.Array  # θ_0, (seeds, d)


@dataclass(frozen=True)
class DiagonalNetwork(Claim):
    """Sparse regression with more unknowns than equations."""

    alphas: tuple[Positive, ...] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)  # α, scales of the start, increasing [1]
    n: Count = 10  # examples [1]
    dimension: Count = 20  # unknowns d [1]
    nonzero: Count = 2  # nonzero coefficients of the truth [1]
    noise: NonNegative = 0.3  # standard deviation of the noise on the targets [1]
    shape_spread: NonNegative = 0.5  # standard deviation of log θ₀ [1]
    seeds: Seeds = 6  # regression problems [1]
    horizon: Positive = 30.0  # longest log(1 + t) of the flow [1]

    statement = (
        r"\beta_{\alpha}(\infty)=\arg\min_{X\beta=y}\sum_i \alpha^2\theta_{0,i}^2\,"
        r"q\!\left(\frac{\beta_i}{\alpha^2\theta_{0,i}^2}\right),"
        r"\quad q(z)=2-\sqrt{4+z^2}+z\,\mathrm{arcsinh}\frac{z}{2}"
    )
    source = "ORF 543, lecture 11/9; Woodworth et al. 2020"
    corrections = (
        "The notes say that Q tends to the ℓ1 norm as α → 0; it is Q/log(1/α²) that does.",
        "In lemma 3 the function f needs its factor 2, f(u) = 2α²θ₀² sinh(u); the constraint is Xβ = y, not Xᵀβ = y.",
    )
    remarks = (
        "The approach to the ℓ1 solution is slow: the distance falls like a small power of α and is still of the order "
        "of 10⁻² to 10⁻¹ at α = 10⁻³. So that end is judged by its trend, the other end by its value.",
        "The flow is followed by an implicit solver on a logarithmic clock until the risk is 10⁻¹⁶.",
    )
    full = {"n": 20, "dimension": 40, "nonzero": 3, "seeds": 10}
    beyond = {"n": 30}
    cell = DiagonalDiagram

    def setting(self, key: Key) -> Setting:
        for_data, for_shape = jax.random.split(key)
        problems = [
            sparse_regression(k, self.n, self.dimension, self.nonzero, self.noise) for k in keys(for_data, self.seeds)
        ]
        shape = jnp.exp(self.shape_spread * jax.random.normal(for_shape, (self.seeds, self.dimension)))
        return Setting(jnp.stack([p.x for p in problems]), jnp.stack([p.y for p in problems]), shape)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        # More equations than unknowns have no interpolant, unless by accident; then there is nothing to choose from.
        rank = min(int(jnp.linalg.matrix_rank(x)) for x in setting.x)
        return [require("smallest rank of X", rank, ">=", self.n, "choose --n at most --dimension")]

    def predict(self, setting: Setting) -> Prediction:
        problems = [(np.asarray(x), np.asarray(y), np.asarray(s)) for x, y, s in zip(*setting, strict=True)]
        interpolants = [
            [hypentropy_interpolation(x, y, (a * shape) ** 2).beta for a in self.alphas] for x, y, shape in problems
        ]
        sparse, weighted = zip(*(limits(*problem) for problem in problems), strict=True)
        return Prediction(
            beta=("seed alpha unknown", interpolants),
            sparse=("seed unknown", np.array(sparse)),
            weighted=("seed unknown", np.array(weighted)),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        beta, risk, steps = self.ends(setting, key)
        return Observation(
            beta=("seed alpha unknown", beta), risk=("seed alpha", risk), steps=("seed alpha", steps, "steps")
        )

    def ends(self, setting: Setting, key: Key) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Where the flow ends, ``(seeds, alphas, d)``, the risk there, and the solver's steps."""
        times = jnp.linspace(self.horizon / 20, self.horizon, 20)

        def follow(x: jax.Array, y: jax.Array, shape: jax.Array, alpha: jax.Array) -> tuple:
            # What is integrated is the displacement from the start: the solver's relative tolerance is then relative to
            # what moves, and not to θ ≈ α, which at large α would hold the flow up above the floor.
            net = diagonal(self.dimension, alpha, shape)
            start = net.init(key)
            risk = mean_risk(squared, lambda moved, x: net.apply(jax.tree.map(jnp.add, start, moved), x), x, y)
            settings = {"clock": "log", "solver": "stiff", "rtol": 1e-6, "atol": 1e-10, "floor": 1e-16}
            path = flow(risk, jax.tree.map(jnp.zeros_like, start), times, max_steps=20_000, **settings)
            return diagonal_weights(jax.tree.map(jnp.add, start, path.params)), path.steps

        over_alphas = jax.vmap(follow, (None, None, None, 0))
        beta, steps = jax.jit(jax.vmap(over_alphas, (0, 0, 0, None)))(*setting, jnp.array(self.alphas))
        residual = jnp.einsum("snd,sad->san", setting.x, beta) - setting.y[:, None]
        return beta, 0.5 * (residual**2).mean(-1), steps

    def premises(self, observed: Observation) -> list[Hypothesis]:
        return [require("largest risk at the end", observed["risk"].max(), "<=", 1e-12, "raise --horizon")]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        to_program = relative_distance(observed["beta"], predicted["beta"])
        to_sparse = relative_distance(observed["beta"], predicted["sparse"][:, None])
        to_weighted = relative_distance(observed["beta"], predicted["weighted"][:, None])
        names = [f"α = {alpha:g}" for alpha in self.alphas]
        rising = {name: np.log(to_sparse[:, i]) for i, name in enumerate(names)}
        return [
            *(
                bound(f"distance to the program, {name}", to_program[:, i], at_most=RESOLVED, over="each")
                for i, name in enumerate(names)
            ),
            order("log distance to the ℓ1 solution grows with α", [names[0], names[2], names[-2]], rising),
            bound(f"distance to weighted ℓ2, {names[-1]}", to_weighted[:, -1], at_most=1e-4, over="each"),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        everywhere = np.repeat(predicted["weighted"][:, None], len(self.alphas), 1)
        lasso = np.repeat(predicted["sparse"][:, None], len(self.alphas), 1)
        return [
            Rival(f"{name} at every scale", predicted.replace(beta=("seed alpha unknown", beta)), why)
            for name, beta, why in (
                ("weighted ℓ2", everywhere, "it is the limit of large scale, the kernel regime"),
                ("ℓ1", lasso, "it is the limit of small scale, the rich regime"),
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        alphas, unknowns, last = np.array(self.alphas), np.arange(self.dimension), len(self.alphas) - 1
        ends = [relative_distance(observed["beta"], predicted[name][:, None]) for name in ("sparse", "weighted")]
        return (
            panel("From the ℓ1 to the ℓ2 solution", "α", "relative distance", seen(alphas, ends[0], "to ℓ1"),
                seen(alphas, ends[1], "to weighted ℓ2", shade=1.0), log="xy"),
            panel("The flow ends at the program's solution", "α", "relative distance",
                seen(alphas, relative_distance(observed["beta"], predicted["beta"]), "to argmin Q"),
                rival(alphas, 0 * alphas + 1e-4, "margin 10⁻⁴"), log="xy"),
            *(panel(f"α = {alphas[i]:g}", "coefficient", "β", theory(unknowns, predicted["beta"][0, i], "program"),
                seen(unknowns, observed["beta"][0, i], "flow", kind="points")) for i in (0, last)),
        )  # fmt: skip
