"""A tanh network on digits that starts up to twice as sharp as 2/η does not diverge: its sharpness falls to 2/η.

On a quadratic, descent diverges from every start whose sharpness is above 2/η. On a two-layer linear network the loss
grows by a factor of the width, and descent lands where the sharpness is far below 2/η (the catapult). A tanh network of
two hidden layers on digits does neither. The directions that are too steep hold little of the risk: they oscillate, the
sharpness falls within some hundred steps, and it ends where that of every other descent with this step size ends.
"""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Within,
    bound,
    compiled,
    context_curve,
    equal,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.descent._digits_network import MARGIN, Setting
from steepest.claims.descent.beyond_the_edge.experiment import (
    LATE,
    BeyondPoint,
    late_mean,
    resolved,
    within_reach,
)
from steepest.kernels import catapult_map

Multiples = Annotated[tuple[float, ...], Within(0, open=True)]
THROWN = 1.2  # largest risk, in units of that at the start, which is not yet called thrown
SLOWER = 4  # the control's step size is η over this, so that its start is below its own edge


@dataclass(frozen=True)
class BeyondTheEdge(Claim):
    """Tanh networks on centred digits, squared loss, each with step sizes that its own start is too sharp for."""

    # s, the sharpness at the start in units of 2/η, at which the law is judged [1]
    multiple: Multiples = (1.2, 1.5, 2.0)
    # s at which only divergence is recorded; all networks diverge at the last [1]
    beyond: Multiples = (2.5, 3.0, 4.0, 6.0)
    width: Count = 64  # neurons in each hidden layer [neurons]
    depth: Count = 2  # hidden layers [layers]
    c_w: Positive = 1.0  # initial weight variance times fan-in [1]
    steps: Count = 400  # steps of descent [steps]
    n: Count = 100  # images [1]
    seeds: Seeds = 3  # initial networks [1]
    products: Count = 12  # Hessian products for each sharpness [1]

    kind = "empirical law"
    statement = (
        r"\lambda_{\max}\big(\nabla^2R(\theta_0)\big)=s\,\frac2\eta,\quad 1<s\le2:\qquad"
        r"\lambda_{\max}\big(\nabla^2R(\theta_t)\big)\to\frac2\eta,\qquad \max_tR(\theta_t)\approx R(\theta_0)"
    )
    headline = ("survives", "late_0", "late_1", "late_2")
    source = (
        "Phase diagram of edge-of-stability (docs/findings.md); against lecture 7 of [@hanin2022], on linear "
        "regression"
    )
    remarks = (
        "This is a finding about this kind of network, not a theorem. The limit of two is no law: it is a round number "
        "below s = 2.5 to 4, where the first networks of two hidden layers diverge. With four hidden layers, 32 wide "
        "and C_W = ½, the first diverge at s = 1.6.",
        "The loss is ½‖f − y‖², summed over ten outputs and averaged over images. Each run draws its images anew; the "
        "networks of one run share them.",
        "The step size is that of each network, 2s over the sharpness of its own start, which varies by a quarter.",
        "The first direction holds little of the risk at the start. It oscillates and the risk does not rise: its "
        "maximum over all steps is its start. The catapult of a linear network throws the risk up by orders.",
        "The control is the same start with steps of a quarter of the size: its sharpness stays above 2/η and rises "
        "later. So the sharpness falls because of the step size and not by itself.",
        "Late means the mean of five readings over the last fifth of the steps. It lies a few percent above 2/η.",
        "Not tried: ReLU, cross-entropy, other data than digits.",
    )
    precision = "float32"
    point = BeyondPoint
    tiny = {
        "multiple": (1.2, 1.5, 2.0),
        "beyond": (6.0,),
        "steps": 40,
        "width": 8,
        "n": 20,
        "products": 8,
    }
    full = {"n": 300, "steps": 1500, "seeds": 8, "products": 20}
    out_of_scope = {"multiple": (3.5,)}

    def setting(self, key: Key) -> Setting:
        points, images = keys(key, 2)
        return BeyondPoint.of(self).start(points, images)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return within_reach(min(self.multiple), max(self.multiple), self.depth)

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(late=("multiple", np.ones(len(self.multiple))), survives=1.0, peak=1.0)

    def observe(self, setting: Setting, key: Key) -> Observation:
        point = BeyondPoint.of(self)
        scan = np.array((*self.multiple, *self.beyond), np.float32)
        middle = np.float32(sorted(self.multiple)[len(self.multiple) // 2])

        lanes = (np.append(scan, middle), np.append(np.ones_like(scan), np.float32(SLOWER)))

        @compiled
        def every(seeds: Key) -> dict[str, jax.Array]:
            def follow(seed: Key) -> dict[str, jax.Array]:
                return jax.lax.map(lambda lane: point.descent(setting, seed, *lane), lanes)

            return jax.lax.map(follow, seeds)

        descents = jax.tree.map(np.asarray, every(setting.keys))
        judged = len(self.multiple)
        return Observation(
            step=("record", point.marks, "steps"),
            scan=("scan", scan),
            sharpness=("seed multiple record", descents["sharpness"][:, :judged]),
            residual=("seed multiple record", descents["residual"][:, :judged]),
            first_residual=("seed", descents["first_residual"][:, 0]),
            risk=("seed multiple step", descents["risk"][:, :judged]),
            diverged=("seed multiple", descents["diverged"][:, :judged].astype(float)),
            beyond_diverged=("seed beyond", descents["diverged"][:, judged:-1].astype(float)),
            beyond_sharpness=("seed beyond record", descents["sharpness"][:, judged:-1]),
            slow_sharpness=("seed record", descents["sharpness"][:, -1]),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return resolved(observed["first_residual"], observed["residual"])

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        late = late_mean(observed["sharpness"])  # (seeds, multiples)
        peak = observed["risk"].max(-1) / observed["risk"][..., 0]
        return [
            equal(
                "survives",
                float(predicted["survives"]),
                1 - observed["diverged"].max(1),
                0.01,  # of every seed at every s
                aggregate="all",
                label=f"network converges at all s up to {max(self.multiple):g}",
            ),
            *(
                equal(
                    f"late_{i}",
                    predicted["late"][i],
                    late[:, i],
                    MARGIN,
                    aggregate="all",
                    label=f"late sharpness / (2/η), s = {multiple:g}",
                )
                for i, multiple in enumerate(self.multiple)
            ),
            equal(
                "peak",
                float(predicted["peak"]),
                peak.max(1),
                (1.0, THROWN),
                aggregate="all",
                label="largest risk / risk at the start",
            ),
            bound(
                "far",
                observed["beyond_diverged"][:, -1],
                at_least=1,
                aggregate="all",
                label=f"network diverges at s = {self.beyond[-1]:g}",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        multiples = np.array(self.multiple)
        thrown_to, thrown_up = _catapult(multiples, self.width, self.steps)
        start = predicted.replace(late=("multiple", multiples))
        linear = predicted.replace(
            late=("multiple", thrown_to),
            peak=float(np.max(thrown_up)),
            survives=float(np.isfinite(thrown_up).all()),
        )
        return [
            Rival(
                "quadratic",
                predicted.replace(survives=0.0),
                "so does linear regression, for any step size above 2/λ_max",
                label="descent diverges wherever the start is sharper than 2/η",
            ),
            Rival(
                "catapult",
                linear,
                "so does a two-layer linear network on one example, of this width",
                label="the risk is thrown up and the sharpness lands far below 2/η",
            ),
            Rival(
                "remembers",
                start,
                "wide networks are nearly linear in their weights",
                label="the sharpness stays where it started",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        as_often = np.repeat(observed["slow_sharpness"][:, None], len(self.multiple), axis=1)
        return [
            Control(
                "slower",
                observed.replace(sharpness=("seed multiple record", as_often)),
                "its own edge is four times as high",
                label=f"the same start with steps of η/{SLOWER}",
            ),
            Control(
                "within",
                observed.replace(beyond_diverged=("seed beyond", observed["diverged"])),
                "these converge",
                label="the judged s in the place of the largest",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        step = np.maximum(observed["step"], 0.5)
        ends = (step[0], step[-1])
        last = len(self.multiple) - 1
        curves = [
            observed_curve(
                step,
                observed["sharpness"][0, i],
                f"s = {multiple:g}",
                shade=i / max(1, last),
            )
            for i, multiple in enumerate(self.multiple)
        ]
        curves += [
            context_curve(step, observed["slow_sharpness"][0], f"steps of η/{SLOWER}"),
            predicted_curve(ends, (1, 1), "2/η"),
        ]
        late = late_mean(observed["sharpness"])
        beyond = late_mean(observed["beyond_sharpness"])
        thrown_to, _ = _catapult(np.array(self.multiple), self.width, self.steps)
        share = np.append(observed["diverged"].mean(0), observed["beyond_diverged"].mean(0))
        risks = [
            observed_curve(
                np.arange(self.steps + 1), observed["risk"][0, i], shade=i / max(1, last)
            )
            for i in range(last + 1)
        ]
        return (
            panel(
                "The sharpness falls to 2/η",
                "step (the start at ½)",
                "sharpness / (2/η)",
                *curves,
                log="x",
            ),
            panel(
                "It forgets where it started",
                "s, sharpness at the start / (2/η)",
                "late sharpness / (2/η)",
                observed_curve(self.multiple, late, kind="points"),
                observed_curve(self.beyond, beyond, "not judged", kind="points", shade=0.8),
                predicted_curve((1, max(self.beyond)), (1, 1), "2/η"),
                rival_curve(self.multiple, self.multiple, "as at the start"),
                rival_curve(self.multiple, thrown_to, "catapult", shade=0.6),
                ylim=(0, 2.2),
            ),
            panel(
                "The risk is not thrown up",
                "step",
                "risk",
                *risks,
                log="y",
            ),
            panel(
                "Where networks diverge",
                "s, sharpness at the start / (2/η)",
                "share of networks that diverge",
                observed_curve(observed["scan"], share, kind="points"),
                rival_curve((1, 1, max(self.beyond)), (0, 1, 1), "quadratic"),
                rival_curve((1, 2, 2, max(self.beyond)), (0, 0, 1, 1), "catapult", shade=0.6),
                ylim=(-0.05, 1.05),
            ),
        )


def _catapult(multiples: np.ndarray, width: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where a linear network's γλ/2 ends and by how much its loss grows, from z = λ = 1 and y = 0.

    Where the map diverges the first is zero and the second infinite.
    """

    @compiled
    def outcome(rates: jax.Array) -> tuple[jax.Array, jax.Array]:
        unit = jnp.ones(())
        one = lambda rate: catapult_map(unit, unit, 0.0, rate, 1 / width, steps)
        return jax.vmap(one)(rates)

    z, ntk = map(np.asarray, outcome(2 * multiples))
    lost = ~np.isfinite(z).all(1) | (np.abs(z[:, -1]) > 1)
    ends = np.where(lost, 0.0, multiples * ntk[:, -LATE:].mean(1))
    growth = np.where(lost, np.inf, np.abs(z).max(1))
    return ends, growth**2  # the loss is ½z²
