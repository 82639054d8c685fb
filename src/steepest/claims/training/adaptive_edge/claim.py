"""Sharpness settles near (2+2β)/η under momentum, and (2+2β)/((1+2β)η) under Nesterov's rule.

Sharpness is the largest eigenvalue of the Hessian H in training on full batches, at step size η. Under Adam it settles
near (2+2β₁)/((1−β₁)η), if curvature is read as Adam sees it: from D^(−½)HD^(−½), with D the root of Adam's averaged
squared gradients. On a parabola each rule is stable up to the curvature in its own formula. Training goes to this
curvature, as plain descent goes to 2/η, and stays near it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.training._tanh_network import sharpness
from steepest.claims.training.adaptive_edge import experiment
from steepest.claims.training.adaptive_edge.experiment import Rule
from steepest.claims.training.adaptive_edge.point import AdaptiveEdgePoint
from steepest.optimizers import Adam, Momentum

MOMENTUM = ("momentum", "nesterov")
LOOKS = (0.75, 0.8, 0.85, 0.9, 0.95, 1.0)  # of the training, after which curvature is read
BEYOND = 1.15  # what a rule with a smaller step must pass, over the edge


@kit.claim
class AdaptiveEdge(kit.Claim[None]):
    """A small tanh network on a Chebyshev polynomial, trained on full batches by momentum, Nesterov's rule and Adam."""

    betas: tuple[kit.Fraction, ...] = kit.param(
        (0.1, 0.6),
        "β of momentum and of Nesterov",
        scope=kit.choices(
            (0.1, 0.6), (0.15, 0.65), (0.05, 0.6), why="beyond it some trainings diverge"
        ),
    )
    edge: kit.Positive = kit.param(
        6.7,
        "curvature at which these two are to stop",
        scope=kit.between(6.5, 6.9, "some trainings never have more"),
    )
    adam_betas: tuple[kit.Fraction, ...] = kit.param(
        (0.0, 0.5, 0.9), "β₁ of Adam", scope=kit.choices((0.0, 0.5, 0.9), (0.2, 0.6, 0.9))
    )
    adam_edge: kit.Positive = kit.param(
        6000.0, "curvature at which Adam is to stop", scope=kit.between(5000, 8000)
    )
    steps: kit.Count = kit.param(
        7000, "steps of each training", unit="steps", scope=kit.between(7000, 8000)
    )
    seeds: kit.Seeds = kit.param(8, "trainings of each kind")

    kind = "empirical law"
    says = {
        "(2+2β)/η under momentum, and (2+2β)/((1+2β)η) under Nesterov's rule": "momentum",
        "near (2+2β₁)/((1−β₁)η), if curvature is read as Adam sees it": "adam",
    }
    tiny = {"betas": (0.5, 0.8), "adam_betas": (0.0, 0.5), "steps": 40, "seeds": 3}
    full = {"steps": 20_000, "seeds": 20}
    out_of_scope = {"edge": 200.0, "steps": 40, "seeds": 3}
    precision = "float32"
    point = AdaptiveEdgePoint

    @property
    def step_sizes(self) -> kit.Values:
        """Return η of momentum and Nesterov at each β, ``(rules, betas)``."""
        beta = np.array(self.betas)
        steps = [rule.largest_step(self.edge) for rule in rules_of_momentum(beta)]
        return np.round(np.stack(steps), 3)

    @property
    def adam_steps(self) -> kit.Values:
        """Return η of Adam at each β₁, ``(betas,)``."""
        return np.round(Adam(np.array(self.adam_betas)).largest_step(self.adam_edge), 7)

    def axes(self):
        return {"rule": MOMENTUM, "beta": self.betas, "beta1": self.adam_betas}

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        return []

    def predict(self, setting):
        turn = np.stack([rule.turn for rule in rules_of_momentum(np.array(self.betas))])
        # of curvature times η, as the curvatures are alike by the choice of η
        return kit.law(
            momentum=("rule beta", turn), adam=("beta1", Adam(np.array(self.adam_betas)).turn)
        )

    def rules(self) -> Rule:
        """Return momentum and Nesterov at each β, Adam at each β₁, then plain descent and Adam with small steps."""
        last = self.adam_betas[-1]
        momentum, nesterov = self.step_sizes
        rows = [
            *(Rule(lr, beta, 0, 0) for lr, beta in zip(momentum, self.betas, strict=True)),
            *(Rule(lr, beta, 1, 0) for lr, beta in zip(nesterov, self.betas, strict=True)),
            *(
                Rule(lr, beta, 0, 1)
                for lr, beta in zip(self.adam_steps, self.adam_betas, strict=True)
            ),
            Rule(1.2 / self.edge, 0, 0, 0),
            Rule((1 + last) / (1 - last) / self.adam_edge, last, 0, 1),
        ]
        return Rule(*(jnp.asarray(column, jnp.float32) for column in zip(*rows, strict=True)))

    def observe(self, setting, key):
        marks = tuple(round(part * self.steps) for part in LOOKS)
        rules = self.rules()

        def everything(key: jax.Array) -> tuple[jax.Array, jax.Array]:
            of_training, of_scaled, of_plain = jax.random.split(key, 3)
            train = lambda key, rule: experiment.train(key, rule, marks)
            over_rules = jax.vmap(train, (None, 0))
            over_seeds = jax.vmap(over_rules, (0, None))
            kept = over_seeds(jax.random.split(of_training, self.seeds), rules)
            scaled = sharpness(of_scaled, kept.weights, kept.scale)
            plain = sharpness(of_plain, kept.weights, jnp.ones_like(kept.scale))
            return scaled, plain

        curvature, raw = (np.asarray(values, float) for values in kit.compiled(everything)(key))
        etas = np.asarray(rules.lr, float)[:, None]
        several = 2 * len(self.betas)
        shape = (self.seeds, 2, len(self.betas), len(LOOKS))
        of_adam = slice(several, several + len(self.adam_betas))
        # plain descent and Adam with small steps, over the edges of the others
        passed = np.stack(
            [curvature[:, -2].max(-1) / self.edge, curvature[:, -1].max(-1) / self.adam_edge], 1
        )
        products = curvature * etas
        return kit.seen(
            momentum=("seed rule beta look", products[:, :several].reshape(shape)),
            adam=("seed beta1 look", products[:, of_adam]),
            raw=("seed beta1 look", (raw * etas)[:, of_adam]),
            passed=("seed kind", passed),
        )

    def run_conditions(self, observed):
        plain, adam = observed["passed"].min(0)
        lost = ~np.isfinite(observed["momentum"]).all(-1)
        yield kit.assume(
            "share of trainings by momentum or Nesterov that diverged",
            float(lost.mean()),
            "==",
            0,
            "they met the edge too fast to stop there: choose a larger --edge",
        )
        yield kit.assume(
            "largest curvature of plain descent with a small step, over the edge",
            plain,
            ">",
            BEYOND,
            "nothing else may stop it: choose a smaller --edge",
        )
        yield kit.assume(
            "largest curvature of Adam with half of its step, over the edge",
            adam,
            ">",
            BEYOND,
            "nothing else may stop it: choose a smaller --adam-edge",
        )

    def derive(self, law, seen):
        return {"late_momentum": seen.momentum.mean("look"), "late_adam": seen.adam.mean("look")}

    def judge(self, law, seen):
        yield kit.follows(
            "momentum",
            law.momentum,
            seen.late_momentum,
            (0.85, 1.1),  # it stops within 2 %; a training in six may lag by a tenth to a third
            label="late curvature times η, momentum and Nesterov",
        )
        yield kit.follows(
            "adam",
            law.adam,
            seen.late_adam,
            (0.88, 1.12),  # it moves up and down by a tenth
            label="late curvature in its own coordinates times η, Adam",
        )

    def rivals(self, setting, law):
        beta1 = law.beta1
        heavy = law.momentum.sel(rule="momentum", drop=True)
        yield kit.rival(
            "2/η for all",
            "that is where plain descent stops",
            momentum=xarray.full_like(law.momentum, 2.0),
            adam=xarray.full_like(law.adam, 2.0),
        )
        yield kit.rival(
            "(2 + 2β)/η under Nesterov's rule too",
            "it is momentum as well",
            momentum=heavy + 0 * law.momentum,
        )
        yield kit.rival(
            "(2 + 2β₁)/η under Adam",
            "Adam averages gradients with β₁",
            id="as_momentum",
            adam=2 + 2 * beta1,
        )
        yield kit.rival(
            "2(1 − β)/η",
            "momentum is a step of η/(1 − β)",
            momentum=2 * (1 - law.beta) + 0 * law.momentum,
        )

    def controls(self, seen):
        yield kit.control(
            "the curvature itself in the place of Adam's",
            "Adam's steps are not along the gradient",
            id="other_coordinates",
            adam=seen.raw,
        )
        yield kit.control(
            "trainings with the other β",
            "each rule has an edge of its own",
            id="exchanged",
            momentum=seen.momentum.roll(beta=1),
        )

    def figure(self, law, seen, rivals):
        wrong = {"(2 + 2β₁)/η": rivals["as_momentum"].adam} if rivals else {}
        yield kit.curves(
            "Momentum and Nesterov: where the curvature stops",
            law.momentum,
            seen.late_momentum,
            over="beta",
            by="rule",
            x="β",
            y="late curvature × η",
            ylim=(0, None),
        )
        yield kit.curves(
            "Adam, in its own coordinates",
            law.adam,
            seen.late_adam,
            over="beta1",
            x="β₁",
            y="late curvature × η",
            rivals=wrong,
            log="y",
        )


def rules_of_momentum(beta: kit.Values) -> tuple[Momentum, Momentum]:
    """Return momentum and Nesterov's rule at some β."""
    return Momentum(beta), Momentum(beta, nesterov=True)
