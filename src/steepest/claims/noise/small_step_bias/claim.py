"""To first order, steps ε of Langevin dynamics shift its log density by ε(β|∇f|²/4 − Δf/2).

The walk X' = X − ε∇f + √(2ε/β) ξ is to sample the Gibbs distribution exp(−βf). The shift is up to the constant that
keeps the law normalized. The mean of an observable is shifted by ε times its covariance with β|∇f|²/4 − Δf/2.
"""

import numpy as np

from steepest import kit
from steepest.claims.noise._double_well_walk import (
    MOMENTS,
    ORDERS,
    PLACES,
    ExactLaws,
    limit,
    line_expansion,
    line_law,
    relative,
    small_enough,
    trusted,
)
from steepest.claims.noise._extrapolate import check_sizes
from steepest.claims.noise.small_step_bias.experiment import (
    line_shift,
    plane_expansion,
    plane_moments,
)
from steepest.statistics import extrapolate

OBSERVABLES = ("x²", "y²", "x²y²")
# relative margins of limits as ε → 0: the extrapolations err by a third at most
SHIFT = 5e-5
LINE = 1e-4
PLANE = 0.01


@kit.claim
class SmallStepBias(ExactLaws):
    """Exact laws of walks in a double well on the line, and in a potential in the plane."""

    plane_steps: tuple[kit.Positive, ...] = kit.param(
        (0.06, 0.04, 0.025, 0.015), "ε of the exact laws in the plane", unit="time"
    )

    kind = "limit"
    says = {
        "shift its log density by ε(β|∇f|²/4 − Δf/2)": "log_density",
        "shifted by ε times its covariance with β|∇f|²/4 − Δf/2": ("bias_line", "bias_plane"),
    }
    tiny = {
        "betas": (2.0, 4.0),
        "steps": (0.05, 0.025, 0.0125),
        "plane_steps": (0.16, 0.12, 0.08),
    }
    full = {
        "betas": (2.0, 4.0, 8.0, 12.0),
        "plane_steps": (0.08, 0.04, 0.02, 0.01),
    }
    out_of_scope = {"steps": (0.3, 0.05, 0.025)}

    def axes(self):
        return {
            "beta": self.betas,
            "moment": MOMENTS,
            "place": tuple(PLACES),
            "step": self.steps,
            "plane_step": self.plane_steps,
            "observable": OBSERVABLES,
        }

    def check_fields(self) -> None:
        check_sizes("steps", self.steps, 3)
        check_sizes("plane-steps", self.plane_steps, 3)

    def hypotheses(self, setting):
        yield small_enough(*self.steps)

    def predict(self, setting):
        theory = [line_expansion(beta) for beta in self.betas]
        shifts = [line_shift(beta) for beta in self.betas]
        plane = plane_expansion()
        return kit.law(
            gibbs=("beta moment", [expansion.gibbs for expansion in theory]),
            bias=("beta moment", [expansion.bias for expansion in theory]),
            logs=("beta place", [shift.gibbs for shift in shifts]),
            log_shift=("beta place", [shift.bias for shift in shifts]),
            order=("step", self.steps),
            plane_gibbs=("observable", plane.gibbs),
            plane_bias=("observable", plane.bias),
        )

    def observe(self, setting, key):
        laws = [[line_law(step, beta) for step in self.steps] for beta in self.betas]
        return kit.seen(
            moments=("beta step moment", [[law.moments for law in row] for row in laws]),
            logs=("beta step place", [[law.logs for law in row] for row in laws]),
            ends=("beta step", [[law.end for law in row] for row in laws]),
            plane=("plane_step observable", [plane_moments(step) for step in self.plane_steps]),
        )

    def run_conditions(self, observed):
        plane = extrapolate(observed["plane"], self.plane_steps, ORDERS)
        yield from trusted(observed["ends"], observed["moments"], self.steps)
        yield from kit.converged("moments in the plane", relative(plane), PLANE)

    def derive(self, law, seen):
        """Return limits as ε → 0."""
        biases = (seen.moments - law.gibbs).transpose(*seen.moments.dims) / seen.step
        shifts = (seen.logs - law.logs).transpose(*seen.logs.dims) / seen.step
        plane = extrapolate(
            ((seen.plane - law.plane_gibbs) / seen.plane_step).values, self.plane_steps, ORDERS
        )
        return {
            "biases": biases,
            "bias": law.bias.copy(data=limit(biases, self.steps).value),
            "log_shift": law.log_shift.copy(data=limit(shifts, self.steps).value),
            "plane_bias": law.plane_bias.copy(data=plane.value),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "log_density",
            law.log_shift,
            seen.log_shift,
            SHIFT * float(abs(law.log_shift).max()),
            absolute=True,
            label=f"log(π_ε/π)/ε as ε → 0 on |x| ≤ {PLACES[-1]:g}",
        )
        yield kit.follows(
            "bias_line", law.bias, seen.bias, LINE, label="bias of E x² and E x⁴ over ε as ε → 0"
        )
        yield kit.follows(
            "bias_plane",
            law.plane_bias,
            seen.plane_bias,
            PLANE,
            label="the same of x², y² and x²y² in the plane",
        )
        yield kit.power(
            "order",
            law.order,
            abs(seen.biases.isel(beta=0, moment=0) * seen.step),
            0.1,
            over="step",
            label=f"bias of E x² against ε, β = {self.betas[0]:g}",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "the walk samples exp(−βf) at any step size",
            "it is the law that the steps were made for",
            id="unbiased",
            bias=1e-12,
            log_shift=0.0,
            plane_bias=1e-12,
        )
        yield kit.rival(
            "twice the bias",
            "on a parabola it is the bias of 1/(1 − ελ), and 1 − ελ is the factor of a step",
            bias=2 * law.bias,
            log_shift=2 * law.log_shift,
            plane_bias=2 * law.plane_bias,
        )
        yield kit.rival(
            "log density off by εβ|∇f|²/4, without Δf",
            "it is the same on parabolas, where Δf is constant",
            id="gradients_alone",
            bias=("beta moment", [line_expansion(beta).slopes_only for beta in self.betas]),
            log_shift=("beta place", [line_shift(beta).slopes_only for beta in self.betas]),
            plane_bias=("observable", plane_expansion().slopes_only),
        )
        yield kit.rival(
            "the bias is of order ε²",
            "so it is for schemes that average two successive noises",
            order=law.order**2,
        )

    def controls(self, seen):
        turned = lambda array: array.roll(beta=1, roll_coords=False)
        exchanged = [OBSERVABLES.index(name) for name in ("y²", "x²", "x²y²")]
        yield kit.control(
            "walks at another β",
            "β sets the law and its shift",
            moments=turned(seen.moments),
            logs=turned(seen.logs),
        )
        yield kit.control(
            "the potential in the plane with x and y exchanged",
            "x and y are not alike",
            id="turned_plane",
            plane=(seen.plane.dims, seen.plane.values[:, exchanged]),
        )

    def figure(self, law, seen, rivals):
        middle = {"beta": len(self.betas) // 2, "moment": 0}
        steps = np.append(self.steps, 0)
        gibbs_mean = float(law.gibbs.isel(middle))
        bias = float(law.bias.isel(middle))
        yield kit.panel(
            f"Double well, β = {self.betas[middle['beta']]:g}: bias of order ε",
            "ε",
            "E x²",
            kit.observed_curve(
                self.steps, seen.moments.isel(middle), "exact law of the walk", kind="points"
            ),
            kit.predicted_curve(steps, gibbs_mean + steps * bias, "Gibbs + ε Cov"),
            kit.rival_curve(steps, gibbs_mean + 0 * steps, "Gibbs"),
        )
