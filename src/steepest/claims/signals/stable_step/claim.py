"""Near a fit, the largest stable step size of gradient descent is 2/λ_max of the tangent kernel.

In the standard parameterization this step falls near 1/n with width n where weights are trained. It is independent of n
where biases are trained. In ReLU networks the step falls more slowly than 1/L with the number of layers. Close to a
network that fits its targets, descent with step size η on the mean of ½(f − y)² over P points multiplies residuals by 1
− ηΘ/P, Θ being the tangent kernel. The risk does not rise where η < 2/λ_max(Θ/P). Beyond this step it rises if the
initial residual has a part along the top eigenvector. The limit kernel at the same widths and depths predicts how this
step depends on width n and depth L. For the weights of the standard parameterization the limit kernel is Θ = nA + B,
where B belongs to the first layer, whose number of inputs does not grow. So the step is like 1/n as n → ∞, and like
n^−0.955 from 128 to 1024 neurons with one hidden layer. For biases, and in the NTK parameterization, the step does not
depend on n. With depth the step falls as the kernel of the activation predicts. For ReLU on these inputs it falls like
(L+1)^−0.87 from one to four hidden layers: more slowly than one over the number of layers L + 1, until there are
hundreds of layers.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals.stable_step.experiment import (
    Case,
    Search,
    Setting,
    draw,
    largest_steps,
    mean_steps,
)
from steepest.claims.signals.stable_step.figure import panels_of_steps
from steepest.claims.signals.stable_step.networks import LAWS, shape_of
from steepest.claims.signals.stable_step.theory import limit_of, steps_of_limits

TOO_LONG = (0.97, 1.05)
"""Factors: a step is too long by 2 %, see the remarks, and bisection has 0.7 %."""
AT_WIDTHS = (0.95, 1.05)
"""λ_max of a finite kernel is above that of its mean, by 2 % at 128 neurons."""
AT_DEPTHS = (0.9, 1.08)
"""λ_max at depth L is of order L/n from the limit, 3 % at 4/128; its scatter takes as much twice, and see above."""
NEAR = 0.04
"""Two exponents that are nearer than this, the margin and a third of it, are not told apart at every seed."""


@kit.claim
class StableStep(kit.Claim[Setting]):
    """Networks of many widths and depths that nearly fit their targets, on digits pooled to 4×4 pixels."""

    widths: tuple[kit.Count, ...] = kit.param(
        (128, 512, 1024),
        "widths n of the width laws",
        unit="neurons",
        scope=kit.choices((128, 512, 1024), (128, 256, 512, 1024), (192, 384, 768)),
    )
    depth: kit.Count = kit.param(
        1, "hidden layers of the width laws", unit="layers", scope=kit.choices(1, 2)
    )
    activations: tuple[str, ...] = kit.param(
        ("relu",),
        "activations of the depth laws: relu, linear, tanh",
        unit="name",
        scope=kit.choices(("relu",), ("relu", "linear"), ("relu", "tanh")),
    )
    depths: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4),
        "hidden layers of the depth laws",
        unit="layers",
        scope=kit.choices((1, 2, 4), (1, 2, 3), (1, 3, 5), why="the limit is for L ≪ n"),
    )
    width: kit.Count = kit.param(
        128,
        "width n of the depth laws",
        unit="neurons",
        scope=kit.between(128, 256, "narrower networks are too far from the limit"),
    )
    examples: kit.Count = kit.param(
        8, "digits 0 and 1, P of them", unit="examples", scope=kit.between(6, 12)
    )
    residual: kit.Positive = kit.param(
        0.01,
        "size of the residual at the start, ε",
        scope=kit.between(0.003, 0.01, "single precision below, a nonlinear network above"),
    )
    steps: kit.Count = kit.param(
        30, "steps in which the risk must not rise", unit="steps", scope=kit.between(25, 60)
    )
    smallest: kit.Positive = kit.param(1e-4, "lower end of the bisection")
    largest: kit.Positive = kit.param(100.0, "upper end of the bisection")
    halvings: kit.Count = kit.param(11, "halvings of the bisection, on a logarithmic scale")
    siblings: kit.Count = kit.param(
        32,
        "networks at the start whose λ_max is measured for each trained network, itself among them",
    )
    seeds: Annotated[int, kit.Within(8, 10_000)] = kit.param(32, "independent trained networks")

    kind = "limit"
    says = {
        "2/λ_max of the tangent kernel": ("step_over_edge", "deep_step_over_edge"),
        "near 1/n with width n where weights are trained": (
            "width_exponent_standard",
            kit.literal("limit_step_standard", "standard", power={"width": -1}),
        ),
        "independent of n where biases are": ("width_exponent_biases", "limit_step_biases"),
        "more slowly than 1/L": ("depth_exponent_relu", "limit_depth"),
    }
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
    def layers(self) -> tuple[int, ...]:
        """Return L + 1 of the depth laws."""
        return tuple(depth + 1 for depth in self.depths)

    @property
    def wide(self) -> list[list[Case]]:
        """Return the networks of the width laws, a row for each law."""
        shapes = [shape_of(n, self.depth, "relu") for n in self.widths]
        return [[(shape, law) for shape in shapes] for law in LAWS.values()]

    @property
    def deep(self) -> list[list[Case]]:
        """Return the networks of the depth laws, a row for each activation."""
        return [
            [(shape_of(self.width, depth, sigma), LAWS["ntk"]) for depth in self.depths]
            for sigma in self.activations
        ]

    @property
    def cases(self) -> list[Case]:
        """Return all networks once: what two laws ask for is trained once."""
        return list(dict.fromkeys(case for row in self.wide + self.deep for case in row))

    def axes(self):
        return {
            "law": tuple(LAWS),
            "width": self.widths,
            "activation": self.activations,
            "layers": self.layers,
        }

    def setting(self, key):
        return draw(key, self.cases, examples=self.examples, seeds=self.seeds, count=self.siblings)

    def hypotheses(self, setting):
        narrow = min(*self.widths, self.width)
        deep = max(self.depth / min(self.widths), max(self.depths) / self.width)
        yield kit.assume(
            "residual ε/√n",
            self.residual / narrow**0.5,
            "<=",
            0.01,
            "the network must be linear there",
        )
        yield kit.assume(
            "share of the risk along the top eigenvector",
            setting.share,
            ">=",
            0.05,
            "take more steps",
        )
        yield kit.assume("largest depth/width", deep, "<=", 0.1, "the kernel is for n ≫ depth")

    def predict(self, setting):
        edge = {case: 2 / top[:, 0] for case, top in setting.top.items()}
        limits = [limit_of(*case) for case in self.cases]
        steps = steps_of_limits(np.asarray(setting.x, float), limits)
        limit = dict(zip(self.cases, steps, strict=True))
        by_width = dict(zip(LAWS, _on_axes(limit, self.wide), strict=True))
        return kit.law(
            edge=("seed law width", _on_axes(edge, self.wide)),
            deep_edge=("seed activation layers", _on_axes(edge, self.deep)),
            **{name: ("width", of_law) for name, of_law in by_width.items()},
            deep=("activation layers", _on_axes(limit, self.deep)),
        )

    def observe(self, setting, key):
        search = Search(self.residual, self.steps, self.smallest, self.largest, self.halvings)
        steps = largest_steps(setting, self.cases, search)
        means = mean_steps(setting, steps)
        return kit.seen(
            step=("seed law width", _on_axes(steps, self.wide)),
            mean_step=("seed law width", _on_axes(means, self.wide)),
            deep_step=("seed activation layers", _on_axes(steps, self.deep)),
            mean_deep_step=("seed activation layers", _on_axes(means, self.deep)),
        )

    def judge(self, law, seen):
        checks = [
            *over_edge("step", law.edge, seen.step, "law width"),
            *over_edge("deep_step", law.deep_edge, seen.deep_step, "activation layers"),
        ]
        for name in LAWS:
            checks += self.judge_width(name, law[name], seen.mean_step.sel(law=name))
        yield from checks
        yield from self.judge_depth(law.deep, seen.mean_deep_step)

    def judge_width(
        self, name: str, law: xarray.DataArray, steps: xarray.DataArray
    ) -> list[kit.Check]:
        """Compare a law of the width with the limit kernel's, by its exponent and at every width."""
        return [
            kit.power(
                f"width_exponent_{name}",
                law,
                steps,
                0.03,  # kernels at 128 neurons are 1 or 2 % from the limit: 0.01 over log 8, and the interval
                over="width",
                label=f"{name}: step against width n",
            ),
            kit.follows(
                f"limit_step_{name}",
                law,
                steps,
                AT_WIDTHS,
                over="width",
                label=f"{name}: step at every width, and the limit kernel's",
            ),
        ]

    def judge_depth(self, law, steps):
        """Compare the law of the depth with the limit kernel's, by its exponents and at every depth."""
        exponents = [
            kit.power(
                f"depth_exponent_{sigma}",
                law.sel(activation=sigma),
                steps.sel(activation=sigma),
                # λ_max at depth L is of order L/n from the limit: 0.03 at 4/128, over log(5/2), and the interval
                0.08,
                over="layers",
                label=f"{sigma}: step against depth L + 1",
            )
            for sigma in self.activations
        ]
        at_depths = kit.follows(
            "limit_depth",
            law,
            steps,
            AT_DEPTHS,
            over="activation layers",
            label="step at every depth, and the limit kernel's",
        )
        yield from exponents
        yield at_depths

    def rivals(self, setting, law):
        growth = law.width / law.width[-1]
        in_depth = law.layers[0] / law.layers
        slope = np.polyfit(np.log(law.width), np.log(law.standard), 1)[0]
        near = abs(slope + 1) < NEAR
        predicted = ("edge", "deep_edge", "deep", *LAWS)
        halved: dict[str, Any] = {name: law[name] / 2 for name in predicted}
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
            "1/depth for every activation",
            "printed in the notes; it is so for linear networks",
            deep=(law.deep.isel(layers=0) * in_depth).transpose(*law.deep.dims),
        )
        yield kit.rival(
            "1/λ_max",
            "the step that converges fastest along the top eigenvector",
            id="half_the_edge",
            **halved,
        )

    def controls(self, seen):
        others = {"standard": "biases", "ntk": "standard", "biases": "standard"}
        in_place_of = list(others.values())
        yield kit.control(
            "biases' steps in place of weights' steps, and standard weights' steps for the others",
            "what is trained, or how it is scaled, is another",
            id="other_parameters",
            step=_relabelled(seen.step.sel(law=in_place_of)),
            mean_step=_relabelled(seen.mean_step.sel(law=in_place_of)),
        )
        yield kit.control(
            "steps of the deepest networks in the place of the shallowest, and so on",
            "the networks are as deep as the others should be",
            id="other_depths",
            deep_step=seen.deep_step.isel(layers=slice(None, None, -1)),
            mean_deep_step=seen.mean_deep_step.isel(layers=slice(None, None, -1)),
        )

    def figure(self, law, seen, rivals):
        return panels_of_steps(law, seen, rivals)


def over_edge(
    id: str, edge: xarray.DataArray, steps: xarray.DataArray, over: str
) -> list[kit.Check]:
    """Compare the largest stable step with 2/λ_max of the network's own kernel, in units of it: mean, and each."""
    in_units = steps / edge
    where = over.replace(" ", " and ")
    return [
        kit.follows(
            f"{id}_over_edge",
            xarray.ones_like(edge),
            in_units,
            TOO_LONG,
            over=over,
            label=f"step · λ_max/2 over {where}",
        ),
        kit.follows(
            f"every_{id}",
            1.0,
            in_units,
            TOO_LONG,
            over=over,
            each=True,
            label=f"step · λ_max/2 of each network over {where}",
        ),
    ]


def _on_axes(values: Mapping[Case, np.ndarray], rows: Sequence[Sequence[Case]]) -> np.ndarray:
    """Return what every network has as rows × columns, after the seeds where there are some."""
    grid = np.array([[values[case] for case in row] for row in rows])
    return np.moveaxis(grid, -1, 0) if grid.ndim == 3 else grid


def _relabelled(steps: xarray.DataArray) -> xarray.DataArray:
    return steps.assign_coords(law=list(LAWS))
