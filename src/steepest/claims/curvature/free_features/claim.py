"""Free features that decay like the weights collapse onto a simplex, which is the global minimum.

Suppose that every example's features are free, with the same weight decay as the classifier. Then features that equal
their class mean, with a simplex of centred means, are the exact global minimum, and descent finds it from random
starts. The classifier's rows are then proportional to the centred means with cross-entropy, and orthogonal with the
squared loss without a bias.
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.curvature._collapse import LOSSES
from steepest.claims.curvature.free_features.experiment import FreeFeatures as Descent
from steepest.claims.curvature.free_features.experiment import free_features
from steepest.dynamics import logarithmic
from steepest.nn.networks import unconstrained_minimum

EXACT = {
    "loss": "loss",
    "singular": "singular values",
    "variability": "NC1",
    "cosines": "cosines",
    "raw_cosines": "cosines before centring",
    "duality": "NC3",
}  # ids and labels of the checks
FREE = ("free_loss", "free_singular", "free_raw_cosines", "free_duality")  # which the loss decides
LAST_AXES = {
    "loss": " time",
    "singular": " class",
    "cosines": " both",
    "raw_cosines": " both",
    "start_cosines": " both",
}


@kit.claim
class FreeFeatures(kit.Claim[None]):
    """Free features of examples in classes of one size, and a classifier, with the same weight decay."""

    classes: Annotated[int, kit.Within(3, 10)] = kit.param(
        5, "C", scope=kit.choices(5, why="with four the steps diverge, and six were not tried")
    )
    seeds: kit.Seeds = kit.param(10, "independent starts")
    copies: kit.Count = kit.param(10, "examples a class", scope=kit.between(8, 15))
    dimension: kit.Count = kit.param(20, "p, dimension of the features", scope=kit.between(8, 30))
    decay: kit.Positive = kit.param(
        0.005,
        "λ_W = λ_H",
        scope=kit.between(0.005, 0.01, "with less decay the steps diverge"),
    )
    steps: kit.Count = kit.param(3000, "steps of descent", unit="steps")

    kind = "theorem"
    says = {
        "collapse onto a simplex": ("free_variability", "free_cosines"),
        "which is the global minimum": ("free_loss", "free_singular"),
    }
    tiny = {"seeds": 3, "dimension": 6, "steps": 2000}
    full = {"seeds": 10}
    out_of_scope = {"decay": 0.1}

    def axes(self):
        return {
            "loss": LOSSES,
            "class": tuple(f"singular value {i + 1}" for i in range(self.classes)),
        }

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        pull = self.classes * self.decay * self.copies**0.5
        wider = "choose --dimension ≥ C"
        smaller = "else they vanish; choose a smaller --decay"
        yield kit.assume("dimension p of the features", self.dimension, ">=", self.classes, wider)
        yield kit.assume("Cμ", pull, "<", 1, smaller)

    def predict(self, setting):
        return kit.law(cosine=-1 / (self.classes - 1), **self.minima(self.copies))

    def minima(self, copies: int) -> dict[str, tuple]:
        """Return the minimum with so many examples a class, by name."""
        least = [
            unconstrained_minimum(self.classes, copies, self.decay, self.decay, loss)
            for loss in LOSSES
        ]
        return {
            "free_loss": ("loss", [m.loss for m in least]),
            "free_singular": ("loss class", np.stack([m.singular_values for m in least])),
            "free_raw_cosine": ("loss", [m.raw_cosine for m in least]),
            "free_duality": ("loss", [m.duality for m in least]),
        }

    def observe(self, setting, key):
        descent = Descent(self.classes, self.copies, self.dimension, self.decay, self.steps)
        ends = free_features(descent, key, self.seeds)
        return kit.seen(
            free_step=("time", np.asarray(logarithmic(self.steps, 40)), "steps"),
            **{
                f"free_{name}": (f"loss seed{LAST_AXES.get(name, '')}", values)
                for name, values in ends.items()
            },
        )

    def run_conditions(self, observed):
        slope = observed["free_gradient"].max()
        yield kit.assume("largest gradient at the end", slope, "<=", 1e-8)

    def derive(self, law, seen):
        return {
            "off_loss": seen.free_loss.isel(time=-1) - law.free_loss,
            "off_singular": seen.free_singular - law.free_singular,
            "off_variability": seen.free_variability,
            "off_cosines": seen.free_cosines - law.cosine,
            "off_raw_cosines": seen.free_raw_cosines - law.free_raw_cosine,
            "off_duality": seen.free_duality - law.free_duality,
        }

    def judge(self, law, seen):
        for id, label in EXACT.items():
            off = abs(seen[f"off_{id}"])
            yield kit.agrees(f"free_{id}", off, 1e-6, label=f"free features, {label}: deviation")

    def rivals(self, setting, law):
        single = self.minima(1)
        yield kit.rival(
            "orthogonal class means",
            "so the notes say; true before centring with the squared loss",
            id="orthogonal",
            cosine=0.0,
        )
        yield kit.rival(
            "a simplex before centring", "true for cross-entropy", free_raw_cosine=float(law.cosine)
        )
        yield kit.rival(
            "free rows of the classifier are the centred means",
            "so NC3 says; true for cross-entropy, not for the squared loss without bias",
            id="self_dual",
            free_duality=0.0,
        )
        yield kit.rival(
            "the minimum for one example a class",
            "copies of an example tell nothing new",
            id="copies",
            free_loss=single["free_loss"],
            free_singular=single["free_singular"],
        )

    def controls(self, seen):
        yield kit.control(
            "free features at the start",
            "nothing has been descended",
            free_variability=seen.free_start_variability,
            free_cosines=seen.free_start_cosines,
        )
        yield kit.control(
            "free features with the other loss",
            "the loss decides where they end",
            **{name: seen[name].roll(loss=1) for name in FREE},
        )

    def figure(self, law, seen, rivals):
        gap = abs(seen.free_loss - law.free_loss).isel(time=slice(1, None)) + 1e-17
        curves = [
            kit.observed_curve(
                seen.free_step.values[1:],
                gap.sel(loss=loss).transpose("seed", "time"),
                loss,
                shade=float(i),
            )
            for i, loss in enumerate(LOSSES)
        ]
        title = "Free features reach the predicted minimum"
        yield kit.panel(title, "step", "loss − theory", *curves, log="xy")
