"""Outliers of a classifier's Gauss–Newton matrix come from its class and cross-class parts.

The matrix G splits into classes, pairs of classes and examples. For the cross-entropy with C classes, G is the second
moment of the gradients that each example would have under each label. Averages over the examples of a class and over
wrong labels split G exactly into four parts: a class part of rank C, a cross-class part of rank C(C − 2), the rest
within the classes, and the terms of the true labels. The class and cross-class parts make the outliers. The notes
attribute the outliers to the class part only, which is right only where features of different classes are orthogonal.
The notes bound the rank of the Hessian by the number of examples, but each example adds C − 1 to the rank of G.
"""

from typing import Annotated, Any

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.curvature._trained import Setting, Training, lanes, trained_and_resolved
from steepest.claims.curvature.three_level_hessian.experiment import LEVELS, REMOVED, split
from steepest.claims.curvature.three_level_hessian.ranks import (
    IMAGES,
    INPUTS,
    LABELS,
    NEURONS,
    ZERO,
    draw_small,
    gauss_newton_rank,
    hessian_rank,
    measure_ranks,
)

RANK_AXES = {  # of what is counted on small networks
    "gauss_rank": "draw images labels",
    "squared_gauss_rank": "draw images labels",
    "hessian_rank": "draw labels",
    "squared_hessian_rank": "draw labels",
    "counted": "matrix",
    "uncounted": "matrix",
}
AXES = {  # of what is measured of each network
    "error": "",
    "eigenvalues": " rank",
    "left_of_class_part": " order",
    "deviation": " probe",
    "residual": "",
    **{
        f"{prefix}{name}": axes
        for prefix in ("", "random_")
        for name, axes in (
            ("carried", " rank"),
            ("class_share", " outlier"),
            ("left", " removed order"),
            ("trace", " level"),
        )
    },
}


@kit.claim
class ThreeLevelHessian(kit.Claim[Setting]):
    """ReLU networks on the digits, cross-entropy, trained past zero error with weight decay."""

    classes: Annotated[int, kit.Within(3, 10)] = kit.param(
        10, "C", scope=kit.between(7, 10, "with few classes the C-th direction is near the others")
    )
    seeds: kit.Seeds = kit.param(8, "independent networks, each with images of its own")
    n: Annotated[int, kit.Within(30, 450)] = kit.param(300, "images", scope=kit.between(250, 400))
    width: kit.Count = kit.param(
        32, "neurons in each hidden layer", unit="neurons", scope=kit.between(24, 48)
    )
    depth: kit.Count = kit.param(4, "hidden layers", unit="layers", scope=kit.choices(3, 4))
    lr: kit.Positive = kit.param(
        0.05,
        "first step size, with momentum 0.9; lowered tenfold after each third",
        scope=kit.between(0.04, 0.06),
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
        "splits into classes, pairs of classes and examples": None,
        "Outliers of a classifier's Gauss–Newton matrix": "outliers",
        "come from its class and cross-class parts": "left",
    }
    tiny = {"classes": 3, "seeds": 3, "n": 30, "width": 8, "depth": 2, "batch": 10, "steps": 200}
    full = {"seeds": 8, "n": 450, "width": 48, "steps": 3000}
    out_of_scope = {"steps": 5, "seeds": 3}

    def axes(self):
        return {"removed": tuple(REMOVED), "level": LEVELS, "images": IMAGES, "labels": LABELS}

    def setting(self, key):
        training = Training(self.width, self.depth, self.lr, self.decay, self.batch, self.steps)
        return Setting(training, lanes(key, (self.classes,), self.seeds, self.n))

    def predict(self, setting):
        gauss = [[gauss_newton_rank(n, c) for c in LABELS] for n in IMAGES]
        return kit.law(
            **self.of_levels(),
            gauss_rank=("images labels", gauss),
            hessian_rank=("labels", [hessian_rank(c) for c in LABELS]),
        )

    def of_levels(self) -> dict[str, Any]:
        """Return what is said of the levels of large networks."""
        c = self.classes
        return {
            "outliers": c - 1.0,
            "left": ("removed", [0.0, c - 1.0]),
            # of each outlier, with a common feature the class part has it
            "share": c / (2 * (c - 1)),
            "by_level": ("level", [2, 1, 0]),  # places in the order of mean eigenvalues
        }

    def observe(self, setting, key):
        for_digits, for_small = jax.random.split(key)
        arrays = split(setting, for_digits, self.classes, self.steps)
        ranks = measure_ranks(draw_small(kit.numpy_generator(for_small)))
        return kit.seen(
            **{name: (f"seed{axes}", arrays[name]) for name, axes in AXES.items()},
            **{name: (RANK_AXES[name], numbers) for name, numbers in ranks.items()},
        )

    def run_conditions(self, observed):
        conditions = trained_and_resolved(observed["error"], observed["residual"])
        if "counted" not in observed:
            return conditions
        return [
            *conditions,
            kit.assume(
                "least eigenvalue that counts / largest",
                float(observed["counted"].min()),
                ">",
                10 * ZERO,
                "rounding would hide it",
            ),
            kit.assume(
                "largest eigenvalue that does not count / largest",
                float(observed["uncounted"].max()),
                "<",
                ZERO / 10,
                "it may not be zero",
            ),
        ]

    def derive(self, law, seen):
        c = self.classes
        # half of the share that a common feature gives the class part, as in hessian-outliers
        carries = seen.carried > c / (4 * (c - 1))
        middle = _middle_of_gap(law, seen)
        ranks = xarray.DataArray([c, c * (c - 2), self.n * (c - 1)], dims="level")
        return {
            "outliers": carries.cumprod("rank").sum("rank"),
            "count_left": (seen.left > middle).sum("order"),
            "mean_eigenvalue": np.log(seen.trace / ranks),
        }

    def judge(self, law, seen):
        yield from self.judge_levels(law, seen)
        yield from self.judge_ranks(law, seen)

    def judge_ranks(self, law, seen):
        """Compare ranks of small networks, each of which must be as predicted."""
        axes = f"for h = {NEURONS}, d = {INPUTS}"
        yield kit.follows(
            "rank",
            law.gauss_rank,
            seen.gauss_rank.astype(float),
            0.5,
            absolute=True,
            each=True,
            label=f"rank of G {axes}",
        )
        yield kit.follows(
            "hessian_rank",
            law.hessian_rank,
            seen.hessian_rank.astype(float),
            0.5,
            absolute=True,
            each=True,
            label=f"rank of the Hessian on {max(IMAGES)} inputs {axes}",
        )

    def judge_levels(self, law: xarray.Dataset, seen: xarray.Dataset) -> list[kit.Check]:
        """Compare the parts of G of trained networks, and its outliers."""
        # ± ½ around a whole number: one outlier more or less, on average over networks, is refuted
        return [
            kit.idle(
                kit.agrees(
                    "parts_sum", seen.deviation, 1e-10, label="sum of the parts − G, relative"
                ),
                "the parts of any grouping add up to G: it tells whether the program does what the definitions say",
            ),
            kit.follows(
                "outliers", law.outliers, seen.outliers, 0.5, absolute=True, label="outliers of G"
            ),
            kit.follows(
                "left",
                law.left,
                seen.count_left,
                0.5,
                absolute=True,
                label="outliers that are left without a part",
            ),
            kit.at_least(
                "class_share",
                law.share,
                seen.class_share,
                label="class / (class + cross) in the outliers",
            ),
            kit.ranks(
                "level_order",
                law.by_level,
                seen.mean_eigenvalue,
                over="level",
                label="log of the mean eigenvalue of each level",
            ),
        ]

    def rivals(self, setting, law):
        yield from self.rivals_of_levels(law)
        yield from self.rivals_of_ranks(law)

    def rivals_of_ranks(self, law):
        """Return wrong theories of the ranks of small networks."""
        n = law.images
        c = law.labels
        weights = NEURONS * (INPUTS + c)
        printed = np.minimum(n, weights)
        yield kit.rival(
            "rank min(n, p)",
            "so the notes, of the Hessian",
            gauss_rank=printed,
            hessian_rank=printed.isel(images=-1, drop=True),
        )
        yield kit.rival(
            "rank of G: nC in place of n(C − 1)",
            "each label has a gradient",
            gauss_rank=np.minimum(n * c, weights - 2 * NEURONS),
        )
        yield kit.rival(
            "rank of G: min(n(C − 1), p)",
            "n(C − 1), until the weights are fewer",
            gauss_rank=np.minimum(n * (c - 1), weights),
        )
        yield kit.rival(
            "rank of G: min(n(C − 1), p − h)",
            "as for outputs that are compared as they are",
            gauss_rank=np.minimum(n * (c - 1), weights - NEURONS),
        )
        yield kit.rival(
            "the Hessian has the rank of G",
            "G is most of the Hessian where the network fits",
            hessian_rank=law.gauss_rank.isel(images=-1, drop=True),
        )

    def rivals_of_levels(self, law: xarray.Dataset) -> list[kit.Rival]:
        """Return wrong theories of outliers and levels."""
        return [
            kit.rival(
                "C outliers",
                "so the notes: as many as classes",
                id="one_a_class",
                outliers=law.outliers + 1,
            ),
            kit.rival(
                "outliers come from examples",
                "a few hard ones would do",
                id="examples",
                left=("removed", law.left.values[::-1]),
            ),
            kit.rival(
                "outliers come only from the class part",
                "the notes say so; true without a common feature",
                id="class_part",
                share=1.0,
            ),
            kit.rival(
                "the cross-class part has the larger eigenvalues",
                "there are C − 2 times as many pairs",
                by_level=("level", [1, 2, 0]),
            ),
        ]

    def controls(self, seen):
        names = ("carried", "class_share", "left", "trace")
        of_levels = kit.control(
            "random groups of images in place of classes",
            "their means are not class means",
            **{name: seen[f"random_{name}"] for name in names},
        )
        if "squared_gauss_rank" not in seen:
            return [of_levels]
        of_ranks = kit.control(
            "the squared loss in place of the cross-entropy",
            "each output counts by itself: C for each image, and no number can be added to all",
            gauss_rank=seen.squared_gauss_rank,
            hessian_rank=seen.squared_hessian_rank,
        )
        return [of_levels, of_ranks]

    def figure(self, law, seen, rivals):
        c = self.classes
        largest = seen.eigenvalues.isel(rank=0, drop=True)
        along = lambda array: (array / largest).median("seed").values
        rank = np.arange(1, seen.sizes["order"] + 1)
        lefts = [seen.left.sel(removed=name, drop=True) for name in REMOVED]
        names = ("without class", "without both", "without within")
        without = [
            kit.observed_curve(rank, along(left), name, shade=(i + 1) / 3)
            for i, (name, left) in enumerate(
                zip(names, (seen.left_of_class_part, *lefts), strict=True)
            )
        ]
        counts = np.full(len(rank), float((_middle_of_gap(law, seen) / largest).median()))
        outliers = np.arange(1, c)
        yield kit.panel(
            "Without class and cross-class parts the outliers are gone",
            "rank",
            "eigenvalue / largest, median",
            kit.observed_curve(rank, along(seen.eigenvalues.isel(rank=slice(len(rank)))), "G"),
            *without,
            kit.predicted_curve(rank, counts, "an outlier"),
            kit.predicted_curve((c - 0.5,) * 2, (0.02, 1)),
            log="y",
        )
        yield kit.panel(
            "The class part has half of each outlier, or more",
            "outlier",
            "its share",
            kit.observed_curve(outliers, seen.class_share.values),
            kit.predicted_curve(outliers, np.full(c - 1, float(law.share)), "C/(2(C − 1))"),
            kit.rival_curve(outliers, np.ones(c - 1), "all of it"),
            ylim=(0, 1.05),
        )


def _middle_of_gap(law: xarray.Dataset, seen: xarray.Dataset) -> xarray.DataArray:
    """Return, of each network, the middle of the gap that theory names: an outlier lies above it."""
    first = int(law.outliers)
    ends = seen.eigenvalues.isel(rank=slice(first - 1, first + 1))
    return np.exp(np.log(ends).mean("rank"))
