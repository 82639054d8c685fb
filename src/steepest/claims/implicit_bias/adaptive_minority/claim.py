"""Adam can fit every training label and still assign every new example to the majority class.

The sets here are separated by one feature, and gradient descent errs on no new example of them. Besides this feature,
every example has features that are one in all examples, and features of its own; a new example's own features were
never seen. From zero, a rule that divides each weight's gradient by its own past sizes first steps along the signs of
Xᵀy, where all features count equally. On these sets sign(Xᵀy) has the same margin on all examples. So every later
gradient is a multiple of Xᵀy too, and the direction never changes. In this direction all features have weights of one
size, so the constant features, which vote for the common class, outvote the feature that separates. Gradient descent
stays in the span of the examples and ends at the solution of least length, where a feature counts by how many examples
share it.
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.implicit_bias.adaptive_minority import experiment, theory
from steepest.claims.implicit_bias.adaptive_minority.experiment import (
    BATCHES,
    LOSSES,
    RULES,
    Design,
    Sets,
)
from steepest.nn.types import Values

CLASSES = ("common", "rare")
TRAINED = (*RULES, "GD", "SGD")
ROUNDING = 1e-9  # relative error of what rounding alone disturbs
REACHED = 1e-6  # relative error of a descent that has ended


@kit.claim
class AdaptiveMinority(kit.Claim[Sets]):
    """Linear models on sets with features of their own for each example; seven ways of training them."""

    n: Annotated[int, kit.Within(10, 200)] = kit.param(
        40, "training examples", scope=kit.between(40, 60, "descent on more is slow")
    )
    shares: tuple[Annotated[float, kit.Within(0, 1)], ...] = kit.param(
        (0.15, 0.25, 0.35, 0.45),
        "shares of the rare class",
        scope=kit.choices(
            (0.15, 0.25, 0.35, 0.45),
            (0.2, 0.3, 0.4),
            (0.15, 0.2, 0.3, 0.4),
            why="descent needs a few rare examples",
        ),
    )
    constants: kit.Count = kit.param(
        2, "k, features that are one in every example", scope=kit.choices(2, 3)
    )
    own_norm: kit.Positive = kit.param(
        2.0,
        "a, ℓ1 norm of a common example's own features",
        scope=kit.between(2.0, 2.5, "shorter ones are fitted slowly, longer ones hide the label"),
    )
    features: kit.Count = kit.param(
        5,
        "that each example has for itself",
        scope=kit.between(5, 7, "fewer ones are longer, more are fitted slowly"),
    )
    unequal: kit.NonNegative = kit.param(
        0.0, "relative excess of a rare example's own ℓ1 norm over a + 2k"
    )
    reach: kit.Fraction = kit.param(
        0.9,
        "margin that steps of full size would reach",
        scope=kit.between(0.3, 0.9, "where squares end RMSprop magnifies rounding"),
    )
    new: kit.Count = kit.param(100, "new examples")
    adaptive_steps: kit.Count = kit.param(200, "steps of AdaGrad, RMSprop and Adam", unit="steps")
    steps: kit.Count = kit.param(3000, "steps of gradient descent", unit="steps")
    single_steps: kit.Count = kit.param(15_000, "steps by one example", unit="steps")
    seeds: kit.Seeds = kit.param(5, "sets of each share")

    kind = "theorem"
    says = {
        "fit every training label": "fitted",
        "assign every new example to the majority class": (
            "adaptive",
            "adaptive_error",
            "direction",
        ),
        "gradient descent errs on no new example": ("descent", "descent_error"),
    }
    tiny = {
        "n": 12,
        "shares": (0.25, 0.4),
        "new": 10,
        "adaptive_steps": 20,
        "steps": 300,
        "single_steps": 500,
        "seeds": 3,
    }
    full = {"n": 60, "steps": 10_000, "single_steps": 60_000, "seeds": 20}
    out_of_scope = {"unequal": 0.2}

    def axes(self):
        return {
            "share": self.shares,
            "rule": RULES,
            "loss": LOSSES,
            "batch": BATCHES,
            "class": CLASSES,
            "trained": TRAINED,
            "weight": tuple(range(1 + self.constants + self.features * (self.n + 1))),
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        design = Design(
            self.constants,
            self.features,
            self.own_norm,
            (self.own_norm + 2 * self.constants) * (1 + self.unequal),
        )
        counts = (self.n, self.new)
        rare = np.round(np.outer(self.shares, counts)).astype(int)
        sets = [experiment.draw(rng, design, counts, rare) for _ in range(self.seeds)]
        return Sets(*(np.stack(part) for part in zip(*sets, strict=True)))

    def own_features(self, setting: Sets) -> Values:
        """Return the training examples' own features, all others zero."""
        return setting.x[..., 1 + self.constants :]

    def hypotheses(self, setting):
        votes = np.einsum("stnd,stn->std", setting.x, setting.y)
        margins = setting.y * np.einsum("stnd,std->stn", setting.x, np.sign(votes))
        spread = np.ptp(margins, -1).max() / margins.mean()
        squares = (self.own_features(setting) ** 2).sum(-1)
        evidence = theory.evidence(self.constants, squares, setting.y)
        yield kit.assume("margins of sign(Xᵀy): range over mean", spread, "<=", ROUNDING)
        yield kit.assume(
            "Σy, common less rare examples",
            setting.y.sum(-1).min(),
            ">",
            0,
            "the common class must be that",
        )
        yield kit.assume(
            "(4kPN + P + N)/(k|P − N|)", evidence.min(), ">", 1, "take more rare examples"
        )

    def predict(self, setting):
        squares = (self.own_features(setting) ** 2).sum(-1)
        signs = np.sign(np.einsum("stnd,stn->std", setting.x, setting.y))
        rare = (setting.new_y < 0).mean((0, -1))
        return kit.law(
            adaptive=("class", theory.sign_outputs(self.constants, self.own_norm)),
            adaptive_error=("share", rare),
            direction=("seed share weight", signs / np.linalg.norm(signs, axis=-1, keepdims=True)),
            descent=(
                "seed share class",
                theory.least_norm_outputs(self.constants, squares, setting.y),
            ),
            descent_error=("share", np.zeros(len(self.shares))),
            missed=0.0,
        )

    def observe(self, setting, key):
        length = self.reach / (1 + self.constants + self.own_norm)
        rules = experiment.adaptive(setting, length, self.adaptive_steps)
        plain, floored = experiment.gradient(setting, self.steps)
        lr = 10 * length / self.single_steps
        sgd, single = experiment.single_examples(setting, lr, self.single_steps, key)
        by_rules = experiment.fit(setting, rules)
        ended = np.stack([plain, sgd], 2)
        descents = experiment.fit(setting, ended)
        of_floor = experiment.fit(setting, floored)
        of_single = experiment.fit(setting, single)
        # the order of labels is random, so that those of the next example are others
        exchanged = setting._replace(y=np.roll(setting.y, 1, axis=-1))
        missed, missed_of_others = (
            np.concatenate(
                [experiment.fit(sets, rules).missed.max(-1), experiment.fit(sets, ended).missed],
                axis=-1,
            )
            for sets in (setting, exchanged)
        )
        return kit.seen(
            adaptive=("seed share rule loss class", by_rules.outputs),
            adaptive_error=("seed share rule loss", by_rules.error),
            direction=("seed share rule loss weight", by_rules.unit),
            descent=("seed share batch class", descents.outputs),
            descent_error=("seed share batch", descents.error),
            missed=("seed share trained", missed),
            missed_of_others=("seed share trained", missed_of_others),
            floor=("seed share class", of_floor.outputs),
            floor_error=("seed share", of_floor.error),
            floor_direction=("seed share weight", of_floor.unit),
            single=("seed share class", of_single.outputs),
            single_error=("seed share", of_single.error),
            single_direction=("seed share weight", of_single.unit),
        )

    def derive(self, law, seen):
        """Return how far weights of length one are from the signs of length one."""
        return {"turned": np.sqrt(((seen.direction - law.direction) ** 2).sum("weight"))}

    def judge(self, law, seen):
        yield kit.follows(
            "fitted",
            law.missed,
            seen.missed,
            0.0,
            over="share trained",
            absolute=True,
            each=True,
            label="share of training examples that are misclassified",
        )
        yield kit.follows(
            "adaptive",
            law.adaptive,
            seen.adaptive,
            ROUNDING,
            over="share rule loss class",
            each=True,
            label="adaptive rules: output on new examples over the training margin",
        )
        yield kit.follows(
            "adaptive_error",
            law.adaptive_error,
            seen.adaptive_error,
            ROUNDING,
            over="share rule loss",
            absolute=True,
            each=True,
            label="adaptive rules: share of new examples that are misclassified",
        )
        yield kit.agrees(
            "direction",
            seen.turned,
            ROUNDING,
            label="adaptive rules: distance of w/‖w‖ to sign(Xᵀy)/‖·‖",
        )
        yield kit.follows(
            "descent",
            law.descent,
            seen.descent,
            REACHED,
            over="share batch class",
            absolute=True,
            each=True,
            label="descent: output on new examples over the training margin",
        )
        yield kit.follows(
            "descent_error",
            law.descent_error,
            seen.descent_error,
            0.0,
            over="share batch",
            absolute=True,
            each=True,
            label="descent: share of new examples that are misclassified",
        )

    def rivals(self, setting, law):
        squares = (self.own_features(setting) ** 2).sum(-1)
        S = (1 / squares).sum(-1)
        signs = np.array([1.0, -1.0])
        typical = np.broadcast_to(squares.mean(-1, keepdims=True), squares.shape)
        same = theory.least_norm_outputs(self.constants, typical, setting.y)
        yield kit.rival(
            "all rules end where descent does",
            "whatever fits the training set generalizes alike",
            adaptive=law.descent.mean(("seed", "share")),
            adaptive_error=0 * law.adaptive_error,
        )
        yield kit.rival(
            "all rules find the feature that separates",
            "it fits all labels by itself",
            adaptive=("class", signs),
            adaptive_error=0 * law.adaptive_error,
            descent=("class", signs),
        )
        yield kit.rival(
            "error ½",
            "the new examples' own features are unknown",
            adaptive_error=0 * law.adaptive_error + 0.5,
            descent_error=0 * law.descent_error + 0.5,
        )
        yield kit.rival(
            "descent calls all examples common too",
            "a new rare example looks like the many common ones",
            descent_error=law.adaptive_error,
        )
        yield kit.rival(
            "descent gives the constant features no weight",
            "what is one in every example tells nothing",
            descent=("seed share class", (S / (1 + S))[..., None] * signs),
        )
        yield kit.rival(
            "descent as with own features of one length",
            "only the mean length of own features counts",
            descent=("seed share class", same),
        )

    def controls(self, seen):
        yield kit.control(
            "Adam with an ε above all gradients",
            "no gradient is divided by its own size",
            adaptive=seen.floor,
            adaptive_error=seen.floor_error,
            direction=seen.floor_direction,
        )
        yield kit.control(
            "Adam by one example a step",
            "own features are then seen seldom, constant ones at every step",
            adaptive=seen.single,
            adaptive_error=seen.single_error,
            direction=seen.single_direction,
        )
        yield kit.control(
            "Adam in place of descent",
            "it leaves the span of the examples",
            descent=seen.adaptive.sel(rule="Adam", loss="squares", drop=True),
            descent_error=seen.adaptive_error.sel(rule="Adam", loss="squares", drop=True),
        )
        yield kit.control(
            "each example with the label of the next",
            "no rule was trained on them",
            missed=seen.missed_of_others,
        )

    def figure(self, law, seen, rivals):
        shares = np.array(self.shares)
        error = seen.adaptive_error.sel(loss="squares").mean("seed")
        of_rare = seen.descent.sel({"class": "rare"}).mean("seed")
        adaptive = seen.adaptive.sel({"class": "rare", "loss": "squares"}).mean("seed")
        descent = law.descent.sel({"class": "rare"}).mean("seed")
        signs = np.full(len(shares), float(law.adaptive.sel({"class": "rare"})))
        rules = enumerate(RULES)
        points = {"kind": "points"}
        yield kit.panel(
            "Adaptive rules misclassify the whole rare class",
            "share of the rare class",
            "error on new examples",
            *(
                kit.observed_curve(shares, error.sel(rule=rule), rule, shade=i / 4, **points)
                for i, rule in rules
            ),
            kit.predicted_curve(shares, law.adaptive_error, "all called common"),
            kit.observed_curve(
                shares, seen.descent_error.mean(("seed", "batch")), "descent", shade=1.0, **points
            ),
            kit.predicted_curve(shares, law.descent_error),
            kit.context_curve(
                shares, seen.single_error.mean("seed"), "Adam, one example a step", kind="dashed"
            ),
            ylim=(-0.02, 0.5),
        )
        yield kit.panel(
            "Below zero a rare example is recognized",
            "share of the rare class",
            "output on new rare examples / training margin",
            kit.observed_curve(shares, adaptive.sel(rule="Adam"), "Adam", **points),
            kit.predicted_curve(shares, signs, "(k − 1)/(1 + k + a)"),
            kit.observed_curve(shares, of_rare.mean("batch"), "descent", shade=1.0, **points),
            kit.predicted_curve(shares, descent, "least norm"),
            kit.rival_curve(shares, -np.ones(len(shares)), "only the separating feature"),
        )
