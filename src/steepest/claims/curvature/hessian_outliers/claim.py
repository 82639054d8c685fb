"""In most classifiers with C classes, C − 1 leading Hessian eigenvectors carry class means.

For C = 10 most of the gradient lies along leading eigenvectors too just before large steps end, and less of it later.
The number of eigenvectors that carry class means follows the number of classes C ≥ 4, not the number of images or
weights. These eigenvectors settle early. The class means have one more direction, their common mean. This direction
lies some places further down the spectrum, so about C of the first 2C + 1 eigenvectors carry class means.

The gradient is projected on the span of the first C eigenvectors, just before steps shrink and at the end of training.
Before steps shrink, at least four fifths of its square lie in this span for ten classes; with the fewest classes the
share is smaller. At the end the share is smaller for every C.

The spectrum has a negative lower end from the start on, which training brings nearer to zero.
"""

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.curvature._trained import Setting, Training, lanes, trained_and_resolved
from steepest.claims.curvature.hessian_outliers.experiment import EDGES, END, MOMENTS, THIRD, look
from steepest.claims.curvature.hessian_outliers.figure import panels_of_outliers
from steepest.nn.types import count

MOST = 0.5
"""Share of the networks beyond which they are most."""


@kit.claim
class HessianOutliers(kit.Claim[Setting]):
    """ReLU networks on the digits 0 … C−1 for several C, cross-entropy with weight decay, batches with momentum."""

    classes: tuple[kit.Count, ...] = kit.param(
        (4, 6, 10),
        "C, the numbers of classes, increasing",
        scope=kit.choices(
            (4, 6, 10),
            (4, 5, 10),
            (5, 6, 10),
            why="the digits have ten; two and three are left out",
        ),
    )
    seeds: kit.Seeds = kit.param(18, "independent networks for each C, with images of their own")
    n: kit.Count = kit.param(
        300, "images, whatever C", scope=kit.choices(240, 300, why="a multiple of every C")
    )
    width: kit.Count = kit.param(
        32, "neurons in each hidden layer", unit="neurons", scope=kit.between(24, 48)
    )
    depth: kit.Count = kit.param(4, "hidden layers", unit="layers", scope=kit.choices(3, 4))
    lr: kit.Positive = kit.param(
        0.05,
        "first step size, with momentum 0.9; lowered tenfold after each third",
        scope=kit.between(0.04, 0.06, "smaller steps let the gradient leave the top space"),
    )
    decay: kit.Positive = kit.param(
        0.02, "weight decay", scope=kit.between(0.015, 0.025, "without it there is no gap")
    )
    batch: kit.Count = kit.param(32, "images in a batch", scope=kit.between(24, 40))
    steps: kit.Count = kit.param(
        900, "steps of training", unit="steps", scope=kit.between(900, 1500)
    )

    kind = "empirical law"
    says = {
        "C − 1 leading Hessian eigenvectors carry class means": "leading",
        "For C = 10 most of the gradient lies along leading eigenvectors too": "gradient_share",
        "just before large steps end, and less of it later": ("gradient_share", "gradient_leaves"),
    }
    ragged = ("values", "class_share", "random_share")  # 2C + 1 eigenvectors of each network
    tiny = {
        "classes": (4, 5, 10),
        "seeds": 6,
        "n": 60,
        "width": 8,
        "depth": 2,
        "batch": 10,
        "steps": 200,
    }
    full = {"classes": (4, 5, 6, 10), "seeds": 30, "width": 48, "steps": 3000}
    out_of_scope = {"classes": (4, 6), "seeds": 6, "steps": 60, "lr": 1e-4}

    def axes(self):
        return {
            "classes": self.classes,
            "pair": ("start to a sixth", "a sixth to a third"),
            "steps_are": ("small", "large"),
            "number": ("fewest", "most"),
            "looked": tuple(MOMENTS[moment] for moment in EDGES),
        }

    def check_fields(self) -> None:
        """Refuse images and classes that the digits cannot give, and a training too short to be looked at."""
        for name, low, high in (("n", 30, 300), ("steps", 60, 10**6)):
            if not low <= getattr(self, name) <= high:
                raise kit.UserError(
                    f"{name} must be from {low} to {high}, got {getattr(self, name)}; try {high}"
                )
        if not all(2 <= c <= 10 for c in self.classes):
            raise kit.UserError(f"classes must be from 2 to 10, got {self.classes}; try 4 6 10")

    def setting(self, key):
        training = Training(self.width, self.depth, self.lr, self.decay, self.batch, self.steps)
        return Setting(training, lanes(key, self.classes, self.seeds, self.n))

    def hypotheses(self, setting):
        fewest = min(self.classes)
        yield kit.assume("fewest classes", fewest, ">=", 4, "choose larger --classes")
        yield kit.assume(
            "most classes",
            max(self.classes),
            ">=",
            10,
            "with fewer the gradient is elsewhere too: end --classes with 10",
        )

    def predict(self, setting):
        return kit.law(
            leading=("classes", np.array(self.classes) - 1),
            gradient=1.0,
            leaves=("steps_are", [0, 1]),
            by_classes=("number", [0, 1]),
            overlap=("pair", [0.25, 0.75]),
            edge=("looked", [2, 1, 0]),  # places in an order
        )

    def observe(self, setting, key):
        return look(setting, key, self.classes, self.steps)

    def run_conditions(self, observed):
        return trained_and_resolved(observed["error"], observed["residual"])

    def derive(self, law, seen):
        c = seen.classes
        # half of the share that a feature common to all classes would have
        carries = seen.class_share > c / (4 * (c - 1))
        leading = carries.cumprod("rank").sum("rank")
        by_steps = seen.share.isel(moment=[END, THIRD]).rename(moment="steps_are")
        at_a_third = seen.share.isel(moment=THIRD)
        ends = at_a_third.isel(classes=[0, -1]).rename(classes="number")
        return {
            "leading": leading,
            "as_many": (leading == law.leading).astype(float),
            "carrying": carries.sum("rank"),
            "at_a_third": at_a_third,
            # of the C for which it is least in each row of networks: its mean is at most that of every C
            "gain": (by_steps - by_steps.isel(steps_are=0)).min("classes", skipna=False),
            "of_few_and_many": ends.assign_coords(number=law.number),
        }

    def judge(self, law, seen):
        yield kit.share(
            "leading",
            xarray.ones_like(law.leading),
            seen.as_many,
            1 - MOST,
            label="networks with C − 1 leading eigenvectors that carry class means",
        )
        yield kit.follows(
            "gradient_share",
            law.gradient,
            seen.at_a_third.isel(classes=-1),
            (0.8, 1.2),
            label=f"gradient in the top space, C = {max(self.classes)}",
        )
        yield kit.ranks(
            "gradient_leaves",
            law.leaves,
            seen.gain,
            over="steps_are",
            label="more of it there while steps are large, by that C for which it is least",
        )
        yield kit.ranks(
            "more_classes",
            law.by_classes,
            seen.of_few_and_many,
            over="number",
            label="more of it there with the most classes than with the fewest",
        )
        yield kit.follows(
            "overlap",
            law.overlap,
            seen.overlap,
            0.25,  # less than half, then more than half
            over="classes pair",
            absolute=True,
            label="overlap of neighbouring top spaces",
        )
        yield kit.excluded(
            "left_edge", 0.0, -seen.lowest, label="−λ_min/λ_max of every network at every moment"
        )
        yield kit.ranks(
            "edge_rises",
            law.edge,
            -seen.lowest,
            over="looked",
            label="−λ_min/λ_max, the later the smaller",
        )

    def rivals(self, setting, law):
        shapes = jax.eval_shape(setting.training.net.init, jax.random.key(0))
        yield kit.rival(
            "as many leading eigenvectors as classes",
            "so the notes: about as many as classes",
            id="one_a_class",
            leading=law.leading + 1,
        )
        yield kit.rival(
            "as many leading eigenvectors whatever the classes",
            "they are the network's",
            id="same_count",
            leading=xarray.full_like(law.leading, max(self.classes) - 1),
        )
        yield kit.rival(
            "the gradient lies anywhere",
            "C of p directions are few",
            gradient=max(self.classes) / count(shapes),
        )
        yield kit.rival(
            "as much of the gradient whatever the classes",
            "so Gur-Ari et al.: after a short time the gradient is there",
            by_classes=xarray.zeros_like(law.by_classes),
        )
        yield kit.rival(
            "as much of the gradient with small steps",
            "so Gur-Ari et al., where it stays there to the end",
            leaves=xarray.zeros_like(law.leaves),
        )
        yield kit.rival(
            "the top space turns more later",
            "the longer the path the farther the spaces",
            overlap=1 - law.overlap,
        )
        yield kit.rival(
            "the lower end becomes negative by training", "as the notes say", edge=2 - law.edge
        )

    def controls(self, seen):
        first_pair = seen.pair == seen.pair[0]
        yield kit.control(
            "random groups of images in place of classes",
            "their means are not class means",
            class_share=seen.random_share,
        )
        yield kit.control(
            "the gradient at the end, where steps are small",
            "small steps let the sharp directions settle",
            share=seen.share.isel(moment=[0, 1, END, END]),
        )
        yield kit.control(
            "the gradients of networks with the fewest classes for every C",
            "few classes leave more of the gradient elsewhere",
            id="few_classes",
            share=seen.share.isel(classes=[0] * seen.sizes["classes"]),
        )
        yield kit.control(
            "the top space of another network",
            "its weights have settled elsewhere",
            id="other_network",
            overlap=seen.overlap.where(first_pair, seen.other_network),
        )
        yield kit.control(
            "the Gauss–Newton matrix along the same eigenvectors",
            "it has no negative curvature",
            id="convex_part",
            lowest=seen.lowest_of_convex,
        )
        yield kit.control(
            "the lower end at the start at every moment",
            "nothing has been fitted",
            lowest=seen.lowest.isel(looked=[0, 0, 0]).assign_coords(looked=seen.looked),
        )

    def figure(self, law, seen, rivals):
        return panels_of_outliers(self.classes, law, seen)
