"""The edge of stability on a reader's own network: descent from its initial weights, full batch or with batches."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.claims._descents_of_subjects import OFTEN, ROOM, look_at, small_steps, still_learning
from steepest.claims.descent._digits_network import MARGIN
from steepest.claims.descent.edge_of_stability.claim import EdgeOfStability
from steepest.claims.descent.edge_of_stability.experiment import (
    RECORDS,
    had_time_to_stay,
    last_fifth,
    starts_below_the_edge,
)
from steepest.claims.descent.edge_of_stability.figure import panels_of_descents
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly, retitled
from steepest.measurement import is_cross_entropy
from steepest.measurement.adapters import Subject, batch_forms, batch_gradient

BATCHES = 64  # over which a batch sharpness is averaged
SCATTER = 0.5  # relative half-interval up to which it can be compared at all


@dataclass(frozen=True)
class EdgeOnSubject(OnSubject, EdgeOfStability):
    """Plain descent from your initial weights with three step sizes, on at most n of your examples."""

    lr: kit.NonNegative = kit.param(
        0.0, "η, the middle one of three step sizes; 0 takes one from the start", unit="1/sharpness"
    )
    steps: kit.Count = kit.param(900, "steps of descent at most", unit="steps")
    n: kit.Count = kit.param(500, "examples of yours at most, drawn by class")
    seeds: kit.Seeds = kit.param(3, "initial networks, if your function takes a seed")
    products: kit.Count = kit.param(30, "Hessian products for each sharpness at most")
    batch: Annotated[int, kit.Within(0)] = kit.param(
        0,
        "examples in a batch; with batches the batch sharpness is compared, 0 descends with all examples at once",
    )

    says = "Descent on your network raises the sharpness until it reaches 2/η, and keeps it there."
    settable = ("lr", "ratio", "steps", "n", "seeds", "products", "batch")
    notes = (
        "Gradient flow is not followed: it would take many times the steps of descent.",
        "Descent is ours and plain: no momentum, no decay, your loss, in evaluation mode. Batch normalization keeps "
        "the statistics that your function left, and dropout is off. Your own optimizer is not used.",
        "With --batch each step takes a fresh random batch, and the batch sharpness E[gᵀHg]/E[gᵀg] is compared "
        "(Andreyev and Beneventano 2024) in place of the largest eigenvalue. The middle step is your own, where "
        "your function returns ``lr``.",
        "That the sharpness stays is judged at every reading of the last two fifths. A batch sharpness is an estimate "
        "over some batches, as uncertain as the margin is wide: with --batch means of fifths are judged.",
        "Step sizes are chosen, as in the claim, so that 2/η lies between the sharpness at the start and what small "
        "steps reach, which one descent of the first network finds out.",
        "With cross-entropy the sharpness falls again once the examples are fitted (Cohen et al. 2021), as p(1 − p) "
        "vanishes. So descents end before; one that has fitted them is out of range, and says at which step it had.",
        "This version was tried on six networks while it was written. Two conditions came after failures there: that "
        "examples of cross-entropy are not fitted yet, and that small steps alone raise the sharpness to 2/η.",
    )

    plainly = {
        "late_sharpness": Plainly("the sharpness in the last fifth of a descent"),
        "stays": Plainly("the sharpness farthest from 2/η in the last two fifths of a descent"),
    }

    def setting(self, key):
        return self.build_all(most=self.n)

    def prepare(self, networks, key):
        rng = kit.numpy_generator(key)
        start = [self.look(subject, rng, None)["sharpness"] for subject in networks.subjects]
        facts = {"start": np.array(start)}
        if not self.batch and min(start) > 0:
            facts |= self.flow(networks.subjects[0], rng)
        return Networks(networks.built, networks.subjects, facts)

    def flow(self, subject: Subject, rng: np.random.Generator) -> dict[str, float]:
        """Follow gradient flow by small steps; return the largest sharpness on the way, and the time that it took."""
        pilot = small_steps(subject, rng, self.steps, self.products)
        return {"peak": pilot.peak, "time": pilot.end}

    def read(self, networks):
        """Put 2/η between the sharpness at the start and what flow reaches, and end before the examples are fitted."""
        facts = networks.facts
        sharpest = float(np.max(facts.get("start", 0.0)))
        if not sharpest > 0:
            return {}
        theirs = networks.built[0].lr if self.batch else None  # what the start bears, noise may not
        # 2/η half-way, in logarithms, between the start and the peak of flow
        between = max((sharpest * facts.get("peak", 0.0)) ** 0.5, ROOM * sharpest)
        lr = self.lr or theirs or float(f"{2 / between:.3g}")
        steps = min(self.steps, facts.get("time", np.inf) / (lr * self.ratio))
        return {"lr": lr, "steps": max(RECORDS, int(steps))}

    def hypotheses(self, setting):
        examples = sum(count for _, count in setting.subjects[0].batches)
        hypotheses = [
            kit.assume(
                "smallest sharpness at the start",
                float(np.min(setting.facts["start"])),
                ">",
                0,
                "there is nothing to descend: is the network dead?",
            ),
            kit.assume("batch", self.batch, "<=", examples, "choose a smaller --batch"),
        ]
        if "peak" in setting.facts:
            rise = kit.assume(
                "largest sharpness that small steps reach / (2/η), smallest η",
                setting.facts["peak"] * min(self.step_sizes) / 2,
                ">=",
                1,
                "it does not rise so far by itself: choose a larger --lr or more --steps",
            )
            hypotheses.append(rise)
        return hypotheses

    def cost(self, networks):
        runs = len(networks) * len(self.step_sizes)
        if not self.batch:
            looks = (
                runs * RECORDS + self.steps / OFTEN
            )  # of the descents, and of the small steps before
            # Lanczos starts from the vector found last, which spares it half of the products
            return Cost(gradients=(runs + 1) * self.steps, products=looks * self.products / 2)
        records = runs * RECORDS
        return Cost(
            gradients=records,
            products=records * self.products / 2,
            batches=runs * self.steps + 3 * records * BATCHES,
            batch=self.batch,
        )

    def predict(self, setting):
        return kit.Prediction(sharpness=("step_size", 2 / np.array(self.step_sizes)))

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        paths = [
            [self.descent(subject, lr, rng) for lr in self.step_sizes]
            for subject in setting.subjects
        ]
        stack = lambda name: self.stacked([[path[name] for path in of_one] for of_one in paths])
        marks = self.marks
        logistic = is_cross_entropy(setting.subjects[0])
        observed = {
            name: ("seed step_size record", stack(name))
            for name in ("risk", "sharpness", "residual", "full_sharpness")
        }
        return kit.Observation(
            step=("record", np.array(marks), "steps"), cross_entropy=float(logistic), **observed
        )

    @property
    def marks(self) -> list[int]:
        """Return the steps at which the sharpness is measured."""
        every = max(1, self.steps // RECORDS)
        return list(range(0, self.steps + 1, every))

    def descent(self, subject: Subject, lr: float, rng: np.random.Generator) -> dict[str, list]:
        """Descend with one step size; return what was seen at the marks, NaN once it has diverged."""
        path: dict[str, list] = {"risk": [], "sharpness": [], "residual": [], "full_sharpness": []}
        vector: NDArray | None = None
        values = subject.values()
        marks = set(self.marks)
        for step in range(max(marks) + 1):
            now = subject.at(values)
            if step in marks:
                look = self.look(now, rng, vector)
                vector = look.pop("vector")
                for name, number in look.items():
                    path[name].append(number)
            if np.isfinite(values).all():
                slope = batch_gradient(now, self.batch, rng) if self.batch else now.gradient()
                values = values - np.asarray(lr, subject.dtype) * slope
        return path

    def look(
        self, now: Subject, rng: np.random.Generator, vector: NDArray | None
    ) -> dict[str, Any]:
        """Return risk, sharpness and its relative error, the full batch's sharpness, and Lanczos' vector."""
        seen = look_at(now, rng, vector, self.products)
        full = {"full_sharpness": seen.curvature, "vector": seen.vector, "risk": seen.risk}
        if not self.batch or np.isnan(seen.curvature):
            return full | {"sharpness": seen.curvature, "residual": seen.residual}
        forms, squares, _ = batch_forms(now, self.batch, BATCHES, rng, now.gradient())
        ratio = float(forms.mean() / squares.mean())
        # delta method: f̄/s̄ has the error of the mean of (f − ρs)/s̄
        errors = (forms - ratio * squares) / squares.mean()
        half = 2 * float(errors.std(ddof=1)) / len(forms) ** 0.5
        return full | {"sharpness": ratio, "residual": half / abs(ratio)}

    def run_conditions(self, observed):
        in_units = observed["sharpness"] * np.array(self.step_sizes)[:, None] / 2
        residual = observed["residual"]
        if not self.batch:
            below = starts_below_the_edge(in_units[..., 0], residual)
        else:
            below = [
                starts_below_the_edge(in_units[..., 0], 0 * residual)[0],
                kit.assume(
                    "median relative error of a batch sharpness", np.median(residual), "<=", SCATTER
                ),
            ]
        yield from below
        yield from self.still_learning(observed)
        yield had_time_to_stay(in_units, self.steps)

    def still_learning(self, observed: kit.Observation) -> list[kit.Hypothesis]:
        """Check, of cross-entropy, that no descent had fitted its examples before it ended."""
        if not observed["cross_entropy"]:
            return []
        return [still_learning(observed["risk"], observed["step"], self.steps)]

    def judge(self, law, seen):
        """Judge as the claim does; with batches a reading is uncertain by itself, and means of fifths are judged."""
        checks = super().judge(law, seen)
        if not self.batch:
            return checks
        before = kit.follows(
            "stays",
            law.sharpness,
            last_fifth(seen.sharpness, before=1),
            MARGIN,
            label="batch sharpness in the fifth before the last",
        )
        return [check for check in checks if check.id != before.id] + [before]

    def controls(self, seen):
        if not self.batch:
            return []
        return [
            kit.control(
                "the largest eigenvalue of the full batch in its place",
                "with small batches it is the batch's sharpness that binds, and the full batch's stays below",
                id="full_batch",
                sharpness=seen.full_sharpness,
            )
        ]

    def figure(self, law, seen, rivals):
        panels = panels_of_descents(self.step_sizes, law, seen)
        return retitled(panels, "Sharpness, and 2/η (dashed)", "In units of 2/η", "Risk")
