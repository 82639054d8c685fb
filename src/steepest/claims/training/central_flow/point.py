"""One point of the diagram of central-flow: swings at one step size, from one time on."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from steepest import kit
from steepest.claims.training._tanh_network import risk
from steepest.claims.training.central_flow import experiment, theory
from steepest.kit.points import Arrays, equal

CANDIDATES = 5  # trainings for each that is kept
NEAR = 0.01  # of the edge, for trainings that have come there
SECOND = 0.95  # of the edge, for the second curvature
STEADY = 2.0  # factor by which the square of swings may have changed in the steps before


class Kept(NamedTuple):
    """Trainings that have come to the edge, or nearest to it."""

    weights: kit.Values  # three successive ones, (seeds, 3, p)
    curvatures: kit.Values  # the two largest over the edge, (seeds, 2)
    bursts: kit.Values  # the largest over the smallest square of swings before, (seeds,)


@dataclass(frozen=True)
class CentralFlowPoint(kit.Point):
    """How widely descent swings at one edge, in some steps after it has gone on for others."""

    edge: kit.Positive
    before: kit.Count
    stretch: kit.Count
    stretches: kit.Count
    seeds: kit.Seeds

    precision = "float32"
    batched = ("edge", "before")
    diagram = {"edge": "linear:3:12:10", "before": "200:1700:250"}
    base = {"stretches": 1, "seeds": 4}
    labels = {"swings": "log₁₀ of the mean square of swings", "near": "curvature over the edge"}
    diagram_remarks = (
        "Of 20 trainings the four are kept that are nearest to the law's hypotheses: within 1 % of the edge, the "
        "second curvature below 0.95 of it, swings that are steady. Out of range is where one of them is not.",
        "Shown are the swings and the risk in the 250 steps that follow, over those of the law.",
    )

    def setting(self, key):
        begun = begin(key, 2 / self.edge, self.before, CANDIDATES * self.seeds)
        weights = np.asarray(begun.weights)
        curvatures = np.asarray(begun.curvatures, float) / self.edge
        bursts = np.asarray(begun.bursts, float)
        fit = (np.abs(curvatures[:, 0] - 1) < NEAR) & (bursts < STEADY)
        kept = np.lexsort((curvatures[:, 1], ~fit))[: self.seeds]
        return Kept(weights[kept], curvatures[kept], bursts[kept])

    def hypotheses(self, setting):
        first, second = setting.curvatures.T
        away = np.abs(first - 1).max()
        yield kit.assume("largest distance of curvature from the edge, of one", away, "<", NEAR)
        yield kit.assume("largest second curvature over the edge", second.max(), "<", SECOND)
        yield kit.assume(
            "factor by which the square of swings changed before", setting.bursts.max(), "<", STEADY
        )

    def predict(self, setting):
        eta = 2 / self.edge
        path = flows(setting.weights, eta, self.stretch, self.stretches)
        variance = np.asarray(path.variance, float).mean(1)
        below = np.asarray(path.below, float).mean(1)
        return kit.Prediction(variance=("seed", variance), risk=("seed", below + variance / eta))

    def observe(self, setting, key):
        def walk(three: jax.Array) -> experiment.Walked:
            return experiment.descend(three, 2 / self.edge, self.stretch, self.stretches)

        walked = jax.vmap(walk)(setting.weights)
        return {
            "variance": walked.variance.mean(1),
            "risk": walked.risk.mean(1),
            "curvature": setting.curvatures[:, 0],
        }

    def judge(self, predicted, observed):
        yield equal(
            "variance",
            predicted["variance"],
            observed["variance"],
            0.15,  # 1 % for most trainings; of some a stretch is only a part of a cycle
            label="mean square of swings over the law's",
        )
        yield equal(
            "risk",
            predicted["risk"],
            observed["risk"],
            0.12,  # most of risk is σ²/η
            label="mean risk over the law's",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {
            "swings": float(np.log10(observed["variance"].mean())),
            "near": float(observed["curvature"].mean()),
        }


begin = kit.compiled(experiment.begin, static_argnums=(2, 3))


def _flows(weights: jax.Array, eta: Any, steps: int, stretches: int) -> theory.Flow:
    """Follow the law from the middle of three successive weights of each training, ``(seeds, 3, p)``."""

    def of_one(three: jax.Array) -> theory.Flow:
        middle = (three[0] + 2 * three[1] + three[2]) / 4
        return theory.flow(risk, middle, three[2] - three[1], eta, steps, stretches)

    return jax.vmap(of_one)(weights)


flows = kit.compiled(_flows, static_argnums=(2, 3))
