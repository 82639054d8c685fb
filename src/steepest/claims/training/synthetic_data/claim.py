"""A linear model that is refitted to its own labels has n times the error of one fit after n rounds.

With all data kept, the error is less than twice the error of one fit. Labels have noise of the same variance σ² in
every round. One fit with d weights and T examples has the error σ²d/(T − d − 1). Where all labels are kept as they
were, round k adds only the share (T − d − 1)/(k(kT − d − 1)) of this error. With a share α of fresh true labels in
every round, the error stays at (2α² − 2α + 1)/(2α − α²) times the error of one fit. This factor is least at the golden
ratio, α = 0.618, where the factor is 0.618 too.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.synthetic_data import experiment, theory
from steepest.claims.training.synthetic_data.experiment import Sizes
from steepest.claims.training.synthetic_data.point import SyntheticDataPoint

BOUND = np.pi**2 / 6
"""Of the error where all data are kept, for T ≫ d."""


@kit.claim
class SyntheticData(kit.Claim[None]):
    """Least squares on Gaussian inputs and on digits, refitted to its own labels with noise."""

    dimension: kit.Count = kit.param(10, "d, weights", scope=kit.between(8, 20))
    examples: kit.Count = kit.param(
        40, "T, of each round", unit="examples", scope=kit.between(36, 60)
    )
    rounds: kit.Count = kit.param(8, "n, of refitting", unit="rounds", scope=kit.between(6, 12))
    shares: tuple[kit.Fraction, ...] = kit.param(
        (0.4, 0.5, 0.6, 0.7, 0.85),
        "α of the true labels",
        scope=kit.choices((0.4, 0.5, 0.6, 0.7, 0.85), (0.35, 0.5, 0.65, 0.8, 0.95)),
    )
    runs: kit.Count = kit.param(250, "runs of each kind, a seed", unit="runs")
    seeds: kit.Seeds = kit.param(12, "groups of runs")

    kind = "theorem"
    says = {
        "has n times the error of one fit after n rounds": ("replaced", "digits"),
        "With all data kept, the error is less than twice the error of one fit": "kept",
    }
    tiny = {
        "dimension": 3,
        "examples": 12,
        "rounds": 3,
        "shares": (0.4, 0.6, 0.8, 0.9),
        "runs": 20,
        "seeds": 4,
    }
    full = {"runs": 2000, "rounds": 12}
    out_of_scope = {"dimension": 30, "examples": 33}
    point = SyntheticDataPoint

    def axes(self):
        return {"round": tuple(range(1, self.rounds + 1)), "alpha": self.shares}

    def check_fields(self) -> None:
        if len(self.shares) < 4:
            raise kit.UserError(
                f"shares need four values for a cubic, got {self.shares}; try --shares 0.4 0.5 0.6 0.8"
            )

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        yield kit.assume(
            "T − d",
            self.examples - self.dimension,
            ">=",
            8,
            "errors need a finite spread: raise --examples",
        )

    def predict(self, setting):
        # E tr (XᵀX)⁻¹ of T Gaussian inputs, an inverse Wishart matrix
        fit = self.dimension / (self.examples - self.dimension - 1)
        shares = np.array(self.shares)
        return kit.law(
            replaced=("round", fit * theory.replaced(self.rounds)),
            kept=("round", fit * theory.kept(self.rounds, self.dimension, self.examples)),
            mixed=("alpha", fit * theory.mixed(shares, self.rounds)),
            best=theory.GOLDEN,
            digits=("round", theory.replaced(self.rounds)),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        gaussian = experiment.gaussian(rng)
        of_digits = experiment.of_digits(rng, self.dimension)
        sizes = Sizes(self.seeds * self.runs, self.examples, self.dimension, self.rounds)
        means = lambda each: each.reshape(self.seeds, self.runs, -1).mean(1)
        of_shares = lambda fresh: np.concatenate(
            [
                means(experiment.mix(rng, gaussian, sizes, share, fresh=fresh))
                for share in self.shares
            ],
            1,
        )
        kept = lambda refreshed: means(experiment.keep(rng, gaussian, sizes, refreshed=refreshed))
        return kit.seen(
            replaced=("seed round", means(experiment.replace(rng, gaussian, sizes))),
            kept=("seed round", kept(refreshed=False)),
            refreshed=("seed round", kept(refreshed=True)),
            mixed=("seed alpha", of_shares(fresh=True)),
            stale=("seed alpha", of_shares(fresh=False)),
            on_digits=("seed round", means(experiment.replace(rng, of_digits, sizes))),
            digits_kept=(
                "seed round",
                means(experiment.keep(rng, of_digits, sizes, refreshed=False)),
            ),
        )

    def derive(self, law, seen):
        """Return errors on digits over those of the first round, and the best share of each group of runs."""
        shares = np.array(self.shares)
        best = [theory.best_share(shares, errors) for errors in seen.mixed.values]
        return {
            "digits": seen.on_digits / seen.on_digits.isel(round=0, drop=True).mean("seed"),
            "best": xarray.DataArray(best, dims="seed"),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "replaced",
            law.replaced,
            seen.replaced,
            0.08,  # the interval takes 3 to 5 %
            label="error where labels are replaced",
        )
        yield kit.follows(
            "digits",
            law.digits,
            seen.digits,
            0.09,  # the interval of the first round is as wide as the intervals of the others
            label="error on digits where labels are replaced, over the error of the first round",
        )
        yield kit.follows(
            "kept",
            law.kept,
            seen.kept,
            0.08,  # the interval takes 3 to 4 %
            label="error where all are kept",
        )
        yield kit.follows(
            "mixed",
            law.mixed,
            seen.mixed,
            0.08,  # the interval takes 3 to 4 %
            label="error with a share of true labels",
        )
        yield kit.follows(
            "best",
            law.best,
            seen.best,
            0.04,  # the cubic takes 0.001, the interval 0.02
            absolute=True,
            label="share at which the error is least",
        )

    def rivals(self, setting, law):
        n = law["round"]
        fit = law.replaced / n
        harmonic = (1 / n).cumsum("round")
        alpha = law.alpha
        first = float(law.replaced[0])
        yield kit.rival(
            "√n times as much",
            "errors of rounds are independent, and their distance grows like the root",
            replaced=fit * n**0.5,
            digits=n**0.5,
        )
        yield kit.rival(
            "twice as much each round",
            "each round has the last one's errors and adds as many",
            replaced=fit * 2.0 ** (n - 1),
            digits=2.0 ** (n - 1),
        )
        yield kit.rival(
            "π²/6 from the second round on",
            "the paper's bound is its value",
            id="bound",
            kept=fit * xarray.where(n > 1, BOUND, 1.0),
        )
        yield kit.rival("Σ 1/k", "the k-th round is one of k", kept=fit * harmonic)
        yield kit.rival(
            "least error with only true labels",
            "a model's own labels hold nothing that it does not know",
            mixed=first * (1 + (1 - alpha)),
            best=1.0,
        )
        yield kit.rival("best at one half", "both fits see as many labels", id="half", best=0.5)
        yield kit.rival(
            "α² + (1 − α)²",
            "labels of a good model are as good as true ones",
            mixed=first * (alpha**2 + (1 - alpha) ** 2),
        )

    def controls(self, seen):
        yield kit.control(
            "all data kept in the place of replaced",
            "the first labels are true, and stay",
            id="kept",
            replaced=seen.kept,
            on_digits=seen.digits_kept,
        )
        yield kit.control(
            "old inputs with new labels of the last model",
            "then no label is as it was",
            kept=seen.refreshed,
        )
        yield kit.control(
            "only the true labels of the first round",
            "the same true labels in each round leave their error",
            mixed=seen.stale,
        )

    def figure(self, law, seen, rivals):
        first = float(law.replaced[0])
        rounds = np.arange(1, self.rounds + 1)
        wrong = {"bound π²/6": rivals["bound"].kept / first} if rivals else {}
        shares = np.linspace(0.3, 1.0, 60)
        yield kit.curves(
            "Refitted to its own labels, a model errs n times as much",
            law.replaced / first,
            seen.replaced / first,
            over="round",
            x="round n",
            y="error / error of one fit",
            more=(
                kit.observed_curve(
                    rounds, seen.digits.mean("seed").values, "digits", kind="points", shade=0.7
                ),
            ),
            ylim=(0, None),
        )
        yield kit.curves(
            "With all data kept it hardly errs more",
            law.kept / first,
            seen.kept / first,
            over="round",
            x="round n",
            y="error / error of one fit",
            rivals=wrong,
            ylim=(0, 2),
        )
        yield kit.panel(
            "A share of true labels: best at the golden ratio",
            "share α of true labels",
            "error / error of one fit",
            kit.observed_curve(self.shares, seen.mixed.mean("seed").values / first, kind="points"),
            kit.predicted_curve(shares, theory.mixed(shares, self.rounds), "theory"),
            kit.context_curve((theory.GOLDEN, theory.GOLDEN), (0.5, 1.0), "0.618"),
        )
