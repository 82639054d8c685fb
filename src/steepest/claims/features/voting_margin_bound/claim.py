"""On n random labels, the luckiest decision stump overstates its accuracy by 1.23/√n on average.

This is half of Rad = 2.46/√n, for stumps on eight features. Rad is the expected largest correlation of a stump with n
coin tosses. The error rate of a vote is at most the rate at which it misses margin θ, plus 2 Rad/θ and a confidence
term. On average over samples, at least a quarter of 2 Rad/θ is needed, as a single stump shows. Votes of AdaBoost stay
far below the bound. The number of voters does not enter. So the bound falls as boosting goes on, while a bound that
counts voters rises. On random labels the largest margin of any vote is at most Rad, on average and by duality. There
the bound does not fall below one half, the error of a coin.
"""

from math import log
from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.features.voting_margin_bound.experiment import (
    CELLS,
    FEATURES,
    THETAS,
    Setting,
    boost,
    draw_examples,
    draw_fresh,
    largest_margin,
    toss,
)
from steepest.claims.features.voting_margin_bound.theory import rademacher_constant

CONFIDENCE = 0.05  # probability with which the bound may fail, for all θ together
STUMPS = FEATURES * (CELLS - 1)
Size = Annotated[int, kit.Within(20, 20_000)]
Share = Annotated[float, kit.Within(0, 1)]


@kit.claim
class VotingMarginBound(kit.Claim[Setting]):
    """Uniform points in eight dimensions, the majority of three of their halves as label, some labels random."""

    sizes: tuple[Size, ...] = kit.param(
        (60, 200, 600, 2000),
        "examples n",
        scope=kit.choices(
            (60, 200, 600, 2000), (60, 300, 1500), (100, 400, 2000), why="fewer are no Gaussian"
        ),
    )
    noises: tuple[Share, ...] = kit.param(
        (0.0, 0.2, 1.0), "part of the labels that is drawn by a coin"
    )
    rounds: Annotated[int, kit.Within(20, 100_000)] = kit.param(
        400, "rounds of boosting", unit="rounds", scope=kit.between(200, 600, "margins need them")
    )
    first: kit.Count = kit.param(
        10, "an early round", unit="rounds", scope=kit.between(5, 20, "before margins have grown")
    )
    seeds: kit.Seeds = kit.param(8, "samples of each size")
    repeated: Share = kit.param(0.0, "part of the examples that are copies of one")

    kind = "theorem"
    says = {
        "the luckiest decision stump overstates its accuracy by 1.23/√n": kit.literal(
            "needed", value=1.23, power={"size": -0.5}
        ),
        "Rad = 2.46/√n": kit.literal("rad", value=2.46, power={"size": -0.5}),
    }
    tiny = {"sizes": (40, 1500), "rounds": 60, "first": 5, "noises": (0.0, 1.0), "seeds": 3}
    full = {"rounds": 2000, "seeds": 16}
    out_of_scope = {"repeated": 0.9}

    def axes(self):
        return {
            "size": self.sizes,
            "noise": self.noises,
            "round": (self.first, self.rounds),
            "theta": tuple(THETAS),
        }

    def check_fields(self) -> None:
        if len(self.noises) < 2 or len(self.sizes) < 2:
            raise kit.UserError("at least two --noises and two --sizes are compared; add some")
        if sorted(set(self.sizes)) != list(self.sizes):
            raise kit.UserError(f"--sizes are increasing, got {self.sizes}; try 60 200 600 2000")
        if self.first >= self.rounds:
            raise kit.UserError(
                f"the --first round looked at comes before the last, {self.rounds}; got {self.first}"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return draw_examples(rng, self.sizes, self.noises, self.seeds, self.repeated)

    def hypotheses(self, setting):
        alike = max(
            float(np.mean(np.all(votes == votes[:, :1], axis=2))) for votes in setting.votes
        )
        yield kit.assume(
            "share of labels drawn, first",
            self.noises[0],
            "==",
            0,
            "true labels are the first of --noises",
        )
        yield kit.assume(
            "share of labels drawn, last",
            self.noises[-1],
            "==",
            1,
            "coin tosses are the last of --noises",
        )
        yield kit.assume(
            "share of examples that are copies of the first",
            alike,
            "<",
            0.1,
            "the bound is for independent examples",
        )

    def predict(self, setting):
        n = np.array(self.sizes, float)
        rad = rademacher_constant(FEATURES, CELLS, np.random.default_rng(0)) / np.sqrt(n)
        return kit.law(
            rad=("size", rad),
            needed=("size", rad / 2),
            complexity=("size theta", 2 * rad[:, None] / THETAS),
            slack=("size", np.sqrt(log(len(THETAS) / CONFIDENCE) / (2 * n))),
            most=1.0,
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        fresh = draw_fresh(rng, self.noises)
        tossed = toss(setting, fresh, rng)
        boosted = boost(setting, fresh, self.rounds, (self.first, self.rounds))
        fewest = zip(setting.votes[0], setting.labels[0], strict=True)
        margins = [[largest_margin(votes, y) for y in (ys[0], ys[-1])] for votes, ys in fewest]
        return kit.seen(
            luck=("size seed draw", tossed["luck"]),
            gap=("size seed draw", tossed["gap"]),
            true_luck=("size seed", tossed["true_luck"]),
            violations=("size seed noise round theta", boosted["violations"]),
            error=("size seed noise round", boosted["error"]),
            training=("size seed noise round", boosted["training"]),
            margin=("seed end", margins),
        )

    def derive(self, law, seen):
        """Return the bound at each θ and the best of them, and margins on coin tosses over Rad."""
        bound = seen.violations + law.complexity + law.slack
        margin = seen.margin.isel(end=-1) / law.rad.isel(size=0, drop=True)
        return {"bound": bound, "best": bound.min("theta"), "random_margin": margin}

    def judge(self, law, seen):
        true = seen.best.isel(size=-1, noise=0, drop=True)
        coins = seen.best.isel(noise=-1, round=-1, drop=True)
        formula = "it is the formula itself once margins are above the largest θ, or below all"
        yield kit.follows(
            "rad",
            law.rad,
            seen.luck,
            0.08,  # the interval takes 0.03; n = 60 is 2 % from the limit
            over="size",
            label="largest correlation of a stump with n coin tosses",
        )
        yield kit.follows(
            "needed",
            law.needed,
            seen.gap,
            0.1,
            over="size",
            label="error of the luckiest stump on fresh tosses − on its own",
        )
        yield kit.agrees(
            "never",
            (seen.error - seen.best).clip(min=0),
            0.0,
            label="test error above the bound, at all sizes, noises, rounds and samples",
        )
        yield kit.at_most(
            "random_margin",
            law.most,
            seen.random_margin,
            label=f"largest margin of any vote on coin tosses / Rad, n = {self.sizes[0]}",
        )
        yield kit.at_least(
            "rounds",
            0.0,
            true.isel(round=0, drop=True) - true.isel(round=-1, drop=True),
            label=f"bound on true labels: round {self.first} − round {self.rounds}",
        )
        yield kit.idle(
            kit.at_most(
                "informative",
                0.5,
                true.isel(round=-1, drop=True),
                label=f"bound on true labels, n = {self.sizes[-1]}",
            ),
            formula,
        )
        yield kit.idle(
            kit.at_least(
                "void", 0.5, coins.min("size"), label="bound on coin tosses, least of sizes"
            ),
            formula,
        )

    def rivals(self, setting, law):
        n = law.size.astype(float)
        independent = np.random.default_rng(1).standard_normal((4000, STUMPS))
        largest = float(np.abs(independent).max(1).mean())
        constants = {
            "massart": (np.sqrt(2 * np.log(2 * STUMPS)), "Massart's lemma for a finite class"),
            "independent": (largest, "stumps are many, and as if independent"),
        }
        labels = {"massart": "Rad = √(2 ln 2H/n)", "independent": "H independent stumps"}
        yield from (
            kit.rival(
                labels[name],
                why,
                id=name,
                rad=constant / np.sqrt(n),
                needed=constant / np.sqrt(n) / 2,
            )
            for name, (constant, why) in constants.items()
        )
        yield kit.rival(
            "Rad ∝ √(ln n/n)",
            "the talk's √(VC ln n/n), through the largest n",
            rad=law.rad.isel(size=-1, drop=True) * np.sqrt(np.log(n) / n / (np.log(n) / n)[-1]),
        )
        yield kit.rival("a stump needs Rad", "the bound has twice Rad", needed=law.rad)
        yield kit.rival(
            "only P̂[margin ≤ θ] and the confidence term",
            "the law of large numbers",
            id="no_complexity",
            complexity=0 * law.complexity,
        )
        yield kit.rival(
            "no margin above Rad/10 on coin tosses", "coin tosses cannot be learned", most=0.1
        )

    def controls(self, seen):
        tosses = seen.sizes["draw"]
        true_luck = seen.true_luck.expand_dims({"draw": tosses}, axis=-1)
        yield kit.control(
            "true labels in place of coin tosses",
            "they are no tosses: a stump knows of them",
            luck=true_luck,
            gap=true_luck / 2,
        )
        yield kit.control(
            "margins of true labels for random ones, and the reverse",
            "random labels have no margin, true labels do",
            id="other_labels",
            margin=seen.margin.isel(end=slice(None, None, -1)),
            violations=seen.violations.copy(data=seen.violations.values[:, :, ::-1]),
        )
        yield kit.control(
            f"margins of round {self.first} in place of round {self.rounds}",
            "margins grow with the rounds",
            id="rounds_swapped",
            violations=seen.violations.copy(data=seen.violations.values[:, :, :, ::-1]),
        )

    def figure(self, law, seen, rivals):
        sizes = np.array(self.sizes, float)
        shades = np.linspace(0, 0.8, len(self.noises))
        last = seen.isel(round=-1).mean("seed")
        errors = [
            kit.observed_curve(
                sizes,
                last.error.isel(noise=i).values,
                f"error, noise {noise:g}",
                kind="points",
                shade=shade,
            )
            for i, (noise, shade) in enumerate(zip(self.noises, shades, strict=True))
        ]
        bounds = [
            kit.predicted_curve(
                sizes, last.best.isel(noise=i).values, "" if i else "bounds", shade=shade
            )
            for i, shade in enumerate(shades)
        ]
        half = kit.context_curve((sizes[0], sizes[-1]), (0.5, 0.5))
        yield kit.panel(
            "The bound is below a coin's error on true labels only",
            "examples n",
            "share",
            *errors,
            *bounds,
            half,
            log="x",
            ylim=(0, 1.6),
        )
        yield kit.curves(
            "The luckiest stump on n coin tosses",
            law.rad,
            seen.luck,
            over="size",
            x="examples n",
            y="correlation",
            rivals={"√(2 ln 2H/n)": rivals["massart"].rad},
            log="xy",
        )
