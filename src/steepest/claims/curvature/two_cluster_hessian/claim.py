"""On two clusters, the class direction starts as the Hessian's outlier and ends below the rest.

The curvature along the class direction starts at 1 + 2/s² times the rest. Points are ±(1, 1) plus noise of standard
deviation s, and a softmax classifier is trained on them. Before training every point is undecided, and the Hessian is
the second moment of the inputs: s² in all directions, and 2 more along the line between the clusters. The trained
classifier is undecided only between the clusters, near the plane where that line's coordinate is zero. The remaining
curvature comes from points near this plane: they spread across the line as before, but hardly along it.
"""

from typing import Annotated

import numpy as np
import xarray
from scipy.special import ndtr

from steepest import kit
from steepest.claims.curvature.two_cluster_hessian.experiment import (
    Trained,
    World,
    along_and_across,
    crossings,
    outliers,
    place_of_class,
    train,
)
from steepest.claims.curvature.two_cluster_hessian.theory import (
    CENTRE,
    crossing,
    ratio,
    ratio_at_optimum,
    weights_of_flow,
)

TIMES = (0.1, 0.2, 0.4, 0.7, 1.2, 2.0, 4.0, 7.0, 12.0, 20.0, 40.0, 80.0, 150.0, 300.0)


@kit.claim
class TwoClusterHessian(kit.Claim[None]):
    """Softmax regression on two Gaussian clusters, by gradient flow, with dense Hessians on the way."""

    spreads: tuple[kit.Positive, ...] = kit.param(
        (0.8, 1.1, 1.6),
        "s of the clusters, along every coordinate",
        scope=kit.choices(
            (0.8, 1.1, 1.6),
            (0.9, 1.2, 1.7),
            (0.8, 1.0, 1.3, 1.8),
            why="tighter clusters are nearly separable, and looser ones have no outlier",
        ),
    )
    dimension: Annotated[int, kit.Within(2, 50)] = kit.param(
        3,
        "dimension of the inputs, 2 in the notes",
        scope=kit.between(2, 6, "in more, samples spread the rest of the eigenvalues"),
    )
    examples: Annotated[int, kit.Within(16, 2**16)] = kit.param(
        2048,
        "points, a power of two",
        scope=kit.choices(2048, 4096, why="fewer leave the optimum unsure"),
    )
    seeds: kit.Seeds = kit.param(8, "classifiers at each spread, with points of their own")

    kind = "limit"
    says = {
        "the class direction starts as the Hessian's outlier": ("outliers", "place"),
        "1 + 2/s² times the rest": "start",
        "ends below the rest": ("place", "end", "ratio", "crossing"),
    }
    tiny = {"spreads": (1.2, 1.7), "dimension": 2, "examples": 256, "seeds": 3}
    full = {"spreads": (0.8, 1.2, 1.7, 2.0), "examples": 8192, "seeds": 30}
    out_of_scope = {"spreads": (0.3, 1.1), "examples": 256, "seeds": 3}

    def axes(self):
        return {"spread": self.spreads, "time": TIMES, "moment": ("start", "end")}

    def check_fields(self) -> None:
        if self.examples & (self.examples - 1):
            raise kit.UserError(
                f"examples must be a power of two, to fill the clusters evenly, got {self.examples}; try 2048"
            )

    def hypotheses(self, setting):
        beyond = self.examples * ndtr(-CENTRE / min(self.spreads))
        yield kit.assume(
            "points that the best classifier gets wrong at the smallest spread",
            float(beyond),
            ">=",
            20,
            "without them weights grow for ever: raise --spreads or --examples",
        )

    def predict(self, setting):
        weights = np.array([weights_of_flow(TIMES, s) for s in self.spreads])
        along_flow = [
            [ratio(a, s) for a in path] for path, s in zip(weights, self.spreads, strict=True)
        ]
        return kit.law(
            start=("spread", 1 + 2 / np.square(self.spreads)),
            end=("spread", [ratio_at_optimum(s) for s in self.spreads]),
            weights=("spread time", weights),
            ratio=("spread time", along_flow),
            crossing=("spread", [crossing(s) for s in self.spreads]),
            place=("moment", [1.0, self.dimension]),
            outliers=1.0,
        )

    def observe(self, setting, key):
        worlds = (World(), World(centre=0.7), World(stretch=1.5))
        as_said, nearer, stretched = train(
            key,
            worlds,
            self.spreads,
            (0.0, *TIMES),
            dimension=self.dimension,
            examples=self.examples,
            seeds=self.seeds,
        )
        main = self.measured(as_said)
        # √2 as two outputs move, each by half of the difference
        left = as_said.slope / (np.sqrt(2) * main["along"] * main["weights"][..., -1])
        of_nearer = self.measured(nearer)
        of_stretched = self.measured(stretched)
        return kit.seen(
            weights=("seed spread time", main["weights"]),
            start=("seed spread", main["start"]),
            end=("seed spread", main["end"]),
            ratio=("seed spread time", main["ratio"]),
            crossing=("seed spread", crossings(main["weights"], main["ratio"])),
            place=("seed spread moment", main["place"]),
            outliers=("seed spread", outliers(as_said.hessian[:, :, 0], self.dimension)),
            left=("seed spread", left),
            nearer=("seed spread time", of_nearer["ratio"]),
            nearer_start=("seed spread", of_nearer["start"]),
            nearer_weights=("seed spread time", of_nearer["weights"]),
            nearer_crossing=("seed spread", crossings(of_nearer["weights"], of_nearer["ratio"])),
            stretched=("seed spread time", of_stretched["ratio"]),
            stretched_start=("seed spread", of_stretched["start"]),
            stretched_place=("seed spread moment", of_stretched["place"]),
            two_outputs=("seed spread", outliers(as_said.separate, self.dimension)),
        )

    def measured(self, trained: Trained) -> dict[str, np.ndarray]:
        """Return what is measured in one world of weights, ratios of curvatures and places."""
        along, across = along_and_across(trained.hessian, self.dimension)
        ratios = along / across
        return {
            "weights": trained.weights[..., 1:],
            "along": along[..., -1],
            "start": ratios[..., 0],
            "end": ratios[..., -1],
            "ratio": ratios[..., 1:],
            "place": place_of_class(trained.hessian[:, :, [0, -1]], self.dimension),
        }

    def run_conditions(self, observed):
        yield kit.assume(
            "what a step of Newton would still add to the weights, relative",
            float(observed["left"].max()),
            "<=",
            0.05,
            "the flow is not at its end: choose larger --spreads",
        )

    def judge(self, law, seen):
        yield kit.follows(
            "outliers",
            law.outliers,
            seen.outliers,
            0.3,
            over="spread",
            absolute=True,
            each=True,
            label="eigenvalues of the first Hessian above the middle of its two curvatures",
        )
        yield kit.follows(
            "place",
            law.place,
            seen.place,
            0.3,
            absolute=True,
            each=True,
            label="place of the class direction among eigenvectors",
        )
        yield kit.follows(
            "start",
            law.start,
            seen.start,
            0.01,  # the interval takes 0.004
            label="class direction over the rest before training",
        )
        yield kit.follows(
            "end",
            law.end,
            seen.end,
            0.08,  # the interval takes 0.04, the end of the flow 0.01
            label="class direction over the rest at the optimum",
        )
        yield kit.follows(
            "ratio",
            law.ratio,
            seen.ratio,
            0.1,  # the interval takes 0.06
            label="class direction over the rest along the flow",
        )
        yield kit.follows(
            "crossing",
            law.crossing,
            seen.crossing,
            0.02,  # the interval takes 0.01
            label="weight at which both are equal",
        )
        yield kit.follows(
            "weights",
            law.weights,
            seen.weights,
            0.04,  # the interval takes 0.02
            label="weight of the class direction along the flow",
        )

    def rivals(self, setting, law):
        square = law.spread**2
        # σ'(z) = ¼ − z²/16 + …, to the order at which the ratio can be one
        # E u²(1 − a²u²) = s² E(1 − a²u²), with E u² = 2 + s² and E u⁴ = 4 + 12s² + 3s⁴
        expanded = np.sqrt(2 / (4 + 10 * square + 2 * square**2))
        yield kit.rival(
            "1 + 2/s² for ever",
            "the Hessian is the second moment of the inputs, as at the start",
            id="fixed",
            ratio=law.start.broadcast_like(law.ratio),
            end=law.start,
            place=("moment", [1.0, 1.0]),
        )
        yield kit.rival(
            "the outlier grows as its inverse falls",
            "training sharpens the direction it learns",
            ratio=law.start**2 / law.ratio,
            end=law.start**2 / law.end,
            place=("moment", [1.0, 1.0]),
        )
        yield kit.rival(
            "1/(1 + 2/s²) at the optimum",
            "σ' is a bump, and Gaussians are easy to integrate",
            end=1 / law.start,
        )
        yield kit.rival("equal where the second order says", "σ' = ¼ − z²/16", crossing=expanded)
        yield kit.rival(
            "equal at the optimum",
            "the outlier is gone once the classes are learned",
            crossing=CENTRE / square,
            end=xarray.ones_like(law.end),
        )
        yield kit.rival("two outliers", "so the notes: as many as classes", outliers=2.0)
        yield kit.rival(
            "1 + 8/s², of centres 2√2 apart",
            "centres are as far from each other",
            start=1 + 8 / square,
        )

    def controls(self, seen):
        yield kit.control(
            "centres at ±(0.7, 0.7)",
            "the first principal component of the inputs is less of an outlier",
            start=seen.nearer_start,
            ratio=seen.nearer,
            weights=seen.nearer_weights,
            crossing=seen.nearer_crossing,
        )
        yield kit.control(
            "clusters half as wide again along their line",
            "the points that stay undecided are far from the middle too",
            start=seen.stretched_start,
            end=seen.stretched.isel(time=-1, drop=True),
            ratio=seen.stretched,
            place=seen.stretched_place,
        )
        yield kit.control(
            "a logistic loss for each output by itself",
            "then nothing that moves both together is flat",
            outliers=seen.two_outputs,
        )

    def figure(self, law, seen, rivals):
        times = np.array(TIMES)
        yield kit.curves(
            "The class direction's curvature falls from above the rest to below it",
            law.ratio,
            seen.ratio,
            over="time",
            by="spread",
            x="time of the gradient flow",
            y="class direction / the rest",
            name="s = {}",
            rivals={"1 + 2/s²": rivals["fixed"].ratio} if rivals else {},
            more=(kit.context_curve(times, np.ones(len(times)), "equal"),),
            log="xy",
        )
        yield kit.curves(
            "Tighter clusters start with a larger outlier and end with a smaller one",
            law.start,
            seen.start,
            over="spread",
            x="spread s",
            y="class direction / the rest",
            more=(
                kit.observed_curve(
                    self.spreads, seen.end.mean("seed"), "at the optimum", kind="points", shade=0.8
                ),
                kit.predicted_curve(self.spreads, law.end.values, "E v²/cosh over E 1/cosh"),
            ),
            log="y",
        )
