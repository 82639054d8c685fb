"""Tanh networks on digits that start up to twice as sharp as 2/η do not diverge but flatten to 2/η.

The sharpness is the largest eigenvalue of the Hessian of the risk, and η the step size of descent. On a quadratic,
descent diverges from every start whose sharpness is above 2/η. On a two-layer linear network the loss grows by a factor
of the order of the width, and descent ends where the sharpness is far below 2/η (the catapult). A tanh network of two
hidden layers on digits does neither. The risk never exceeds its initial value: the steepest directions seem to hold
little of the risk. The sharpness falls, mostly within some ten steps, and ends at the same value as in every other
descent with this step size.
"""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.descent._digits_network import Setting
from steepest.claims.descent.beyond_the_edge.experiment import (
    CEILING,
    LATE,
    BeyondPoint,
    resolved,
    within_reach,
)
from steepest.kernels import catapult_map
from steepest.nn.types import Values

Multiple = Annotated[float, kit.Within(0, open=True)]
THROWN = 1.2  # largest risk, in units of that at the start, which is not yet called thrown
SLOWER = 4  # the control's step size is η over this, so that its start is below its own edge
MARGIN = (0.96, 1.09)  # the late sharpness oscillates a few percent above 2/η, up to 6 in drafts


@kit.claim
class BeyondTheEdge(kit.Claim[Setting]):
    """Tanh networks on centred digits, squared loss, each with step sizes for which its start is too sharp."""

    multiple: tuple[Multiple, ...] = kit.param(
        (1.2, 1.5, 2.0),
        "s, the sharpness at the start in units of 2/η, at which the law is judged",
        scope=kit.choices(
            (1.2, 1.5, 2.0), (1.3, 1.6, 1.9), (1.25, 1.75), why="farther out some networks diverge"
        ),
    )
    beyond: tuple[Multiple, ...] = kit.param(
        (3.0, 6.0), "s at which only divergence is recorded; all networks diverge at the last"
    )
    width: kit.Count = kit.param(
        64,
        "neurons in each hidden layer",
        unit="neurons",
        scope=kit.between(48, 96, "narrower ones differ more"),
    )
    depth: kit.Count = kit.param(
        2,
        "hidden layers",
        unit="layers",
        scope=kit.choices(
            2, why="deeper ones diverge at s = 1.6; with one, short steps lower the sharpness too"
        ),
    )
    c_w: kit.Positive = kit.param(
        1.0,
        "initial weight variance times fan-in",
        scope=kit.between(
            0.9, 1.0, "from larger ones the sharpness falls below 2/η and need not come back"
        ),
    )
    steps: kit.Count = kit.param(400, "steps of descent", unit="steps")
    n: kit.Count = kit.param(
        100,
        "images",
        scope=kit.between(80, 120, "fewer are fitted before the end, like larger weights"),
    )
    seeds: kit.Seeds = kit.param(5, "initial networks")
    products: kit.Count = kit.param(12, "Hessian products for each sharpness")

    kind = "empirical law"
    says = {"do not diverge": "survives", "flatten to 2/η": kit.literal("late", value=1)}
    ragged = ("sharpness", "residual", "risk", "beyond_sharpness")
    tiny = {
        "multiple": (1.2, 1.5, 2.0),
        "beyond": (6.0,),
        "steps": 40,
        "width": 8,
        "n": 20,
        "products": 8,
    }
    full = {
        "n": 300,
        "steps": 1500,
        "seeds": 8,
        "products": 20,
        "beyond": (2.5, 3.0, 3.5, 4.0, 5.0, 6.0),
    }
    out_of_scope = {"multiple": (3.5,)}
    precision = "float32"
    point = BeyondPoint

    def axes(self):
        return {"multiple": self.multiple, "beyond": self.beyond}

    def setting(self, key):
        points, images = kit.keys(key, 2)
        return BeyondPoint.of(self).start(points, images)

    def hypotheses(self, setting):
        return within_reach(min(self.multiple), max(self.multiple), self.depth)

    def predict(self, setting):
        # in units of 2/η, and of the risk at the start
        return kit.law(
            late=("multiple", np.ones(len(self.multiple))),
            survives=("multiple", np.ones(len(self.multiple))),
            peak=("multiple", np.ones(len(self.multiple))),
        )

    def observe(self, setting, key):
        point = BeyondPoint.of(self)
        scan = np.array((*self.multiple, *self.beyond), np.float32)
        farthest = np.float32(max(self.multiple))
        lanes = (np.append(scan, farthest), np.append(np.ones_like(scan), np.float32(SLOWER)))

        @kit.compiled
        def every(seeds: kit.Key) -> dict[str, jax.Array]:
            def follow(seed: kit.Key) -> dict[str, jax.Array]:
                return jax.lax.map(lambda lane: point.descent(setting, seed, *lane), lanes)

            return jax.lax.map(follow, seeds)

        descents = jax.tree.map(np.asarray, every(setting.keys))
        risk = descents["risk"]
        highest = np.where(np.isfinite(risk), risk, CEILING).max(-1) / risk[..., 0]
        within = len(self.multiple)
        diverged = descents["diverged"].astype(float)
        return kit.seen(
            step=("record", point.marks),
            sharpness=("seed multiple record", descents["sharpness"][:, :within]),
            residual=("seed multiple record", descents["residual"][:, :within]),
            first_residual=("seed", descents["first_residual"][:, 0]),
            risk=("seed multiple step", risk[:, :within]),
            peak=("seed multiple", highest[:, :within]),
            diverged=("seed multiple", diverged[:, :within]),
            beyond_peak=("seed beyond", highest[:, within:-1]),
            beyond_diverged=("seed beyond", diverged[:, within:-1]),
            beyond_sharpness=("seed beyond record", descents["sharpness"][:, within:-1]),
            slow_sharpness=("seed record", descents["sharpness"][:, -1]),
        )

    def run_conditions(self, observed):
        return resolved(observed["first_residual"], observed["residual"])

    def derive(self, law, seen):
        """Return late sharpnesses, and what is not as the law says of divergence."""
        late = lambda name: seen[name].isel(record=slice(-LATE, None)).mean("record", skipna=False)
        return {
            "late": late("sharpness"),
            "beyond_late": late("beyond_sharpness"),
            "lost": abs(1 - seen.diverged - law.survives),
        }

    def judge(self, law, seen):
        yield kit.agrees("survives", seen.lost, 0.0, label="share of networks that diverge")
        yield kit.follows("late", law.late, seen.late, MARGIN, label="late sharpness / (2/η)")
        yield kit.follows(
            "peak",
            law.peak,
            seen.peak,
            (1.0, THROWN),
            each=True,
            label="largest risk / risk at the start",
        )
        yield kit.agrees(
            "far",
            1 - seen.beyond_diverged.isel(beyond=-1),
            0.0,
            label=f"share of networks that do not diverge at s = {self.beyond[-1]:g}",
        )

    def rivals(self, setting, law):
        thrown_to, thrown_up = _catapult(np.array(self.multiple), self.width, self.steps)
        yield kit.rival(
            "descent diverges wherever the start is sharper than 2/η",
            "so does linear regression, for any step size above 2/λ_max",
            id="quadratic",
            survives=0.0,
        )
        yield kit.rival(
            "the risk is thrown up and the sharpness lands far below 2/η",
            "so does a two-layer linear network on one example, of this width",
            id="catapult",
            late=("multiple", np.maximum(thrown_to, 0.01)),  # a law of zero has no ratio
            peak=("multiple", np.minimum(thrown_up, CEILING)),
            survives=("multiple", np.isfinite(thrown_up).astype(float)),
        )
        yield kit.rival(
            "the sharpness stays where it started",
            "wide networks are nearly linear in their weights",
            late=law.multiple,
        )
        yield kit.rival(
            "the sharpness ends a tenth below 2/η",
            "descent must be stable where it ends",
            late=0.9 * law.late,
        )

    def controls(self, seen):
        far = {"beyond": -1}
        yield kit.control(
            f"the same start with steps of η/{SLOWER}",
            "its own edge is four times as high",
            id="slower",
            sharpness=seen.slow_sharpness,
        )
        yield kit.control(
            f"starts at s = {self.beyond[-1]:g}",
            "all networks diverge there",
            id="farther",
            diverged=seen.beyond_diverged.isel(far),
            peak=seen.beyond_peak.isel(far),
        )
        yield kit.control(
            "the judged s in the place of the largest",
            "these converge",
            beyond_diverged=seen.diverged.isel(multiple=-1),
        )

    def figure(self, law, seen, rivals):
        step = np.maximum(seen.step.values, 0.5)
        shades = np.linspace(0, 1, len(self.multiple))
        falls = []
        risks = []
        for i, multiple in enumerate(self.multiple):
            sharpness = seen.sharpness[0, i]
            name = f"s = {multiple:g}"
            falls.append(kit.observed_curve(step, sharpness, name, shade=shades[i]))
            steps = np.arange(self.steps + 1)
            risks.append(kit.observed_curve(steps, seen.risk[0, i], shade=shades[i]))
        share = np.append(seen.diverged.mean("seed"), seen.beyond_diverged.mean("seed"))
        last = max(self.beyond)
        far = {"kind": "points", "shade": 0.8}
        yield kit.panel(
            "The sharpness falls to 2/η",
            "step (the start at ½)",
            "sharpness / (2/η)",
            *falls,
            kit.context_curve(step, seen.slow_sharpness[0], f"steps of η/{SLOWER}"),
            kit.predicted_curve((step[0], step[-1]), (1, 1), "2/η"),
            log="x",
        )
        yield kit.panel(
            "It forgets where it started",
            "s, sharpness at the start / (2/η)",
            "late sharpness / (2/η)",
            kit.observed_curve(self.multiple, seen.late, kind="points"),
            kit.observed_curve(self.beyond, seen.beyond_late, "not judged", **far),
            kit.predicted_curve((1, last), (1, 1), "2/η"),
            kit.rival_curve(self.multiple, self.multiple, "as at the start"),
            kit.rival_curve(self.multiple, rivals["catapult"].late, "catapult", shade=0.6),
            ylim=(0, 2.2),
        )
        yield kit.panel("The risk is not thrown up", "step", "risk", *risks, log="y")
        yield kit.panel(
            "Where networks diverge",
            "s, sharpness at the start / (2/η)",
            "share of networks that diverge",
            kit.observed_curve((*self.multiple, *self.beyond), share, kind="points"),
            kit.rival_curve((1, 1, last), (0, 1, 1), "quadratic"),
            kit.rival_curve((1, 2, 2, last), (0, 0, 1, 1), "catapult", shade=0.6),
            ylim=(-0.05, 1.05),
        )


def _catapult(multiples: Values, width: int, steps: int) -> tuple[Values, Values]:
    """Return where a linear network's γλ/2 ends and by how much its loss grows, from z = λ = 1 and y = 0.

    Where the map diverges the first is zero and the second infinite.
    """

    @kit.compiled
    def outcome(rates: jax.Array) -> tuple[jax.Array, jax.Array]:
        unit = jnp.ones(())
        one = lambda rate: catapult_map(unit, unit, 0.0, rate, 1 / width, steps)
        return jax.vmap(one)(rates)

    z, ntk = map(np.asarray, outcome(2 * multiples))  # γλ₀ = 2s
    lost = ~np.isfinite(z).all(1) | (np.abs(z[:, -1]) > 1)
    ends = np.where(lost, 0.0, multiples * ntk[:, -LATE:].mean(1))
    growth = np.where(lost, np.inf, np.abs(z).max(1))
    return ends, growth**2  # the loss is ½z²
