"""The largest stable step of a reader's own network, close to targets that it fits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steepest.claim import (
    Check,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    assume,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claim.subjects import Cost, Networks, OnSubject
from steepest.claims.initialization.stable_step.claim import StableStep
from steepest.measurement import kernel_matrix
from steepest.measurement.adapters import Subject

LARGEST = 320  # outputs of all examples together, about: the tangent kernel is computed row by row


@dataclass(frozen=True)
class StableStepOnSubject(OnSubject, StableStep):
    """Descent on the squared distance to targets that your network nearly fits from the start."""

    examples: Count = 16  # of yours at most, drawn by class; fewer where each has many outputs [1]
    seeds: Seeds = 5  # initial networks, if your function takes a seed [1]
    residual: Positive = 0.01  # size of the residual at the start, over that of the outputs [1]
    halvings: Count = 14  # halvings of the bisection, on a logarithmic scale [1]

    says = (
        "The largest stable step of your network, near where it starts, is 2/λ_max of its "
        "tangent kernel."
    )
    headline = ("step_over_edge",)
    settable = ("examples", "seeds", "residual", "steps", "smallest", "largest", "halvings")
    left_out = {
        "width_exponent_…, limit_step_…": "they need the limit kernel of your architecture at every width",
        "depth_exponent_…": "it needs networks of several depths, and their limit kernel",
    }
    notes = (
        "The loss is ½‖f − y‖² summed over outputs and averaged over examples, whatever yours is, with targets y a "
        "little off your network's own outputs: what is tested is the network, near where it starts.",
        "The prediction is 2/λ_max of the tangent kernel, a dense matrix of derivatives of single outputs; the "
        "observation is descent with one step size after the other, which knows nothing of it.",
    )

    def setting(self, key: Key) -> Networks:
        networks = self.build_all(most=self.examples)
        outputs = networks.subjects[0].outputs()[0]
        few = max(2, LARGEST // max(1, outputs[0].size))
        if len(outputs) <= few:
            return networks
        subjects = [self.drawn(subject, few) for subject in networks.subjects]
        return replace(networks, subjects=subjects)

    def prepare(self, networks: Networks, key: Key) -> Networks:
        rng = numpy_generator(key)
        subjects: list[Subject] = []
        spectra: list[list[float]] = []
        for built, subject in zip(networks.built, networks.subjects, strict=True):
            x = subject.inputs()
            outputs = np.asarray(subject.outputs()[0], float)
            values, vectors = np.linalg.eigh(np.asarray(kernel_matrix(subject), float))
            # half of the squared residual along the top direction, so that few steps tell, half along the others
            others = vectors[:, :-1] @ rng.standard_normal(len(values) - 1)
            direction = vectors[:, -1] + others / max(float(np.linalg.norm(others)), 1e-300)
            direction /= np.linalg.norm(direction)
            size = self.residual * max(float(np.linalg.norm(outputs)), 1e-3)
            targets = outputs - size * direction.reshape(outputs.shape)
            share = (vectors[:, -1] @ direction) ** 2
            spectra.append(
                [float(values[-1]) / len(x), float(values.mean()) / len(x), float(share)]
            )
            near = replace(built, loss=distance, data=(x, targets.astype(subject.dtype)))
            subjects.append(self.attached(near, like=subjects[0] if subjects else None))
        top, mean, share = np.array(spectra).T
        facts = {"top": top, "mean": mean, "share": share.min()}
        return Networks(networks.built, subjects, facts)

    def hypotheses(self, setting: Networks) -> list[Hypothesis]:
        return [
            assume("smallest λ_max of the tangent kernel", setting.facts["top"].min(), ">", 0),
            assume(
                "share of the risk along the top eigenvector", setting.facts["share"], ">=", 0.05
            ),
            assume(
                "residual over the outputs",
                self.residual,
                "<=",
                0.05,
                "the network must be linear there",
            ),
        ]

    def cost(self, networks: Networks) -> Cost:
        outputs = networks.subjects[0].outputs()[0].size
        # descents that rise end early; each step reads the risk besides; two products a column of the kernel
        descents = 0.6 * self.steps * self.halvings
        return Cost(
            gradients=len(networks) * descents,
            passes=len(networks) * descents,
            products=2 * len(networks) * outputs,
            shapes=2,  # another loss, and the kernel's products
        )

    def predict(self, setting: Networks) -> Prediction:
        top = self.stacked(list(setting.facts["top"]))
        return Prediction(step=("seed", 2 / top))

    def observe(self, setting: Networks, key: Key) -> Observation:
        steps = [self.search(subject) for subject in setting.subjects]
        return Observation(step=("seed", self.stacked(steps)))

    def search(self, subject: Subject) -> float:
        """Search by bisection for the largest step size at which the risk stays at or below its start."""
        low = np.log(self.smallest)
        high = np.log(self.largest)
        for _ in range(self.halvings):
            middle = (low + high) / 2
            if self.stays(subject, float(np.exp(middle))):
                low = middle
            else:
                high = middle
        return float(np.exp((low + high) / 2))

    def stays(self, subject: Subject, lr: float) -> bool:
        """Descend for as long as the risk is not above its start; steps are summed in double precision."""
        values = subject.values().astype(float)
        now = subject
        first = now.risk()
        for _ in range(self.steps):
            values = values - lr * np.asarray(now.gradient(), float)
            now = subject.at(values.astype(subject.dtype))
            if not now.risk() <= first:  # NaN compares false
                return False
        return True

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        return [self.judge_edge(predicted, observed)]

    def rivals(self, setting: Networks, predicted: Prediction) -> list[Rival]:
        mean = self.stacked(list(setting.facts["mean"]))
        return [
            Rival(
                "half_the_edge",
                predicted.replace(step=("seed", predicted["step"] / 2)),
                "the step that converges fastest along the top eigenvector",
                label="1/λ_max",
            ),
            Rival(
                "mean_eigenvalue",
                predicted.replace(step=("seed", 2 / mean)),
                "a typical direction would do",
                label="2 over the mean eigenvalue",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        networks = np.arange(1, len(observed["step"]) + 1)[: self.count]
        cut = slice(0, self.count)
        return (
            panel(
                "The largest stable step of each network",
                "network",
                "step size",
                observed_curve(networks, observed["step"][cut], "largest stable", kind="points"),
                predicted_curve(networks, predicted["step"][cut], "2/λ_max"),
                rival_curve(networks, predicted["step"][cut] / 2, "1/λ_max"),
                log="y",
            ),
        )


def distance(outputs: Any, targets: Any) -> Any:
    """Return ½‖f − y‖² summed over outputs and averaged over examples, in torch and in JAX."""
    return 0.5 * ((outputs - targets) ** 2).reshape(outputs.shape[0], -1).sum(-1).mean()
