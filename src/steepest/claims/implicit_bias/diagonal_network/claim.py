"""The scale of its initial weights decides which interpolant a diagonal network finds.

From small weights it is the one of least ℓ1 norm, from large weights the one of least weighted ℓ2 norm. Gradient flow
on the squared loss of β = θ₊² − θ₋², started at θ± = αθ₀, ends at the interpolant that minimizes an explicit convex
function Q_α. Up to a factor, this function tends to the ℓ1 norm as α → 0 and to the ℓ2 norm with weights 1/θ₀² as
α → ∞.
"""

import numpy as np

from steepest import kit
from steepest.claims.implicit_bias.diagonal_network.experiment import (
    RESOLVED,
    DiagonalPoint,
    Setting,
    enough_unknowns,
    flow_has_ended,
    predict_ends,
)
from steepest.programs import hypentropy_interpolation, min_norm_interpolation


@kit.claim
class DiagonalNetwork(kit.Claim[Setting]):
    """Sparse regression with more unknowns than equations."""

    alphas: tuple[kit.Positive, ...] = kit.param(
        (1e-8, 1e-4, 1e-2, 1.0, 1e1, 1e2),
        "α, scales of the start, increasing",
        scope=kit.choices((1e-8, 1e-4, 1e-2, 1.0, 1e1, 1e2), (1e-8, 1e-5, 1e-2, 0.3, 3.0, 300.0)),
    )
    n: kit.Count = kit.param(10, "examples", scope=kit.between(6, 12))
    dimension: kit.Count = kit.param(20, "unknowns d", scope=kit.between(16, 30))
    nonzero: kit.Count = kit.param(2, "nonzero coefficients of the truth", scope=kit.between(1, 4))
    noise: kit.NonNegative = kit.param(
        0.3, "standard deviation of the noise on the targets", scope=kit.between(0.1, 0.5)
    )
    shape_spread: kit.NonNegative = kit.param(
        0.5,
        "standard deviation of log θ₀",
        scope=kit.between(0.3, 0.7, "with alike ones the ends' weights are not told"),
    )
    seeds: kit.Seeds = kit.param(6, "regression problems")
    horizon: kit.Positive = kit.param(30.0, "longest log(1 + t) of the flow")

    kind = "limit"
    says = {
        "The scale of its initial weights decides which interpolant a diagonal network finds": "program",
        "From small weights it is the one of least ℓ1 norm": "sparse_norm",
        "from large weights the one of least weighted ℓ2 norm": "weighted",
    }
    tiny = {"alphas": (1e-2, 0.1, 1.0, 1e1, 1e2), "n": 3, "dimension": 6, "seeds": 3}
    full = {"n": 20, "dimension": 40, "nonzero": 3, "seeds": 10}
    out_of_scope = {"n": 30}
    point = DiagonalPoint

    def axes(self):
        return {"alpha": self.alphas, "unknown": tuple(range(1, self.dimension + 1))}

    def setting(self, key):
        return DiagonalPoint.of(self).setting(key)

    def hypotheses(self, setting):
        rank = np.linalg.matrix_rank(np.asarray(setting.x)).min()
        yield enough_unknowns(rank, self.n)

    def predict(self, setting):
        return predict_ends(setting, self.alphas)

    def observe(self, setting, key):
        beta, risk, steps = DiagonalPoint.of(self).ends(setting, key, np.array(self.alphas))
        return kit.seen(
            beta=("seed alpha unknown", beta),
            risk=("seed alpha", risk),
            steps=("seed alpha", steps, "steps"),
        )

    def run_conditions(self, observed):
        yield flow_has_ended(observed["risk"])

    def derive(self, law, seen):
        """Return the relative distances of the ends to the program's solution and to both limits."""
        norm = lambda array: np.sqrt((array**2).sum("unknown"))
        distance = lambda end: norm(seen.beta - end) / norm(end)
        return {
            "to_program": distance(law.beta),
            "to_sparse": distance(law.sparse),
            "to_weighted": distance(law["weighted"]),
        }

    def judge(self, law, seen):
        least = abs(law.sparse).sum("unknown")
        excess = abs(seen.beta).sum("unknown").isel(alpha=0, drop=True) / least - 1
        norms = np.log(abs(seen.beta).sum("unknown").isel(alpha=slice(3)))
        below = ", ".join(f"{alpha:g}" for alpha in self.alphas[:3])
        yield kit.agrees(
            "program",
            seen.to_program,
            # relative 1e-6 a step, over 500 steps; problems with |z| ≈ 1 multiply errors of the multipliers
            RESOLVED,
            label="distance to the program at every α",
        )
        yield kit.agrees(
            "sparse_norm",
            abs(excess),
            float(law.room.max()) + RESOLVED,
            label=f"‖β‖₁ / the least − 1, α = {self.alphas[0]:g}; an entropy over log 1/α² bounds it",
        )
        yield kit.at_least(
            "sparse_order",
            -RESOLVED,
            norms.diff("alpha").min("alpha"),
            each=True,
            label=f"growth of log ‖β‖₁ between α = {below}, the least of them",
        )
        yield kit.agrees(
            "weighted",
            seen.to_weighted.isel(alpha=-1),
            RESOLVED,
            label=f"distance to weighted ℓ2, α = {self.alphas[-1]:g}",
        )

    def rivals(self, setting, law):
        problems = list(zip(*map(np.asarray, setting), strict=True))
        halved = [
            [
                hypentropy_interpolation(x, y, 0.5 * (alpha * shape) ** 2).beta
                for alpha in self.alphas
            ]
            for x, y, shape in problems
        ]
        plain = [np.linalg.lstsq(x, y)[0] for x, y, _ in problems]
        # β = θ₀γ with the γ of least ℓ1 norm
        shaped = [
            shape * min_norm_interpolation(x * shape, y, "l1").beta for x, y, shape in problems
        ]
        everywhere = lambda end: end.broadcast_like(law.beta).transpose(*law.beta.dims)
        yield kit.rival(
            "the program with α²θ₀²/2",
            "lemma 3 prints f = α²θ₀² sinh",
            id="half_scale",
            beta=("seed alpha unknown", np.array(halved)),
        )
        yield kit.rival(
            "ℓ1 with weights 1/θ₀ at small scale",
            "the ℓ2 end has weights too, and so has the ℓ1 end of three layers",
            sparse=("seed unknown", np.array(shaped)),
        )
        yield kit.rival(
            "ℓ2 without weights at large scale",
            "the shape of the start might not matter",
            weighted=("seed unknown", np.array(plain)),
        )
        yield kit.rival(
            "ℓ1 when large, weighted ℓ2 when small",
            "large weights are said to be sparse",
            sparse=law["weighted"],
            weighted=law.sparse,
        )
        yield kit.rival(
            "weighted ℓ2 at every scale",
            "it is the limit of large scale, the kernel regime",
            beta=everywhere(law["weighted"]),
        )
        yield kit.rival(
            "ℓ1 at every scale",
            "it is the limit of small scale, the rich regime",
            beta=everywhere(law.sparse),
        )

    def controls(self, seen):
        turned = seen.beta.isel(alpha=slice(None, None, -1)).values
        yield kit.control(
            "the largest start for the smallest one, and so on",
            "the scale of the start decides",
            beta=(seen.beta.dims, turned),
        )

    def figure(self, law, seen, rivals):
        alphas = np.array(self.alphas)
        unknowns = np.arange(self.dimension)
        ends = [
            kit.panel(
                f"α = {alphas[i]:g}",
                "coefficient",
                "β",
                kit.predicted_curve(unknowns, law.beta[0, i], "program"),
                kit.observed_curve(unknowns, seen.beta[0, i], "flow", kind="points"),
            )
            for i in (0, len(alphas) - 1)
        ]
        yield kit.panel(
            "From the ℓ1 to the ℓ2 solution",
            "α",
            "relative distance",
            kit.observed_curve(alphas, seen.to_sparse.values, "to ℓ1"),
            kit.observed_curve(alphas, seen.to_weighted.values, "to weighted ℓ2", shade=1.0),
            log="xy",
        )
        yield kit.panel(
            "The flow ends at the program's solution",
            "α",
            "relative distance",
            kit.observed_curve(alphas, seen.to_program.values, "to argmin Q"),
            kit.rival_curve(alphas, 0 * alphas + RESOLVED, "margin"),
            log="xy",
        )
        yield from ends
