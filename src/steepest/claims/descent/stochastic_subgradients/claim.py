"""Stochastic descent with shrinking steps η becomes stationary in Clarke's sense, at the rate √η.

Steps have an infinite sum, and their squares a finite sum. Gradients of ReLU networks need not vanish where kinks come
to lie at examples, but Clarke's subdifferential near by has an element that does. Where the loss is smooth with
curvature h, noise spreads weights by √(η/h) and gradients by √(ηh).
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.descent.stochastic_subgradients.experiment import (
    Problems,
    descend_noisily,
    draw_problems,
    step_sizes,
)

LOOKS = (0.06, 0.12, 0.25, 0.5, 1.0)
"""When descent is looked at, as parts of its steps."""


@kit.claim
class StochasticSubgradients(kit.Claim[Problems]):
    """Networks of four ReLU neurons on twelve random labels, with weight decay and noise on exact gradients."""

    steps: Annotated[int, kit.Within(100)] = kit.param(
        10_000,
        "steps of descent",
        unit="steps",
        scope=kit.between(10_000, 20_000, "fewer leave descent on its way"),
    )
    runs: kit.Seeds = kit.param(24, "descents, each with its own examples")

    kind = "theorem"
    says = {
        "becomes stationary in Clarke's sense": "limit",
        "at the rate √η": kit.literal("limit", "smallest", power={"eta": 0.5}),
    }
    tiny = {"steps": 1000, "runs": 3}
    full = {"runs": 100}
    out_of_scope = {"steps": 200}

    @property
    def looks(self) -> list[int]:
        """Return the numbers of steps after which is looked."""
        return [round(self.steps * part) for part in LOOKS]

    def axes(self):
        return {"eta": tuple(step_sizes(np.array(self.looks) - 1))}

    def setting(self, key):
        return draw_problems(kit.numpy_generator(key), self.runs)

    def hypotheses(self, setting):
        # fewer than a factor of four in η say nothing of a power
        etas = step_sizes(np.array(self.looks) - 1)
        yield kit.assume("largest η over the smallest", etas[0] / etas[-1], ">=", 3, "more --steps")

    def predict(self, setting):
        return kit.law(smallest=("eta", np.sqrt(step_sizes(np.array(self.looks) - 1))))

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        smallest, cells = descend_noisily(setting, self.looks, rng, constant=False)
        unshrunk, _ = descend_noisily(setting, self.looks, rng, constant=True)
        return kit.seen(
            smallest=("draw eta", smallest),
            smallest_unshrunk=("draw eta", unshrunk),
            cell_gradient=("draw eta", cells),
        )

    def judge(self, law, seen):
        yield kit.power(
            "limit",
            law.smallest,
            seen.smallest,
            0.25,  # half-way to one that does not fall, and to one that falls like η
            over="eta",
            label="stochastic descent: smallest element of Clarke's set near by against η",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "stochastic descent does not become stationary",
            "where functions are not smooth gradients do not become small",
            smallest=law.smallest**0,
        )
        yield kit.rival(
            "the smallest element falls like η",
            "beside a kink descent hops by η",
            smallest=law.smallest**2,
        )

    def controls(self, seen):
        yield kit.control(
            "stochastic descent with steps that do not shrink",
            "descent keeps wandering",
            smallest=seen.smallest_unshrunk,
        )

    def figure(self, law, seen, rivals):
        eta = law.eta.values
        first = float(seen.smallest.mean("draw")[0])
        yield kit.panel(
            "The smallest element of Clarke's set near by falls like √η",
            "step size η",
            "size",
            kit.observed_curve(eta, seen.smallest.mean("draw"), "smallest element", kind="points"),
            kit.observed_curve(eta, seen.cell_gradient.mean("draw"), "gradient", shade=1.0),
            kit.predicted_curve(eta, first * np.sqrt(eta / eta[0]), "∝ √η"),
            log="xy",
        )
