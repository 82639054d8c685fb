"""Full-batch gradient descent raises the sharpness until it reaches 2/η, and keeps it there.

The sharpness is the largest eigenvalue of the Hessian of the risk. On a quadratic, descent with step size η is stable
only below 2/η. On a network the sharpness rises by itself along gradient flow. Descent follows the flow until 2/η and
then hovers there, while the flow would rise further. “Keeps it there” means that after three fifths of the T steps
every reading in every network is within the margin around 2/η. Meanwhile the risk goes on falling, which is plotted,
not judged.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent._digits_network import MARGIN, Setting
from steepest.claims.descent.edge_of_stability.experiment import (
    EdgePoint,
    flow_goes_on,
    follow_descents_and_flow,
    had_time_to_stay,
    last_fifth,
    last_two_fifths,
    starts_below_the_edge,
)
from steepest.claims.descent.edge_of_stability.figure import panels_of_descents


@kit.claim
class EdgeOfStability(kit.Claim[Setting]):
    """A tanh network on centred digits, squared loss, three step sizes, and gradient flow."""

    lr: kit.Positive = kit.param(
        0.36,
        "η, the middle one of three step sizes",
        unit="1/sharpness",
        scope=kit.between(0.35, 0.42, "2/η must lie between the start and what the flow reaches"),
    )
    ratio: kit.Positive = kit.param(
        1.3, "ratio of neighbouring step sizes", scope=kit.between(1.2, 1.3)
    )
    steps: kit.Count = kit.param(
        950,
        "steps of descent",
        unit="steps",
        scope=kit.between(950, 1500, "with fewer, the dip after the first overshoot is judged"),
    )
    width: kit.Count = kit.param(
        50,
        "neurons in each hidden layer",
        unit="neurons",
        scope=kit.between(46, 80, "flows on narrower networks level off near the edge"),
    )
    depth: kit.Count = kit.param(4, "hidden layers", unit="layers", scope=kit.choices(3, 4))
    c_w: kit.Positive = kit.param(
        0.5,
        "initial weight variance times fan-in",
        scope=kit.between(0.42, 0.56, "larger networks start beyond the largest step's edge"),
    )
    n: kit.Count = kit.param(200, "images", scope=kit.between(100, 280))
    seeds: kit.Seeds = kit.param(5, "initial networks")
    products: kit.Count = kit.param(12, "Hessian products for each sharpness")

    kind = "empirical law"
    says = {
        "raises the sharpness until it reaches 2/η": kit.literal(
            "late_sharpness", "sharpness", value=2, power={"step_size": -1}
        ),
        "keeps it there": "stays",
    }
    tiny = {"lr": 0.1, "steps": 25, "width": 8, "depth": 2, "n": 20, "seeds": 3, "products": 8}
    full = {"n": 300, "steps": 3000, "width": 64, "seeds": 5, "products": 20}
    out_of_scope = {"lr": 3.0, "steps": 20}
    precision = "float32"
    point = EdgePoint

    @property
    def step_sizes(self) -> tuple[float, ...]:
        """Return the three step sizes η, smallest first."""
        return (self.lr / self.ratio, self.lr, self.lr * self.ratio)

    def axes(self):
        return {"step_size": self.step_sizes}

    def setting(self, key):
        return EdgePoint.of(self).networks(key)

    def hypotheses(self, setting):
        time = self.steps * max(self.step_sizes)
        yield kit.assume("flow time η × steps", time, "<=", 1e5, "choose a smaller --lr")

    def predict(self, setting):
        return kit.law(sharpness=("step_size", 2 / np.array(self.step_sizes)))

    def observe(self, setting, key):
        return follow_descents_and_flow(EdgePoint.of(self), setting, self.step_sizes)

    def run_conditions(self, observed):
        in_units = observed["sharpness"] * np.array(self.step_sizes)[:, None] / 2
        yield from starts_below_the_edge(in_units[..., 0], observed["residual"])
        yield had_time_to_stay(in_units, self.steps)
        yield flow_goes_on(
            observed["flow_sharpness"] * min(self.step_sizes) / 2, MARGIN[1], self.steps
        )

    def judge(self, law, seen):
        """Compare the sharpness with 2/η: the mean over the last fifth, and every reading of the last two."""
        yield kit.follows(
            "late_sharpness",
            law.sharpness,
            last_fifth(seen.sharpness),
            MARGIN,
            label="sharpness in the last fifth of descent",
        )
        yield kit.follows(
            "stays",
            law.sharpness,
            last_two_fifths(seen.sharpness, seen.step),
            MARGIN,
            over="step_size step",
            each=True,
            label="every sharpness in the last two fifths",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "the sharpness stops at 1/η",
            "there a step along the top eigenvector lands on the minimum",
            id="half_the_edge",
            sharpness=law.sharpness / 2,
        )
        yield kit.rival(
            "the sharpness does not depend on η",
            "sharpness is a property of the minimum only",
            sharpness=xarray.full_like(law.sharpness, law.sharpness.max()),
        )

    def controls(self, seen):
        flow = seen.flow_sharpness.rename(time="record")
        as_long = seen.isel(record=slice(0, flow.sizes["record"]))
        # the flow's readings are as many steps of the smallest size apart as the horizon has room for
        yield kit.control(
            "gradient flow in the place of every descent",
            "a flow has no step size that could hold it",
            sharpness=flow.broadcast_like(as_long.sharpness),
            **{name: as_long[name] for name in ("step", "risk", "residual")},
        )

    def figure(self, law, seen, rivals):
        flow = kit.context_curve(seen.flow_time, seen.flow_sharpness.isel(seed=0), "gradient flow")
        return panels_of_descents(self.step_sizes, law, seen, flow)
