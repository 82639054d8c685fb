"""In ReLU networks the largest stable step of descent falls more slowly than 1/L with L layers.

These are networks in the NTK parameterization, near a fit of their targets. The limit kernel of the activation at the
same depths predicts the step. For ReLU on these inputs it falls like (L+1)^−0.87 from one to four hidden layers: more
slowly than one over the number of layers L + 1, until there are hundreds of layers.
"""

import numpy as np

from steepest import kit
from steepest.claims.signals._near_fit import NearFitInDepth, Rows, deep_rows, on_axes
from steepest.claims.signals._near_fit_steps import mean_steps

AT_DEPTHS = (0.9, 1.08)
"""λ_max at depth L is of order L/n from the limit, 3 % at 4/128; its scatter takes as much twice, and steps are too
long by 2 %."""


@kit.claim
class StepAndDepth(NearFitInDepth):
    """Networks of many depths that nearly fit their targets, on digits pooled to 4×4 pixels."""

    kind = "limit"
    says = {"more slowly than 1/L": ("depth_exponent_relu", "limit_depth")}
    tiny = {
        "depths": (1, 2, 3),
        "width": 64,
        "examples": 4,
        "steps": 5,
        "halvings": 5,
        "siblings": 2,
        "seeds": 8,
    }
    full = {"activations": ("relu", "linear", "tanh"), "width": 256, "depths": (1, 2, 4, 8)}
    out_of_scope = {"residual": 3.0}
    precision = "float32"

    @property
    def rows(self) -> Rows:
        return deep_rows(self.width, self.depths, self.activations)

    def axes(self):
        layers = tuple(depth + 1 for depth in self.depths)
        return {"activation": self.activations, "layers": layers}

    def hypotheses(self, setting):
        yield from self.near_the_fit(setting, self.width, max(self.depths) / self.width)

    def predict(self, setting):
        return kit.law(deep=("activation layers", on_axes(self.limits(setting), self.rows)))

    def observe(self, setting, key):
        steps = self.largest_steps(setting)
        means = mean_steps(setting, steps)
        return kit.seen(
            deep_step=("seed activation layers", on_axes(steps, self.rows)),
            mean_deep_step=("seed activation layers", on_axes(means, self.rows)),
        )

    def judge(self, law, seen):
        steps = seen.mean_deep_step
        for sigma in self.activations:
            yield kit.power(
                f"depth_exponent_{sigma}",
                law.deep.sel(activation=sigma),
                steps.sel(activation=sigma),
                # λ_max at depth L is of order L/n from the limit: 0.03 at 4/128, over log(5/2), and the interval
                0.08,
                over="layers",
                label=f"{sigma}: step against depth L + 1",
            )
        yield kit.follows(
            "limit_depth",
            law.deep,
            steps,
            AT_DEPTHS,
            over="activation layers",
            label="step at every depth, and the limit kernel's",
        )

    def rivals(self, setting, law):
        in_depth = law.layers[0] / law.layers
        yield kit.rival(
            "1/depth for every activation",
            "printed in the notes; it is so for linear networks",
            deep=(law.deep.isel(layers=0) * in_depth).transpose(*law.deep.dims),
        )
        yield kit.rival(
            "1/λ_max",
            "the step that converges fastest along the top eigenvector",
            id="half_the_edge",
            deep=law.deep / 2,
        )

    def controls(self, seen):
        yield kit.control(
            "steps of the deepest networks in the place of the shallowest, and so on",
            "the networks are as deep as the others should be",
            id="other_depths",
            mean_deep_step=seen.mean_deep_step.isel(layers=slice(None, None, -1)),
        )

    def figure(self, law, seen, rivals):
        layers = seen.layers.values
        curves = []
        for i, sigma in enumerate(self.activations):
            steps = seen.deep_step.sel(activation=sigma).values
            shade = i / max(1, len(self.activations) - 1)
            limit = np.asarray(law.deep.sel(activation=sigma))
            curves += [
                kit.observed_curve(layers, steps, sigma, kind="points", shade=shade),
                kit.predicted_curve(layers, limit, "" if i else "2/λ_max of the limit"),
            ]
        title = "The largest stable step against depth"
        yield kit.panel(title, "L + 1", "step size", *curves, log="xy")
