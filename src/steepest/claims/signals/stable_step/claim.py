"""Near a fit, the largest stable step size of gradient descent is 2/λ_max of the tangent kernel.

Close to a network that fits its targets, descent with step size η on the mean of ½(f − y)² over P points multiplies
residuals by 1 − ηΘ/P, Θ being the tangent kernel. The risk does not rise where η < 2/λ_max(Θ/P). Beyond this step it
rises if the initial residual has a part along the top eigenvector.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals._near_fit import NearFitInDepth, Rows, deep_rows, on_axes, wide_rows
from steepest.claims.signals._near_fit_networks import LAWS

TOO_LONG = (0.97, 1.05)
"""Factors: a step is too long by 2 %, see the remarks, and bisection has 0.7 %."""


@kit.claim
class StableStep(NearFitInDepth):
    """Networks of many widths and depths that nearly fit their targets, on digits pooled to 4×4 pixels."""

    widths: tuple[kit.Count, ...] = kit.param(
        (128, 512, 1024),
        "widths n",
        unit="neurons",
        scope=kit.choices((128, 512, 1024), (128, 256, 512, 1024), (192, 384, 768)),
    )
    depth: kit.Count = kit.param(
        1, "hidden layers of networks of these widths", unit="layers", scope=kit.choices(1, 2)
    )

    kind = "limit"
    says = {"2/λ_max of the tangent kernel": ("step_over_edge", "deep_step_over_edge")}
    tiny = {
        "widths": (64, 96, 128),
        "depths": (1, 2, 3),
        "width": 64,
        "examples": 4,
        "steps": 5,
        "halvings": 5,
        "siblings": 2,
        "seeds": 8,
    }
    full = {
        "widths": (64, 256, 1024),
        "depth": 2,
        "activations": ("relu", "linear", "tanh"),
        "width": 256,
        "depths": (1, 2, 4, 8),
    }
    out_of_scope = {"residual": 3.0}
    precision = "float32"

    @property
    def wide(self) -> Rows:
        """Return networks of several widths, a row for each law."""
        return wide_rows(self.widths, self.depth)

    @property
    def deep(self) -> Rows:
        """Return networks of several depths, a row for each activation."""
        return deep_rows(self.width, self.depths, self.activations)

    @property
    def rows(self) -> Rows:
        return self.wide + self.deep

    def axes(self):
        return {
            "law": tuple(LAWS),
            "width": self.widths,
            "activation": self.activations,
            "layers": tuple(depth + 1 for depth in self.depths),
        }

    def hypotheses(self, setting):
        deep = max(self.depth / min(self.widths), max(self.depths) / self.width)
        yield from self.near_the_fit(setting, min(*self.widths, self.width), deep)

    def predict(self, setting):
        edge = {case: 2 / top[:, 0] for case, top in setting.top.items()}
        return kit.law(
            edge=("seed law width", on_axes(edge, self.wide)),
            deep_edge=("seed activation layers", on_axes(edge, self.deep)),
        )

    def observe(self, setting, key):
        steps = self.largest_steps(setting)
        return kit.seen(
            step=("seed law width", on_axes(steps, self.wide)),
            deep_step=("seed activation layers", on_axes(steps, self.deep)),
        )

    def derive(self, law, seen):
        return {
            "step_in_units": seen.step / law.edge,
            "deep_step_in_units": seen.deep_step / law.deep_edge,
        }

    def judge(self, law, seen):
        for id, edge, over in (
            ("step", law.edge, "law width"),
            ("deep_step", law.deep_edge, "activation layers"),
        ):
            in_units = seen[f"{id}_in_units"]
            where = over.replace(" ", " and ")
            yield kit.follows(
                f"{id}_over_edge",
                xarray.ones_like(edge),
                in_units,
                TOO_LONG,
                over=over,
                label=f"step · λ_max/2 over {where}",
            )
            yield kit.follows(
                f"every_{id}",
                1.0,
                in_units,
                TOO_LONG,
                over=over,
                each=True,
                label=f"step · λ_max/2 of each network over {where}",
            )

    def rivals(self, setting, law):
        yield kit.rival(
            "1/λ_max",
            "the step that converges fastest along the top eigenvector",
            id="half_the_edge",
            edge=law.edge / 2,
            deep_edge=law.deep_edge / 2,
        )

    def controls(self, seen):
        others = {"standard": "biases", "ntk": "standard", "biases": "standard"}
        steps = seen.step.sel(law=list(others.values()))
        yield kit.control(
            "biases' steps in place of weights' steps, and standard weights' steps for the others",
            "what is trained, or how it is scaled, is another",
            id="other_parameters",
            step=steps.assign_coords(law=list(LAWS)),
        )
        yield kit.control(
            "steps of the deepest networks in the place of the shallowest, and so on",
            "the networks are as deep as the others should be",
            id="other_depths",
            deep_step=seen.deep_step.isel(layers=slice(None, None, -1)),
        )

    def figure(self, law, seen, rivals):
        for title, steps, over, by, x in (
            ("The largest stable step of each network", seen.step_in_units, "width", "law", "n"),
            ("and in depth", seen.deep_step_in_units, "layers", "activation", "L + 1"),
        ):
            at = steps[over].values
            shade = 1 / max(1, steps.sizes[by] - 1)
            yield kit.panel(
                title,
                x,
                "step · λ_max/2",
                *(
                    kit.observed_curve(
                        at,
                        steps.sel({by: name}).transpose("seed", over).values,
                        str(name),
                        kind="points",
                        shade=i * shade,
                    )
                    for i, name in enumerate(steps[by].values)
                ),
                kit.predicted_curve(at, np.ones(len(at)), "2/λ_max"),
                kit.rival_curve(at, np.full(len(at), 0.5), "1/λ_max"),
                log="x",
            )
