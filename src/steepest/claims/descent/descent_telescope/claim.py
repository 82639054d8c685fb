"""Weights stay near every reference that fits well on the features met during gradient descent.

The bound on the distance holds for networks that are homogeneous in the trained layer. In this bound, with step size η,
the sum of the risks on the way has the factor 2 − 0.41η, and no larger one holds. Expanding ‖W_{t+1} − W̄‖² and summing
over the steps gives an identity for any risk, any step size and any reference W̄, without convexity. For networks that
are homogeneous in the trained layer, each inner product in the identity is at least a difference of two risks, as if
the risk were convex, provided that W̄ is judged by the features of the current step. Identity and inequality together
bound how far weights move, and how large risks are on the way.
"""

from typing import Annotated, Any

import numpy as np
import xarray
from scipy.optimize import minimize_scalar

from steepest import kit
from steepest.claims.descent.descent_telescope.experiment import (
    Setting,
    follow_networks,
    least_of_one_example,
    regress,
)
from steepest.claims.descent.descent_telescope.figure import panels_of_descent
from steepest.nn.data import digits, signs

ROUNDING = 1e-10  # of sums over hundreds of steps, relative to their largest term
ATTAINED = 0.01  # margins of the one example are 0.05 apart, references 0.01 away
AxisOfThree = tuple[kit.Positive, kit.Positive, kit.Positive]


@kit.claim
class DescentTelescope(kit.Claim[Setting]):
    """Two-layer networks on two digits with the inner layer trained, one example, and logistic regression."""

    step_sizes: AxisOfThree = kit.param(
        (1.0, 2.0, 4.0),
        "η",
        scope=kit.choices(
            (1.0, 2.0, 4.0),
            (0.5, 1.5, 4.5),
            (2.0, 3.0, 4.0),
            why="at 2/c = 4.9 nothing is bounded; small steps are the flow's",
        ),
    )
    steps: kit.Count = kit.param(
        300, "T", unit="steps", scope=kit.between(100, 1000, "fewer hardly move features")
    )
    width: kit.Count = kit.param(
        64, "hidden neurons", unit="neurons", scope=kit.between(32, 128, "any; more take time")
    )
    n: kit.Count = kit.param(60, "images", scope=kit.between(20, 100, "any; more take time"))
    seeds: kit.Seeds = kit.param(3, "initial networks")
    slowdown: Annotated[float, kit.Within(1)] = kit.param(
        100.0,
        "slowdown of logistic regression: the largest step size of the theorem, 1/β, over the step size taken",
        scope=kit.between(30, 300, "slow enough that the risk is nearly linear"),
    )

    kind = "theorem"
    says = {
        "stay near every reference that fits well on the features met during gradient descent": "moving_features",
        "has the factor 2 − 0.41η, and no larger one holds": "best_constant",
    }
    tiny = {"steps": 30, "width": 8, "n": 20}
    full = {"steps": 2000, "width": 512, "n": 200, "seeds": 8}
    out_of_scope = {"step_sizes": (1.0, 2.0, 10.0)}

    def axes(self):
        return {"step_size": self.step_sizes}

    def setting(self, key):
        for_images, for_networks = kit.keys(key, 2)
        data = signs(digits(classes=(3, 8), n=self.n, key=for_images))
        x = np.asarray(data.x)
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        return Setting(unit, np.asarray(data.y), kit.keys(for_networks, self.seeds))

    def hypotheses(self, setting):
        longest = float(np.linalg.norm(setting.x, axis=1).max())
        largest = max(self.step_sizes)
        yield kit.assume("largest ‖x‖", longest, "<=", 1 + 1e-12, "features must not exceed one")
        yield kit.assume("largest η", largest, "<", 2 / _slope_constant(), "lower --step_sizes")

    def predict(self, setting):
        return kit.law(
            least=("step_size", 2 - _slope_constant() * np.array(self.step_sizes)),
            inner=2.0,
            squares=1.0,
            convex=2.0,
        )

    def observe(self, setting, key):
        networks = follow_networks(setting, self.width, self.steps, self.step_sizes)
        least = {
            length: [least_of_one_example(size, length) for size in self.step_sizes]
            for length in (1.0, 0.5)
        }
        return kit.seen(
            **networks,
            least=("step_size", np.array(least[1.0])),
            least_shorter=("step_size", np.array(least[0.5])),
            convex=("later_step", regress(setting.x, setting.y, self.steps, self.slowdown)),
        )

    def derive(self, law, seen):
        """Return the identity's defect, the inequality's slack, and the largest a that the bound allows."""
        lr = seen.step_size
        inner = law.inner * lr * seen.inner
        defect = abs(seen.left + inner - law.squares * lr**2 * seen.squares)
        # inner is a running sum over steps: its differences are the products of single ones
        slope = seen.inner.diff("step", label="upper")
        products = xarray.concat([seen.inner.isel(step=[0]), slope], "step")
        ahead = 2 * lr * seen.reference_risk.cumsum("step") - seen.left
        spent = lr * seen.risk.cumsum("step")
        return {
            "defect": defect / (abs(seen.left) + abs(inner)),
            "slack": products - seen.risk + seen.reference_risk,
            "motion": (ahead / spent).min(["reference", "step"], skipna=False),
        }

    def judge(self, law, seen):
        yield kit.agrees(
            "best_constant",
            abs(seen.least - law.least),
            ATTAINED,
            label="one example: largest a in ‖W_T − W̄‖² + aηΣR ≤ ‖W_0 − W̄‖² + 2ηΣR⁽ᵗ⁾(W̄), from 2 − cη",
        )
        yield kit.idle(
            kit.at_least(
                "motion",
                law.least,
                seen.motion,
                over="step_size",
                each=True,
                label="networks: largest a in the same bound",
            ),
            "gradients of images are so far from the longest that no changed world here fails it",
        )
        yield kit.agrees(
            "moving_features",
            (-seen.slack).clip(min=0),
            ROUNDING,
            label="R(W_t) − R⁽ᵗ⁾(W̄) above ⟨∇R(W_t), W_t − W̄⟩",
        )
        yield kit.idle(
            kit.agrees(
                "identity",
                seen.defect,
                ROUNDING,
                label="change of distance − sums of the gradients, relative",
            ),
            "it is algebra",
        )
        yield kit.at_least(
            "convex",
            law.convex,
            seen.convex.min("later_step"),
            label="logistic regression: least (‖W_0 − W̄‖² − ‖W_T − W̄‖²)/(ηT (R(W_T) − R(W̄)))",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "the bound of gradient flow holds for steps",
            "the flow's identity has no squares, and small steps follow the flow",
            squares=0.0,
            least=xarray.full_like(law.least, 2.0),
        )
        yield kit.rival(
            "2 − η for 2 − cη",
            "the squared slope of the loss is below the loss",
            least=2 - law.step_size,
        )
        yield kit.rival("⟨∇R, W − W̄⟩ enters once", "the square's cross term comes twice", inner=1.0)
        yield kit.rival(
            "the convex bound with 4ηT and the term kept",
            "1/(4ηT) is the sharpest of all bounds that use only ‖W_0 − W̄‖²",
            convex=4.0,
        )

    def controls(self, seen):
        first = seen.reference_risk.isel(step=0, drop=True)
        names = ("left", "inner", "squares", "risk", "reference_risk", "distance")
        yield kit.control(
            "references judged by the features at the start",
            "features move, and a reference that fits on the first need not fit on later ones",
            reference_risk=first.broadcast_like(seen.reference_risk),
        )
        yield kit.control(
            "a layer of tanh neurons",
            "⟨∇f(W), W⟩ is not f(W)",
            **{name: seen[f"tanh_{name}"] for name in names},
        )
        yield kit.control(
            "an example of length one half",
            "its gradient is at most half as long",
            least=seen.least_shorter,
        )

    def figure(self, law, seen, rivals):
        return panels_of_descent(law, seen)


def _slope_constant() -> float:
    """Return c = max_u σ(−u)²/log(1 + e^{−u}), so that (mean of |ℓ'|)² ≤ c × mean of ℓ for the logistic loss."""
    # σ(−u)² = exp(−2 log(1 + e^u))
    ratio = lambda u: -np.exp(-2 * np.logaddexp(0, u)) / np.logaddexp(0, -u)
    best: Any = minimize_scalar(ratio, bounds=(-10, 10), method="bounded")
    return float(-ratio(best.x))
