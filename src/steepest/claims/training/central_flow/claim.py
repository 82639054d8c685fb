"""At the edge of stability, smoothed weights follow dw/dt = −∇L − ½σ²∇λ, and not gradient flow.

Here L is the risk, λ its largest curvature, and σ² the mean square of the weights' swings around their smoothed path:
σ² = −2⟨∇λ, ∇L⟩/‖∇λ‖². The mean risk is σ²/η higher than at the smoothed weights. Exactly this σ² keeps λ at 2/η. So the
flow predicts, without taking the large steps of descent, where descent goes, how widely it swings and what the swings
cost. Here only one direction is at the edge, and swings are steady.
"""

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.training._tanh_network import WIDTHS, risk
from steepest.claims.training.central_flow import experiment, theory
from steepest.claims.training.central_flow.point import CentralFlowPoint

WEIGHTS = sum((inputs + 1) * outputs for inputs, outputs in pairwise(WIDTHS))
CANDIDATES = 5  # trainings for each that is kept
NEAR = 0.01  # of the edge, for trainings that have come there
SECOND = 0.95  # of the edge, for the second curvature
STEADY = 2.0  # factor by which the square of swings may have changed in the steps before
SLOWER = 4  # times, for steps that follow gradient flow


class Setting(NamedTuple):
    """Weights at the edge of a step size."""

    eta: float
    weights: kit.Values  # three successive ones, (seeds, 3, p)
    curvatures: kit.Values  # the two largest over the edge, (seeds, 2)
    bursts: kit.Values  # the largest over the smallest square of swings before, (seeds,)


def length(vectors: xarray.DataArray) -> xarray.DataArray:
    """Return the norm along the axis of weights."""
    return (vectors**2).sum("weight") ** 0.5


@kit.claim
class CentralFlow(kit.Claim[Setting]):
    """A small tanh network on a Chebyshev polynomial: plain descent on full batches, once it is at the edge."""

    edge: kit.Positive = kit.param(
        7.0, "curvature 2/η at which training is to stop", scope=kit.between(6.6, 7.4)
    )
    before: kit.Count = kit.param(
        900, "steps of descent before the flow begins", unit="steps", scope=kit.between(800, 1000)
    )
    stretch: kit.Count = kit.param(
        250, "steps over which means are taken", unit="steps", scope=kit.between(200, 300)
    )
    stretches: kit.Count = kit.param(3, "one after the other", scope=kit.choices(3, 4))
    seeds: kit.Seeds = kit.param(10, "trainings")

    kind = "empirical law"
    says = {
        "smoothed weights follow dw/dt = −∇L − ½σ²∇λ": "departed",
        "σ² = −2⟨∇λ, ∇L⟩/‖∇λ‖²": "variance",
        "The mean risk is σ²/η higher than at the smoothed weights": "risk",
    }
    tiny = {"before": 800, "stretch": 40, "stretches": 2, "seeds": 3}
    full = {"seeds": 24, "stretches": 8}
    out_of_scope = {"edge": 200.0, "before": 40, "stretch": 20, "seeds": 3}
    precision = "float32"
    point = CentralFlowPoint

    def axes(self):
        ends = tuple(self.stretch * (1 + place) for place in range(self.stretches))
        return {"step": ends, "weight": tuple(range(1, WEIGHTS + 1))}

    def setting(self, key):
        trainings = CANDIDATES * self.seeds
        eta = 2 / self.edge
        begin = lambda key: experiment.begin(key, eta, self.before, trainings)
        begun = kit.compiled(begin)(key)
        weights = np.asarray(begun.weights)
        curvatures = np.asarray(begun.curvatures, float) / self.edge
        bursts = np.asarray(begun.bursts, float)
        fit = (np.abs(curvatures[:, 0] - 1) < NEAR) & (bursts < STEADY)
        kept = np.lexsort((curvatures[:, 1], ~fit))[: self.seeds]
        return Setting(eta, weights[kept], curvatures[kept], bursts[kept])

    def hypotheses(self, setting):
        first, second = setting.curvatures.T
        yield kit.assume(
            "largest distance of curvature from the edge, of one",
            np.abs(first - 1).max(),
            "<",
            NEAR,
            "they have to be at the edge: choose more steps --before or a smaller --edge",
        )
        yield kit.assume(
            "largest second curvature over the edge",
            second.max(),
            "<",
            SECOND,
            "a single direction may be at the edge",
        )
        yield kit.assume(
            "factor by which the square of swings changed before",
            setting.bursts.max(),
            "<",
            STEADY,
            "weights have to go to and fro, and steadily: choose more steps --before",
        )

    def predict(self, setting):
        before, now, after = np.moveaxis(setting.weights, 1, 0)
        middle = (before + 2 * now + after) / 4

        def flows(first: jax.Array, swing: jax.Array) -> theory.Flow:
            span = (setting.eta, self.stretch, self.stretches)
            follow = lambda first, swing, held: theory.flow(risk, first, swing, *span, held)
            over_seeds = jax.vmap(follow, (0, 0, None))
            return jax.vmap(over_seeds, (None, None, 0))(first, swing, jnp.array([1.0, 0.0]))

        central, plain = zip(*kit.compiled(flows)(middle, after - now), strict=True)
        weights, variance, below = (np.asarray(values, float) for values in central)
        of_flow, _, risk_of_flow = (np.asarray(values, float) for values in plain)
        place = "seed step"
        vector = "seed step weight"
        return kit.law(
            variance=(place, variance),
            # ½λσ² at the edge, where λ = 2/η
            risk=(place, below + variance / setting.eta),
            departed=(place, np.linalg.norm(weights - of_flow, axis=-1)),
            moved=(vector, weights - middle[:, None]),
            risk_of_flow=(place, risk_of_flow),
            moved_of_flow=(vector, of_flow - middle[:, None]),
        )

    def observe(self, setting, key):
        def everything(weights: jax.Array) -> tuple[experiment.Walked, ...]:
            def walk(slower: int) -> experiment.Walked:
                span = (setting.eta / slower, self.stretch * slower, self.stretches)
                return jax.vmap(lambda three: experiment.descend(three, *span))(weights)

            return walk(1), walk(2), walk(SLOWER)

        walked, halved, slow = kit.compiled(everything)(setting.weights)
        middle = experiment.smoothed(np.moveaxis(setting.weights, 1, 0))[:, None]
        place = "seed step"
        vector = "seed step weight"
        return kit.seen(
            variance=(place, np.asarray(walked.variance, float)),
            risk=(place, np.asarray(walked.risk, float)),
            moved=(vector, np.asarray(walked.weights, float) - middle),
            moved_of_slow=(vector, np.asarray(slow.weights, float) - middle),
            variance_halved=(place, np.asarray(halved.variance, float)),
            risk_halved=(place, np.asarray(halved.risk, float)),
            moved_halved=(vector, np.asarray(halved.weights, float) - middle),
        )

    def derive(self, law, seen):
        departed = seen.moved - seen.moved_of_slow
        return {
            "departed": length(departed),
            "aside": length(seen.moved - law.moved) / length(departed),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "variance",
            law.variance,
            seen.variance,
            0.15,  # 1 % for most trainings; of some a stretch is only a part of a cycle
            label="mean square of swings",
        )
        yield kit.follows(
            "risk",
            law.risk,
            seen.risk,
            0.12,  # most of risk is σ²/η
            label="mean risk",
        )
        yield kit.follows(
            "departed",
            law.departed,
            seen.departed,
            0.1,  # the law errs by 2 %, in cycles of the path around it
            label="distance from gradient flow",
        )
        yield kit.at_most(
            "aside",
            0.12,  # cycles of the path, and what Euler's method and the smoothing leave
            seen.aside,
            over="step",
            label="distance from the law over that from gradient flow",
        )

    def rivals(self, setting, law):
        swings = law.variance / setting.eta
        yield kit.rival(
            "gradient flow",
            "descent follows the gradient, up to its steps",
            risk=law.risk_of_flow,
            moved=law.moved_of_flow,
        )
        yield kit.rival(
            "half of σ²",
            "the mean gradient is ∇L + σ²∇λ",
            id="half",
            variance=law.variance / 2,
            risk=law.risk - swings / 2,
        )
        yield kit.rival(
            "risk of the smoothed weights",
            "swings do not matter for the risk in the mean",
            id="alone",
            risk=law.risk - swings,
        )
        yield kit.rival(
            "σ² of the first stretch",
            "swings come to a size and keep it",
            variance=law.variance.isel(step=0, drop=True) + 0 * law.variance,
        )

    def controls(self, seen):
        yield kit.control(
            "half of the step size",
            "smaller steps are below the edge, and do not swing",
            variance=seen.variance_halved,
            risk=seen.risk_halved,
            moved=seen.moved_halved,
        )

    def figure(self, law, seen, rivals):
        predicted = law.variance.values.ravel()
        line = np.array([predicted.min(), predicted.max()])
        mean = lambda array: array.mean("seed")
        wrong = (
            {
                "gradient flow": mean(rivals["gradient_flow"].risk),
                "without σ²/η": mean(rivals["alone"].risk),
            }
            if rivals
            else {}
        )
        yield kit.panel(
            "Mean square of swings: each training, each stretch",
            "σ² of the law",
            "measured",
            kit.observed_curve(predicted, seen.variance.values.ravel(), "measured", kind="points"),
            kit.predicted_curve(line, line, "law"),
            kit.rival_curve(line, line / 2, "half of σ²"),
            log="xy",
        )
        yield kit.curves(
            "What the swings cost: risk along the edge",
            mean(law.risk),
            mean(seen.risk),
            over="step",
            x="steps at the edge",
            y="mean risk",
            rivals=wrong,
            log="y",
        )
