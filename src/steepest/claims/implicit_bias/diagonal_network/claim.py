"""The scale of the start decides which interpolant a diagonal network finds: ℓ1 when small, weighted ℓ2 when large.

Gradient flow on the squared loss of β = θ₊² − θ₋², started at θ± = αθ₀, ends at the interpolant that minimizes an
explicit convex function Q_α. It tends to the ℓ1 norm as α → 0 and to the ℓ2 norm with weights 1/θ₀² as α → ∞.
"""

from dataclasses import dataclass

import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    agreement,
    bound,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.implicit_bias.diagonal_network.experiment import (
    RESOLVED,
    DiagonalPoint,
    Setting,
    enough_unknowns,
    flow_has_ended,
    predict_ends,
)
from steepest.measurement.quantities import relative_distance
from steepest.programs import hypentropy_interpolation


@dataclass(frozen=True)
class DiagonalNetwork(Claim):
    """Sparse regression with more unknowns than equations."""

    # α, scales of the start, increasing [1]
    alphas: tuple[Positive, ...] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
    n: Count = 10  # examples [1]
    dimension: Count = 20  # unknowns d [1]
    nonzero: Count = 2  # nonzero coefficients of the truth [1]
    noise: NonNegative = 0.3  # standard deviation of the noise on the targets [1]
    shape_spread: NonNegative = 0.5  # standard deviation of log θ₀ [1]
    seeds: Seeds = 6  # regression problems [1]
    horizon: Positive = 30.0  # longest log(1 + t) of the flow [1]

    kind = "limit"
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
        "A factor ½ in the scale of Q, α²θ₀²/2, is a rival: the flow tells it from α²θ₀².",
        "The flow is followed by an implicit solver on a logarithmic clock until the risk is 10⁻¹⁶.",
    )
    full = {"n": 20, "dimension": 40, "nonzero": 3, "seeds": 10}
    tiny = {"alphas": (1e-2, 0.1, 1.0, 1e1, 1e2), "n": 3, "dimension": 6, "seeds": 3}
    out_of_scope = {"n": 30}
    point = DiagonalPoint

    def setting(self, key: Key) -> Setting:
        return DiagonalPoint.of(self).setting(key)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        rank = np.linalg.matrix_rank(np.asarray(setting.x)).min()
        return [enough_unknowns(rank, self.n)]

    def predict(self, setting: Setting) -> Prediction:
        return predict_ends(setting, self.alphas)

    def observe(self, setting: Setting, key: Key) -> Observation:
        beta, risk, steps = DiagonalPoint.of(self).ends(setting, key, np.array(self.alphas))
        return Observation(
            beta=("seed alpha unknown", beta),
            risk=("seed alpha", risk),
            steps=("seed alpha", steps, "steps"),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [flow_has_ended(observed["risk"])]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        to_program = relative_distance(observed["beta"], predicted["beta"])
        to_sparse = relative_distance(observed["beta"], predicted["sparse"][:, None])
        to_weighted = relative_distance(observed["beta"], predicted["weighted"][:, None])
        names = [f"α = {alpha:g}" for alpha in self.alphas]
        rising = {name: np.log(to_sparse[:, i]) for i, name in enumerate(names)}
        return [
            *(
                agreement(
                    f"program_distance_{i}",
                    to_program[:, i],
                    RESOLVED,
                    label=f"distance to the program, {name}",
                )
                for i, name in enumerate(names)
            ),
            order(
                "sparse_order",
                [names[0], names[2], names[-2]],
                rising,
                label="log distance to the ℓ1 solution grows with α",
            ),
            bound(
                "weighted_distance",
                to_weighted[:, -1],
                at_most=1e-4,
                aggregate="all",
                label=f"distance to weighted ℓ2, {names[-1]}",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        everywhere = np.repeat(predicted["weighted"][:, None], len(self.alphas), 1)
        lasso = np.repeat(predicted["sparse"][:, None], len(self.alphas), 1)
        problems = list(zip(*map(np.asarray, setting), strict=True))
        halved = [
            [
                hypentropy_interpolation(x, y, 0.5 * (alpha * shape) ** 2).beta
                for alpha in self.alphas
            ]
            for x, y, shape in problems
        ]
        plain = [np.linalg.lstsq(x, y)[0] for x, y, _ in problems]
        return [
            Rival(
                "half_scale",
                predicted.replace(beta=("seed alpha unknown", halved)),
                "θ₊ and θ₋ each carry half of the weight",
                label="the program with α²θ₀²/2",
            ),
            Rival(
                "plain_l2",
                predicted.replace(weighted=("seed unknown", plain)),
                "the shape of the start might not matter",
                label="ℓ2 without weights at large scale",
            ),
            Rival(
                "ends_swapped",
                predicted.replace(
                    sparse=predicted.quantity("weighted"), weighted=predicted.quantity("sparse")
                ),
                "large weights are said to be sparse",
                label="ℓ1 when large, weighted ℓ2 when small",
            ),
            Rival(
                "weighted_everywhere",
                predicted.replace(beta=("seed alpha unknown", everywhere)),
                "it is the limit of large scale, the kernel regime",
                label="weighted ℓ2 at every scale",
            ),
            Rival(
                "sparse_everywhere",
                predicted.replace(beta=("seed alpha unknown", lasso)),
                "it is the limit of small scale, the rich regime",
                label="ℓ1 at every scale",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        alphas = np.array(self.alphas)
        unknowns = np.arange(self.dimension)
        last = len(self.alphas) - 1
        ends = [
            relative_distance(observed["beta"], predicted[name][:, None])
            for name in ("sparse", "weighted")
        ]
        return (
            panel(
                "From the ℓ1 to the ℓ2 solution",
                "α",
                "relative distance",
                observed_curve(alphas, ends[0], "to ℓ1"),
                observed_curve(alphas, ends[1], "to weighted ℓ2", shade=1.0),
                log="xy",
            ),
            panel(
                "The flow ends at the program's solution",
                "α",
                "relative distance",
                observed_curve(
                    alphas, relative_distance(observed["beta"], predicted["beta"]), "to argmin Q"
                ),
                rival_curve(alphas, 0 * alphas + 1e-4, "margin 10⁻⁴"),
                log="xy",
            ),
            *(
                panel(
                    f"α = {alphas[i]:g}",
                    "coefficient",
                    "β",
                    predicted_curve(unknowns, predicted["beta"][0, i], "program"),
                    observed_curve(unknowns, observed["beta"][0, i], "flow", kind="points"),
                )
                for i in (0, last)
            ),
        )
