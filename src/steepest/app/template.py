"""Gradient descent on a quadratic multiplies the error by 1 − ηλ at every step, whatever the start.

Replace this claim by yours: the first line of this text is the statement in one sentence, the rest explains it.
"""

from typing import NamedTuple

import jax
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend


class Setting(NamedTuple):
    """What theory and experiment may both see."""

    start: jax.Array  # starting points, shape (seeds,)


@kit.claim
class Template(kit.Claim[Setting]):
    """A quadratic in one dimension, from random starts."""

    lr: kit.Positive = kit.param(
        0.5, "η, step size", unit="1/curvature", scope=kit.between(0.1, 1.9, "2/λ is unstable")
    )
    curvature: kit.Positive = kit.param(
        1.0, "λ, second derivative of the risk", scope=kit.between(0.5, 1.0)
    )
    steps: kit.Count = kit.param(10, "steps of descent", unit="steps", scope=kit.between(5, 20))
    seeds: kit.Seeds = kit.param(5, "random starting points")

    kind = "theorem"
    # parts of the first sentence, each with the id of the check that judges it, or None
    says = {"multiplies the error by 1 − ηλ at every step": "ratio", "whatever the start": "ratio"}
    statement = r"w_t = (1 - \eta\lambda)^t\, w_0"
    source = "any course on optimization"
    # scope and caveats, a sentence each; what changed after results were seen is a version of the history instead
    remarks = ("Exact for every quadratic: the margin is for rounding alone.",)
    # history = (kit.Version(2, "what changed", "what was seen that made it necessary"),)
    tiny = {"seeds": 3}
    full = {"seeds": 50}
    out_of_scope = {"lr": 2.5}
    # a sweep over the step size runs as one compiled program: observe is pure JAX, and no array's shape depends on lr
    batched = ("lr",)
    diagram = {"lr": "linear:0.1:1.9:10", "curvature": "0.5,1"}

    def axes(self):
        """Return the coordinates of the axes that are designed; repetitions, such as seeds, have none."""
        return {"step": np.arange(self.steps + 1)}

    def setting(self, key):
        """Draw what theory and experiment may both see."""
        return Setting(1 + jax.random.uniform(key, (self.seeds,)))

    def hypotheses(self, setting):
        """Check what the theorem assumes; where it fails the verdict is out of range."""
        product = self.lr * self.curvature
        yield kit.assume("ηλ", product, between=(0, 2), note="choose a smaller --lr")

    def predict(self, setting):
        """Use theory only: w_t/w_0 at every step."""
        steps = np.arange(self.steps + 1)
        return kit.law(ratio=("step", (1 - self.lr * self.curvature) ** steps))

    def observe(self, setting, key):
        """Run the experiment; it never sees the prediction."""

        def path(start, curvature):
            risk = lambda w: 0.5 * curvature * w**2
            ratio = {"ratio": lambda w: w / start}
            run = descend(risk, start, optax.sgd(self.lr), self.steps, observe=ratio)
            return run.observed["ratio"]

        paths = jax.vmap(path, (0, None))
        return kit.seen(
            ratio=("seed step", paths(setting.start, self.curvature)),
            steeper=("seed step", paths(setting.start, 1.1 * self.curvature)),
        )

    def judge(self, law, seen):
        """Compare at every step, within a margin that was written down before the first run."""
        yield kit.follows(
            "ratio", law.ratio, seen.ratio, 1e-9, absolute=True, each=True, label="w_t/w_0"
        )

    def rivals(self, setting, law):
        """Name wrong theories that the same data must reject: the nearer they miss, the better."""
        flow = np.exp(-self.lr * self.curvature * law.step)
        yield kit.rival("gradient flow", "descent is its Euler discretization", ratio=flow)

    def controls(self, seen):
        """Name worlds in which the law must not hold: the same judge must fail them."""
        yield kit.control("a steeper quadratic", "its curvature is another", ratio=seen.steeper)
