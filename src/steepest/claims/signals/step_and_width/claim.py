"""The largest stable step of descent falls near 1/n with width n for weights, and not for biases.

These are networks in the standard parameterization, near a fit of their targets. The limit kernel at the same widths
predicts how the step depends on n. For weights it is Θ = nA + B, where B belongs to the first layer, whose number of
inputs does not grow. So the step is like 1/n as n → ∞, and like n^−0.955 from 128 to 1024 neurons with one hidden
layer. For biases, and in the NTK parameterization, the step does not depend on n.
"""

import numpy as np

from steepest import kit
from steepest.claims.signals._near_fit import NearFit, Rows, on_axes, wide_rows
from steepest.claims.signals._near_fit_networks import LAWS
from steepest.claims.signals._near_fit_steps import mean_steps

AT_WIDTHS = (0.95, 1.05)
"""λ_max of a finite kernel is above λ_max of its mean, by 2 % at 128 neurons."""
NEAR = 0.04
"""Two exponents that are nearer than this, the margin and a third of it, are not told apart at every seed."""


@kit.claim
class StepAndWidth(NearFit):
    """Networks of many widths that nearly fit their targets, on digits pooled to 4×4 pixels."""

    widths: tuple[kit.Count, ...] = kit.param(
        (128, 512, 1024),
        "widths n",
        unit="neurons",
        scope=kit.choices((128, 512, 1024), (128, 256, 512, 1024), (192, 384, 768)),
    )
    depth: kit.Count = kit.param(1, "hidden layers", unit="layers", scope=kit.choices(1, 2))

    kind = "limit"
    says = {
        "near 1/n with width n for weights": (
            "width_exponent_standard",
            kit.literal("limit_step_standard", "standard", power={"width": -1}),
        ),
        "not for biases": ("width_exponent_biases", "limit_step_biases"),
    }
    tiny = {
        "widths": (64, 96, 128),
        "examples": 4,
        "steps": 5,
        "halvings": 5,
        "siblings": 2,
        "seeds": 8,
    }
    full = {"widths": (64, 256, 1024), "depth": 2}
    out_of_scope = {"residual": 3.0}
    precision = "float32"

    @property
    def rows(self) -> Rows:
        return wide_rows(self.widths, self.depth)

    def axes(self):
        return {"law": tuple(LAWS), "width": self.widths}

    def hypotheses(self, setting):
        narrowest = min(self.widths)
        yield from self.near_the_fit(setting, narrowest, self.depth / narrowest)

    def predict(self, setting):
        of_laws = on_axes(self.limits(setting), self.rows)
        return kit.law(**{name: ("width", of_laws[i]) for i, name in enumerate(LAWS)})

    def observe(self, setting, key):
        steps = self.largest_steps(setting)
        return kit.seen(
            step=("seed law width", on_axes(steps, self.rows)),
            mean_step=("seed law width", on_axes(mean_steps(setting, steps), self.rows)),
        )

    def judge(self, law, seen):
        for name in LAWS:
            steps = seen.mean_step.sel(law=name)
            yield kit.power(
                f"width_exponent_{name}",
                law[name],
                steps,
                0.03,  # kernels at 128 neurons are 1 or 2 % from the limit: 0.01 over log 8, and the interval
                over="width",
                label=f"{name}: step against width n",
            )
            yield kit.follows(
                f"limit_step_{name}",
                law[name],
                steps,
                AT_WIDTHS,
                over="width",
                label=f"{name}: step at every width, and the limit kernel's",
            )

    def rivals(self, setting, law):
        growth = law.width / law.width[-1]
        slope = np.polyfit(np.log(law.width), np.log(law.standard), 1)[0]
        near = abs(slope + 1) < NEAR
        yield kit.rival(
            "1/√n for weights",
            "printed in the notes, whose Jacobian has η_j in place of √η_j",
            id="inverse_root",
            standard=law.standard[-1] / growth**0.5,
        )
        yield kit.rival(
            "1/n for weights at these widths already",
            "it is so as n → ∞",
            accepted="at these widths the law's own exponent is near −1" if near else "",
            standard=law.standard[-1] / growth,
        )
        yield kit.rival(
            "1/λ_max",
            "the step that converges fastest along the top eigenvector",
            id="half_the_edge",
            **{name: law[name] / 2 for name in LAWS},
        )

    def controls(self, seen):
        others = {"standard": "biases", "ntk": "standard", "biases": "standard"}
        steps = seen.mean_step.sel(law=list(others.values()))
        yield kit.control(
            "biases' steps in place of weights' steps, and standard weights' steps for the others",
            "what is trained, or how it is scaled, is another",
            id="other_parameters",
            mean_step=steps.assign_coords(law=list(LAWS)),
        )

    def figure(self, law, seen, rivals):
        width = seen.width.values
        curves = []
        for i, name in enumerate(LAWS):
            steps = seen.step.sel(law=name).values
            label = "" if i else "2/λ_max of the limit"
            curves += [
                kit.observed_curve(width, steps, name, kind="points", shade=i / 2),
                kit.predicted_curve(width, law[name].values, label),
            ]
        if "inverse_root" in rivals:
            printed = rivals["inverse_root"].standard.values
            curves.append(kit.rival_curve(width, printed, "1/√n"))
        title = "The largest stable step against width"
        yield kit.panel(title, "width n", "step size", *curves, log="xy")
