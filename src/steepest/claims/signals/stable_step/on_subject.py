"""The largest stable step of a reader's own network, close to targets that it fits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.signals.stable_step.claim import TOO_LONG, StableStep
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly
from steepest.measurement import kernel_matrix
from steepest.measurement.adapters import Subject

LARGEST = 320  # outputs of all examples together, about: the tangent kernel is computed row by row

BELOW = 1.5  # of the control's bisection: where it begins, below the step of all weights
ABOVE = 100.0  # and where it ends, above it
FEW_HALVINGS = 7  # which leave 4 %


@dataclass(frozen=True)
class StableStepOnSubject(OnSubject, StableStep):
    """Descent on the squared distance to targets that your network nearly fits from the start."""

    examples: kit.Count = kit.param(
        16, "examples of yours at most, drawn by class; fewer where each has many outputs"
    )
    seeds: kit.Seeds = kit.param(5, "initial networks, if your function takes a seed")
    residual: kit.Positive = kit.param(
        0.01, "size of the residual at the start, over the size of the outputs"
    )
    halvings: kit.Count = kit.param(14, "halvings of the bisection, on a logarithmic scale")

    says = (
        "The largest stable step of your network, near where it starts, is 2/λ_max of its "
        "tangent kernel."
    )
    headline = ("step_over_edge",)
    settable = ("examples", "seeds", "residual", "steps", "smallest", "largest", "halvings")
    left_out = {"deep_step_over_edge, every_deep_step": "they need networks of several depths"}
    notes = (
        "The loss is ½‖f − y‖² summed over outputs and averaged over examples, whatever yours is, with targets y a "
        "little off your network's own outputs: what is tested is the network, near where it starts.",
        "The prediction is 2/λ_max of the tangent kernel, a dense matrix of derivatives of single outputs; the "
        "observation is descent with one step size after the other, which knows nothing of it.",
        "The same judge must refuse descent on half of your weights, those with the smaller derivatives, with the "
        "others held.",
    )

    plainly = {
        "step_over_edge": Plainly("the largest stable step over 2/λ_max"),
        "every_step": Plainly(
            "the largest stable step of the network farthest from the law, over 2/λ_max"
        ),
    }

    def setting(self, key):
        networks = self.build_all(most=self.examples)
        outputs = networks.subjects[0].outputs()[0]
        few = max(2, LARGEST // max(1, outputs[0].size))
        if len(outputs) <= few:
            return networks
        subjects = [self.drawn(subject, few) for subject in networks.subjects]
        return replace(networks, subjects=subjects)

    def prepare(self, networks, key):
        rng = kit.numpy_generator(key)
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

    def hypotheses(self, setting):
        yield kit.assume("smallest λ_max of the tangent kernel", setting.facts["top"].min(), ">", 0)
        yield kit.assume(
            "share of the risk along the top eigenvector", setting.facts["share"], ">=", 0.05
        )
        yield kit.assume(
            "residual over the outputs",
            self.residual,
            "<=",
            0.05,
            "the network must be linear there",
        )

    def cost(self, networks):
        outputs = networks.subjects[0].outputs()[0].size
        # descents that rise end early; each step reads the risk besides; two products a column of the kernel
        descents = 0.6 * self.steps * (self.halvings + FEW_HALVINGS)
        return Cost(
            gradients=len(networks) * descents,
            passes=len(networks) * descents,
            products=2 * len(networks) * outputs,
            shapes=2,  # another loss, and the kernel's products
        )

    def predict(self, setting):
        top = self.stacked(list(setting.facts["top"]))
        return kit.law(step=("seed", 2 / top))

    def observe(self, setting, key):
        every = np.ones(setting.subjects[0].size)
        ends = (self.smallest, self.largest)
        steps = [self.search(subject, every, ends, self.halvings) for subject in setting.subjects]
        of_few = [
            self.search(subject, weak_half(subject), (step / BELOW, step * ABOVE), FEW_HALVINGS)
            for subject, step in zip(setting.subjects, steps, strict=True)
        ]
        return kit.seen(
            step=("seed", self.stacked(steps)), step_of_few=("seed", self.stacked(of_few))
        )

    def search(
        self, subject: Subject, moves: NDArray, ends: tuple[float, float], halvings: int
    ) -> float:
        """Search by bisection for the largest step size at which the risk stays at or below its start.

        Args:
            subject: the network.
            moves: one for every weight that descent moves, zero for one that it holds.
            ends: of the bisection.
            halvings: how many.
        """
        low, high = np.log(ends)
        for _ in range(halvings):
            middle = (low + high) / 2
            if self.stays(subject, moves, float(np.exp(middle))):
                low = middle
            else:
                high = middle
        return float(np.exp((low + high) / 2))

    def stays(self, subject: Subject, moves: NDArray, lr: float) -> bool:
        """Descend for as long as the risk is not above its start; steps are summed in double precision."""
        values = subject.values().astype(float)
        now = subject
        first = now.risk()
        for _ in range(self.steps):
            values = values - lr * moves * np.asarray(now.gradient(), float)
            now = subject.at(values.astype(subject.dtype))
            if not now.risk() <= first:  # NaN compares false
                return False
        return True

    def derive(self, law, seen):
        return {"step_in_units": seen.step / law.step}

    def judge(self, law, seen):
        yield kit.follows(
            "step_over_edge",
            1.0,
            seen.step_in_units,
            TOO_LONG,
            each=True,
            label="step · λ_max/2",
            note="all networks",
        )

    def rivals(self, setting, law):
        mean = self.stacked(list(setting.facts["mean"]))
        yield kit.rival(
            "1/λ_max",
            "the step that converges fastest along the top eigenvector",
            id="half_the_edge",
            step=law.step / 2,
        )
        yield kit.rival(
            "2 over the mean eigenvalue",
            "a typical direction would do",
            id="mean_eigenvalue",
            step=("seed", 2 / mean),
        )

    def controls(self, seen):
        yield kit.control(
            "descent that holds the half of the weights with the largest derivatives",
            "the tangent kernel of fewer weights is smaller",
            id="few_weights",
            step=seen.step_of_few,
        )

    def figure(self, law, seen, rivals):
        cut = slice(0, self.count)
        networks = np.arange(1, self.count + 1)
        edge = law.step.values[cut]
        yield kit.panel(
            "The largest stable step of each network",
            "network",
            "step size",
            kit.observed_curve(networks, seen.step.values[cut], "largest stable", kind="points"),
            kit.predicted_curve(networks, edge, "2/λ_max"),
            kit.rival_curve(networks, edge / 2, "1/λ_max"),
            log="y",
        )


def weak_half(subject: Subject) -> NDArray:
    """Return one for the half of the weights with the smaller derivatives of the risk at the start, else zero."""
    slope = np.abs(np.asarray(subject.gradient(), float))
    ranks = np.argsort(np.argsort(slope))
    return (ranks < slope.size / 2).astype(float)


def distance(outputs: Any, targets: Any) -> Any:
    """Return ½‖f − y‖² summed over outputs and averaged over examples, in torch and in JAX."""
    return 0.5 * ((outputs - targets) ** 2).reshape(outputs.shape[0], -1).sum(-1).mean()
